"""Chinese wordings of facts, one a line, in the notation of `indexer.language.facts_clause`: data alone.

A line with `@` gives words a name, by which the lines below call them: `{moves}`.

The blanks are for the reader: 「S 住 在 V」 finds 「小李住在南京」. Words of time may stand between any two,
and 「了」 behind each. A relation is an attribute with one value at a time, but for those that `chinese_claims` reads
in a way of their own.
"""

import re

from indexer.language.fact_tables import Script

_TIMES = (
    "(?:现在|目前|如今|已经?|刚刚?|最近|上周|上个?月|去年|今年|昨天|今天|以后|今后|从现在起|从今天起|一直|统一|都|正式|马上|又|就|全部"
    r"|全家|后来|决定|我已|被|再|已被|起|每次|本季度|从?\d{4}年(?:\d+月)?起?|从[\d一二三四五六七八九十]+月(?:份|\d+[日号])?起?|[\d一二三四五六七八九十]+月份?起|\s)*"
)
CHINESE_SCRIPT = Script(
    gap=_TIMES,
    first_gap="^",
    word_end="了?",
    parts={
        "F": "(?P<f>[^，,。；;]{1,20}?)",
        "O": "(?P<o>[^，,。；;]{1,20}?)",
        "N": "(?P<n>[^，,。；;：:]{1,25}?)",
        "V": "(?P<v>[^，,。；;：:]{1,20}?)",
    },
    firsts={
        "S": "^(?P<s>[^，,。；;：:]{0,20}?)",
        "F": "^(?P<f>[^，,。；;：:]{1,25}?)",
        "O": "^(?P<o>[^，,。；;：:]{1,20}?)",
        "N": "^(?P<n>[^，,。；;：:]{1,25}?)",
        "V": "^(?P<v>[^，,。；;：:的]{1,12}?)",
    },
    lasts={name: f"(?P<{name.lower()}>[^，,。；;！!]{{1,40}}?)" for name in "FONV"},
    end="(?:了|啦|吧|呢)?[。！!]?$",
    units=re.compile("[\u4e00-\u9fff]"),
)

# States that a thing is in, one at a time.
STATES_ZH = (
    "进行中|审核中|评审中|开发中|测试中|合并|关闭|完成|上线|下线|暂停|取消|发布|解决|修复|搁置|归档|废弃|启用|停用|重新打开"
    "|打开|阻塞|延期|部署|交付|通过审核|启动|恢复|停止|付款|支付|处理|开启|签署|签字|验收|报销|批准|审批|回复|发货|收货"
    "|退款|确认|锁定|解锁|提交|交|付"
)
# Ends of words for what somebody does.
JOBS_ZH = tuple(
    "工程师 设计师 架构师 分析师 经理 总监 主管 主任 主编 编辑 老师 教师 教授 医生 护士 护士长 律师 会计 顾问"
    " 厨师 实习生 司机 程序员 研究员 组长 校长 院长 部长 科长 处长 店长 销售 专员 专家 助理 总裁 副总 合伙人"
    " 学生 研究生 博士 博士生 飞行员 警察 管理员 记者 作家 演员".split()
)

CHINESE_WORDINGS = r"""
@moves 改/改名/改期/换/变/变更/调/调整/调高/调低/升/升级/涨/涨价/上涨/降/降价/下降/上调/下调/提高/提升/降低
@moves 推迟/推/提前/延期/延/延后/延长/顺延/缩短/移/挪/迁移/切换/切/转/移交/交/交接/转交/更新/修改/修正/更正
@moves 纠正/恢复/还原/回退/重置/增加/增/增长/增至/减少/减/削减/扩大/扩容/缩小/放宽/收紧/压缩/升至/降至/定/设
@moves 设置/设定/替换/转换
@into 成/为/到/至/回/回到/给/由/在/用/成了
@switches 换成/换到/换为/换用/换回/改成/改为/改用/改回/切换到/切换成/切换为/切到/切回/迁移到/迁到/转到/转向
@switches 转用/替换成/替换为/升级到/换

attribute!    [把/将] N [从/由 F] ~{moves} {into} V
attribute!    S ~把/将 N [从/由 F] {moves} {into} V
attribute!    N 加到/减到/提到/调到/达到/升至/降至/增至/减至/涨至 V
attribute     N 是/为/就是/仍是/等于 V
attribute     N ~定/安排/约/放/订/设 在/为/于/到 V
attribute:on  N ~在 V
attribute     N 达/共/共有/有/至少/最多/不超过 V

location!     S [从 F] ~搬/迁/搬家/迁居/移居/搬迁/移民 到/去/至/往/回到/回/来 V
location      S ~住/租住/暂住/居住/定居/常住/常驻/现居/生活 [在/到/于/进] V
location      S ~老家/家 在 V
employer!     S [从 F] [离职] ~跳槽/入职/加入/加盟/转投 [到/去/至] V [工作/上班/任职]
employer!     S ~回/回到 V 工作/上班/任职
employer      S ~在/于 V 工作/上班/任职/就职/供职
ended         S 从 V ~离职/辞职/离开
ended         S ~离开/辞去 V
school        S ~就读 [于/在] V
school        S ~上学/读书 于/在 V
school!       S [从 F] ~转学/升学/考 到/至/去/入/上/进 V
school        S ~在 V 读书/上学/念书
learning?     S ~学/学习/在学/改学/主修/攻读/练 V
vehicle?      S ~开/开的是/驾驶 V
place?        N [改] ~在 V 举行/举办/召开/集合/见面/办/开/进行/碰头/碰面
allergic?     S 对 V ~过敏
language      S ~希望/想要/要求/习惯/喜欢 用/使用 V 回答/回复/交流/沟通/作答
language      S ~用/使用/改用 V 回答/回复/作答/回答我/回复我/和我说话
plan          S ~订/订阅/购买/使用/用/升级/降级/升/换 [的是/的/到/成/为/至] V 套餐/版套餐
manager       S ~向 V 汇报
target        S ~部署/托管/发布/存放/存/运行/跑/架设/放 在/到/于 V
target        S ~基于/构建于 V
age           S V=\d+/[一二三四五六七八九十]+ ~岁
price         N ~卖/售/要/收费/需要/只要/每月/每年/每人/每晚/每天/每小时/每次/月租/年费 V
amount        N ~要/要跑/需要/需要跑/只要/耗时/用时 V
amount        N ~每月/每年/每人/每天/至少/最多/不超过 V

owner         N [改] ~由 V 负责/接手/接管/牵头/跟进/处理/主管
maintainer    N [改] ~由 V 维护
manager       N [改] ~由 V 管理
lead          N [改] ~由 V 领导/带领
owner!        V ~接手/接管/接替/接任 O
owner         V ~负责/牵头 O
maintainer    V ~维护 O
manager       V ~管理/主管 O
owner         O ~分/分配/指派/派 给 V
owner!        O ~改派/转派/转交/转 给 V
owner!        O ~交接/移交/转交/交 给/由 V [负责]
holder        V 是/担任 N
holder!       V ~成为/当上/出任/升任/接任 N

switched!     S ~用 V 替换/取代/代替/替代/换掉 F
switched!     S ~从/由/把/将 F {switches} V
switched!     S ~{switches} V
use           S [改/换/转/只] ~用/使用/采用/选用 [的是/上/回] V
renamed!      [把/将] F ~改名/更名/重命名/改叫/改称/现在叫/现在叫做/现称 [为/叫/成/作] V
called        O 叫/叫做/名叫/名为/称为 V
name:me!      S ~叫/称呼 我/我们/他/她/用户 V
prefer        S ~更喜欢/更偏好/偏好/更爱/比较喜欢/更倾向/更倾向于/喜欢上 [用/使用/喝/吃/坐] V
role!         S ~升/升任/晋升/升职/升级/提拔/转岗/当上/成为/改任/转 [为/成/到/做] V
role          S 是/担任/任/做 V

on:like       S 喜欢/爱吃/爱喝/爱玩/爱看/爱听/热爱 [用/喝/吃/玩/看/听] V
on:drink      S 喝/喝回 V
on:eat        S 吃 V
on:play       S 玩 V
on:keep       S 养 V
on:smoke      S 抽 V
on:speak      S 说/会说 V

is:employment=失业          S ~失业/待业
is:employment=在职!         S ~找到/有 工作/新工作
is:smoking=no!             S ~戒烟
is:smoking=yes             S ~抽烟/吸烟
is:diet=吃素               S ~吃素/吃全素/吃纯素/素食
is:diet=吃荤               S ~吃肉/吃荤
is:relationship=结婚!      S ~结婚/成家/领证
is:relationship=结婚       S ~已婚
is:relationship=订婚!      S ~订婚
is:relationship=离婚!      S ~离婚/离异
is:relationship=单身       S ~单身/恢复单身
is:relationship=单身!      S ~分手
is:relationship=恋爱       S ~恋爱/谈恋爱/处对象
grade         S [在] ~上/读/升 [到/入] V=[高初大][一二三四]/[一二三四五六七八九]年级
is:grade=幼儿园            S [在] ~上/读 幼儿园
is:grade=小学              S [在] ~上/读 小学/小学了
is:grade=初中              S [在] ~上/读 初中
is:grade=高中              S [在] ~上/读 高中
is:grade=大学              S [在] ~上/读 大学
"""
