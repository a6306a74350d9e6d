"""Chinese words before a colon, and of units: data alone."""

from indexer.language.base import Labels, PersonNames, Units

_ANSWERS = {
    "shop": "购于 购买 商店 店家",
    "employer": "公司 单位 雇主",
    "job": "职业 职位 工作",
    "home": "住址 住在 地址 城市",
    "origin": "籍贯 来自 国籍",
    "place": "位置 地点 存放 放在 在 房间",
    "price": "价格 费用 价钱 租金",
    "birth": "生日 出生 年龄",
    "brand": "品牌 牌子 厂家 制造商",
    "contact": "电话 手机 邮箱 联系方式",
    "size": "尺寸 高度 宽度 长度 面积",
    "weight": "重量 体重",
    "owner": "所有者 主人 归属",
    "lead": "负责人 负责 联系人",
    "spouse": "配偶 妻子 丈夫",
}

CHINESE_LABELS = Labels(
    notes=frozenset("注意 备注 提示 待办 说明 警告 例如 重要".split()),
    addresses=frozenset("備註 待辦 說明".split()),
    remarks=frozenset("记住 請記住 请记住 規則 规则 结果 错误 报错".split()),
    subjects_within=(
        "注意|提醒|备注|備註|说明|說明|结论|結論|决定|決定|问题|問題|原因|方案|错误|錯誤|警告|总结|總結"
        "|记住|記住|记得|記得|记下|記下|记一下|記一下|别忘|別忘|备忘|我|你|您|请|請|以后|以後|背景|目标|目標|步骤|步驟"
        "|结果|結果|任务|任務|时间|時間|地点|地點|地址|电话|電話|密码|密碼|账号|用户|用戶|助手|例如|比如|另外|更新|要求"
        "|规则|規則|计划|計劃|截止|待办|第.步"
    ),
    asking={
        "shop": "在哪.{0,8}买|哪家店",
        "employer": "在哪.{0,6}(?:工作|上班)|哪家公司",
        "job": "做什么工作|什么职业",
        "home": "住(?:在)?哪",
        "origin": "哪里人|来自哪",
        "place": "在哪|哪里|哪儿|放哪",
        "price": "多少钱|什么价",
        "birth": "几岁|多大|哪年出生",
        "brand": "什么牌子|哪个牌子|谁制造",
        "contact": "怎么联系|如何联系",
        "size": "多大尺寸|多[高宽长]",
        "weight": "多重",
        "owner": "谁的|属于谁",
        "lead": "谁负责|负责人",
        "spouse": "配偶|跟谁结婚",
    },
    answers={kind: frozenset(words.split()) for kind, words in _ANSWERS.items()},
)

CHINESE_UNITS = Units(
    times={
        0.001: "毫秒",
        1: "秒|秒钟",
        60: "分钟",
        3_600: "小时",
        86_400: "天",
        604_800: "周|星期",
        2_592_000: "个月",
        31_536_000: "年",
    },
    sizes={1: "字节", 1e6: "兆"},
    counts={1e4: "万", 1e8: "亿"},
    money={"eur": "欧元", "usd": "美元", "cny": "元|块|人民币"},
    large_money={"万元": ("cny", 1e4), "亿元": ("cny", 1e8)},
    others={"%": "百分点", "char": "字", "user": "人", "kg": "公斤", "km": "公里", "m": "米", "台": "台", "倍": "倍"},
)

CHINESE_NAMES = PersonNames()
