"""Chinese words of days: data alone."""

from indexer.language.base import Days

_WEEK = "周|週|星期|礼拜|禮拜"
_NUMERALS = r"\d{1,2}|[一二三]?十[一二三四五六七八九]?|[一二三四五六七八九]"
# In "晚上周岚说", "网上月租" and "楼下周边" there is no week and no month.
_SHIFT = "(?P<shift>(?<![晚早会会網网線线以上])上{1,2}|[这這本]|(?<![天楼樓地以如底之脚当當])下)"
_COUNT = r"(?P<count>\d{1,3}|[一二两兩三四五六七八九十]{1,3}|[几幾数數])\s*"
_UNIT = rf"(?P<unit>天|日(?!期)|个?個?(?:{_WEEK}|月)|年|个?個?(?:小时|小時|钟头|鐘頭|分钟|分鐘))"

CHINESE_DAYS = Days(
    weekdays={sign: at for at, signs in enumerate(("一", "二", "三", "四", "五", "六", "日天")) for sign in signs},
    shifts={"上上": -2, "上": -1, "下": 1},
    counts=dict.fromkeys("几幾数數", (2, 6)),
    units={
        "天": "day",
        "日": "day",
        "周": "week",
        "週": "week",
        "期": "week",
        "拜": "week",
        "月": "month",
        "年": "year",
    },
    relative=(
        ("大前天", "-3"),
        ("(?<![大以之当當目从從])前天(?![天气氣])", "-2"),
        ("昨[天晚日]", "-1"),
        ("今[天早晚日]", "0"),
        ("(?<![透])明[天早晚日]", "1"),
        ("(?<![大然以之最先])[后後]天(?![天气氣性])", "2"),
        ("大[后後]天", "3"),
        (rf"{_SHIFT}个?個?(?:{_WEEK})(?P<weekday>[一二三四五六日天])", "day of week"),
        (rf"{_SHIFT}个?個?(?:{_WEEK})末", "weekend"),
        (rf"{_SHIFT}个?個?(?:{_WEEK})(?![末边邊围圍刊])", "week"),
        (rf"{_SHIFT}个?個?月(?P<day>{_NUMERALS})[日号號]", "day of month"),
        (rf"{_SHIFT}个?個?月(?!(?:{_NUMERALS})[日号號]|[亮饼餅球光色])", "month"),
        (rf"(?<![第\d]){_COUNT}{_UNIT}[之以]?前(?![端台臺后後景提])", "ago"),
        (rf"(?:[过過]去|最近|(?<![最附])近|[这這]){_COUNT}{_UNIT}(?![之以]?[前后後])", "until now"),
        ("前(?P<count>[几幾两兩])(?P<unit>天)", "ago"),
    ),
    years={"大前年": -3, "前年": -2, "去年": -1, "今年": 0, "明年": 1},
    shifted_years=("大前年|(?<![以之从從目大])前年(?![轻輕龄齡少])|(?<![过過])去年|今年|(?<![透])明年",),
    latest_within="最近|近来|近來|近期|最新|这几天|這幾天",
    happening_within="(?:发生|發生|[干做幹])[了过過]?(?:什么|什麼|甚么|甚麼|啥)|[发發]生",
    numerals=_NUMERALS,
    year_numerals="(?:19|20)\\d\\d|[一二][〇零○一二三四五六七八九]{3}",
    week=_WEEK,
    year_signs="年",
    month_signs="月",
    day_signs="日|号",
    stamp_signs="日|号|號",
    leads="截至|截止|自从?|从|于|在|到",
    onwards="起|开始|以后|之后",
    near_within=("今夜|[今明昨后前]天|周[一二三四五六日末]|星期[一二三四五六日天]|[上下本]周|[上下本]个?月|天[前后]"),
)
