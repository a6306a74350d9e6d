"""The agreement matrix of `same`: sentences, and what changed in them makes another fact or does not."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from indexer.language.terms import simplify
from memory_service.text.similarity import read_fact, same


class Base(NamedTuple):
    """A sentence and its changes: the kind of the change, what stands there, what takes its place."""

    text: str
    changes: tuple[tuple[str, str, str], ...]


ENGLISH = (
    Base("The greenhouse opens at 7 on Monday.", (
        ("number", "7", "8"), ("day", "Monday", "Sunday"), ("negation", "opens", "never opens"),
        ("product", "greenhouse", "workshop"), ("direction", "opens", "closes"))),
    Base("Mara prefers the blue pots for the balcony.", (
        ("colour", "blue", "green"), ("name", "Mara", "Nora"), ("negation", "prefers", "doesn't prefer"),
        ("product", "pots", "bowls"), ("person", "Mara prefers", "I prefer"))),
    Base("Always ship live plants over the weekend to Austria.", (
        ("negation", "Always", "Never"), ("name", "Austria", "Australia"), ("day", "over the weekend", "on weekdays"),
        ("product", "plants", "fish"), ("direction", "to Austria", "from Austria"))),
    Base("The orders live in Postgres 15 on the backup host.", (
        ("product", "Postgres", "MySQL"), ("number", "15", "16"), ("negation", "live", "do not live"),
        ("state", "live", "lived"), ("place", "backup", "main"))),
    Base("Anna Berger moved the archive from Linz to Graz in March.", (
        ("direction", "from Linz to Graz", "from Graz to Linz"), ("day", "March", "May"),
        ("name", "Anna", "Anja"), ("state", "moved", "will move"), ("product", "archive", "library"))),
    Base("Run the import before the backup.", (
        ("direction", "import before the backup", "backup before the import"), ("order", "before", "after"),
        ("negation", "Run", "Don't run"), ("product", "import", "export"))),
    Base("The night limit is 30 requests per minute for guests.", (
        ("number", "30", "300"), ("unit", "minute", "hour"), ("name", "guests", "members"),
        ("negation", "is", "isn't"), ("product", "limit", "quota"))),
    Base("Client Keller pays 1,250 EUR every 14 days.", (
        ("number", "1,250", "1,520"), ("unit", "EUR", "USD"), ("swapped", "1,250 EUR every 14", "14 EUR every 1,250"),
        ("name", "Keller", "Kessler"), ("negation", "pays", "no longer pays"))),
    Base("Turn the heating up when it's below 5 degrees outside.", (
        ("direction", "up", "down"), ("number", "5", "-5"), ("order", "below", "above"),
        ("negation", "Turn", "Never turn"), ("product", "heating", "cooling"))),
    Base("Port 8443 belongs to the gateway and 9443 to the dashboard.", (
        ("swapped", "8443 belongs to the gateway and 9443", "9443 belongs to the gateway and 8443"),
        ("number", "9443", "9444"), ("negation", "belongs", "does not belong"),
        ("product", "dashboard", "scheduler"))),
    Base("Ben reports to Sofia Lind since Tue 2024-03-05.", (
        ("direction", "Ben reports to Sofia Lind", "Sofia Lind reports to Ben"), ("day", "Tue", "Thu"),
        ("day", "2024-03-05", "2024-05-03"), ("name", "Lind", "Lund"))),
    Base("the label printer uses red tape and the scanner is grey", (
        ("colour", "red", "blue"), ("colour", "grey", "green"), ("swapped", "red tape and the scanner is grey",
         "grey tape and the scanner is red"), ("negation", "uses", "cannot use"), ("product", "scanner", "camera"))),
    Base("The team's retro isn't on Fridays any more.", (
        ("negation", "isn't", "is"), ("day", "Fridays", "Thursdays"), ("product", "retro", "demo"),
        ("name", "team's", "board's"))),
    Base("Leo is allergic to peanuts, but he eats almonds.", (
        ("negation", "is allergic", "is not allergic"), ("product", "almonds", "walnuts"), ("name", "Leo", "Theo"),
        ("person", "he eats", "she eats"), ("swapped", "peanuts, but he eats almonds",
         "almonds, but he eats peanuts"))),
    Base("Deploy app/worker.py with feature flag NEW_CART turned off.", (
        ("direction", "off", "on"), ("name", "worker.py", "web.py"), ("product", "NEW_CART", "OLD_CART"),
        ("negation", "Deploy", "Do not deploy"))),
    Base("Version 2.3.1 increased memory use by 12% on arm64.", (
        ("number", "2.3.1", "2.1.3"), ("direction", "increased", "decreased"), ("number", "12%", "21%"),
        ("unit", "12%", "12 MB"), ("name", "arm64", "amd64"))),
)  # fmt: skip
CHINESE = (
    Base("花房周一上午9点开门。", (
        ("number", "9", "8"), ("day", "周一", "周日"), ("negation", "开门", "不开门"),
        ("direction", "开门", "关门"), ("product", "花房", "仓库"), ("day", "上午", "下午"))),
    Base("我们决定用红色包装盒发货。", (
        ("colour", "红色", "蓝色"), ("negation", "用", "不用"), ("product", "包装盒", "手提袋"),
        ("direction", "发货", "收货"))),
    Base("周末一律发活体植物到奥地利", (
        ("negation", "一律发", "一律别发"), ("name", "奥地利", "澳大利亚"), ("day", "周末", "周五"),
        ("product", "植物", "鱼苗"))),
    Base("张伟把档案从杭州搬到了苏州。", (
        ("direction", "从杭州搬到了苏州", "从苏州搬到了杭州"), ("name", "张伟", "张维"),
        ("negation", "把档案", "没把档案"), ("product", "档案", "书架"), ("state", "搬到了", "要搬到"))),
    Base("订单数据存放在Postgres里，备份放在三号机房。", (
        ("product", "Postgres", "MySQL"), ("number", "三号", "四号"), ("negation", "存放在", "不存放在"),
        ("place", "机房", "仓库"))),
    Base("预发环境的网关端口是8443，由李娜负责。", (
        ("number", "8443", "8434"), ("name", "李娜", "李楠"), ("negation", "端口是", "端口不是"),
        ("place", "预发", "生产"), ("product", "网关", "面板"))),
    Base("先导入订单再备份数据库。", (
        ("direction", "导入订单再备份数据库", "备份数据库再导入订单"), ("negation", "先导入", "别先导入"),
        ("product", "订单", "库存"), ("product", "数据库", "日志"))),
    Base("客户陈芳每14天付款1250元。", (
        ("number", "14", "15"), ("number", "1250", "1520"), ("swapped", "14天付款1250", "1250天付款14"),
        ("unit", "天", "周"), ("name", "陈芳", "陈方"))),
    Base("温度低于5度时把暖气调高。", (
        ("direction", "调高", "调低"), ("order", "低于", "高于"), ("number", "5", "-5"),
        ("product", "暖气", "空调"), ("negation", "把暖气", "别把暖气"))),
    Base("王敏喜欢绿色的花盆，不喜欢塑料的", (
        ("colour", "绿色", "蓝色"), ("negation", "不喜欢", "也喜欢"), ("name", "王敏", "王明"),
        ("product", "花盆", "花瓶"))),
    Base("刘洋向赵静汇报，赵静在北京办公。", (
        ("direction", "刘洋向赵静", "赵静向刘洋"), ("name", "刘洋", "刘阳"), ("place", "北京", "南京"),
        ("negation", "汇报", "不再汇报"))),
    Base("新版本上线前必须做两次压力测试。", (
        ("order", "上线前", "上线后"), ("number", "两次", "三次"), ("negation", "必须", "不必"),
        ("product", "压力测试", "安全测试"))),
    Base("孙丽对花生过敏，但可以吃杏仁。", (
        ("negation", "对花生过敏", "对花生不过敏"), ("product", "杏仁", "核桃"),
        ("swapped", "花生过敏，但可以吃杏仁", "杏仁过敏，但可以吃花生"), ("name", "孙丽", "孙莉"))),
    Base("下周三之前把蓝色标签寄给维也纳门店。", (
        ("day", "下周三", "下周四"), ("colour", "蓝色", "黄色"), ("order", "之前", "之后"),
        ("negation", "把蓝色", "别把蓝色"), ("name", "维也纳", "萨尔茨堡"), ("day", "下周三", "上周三"))),
    Base("2.3.1版的内存占用增加了12%。", (
        ("number", "2.3.1", "2.1.3"), ("direction", "增加", "减少"), ("number", "12%", "21%"),
        ("negation", "增加了", "没有增加"), ("product", "内存", "磁盘"))),
    Base("每周四晚上备份订单库，周五不备份。", (
        ("swapped", "每周四晚上备份订单库，周五", "每周五晚上备份订单库，周四"),
        ("negation", "周五不备份", "周五要备份"),
        ("day", "晚上", "早上"), ("product", "订单库", "日志库"))),
)  # fmt: skip


def _lower_first(text: str) -> str:
    word = text.split()[0]
    return text if word[1:] != word[1:].lower() or word in _NAMES else text[0].lower() + text[1:]


_NAMES = {"Mara", "Anna", "Ben", "Leo"}
SAME_ENGLISH: dict[str, Callable[[str], str]] = {
    "case": str.upper,
    "stop": lambda text: text[:-1] if text.endswith(".") else text + ".",
    "frame": lambda text: f"The user said that {_lower_first(text)}",
    "label": lambda text: f"User: {text}",
    "note": lambda text: f"- Please note that {_lower_first(text)} (log:12-14)",
    "space": lambda text: "  " + text.replace(" ", "   ") + "\n",
    "commas": lambda text: text.replace(", but", " but").lower().rstrip("."),
    "shortened": lambda text: (
        text.replace("isn't", "is not").replace("it's", "it is").replace("Tue ", "Tuesday ").replace("1,250", "1250")
        .replace("Monday", "Mon").replace("March", "Mar").replace("is not allergic", "isn't allergic")
    ),
}  # fmt: skip
_TRADITIONAL = str.maketrans(
    "们决红装发货张档从开门备单数据库约时调测试过敏维纳标签给店内存减",
    "們決紅裝發貨張檔從開門備單數據庫約時調測試過敏維納標籤給店內存減",
)
_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x30, 0x3A)} | {ord("%"): "％"}
SAME_CHINESE: dict[str, Callable[[str], str]] = {
    "stop": lambda text: text[:-1] if text.endswith("。") else text + "。",
    "frame": lambda text: f"用户说{text}",
    "report": lambda text: f"用户提到：{text}",
    "label": lambda text: f"用户：{text}",
    "note": lambda text: f"- 请记住：{text}（log:3）",
    "space": lambda text: re.sub("(?<=[一-鿿])(?=[一-鿿])", " ", text),
    "commas": lambda text: text.replace("，", "").rstrip("。"),
    "full width": lambda text: text.translate(_FULL_WIDTH),
    "traditional": lambda text: text.translate(_TRADITIONAL),
    "weekday": lambda text: text.replace("周一", "星期一").replace("周三", "礼拜三").replace("周四", "星期四"),
}
SPEAKERS = (
    ("Ingrid: the gateway listens on port 8443", "Marcus: the gateway listens on port 8443", True),
    ("Assistant: the gateway listens on port 8443", "User: The gateway listens on port 8443.", True),
    ("Anna said that the gateway listens on port 8443", "the gateway listens on port 8443", True),
    ("Ingrid: I am allergic to peanuts and soy", "Marcus: I am allergic to peanuts and soy", False),
    ("Ingrid: allergic to peanuts and soy", "Marcus: allergic to peanuts and soy", False),
    ("User: I will send the invoice today", "Assistant: I will send the invoice today", False),
    ("李雷：预发网关的端口是8443", "王芳：预发网关的端口是8443", True),
    ("助手：预发网关的端口是8443", "预发网关的端口是8443。", True),
    ("李雷：我对花生和大豆过敏", "王芳：我对花生和大豆过敏", False),
    ("李雷：对花生和大豆都过敏", "王芳：对花生和大豆都过敏", False),
    ("用户：我今天发发票给陈芳", "助手：我今天发发票给陈芳", False),
)


def pairs() -> Iterator[tuple[str, str, str, bool]]:
    """The kind of a change, the text before and after it, and whether both state the same fact."""
    for bases, kept in ((ENGLISH, SAME_ENGLISH), (CHINESE, SAME_CHINESE)):
        for base in bases:
            for kind, old, new in base.changes:
                assert base.text.count(old) == 1 or kind == "product", (base.text, old)
                yield kind, base.text, base.text.replace(old, new, 1), False
            for kind, change in kept.items():
                if (changed := change(base.text)) != base.text:
                    yield kind, base.text, changed, True
    for one, other, is_same in SPEAKERS:
        yield "speaker", one, other, is_same


def test_it_agrees_in_99_of_100_pairs() -> None:
    judged = [(kind, one, other, is_same) for kind, one, other, is_same in pairs()]
    missed = [
        f"{kind}: {'the same' if is_same else 'two facts'}: {one!r} / {other!r}\n"
        for kind, one, other, is_same in judged
        if not (same(read_fact(one), read_fact(other)) is same(read_fact(other), read_fact(one)) is is_same)
    ]
    sys.stdout.writelines(missed)
    chinese = sum(not simplify(one).isascii() for _, one, _, _ in judged)
    assert len(judged) >= 300 and 0.4 < chinese / len(judged) < 0.6
    assert len(missed) <= 0.01 * len(judged), f"{len(missed)} of {len(judged)} are judged wrongly:\n{''.join(missed)}"
