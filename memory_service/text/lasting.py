"""Lasting words of a user: requests to remember, wishes for every answer, facts about oneself and values. Pure.

Invariants: linear; one sentence is judged at a time, by how a clause begins and goes on, never by single words: "I
remember" asks for nothing, "I work on it" and 「我喜欢这个」 tell nothing that anybody could look up later. English and
Chinese, in both scripts, have the same classes.
"""

from __future__ import annotations

from indexer.common import lazy_regex
from indexer.language import ANY, facts_of, is_tool

_REMEMBER = lazy_regex(
    r"""(?x)(?:^|[,;.–—-]\s|\b(?:please|and|also|must|should|you\sto)\s)
    (?:(?:remember|(?:keep|bear)\sin\smind|do(?:n['’]?t|\snot)\s(?:ever\s)?forget|(?:make|take)\sa?\s?note(?:\sof)?
      |for\s(?:the|your)\s(?:record|information))(?:[:,]|\sthat\b[:,]?)?|note(?::|\sthat))
    \s(?!when\b|how\b|the\stime\b|me\b|it\b|that\b|this\b)\S.{5}"""
)
_REMEMBER_HAN = lazy_regex(
    "(?:^|[，,；;。！!]|请|請|[帮幫替]我|[你您得要]|好好|务必|務必|一定)"
    "(?:(?:记|記)(?:住|下来?|下來|一下|得(?!住)|好)|牢[记記]|[别別勿]忘[记記了]?|不要忘[记記了]?)"
    "(?!了?[吗嗎吧没沒？?。！!]|了$)[:：，, ]{0,2}[^，。！？!?]{3}"
)
# How the writer wants to be answered or called, every time.
_ADDRESS = lazy_regex(
    r"""(?x)(?:^|[,;–—-]\s|\b(?:please|and|also|always)\s)(?:answer|reply|respond|write|talk|speak|address)
    \s(?:back\s)?(?:to\s)?me\s(?:in|with|as|only)\s[a-z]
    |(?:^|[,;–—-]\s|\b(?:please|just|and|can)\s)call\sme\s
     (?!back|later|when|if|at|on|in|by|after|before|asap|again|to(?:day|night|morrow)|now|crazy|old)[a-z]
    |\bmy\sname['’]s\s[a-z]"""
)
_ADDRESS_HAN = lazy_regex(
    "(?:回复|回復|回覆|回答|答复|答覆)我.{0,8}?[用以说說][^，。！？]{2}|用[^，。！？]{1,8}(?:回复|回復|回覆|回答|答复|答覆)我"
    "|(?:^|[，,。；;]|请|請|以[后後]|可以|都|就)(?:称呼|稱呼|叫)我(?![干去来來等怎快])[为為作做]?[^，。！？了过過]{2}"
)

# Where a clause begins: what stands in the midst of another one ("if I live …") says nothing of the writer.
_CLAUSE = r"(?:^|[,;–—-]\s|\b(?:and|but|because|since|that|fyi|btw|also|actually|well)[,:]?\s)"
_ADVERB = r"(?:(?:also|currently|now|still|mostly|mainly|usually|really|just|only|both|always|originally|absolutely)\s)"
# Not what is at hand: "it", "this plan", "the idea".
_OBJECT = r"(?!(?:it|this|that|these|those|them|the|how|what|when|where|you|your|him|her|with|from|up|out)\b)[a-z0-9]"
_STATE = (
    r"allergic|intolerant|[a-z]{2,20}[\s-]intolerant|diabetic|asthmatic|vegan|vegetarian|coeliac|celiac|married|engaged"
    r"|divorced|widowed|single|pregnant|retired|(?:left|right)-?\s?handed|colou?r-?\s?blind|deaf|blind|autistic|dyslexic"
    r"|self-employed|unemployed|bilingual|\d{1,3}(?=\syears|\W|$)"
)
_OWNED = (
    r"kids?|child|children|sons?|daughters?|twins|brothers?|sisters?|siblings?|cats?|dogs?|pets?|rabbits?|hors(?:e|es)"
    r"|parrots?|allerg(?:y|ies)|asthma|diabetes|epilepsy|migraines?|dyslexia|adhd|intolerance|condition|disability"
    r"|licen[cs]e|degree|phd|car|house|garden|boat"
)
_PEOPLE = (
    r"mother|mom|mum|father|dad|parents|brother|sister|son|daughter|kids?|child|children|wife|husband|partner|fianc[eé]e?"
    r"|girlfriend|boyfriend|uncle|aunt|cousin|nephew|niece|grand(?:ma|pa|mother|father|son|daughter)|family|neighbou?r"
    r"|roommate|flatmate|boss|manager|doctor|gp|dentist|lawyer|landlord|teacher|coach|cat|dog|pet"
)
_ATTRIBUTES = (
    r"birthday|anniversary|name|nickname|pronouns|age|job|profession|occupation|employer|company|school|university|major"
    r"|address|home|hometown|flat|apartment|house|phone|number|e-?mail|mailbox|time\s?zone|size|height|weight|diet"
    r"|allerg(?:y|ies)|blood\stype|passport|visa|insurance|religion|language|mother\stongue|hobby|hobbies|favou?rite"
    r"|car|bike|plate|locker|office|desk|laptop|parcels?|keyboard|editor"
)
_SELF = lazy_regex(
    rf"""(?x){_CLAUSE}(?:
      (?:i|we)\s{_ADVERB}{{0,2}}(?:
        live\s(?:in|at|near|on|with|by|alone|outside|close|abroad)\b
        |(?:work|teach|study|intern|volunteer)\s(?:at|for|as|in|from|nights?|part|full|remotely|shifts|freelance)\b
        |(?:come\sfrom|grew\sup|was\s(?:born|raised)|go\sby)\b
        |(?:speak|play|wear|own|drive|ride|use)\s{_OBJECT}|(?:commute|cycle)\b
        |(?:love|like|hate|dislike|adore|prefer|enjoy|dread)\s(?!to\s(?:know|see|hear|think|say|ask)\b){_OBJECT})
      |i(?:['’]m|\sam)\s(?:not\s)?{_ADVERB}?(?:{_STATE})\b
      |i(?:['’]m|\sam)\s{_ADVERB}?(?:(?:from|based\sin|married\sto)\s{_OBJECT}
        |an?\s(?!bit|little|lot|tad|few|huge|big|while|mess|fool|idiot|bad|good|great|second|minute|moment)[a-z])
      |(?:i|we)(?:['’]ve|\shave)(?:\sgot)?\s(?:[a-z0-9'’-]{{1,16}}\s){{0,3}}(?:{_OWNED})\b
      |i\s(?:can['’]?t|cannot|don['’]?t|do\snot|never|no\slonger)\s
       (?:eat|drink|smoke|drive|fly|speak|swim|tolerate|digest|stand|like|work\son)\b(?:$|[.!,;]|\s{_OBJECT})
      |(?:my|our)\s(?:[a-z]{{2,16}}\s){{0,2}}(?:{_PEOPLE}|{_ATTRIBUTES})(?:['’]s\s[a-z]{{2,16}})?\s(?:[a-z]{{2,16}}\s)?
       (?:is|are|was|has|have|lives?|works?|goes|go|studies|study|plays?|loves?|likes?|hates?|speaks?|prefers?|attends)\b
    )"""
)

_CLAUSE_HAN = "(?:^|[，,；;。！!]) ?(?:其实|其實|因为|因為|由于|由於|但是?|而且)?"
_ADVERB_HAN = "(?:现在|現在|目前|一直|从小|從小|今年|已经|已經|刚满?|剛滿?|也|都|就|只|快|还|還|本人)"
_LIKED_HAN = "喜欢|喜歡|爱(?!人)|愛(?!人)|讨厌|討厭|偏好|偏爱|偏愛|害怕|怕|受不了"
_KIN_HAN = (
    "太太|老婆|妻子|爱人|愛人|丈夫|老公|先生|男友|女友|男朋友|女朋友|对象|未婚[夫妻]|儿子|兒子|女儿|女兒|孩子|小孩|双胞胎"
    "|爸爸?|妈妈?|媽媽?|父亲|父親|母亲|母親|父母|爸妈|哥哥?|姐姐?|弟弟?|妹妹?|爷爷|爺爺|奶奶|外公|外婆|舅舅|叔叔|阿姨"
    "|孙子|孫子|孙女|孫女|侄子|侄女|家人|室友|房东|房東|老板|老闆|上司|经理|經理|医生|醫生|老师|老師|[猫貓狗]"
)
_SELF_HAN = lazy_regex(
    f"{_CLAUSE_HAN}(?:我|我们|我們|本人)(?:家里?|家裡)?(?:[和跟与與]我?(?:{_KIN_HAN}))?{_ADVERB_HAN}{{0,3}}(?:"
    "住(?![口手])|(?<=家)在[^，。！？]{2}|(?<=[家里裡])有[^，。！？]{2}|(?:公司|单位|單位|学校|學校|办公室|辦公室|工厂|工廠|店)[在是叫有][^，。！？]{2}"
    "|(?:上班|工作|上学|上學)的(?:地方|公司|学校|學校|城市)[在是叫][^，。！？]|来自|來自|出生|毕业|畢業|[就任供]职|[就任供]職|就读|就讀|属[鼠牛虎兔龙蛇马羊猴鸡狗猪]"
    "|在(?![想看等说說找])[^，。！？]{1,14}?(?:上班|工作|上学|上學|读书|讀書|念书|任教|[当當][^，。！？]|任职|任職|实习|實習|长大|長大|生活|定居)(?!的)"
    "|是(?!说|說|指|觉|要|不|否|为|想)[^，。！？]{0,12}?(?:人|师|師|生|员|員|者|家|长|長|医|醫|手|工|农|民|族|经理|經理|总监|總監"
    "|主任|老板|老闆|左撇子|色盲|型血|座)(?=[，,。！；;]|$)|是(?:做|干|幹|搞|学|學|教|卖|賣|开|開)[^，。！？]{1,12}的"
    "|(?:姓|叫(?![你他她它了到醒]))[^，。！？]"
    "|不(?:能|会|會|太|再)?[吃喝抽碰](?!了)[^，。！？]|吃(?:素|全素|斋|齋)|(?:只|不)?[会會能]?[说說讲講][^，。！？]{1,12}?[语語文话話]"
    "|(?:有|得了|得过|得過|患|确诊|確診)[^，。！？]{0,8}?(?:病|症|炎|哮喘|过敏|過敏|癌|高血压|高血壓|低血糖)"
    "|[对對][^，。！？]{1,12}?(?:过敏|過敏)"
    "|(?:有|养|養|生)了?[一二两兩三四五六0-9几]{0,2}[个個只隻条條匹位辆輛套对對]?[^，。！？]{0,4}?"
    "(?:孩子|小孩|女儿|女兒|儿子|兒子|双胞胎|[猫貓狗犬兔鸟鳥鱼魚龟龜]|宠物|寵物|[姐妹哥弟兄]|驾照|駕照|[辆輛][^，。！？]{0,4}车)"
    "|(?:平时|平時|平常|通常|每[天晚周週月年日]|经常|經常|从来?不|從來?不|习惯|習慣|一向|常常)[^，。！？]{2}"
    f"|(?:最|比较|比較|更|很|非常|特别|特別|超|挺|不|不太|不怎么)?(?:{_LIKED_HAN})(?![你您他她它这這那上死了])[^，。！？的了啊呢吧]"
    f"|的?(?:{_KIN_HAN})们?(?:的[^，。！？]{{1,6}}?)?{_ADVERB_HAN}{{0,2}}"
    "(?:是|叫|在(?![想看等说說])|住|有|姓|对|對|不[吃喝会會能]|会|會|今年|怕|喜欢|喜歡|属|做|学|學|[0-9一二两三四五六七八九十]{1,3}岁)[^，。！？]"
    "|的(?!意思|问题|問題|想法|建议|建議|看法|观点|观點|理解|感觉|感覺|疑问|疑問|要求|目标|目標|错|錯|天)[^，。！？的]{1,12}?(?:是|叫|为|為|[：:])[^，。！？]"
    ")"
)
# "I'm Austrian", "I am Lena": in lower case they could be any word.
_CALLED = lazy_regex(
    r"(?:^|[,;] )I(?:['’]m| am) (?!Sorry|Done|Fine|Okay|Not|Here|Back|Sure|Ready|Happy|Glad)"
    r"[A-Z][a-zà-ÿ]{2,}(?: [A-Z][a-zà-ÿ]+)?(?=[.,!;]|$)"
)
# A liking, or a question announced, whose object only who was there can name.
_NAMELESS = lazy_regex(ANY.phrases.nameless)
# Attributes whose values outlive a talk, of a thing that has to be named and of whatever is spoken of; not the state,
# the size or the hour of what is at hand.
_OF_SOMETHING = frozenset(
    "location employer owner maintainer lead manager oncall captain price salary version contact school spouse partner"
    " birthday department plan deadline host port url subject address".split()
)
_OF_ALL = frozenset(
    "ceo cto cfo email region timezone database cache queue framework environment branch editor browser os shell theme"
    " provider license budget landlord language pronouns diet currency".split()
)
_OF_THE_TALK = ("@he", "@she", "@they", "@it", "@you")


def asks_to_remember(sentence: str) -> bool:
    """True if a sentence asks to remember what it says: "Remember: …", "Don't forget that …", 「记住：…」."""
    if not sentence.isascii() and _REMEMBER_HAN.search(sentence):
        return True
    return _REMEMBER.search(sentence.lower()) is not None


def wishes_address(sentence: str) -> bool:
    """True if a sentence says how to answer or call its writer: "Reply to me in German", 「请称呼我为陈博士」."""
    if not sentence.isascii() and _ADDRESS_HAN.search(sentence):
        return True
    return _ADDRESS.search(sentence.lower()) is not None


def is_about_self(sentence: str) -> bool:
    """True if a sentence tells a lasting fact of its writer: home, work, age, health, family, belongings, habits."""
    if not sentence.isascii() and _SELF_HAN.search(sentence):
        return True
    return _SELF.search(sentence.lower()) is not None or _CALLED.search(sentence) is not None


def tells_value(sentence: str) -> bool:
    """True if a sentence says a value that holds until it changes: "Kim owns billing", 「备份由林负责」."""
    for claim in facts_of(sentence).claims:
        subject, _, attribute = claim.thing.partition("|")
        relation, _, value = attribute.partition("=")
        kept = relation in _OF_ALL or (relation in _OF_SOMETHING and subject)
        if (kept or (relation in ("use", "prefer") and is_tool(value))) and not any(
            word in subject for word in _OF_THE_TALK
        ):
            return True
    return False


def names_nothing(sentence: str) -> bool:
    """True if a sentence likes, dislikes or announces what it does not name: "I prefer this one", 「我喜欢这个。」."""
    return _NAMELESS.fullmatch(sentence.lower()) is not None
