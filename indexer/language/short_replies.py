"""Short replies: assents, refusals, choices of an option, words that only say to go on. Pure.

Invariants: linear; an assent is the whole of a first sentence, so that "good morning" is none; a refusal begins a line,
in the words of whoever refuses; what only says to go on, or chooses, is the whole of a text. Thirteen languages have
the same rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from indexer.common.patterns import lazy_regex

_ASSENTS = (
    "yes|yep|yeah|yup|sure|ok|okay|okey|k|kk|good|very good|great|perfect|nice|excellent|awesome|wonderful|brilliant"
    "|lovely|fine|fine by me|fine with me|cool|exactly|right|correct|agreed|deal|sold|approved|confirmed|accepted"
    "|works|works for me|that works|that is good|that's good|all good|looks good|looks great|looks good to me"
    "|sounds good|sounds great|sounds right|good idea|good plan|lgtm|sgtm|ship it|go for it|go|go on|go ahead|proceed"
    "|please do|please go ahead|do it|do that|do so|make it so|of course|absolutely|definitely|certainly|by all means"
    "|as you say|as you suggest|i agree|i approve|i confirm|be my guest|why not|alright|all right|aye|y|\\+1"
    "|yes please|great thanks|good thanks|perfect thanks|thanks good|happy with that|i like it|i'm happy with that"
    # German
    "|ja|jawohl|gut|sehr gut|super|perfekt|passt|passt so|genau|klar|na klar|einverstanden|gern|gerne|mach das|mach mal"
    "|in ordnung|geht klar|alles klar|abgemacht|ja bitte|stimmt|prima|toll"
    # French
    "|oui|ouais|d'accord|parfait|très bien|bien|bien sûr|vas-y|allez-y|ça marche|ça me va|entendu|validé|c'est bon"
    # Spanish
    "|sí|si|vale|perfecto|de acuerdo|muy bien|claro|adelante|por supuesto|hazlo|está bien|dale|listo"
    # Italian
    "|sì|va bene|perfetto|d'accordo|certo|procedi|ottimo|benissimo|fallo|certamente"
    # Portuguese
    "|sim|certo|perfeito|pode|pode ser|pode fazer|combinado|ótimo|muito bem|tudo bem|beleza|está bom|faça isso"
    # Dutch
    "|goed|heel goed|akkoord|doe maar|doe dat|zeker|natuurlijk|klopt|mooi"
    # Swedish, Polish
    "|bra|mycket bra|självklart|kör|gör det|tak|dobrze|bardzo dobrze|zgoda|świetnie|jasne|oczywiście|zrób to"
    # Russian
    "|да|хорошо|отлично|согласен|согласна|давай|давайте|конечно|ладно|верно|супер|принято"
    # Turkish
    "|evet|tamam|olur|güzel|harika|mükemmel|elbette|tabii|tabi|onaylıyorum|yap"
    # Japanese
    "|はい|ええ|うん|いいです|いいですね|いいよ|いいね|お願いします|了解|了解です|問題ない|問題ありません|それで"
    "|承知しました|賛成|完璧"
    # Korean
    "|네|예|응|좋아|좋아요|좋습니다|좋네요|그래|그래요|그렇게 해주세요|진행해|진행해 주세요|진행하세요|동의"
    "|완벽해요|괜찮아요"
    # Chinese
    "|好|好的|好啊|好呀|很好|非常好|太好了|不错|不錯|没错|沒錯|对|對|对的|是|是的|行|行吧|可以|可以的|没问题|沒問題"
    "|同意|批准|确认|確認"
    "|嗯|嗯嗯|赞|贊|棒|完美|可行|妥|就这样|就這樣|就这么办|就這麼辦|去做吧|做吧"
)
_SIGNS = "👍👌✅💯🙌👏🆗✔☑🚀🎉😀😊🙂"
_ASSENT = lazy_regex(
    rf"\W*(?:(?:{_ASSENTS})(?:[\s,.!、，。！~]+(?:{_ASSENTS}|thanks|thank you|danke|bitte|please|merci|gracias|grazie"
    rf"|obrigado|спасибо|谢谢|謝謝|ありがとう|then|so|now))*|[{_SIGNS}\ufe0f\s]+)[\s.!。！,，~{_SIGNS}\ufe0f]*",
    re.IGNORECASE,
)
_FIRST = lazy_regex(r"[^.!?。！？\n]*[.!。！]*")
_MOST_CHARS = 300
_REFUSAL = lazy_regex(
    r"\W*(?:(?:well|hi|hello|hmm|unfortunately|regrettably)[,.!]?\s+)?(?:"
    r"(?:i['’]?m|i am|we are|we['’]re)\s(?:very |so |really |truly )?(?:sorry|afraid|unable|not able|not allowed)"
    r"|(?:very |so )?sorry\b|(?:my |i )?apolog|i\s(?:can['’]?t|cannot|can not|won['’]?t|will not|could ?n['’]?t"
    r"|must decline)\b"
    r"|i\s(?:do not|don['’]?t)\s(?:have|see|know what|understand)\b|as an? (?:ai|large language|language) "
    r"|unable to\b|there (?:is|was) (?:no|not enough|nothing)\b.{0,40}(?:conversation|summar|record|messages|content)"
    r"|no (?:conversation|content|messages|text)\b|please (?:provide|share|paste|send)\b"
    r"|(?:can|could|would) you (?:please )?(?:provide|share|paste|clarify|tell me)\b"
    r"|(?:how|what) (?:can|may|would|should) (?:i|you)\b.{0,40}\?|this (?:request|content|conversation) (?:violates"
    r"|goes)"
    r"|(?:es )?tut mir (?:sehr )?leid|leider kann|ich (?:kann|darf) (?:nicht|das|dabei|dies|ihnen|dir|leider)"
    r"|als (?:eine? )?(?:ki|sprachmodell)|entschuldig|(?:je suis )?(?:vraiment )?désolée?|je ne (?:peux|suis) pas"
    r"|en tant qu|malheureusement|lo siento|no puedo|como (?:un |una |uma |um )?(?:modelo|ia|inteligencia|inteligência)"
    r"|lamentablemente|mi (?:dis)?piace, (?:ma )?non|mi dispiace|non posso|come (?:modello|ia|intelligenza)"
    r"|desculpe|sinto muito|não posso|infelizmente|het spijt me|ik kan (?:niet|geen|je|u)|als ai"
    r"|jag kan (?:inte|tyvärr)|tyvärr|ledsen|przykro mi|przepraszam|nie mogę|niestety"
    r"|извините|простите|к сожалению|я не могу|как (?:ии|языковая)|üzgünüm|maalesef|yardımcı olamam"
    r"|申し訳|すみません|ごめんなさい|お答えできません|お手伝いできません|죄송|도와드릴 수 없|유감"
    r"|(?:很|非常|十分)?(?:抱歉|遗憾|遺憾)|对不起|對不起|不好意思|我(?:无法|無法|不能|没法|不会)|作为(?:一个"
    r"|一名)?(?:ai|人工智能|语言模型)"
    r"|無法提供|无法提供|请提供|請提供)",
    re.IGNORECASE,
)


def is_assent(text: str) -> bool:
    """True if a reply begins with a sentence that only says yes, or that something is good: "Good.", "👍", "passt"."""
    text = text.strip()
    first = _FIRST.match(text[:_MOST_CHARS])
    return (
        bool(text) and first is not None and bool(first[0].strip() or text[0] in _SIGNS) and _is_assent(text, first[0])
    )


def _is_assent(text: str, first: str) -> bool:
    return _ASSENT.fullmatch(first.strip() or text) is not None


def is_refusal(line: str) -> bool:
    """True if a line refuses, or asks for something to work on: "I'm sorry, but I can't …", "很抱歉，我无法…"."""
    return _REFUSAL.match(line[:_MOST_CHARS]) is not None


def is_bare_assent(text: str) -> bool:
    """True if a whole reply only says yes, or no: "Yes, please do.", "no", "👍"."""
    text = text.strip()
    return bool(text) and len(text) <= _BARE_CHARS and (_is_assent(text, text) or _DENIAL.fullmatch(text) is not None)


_BARE_CHARS = 80
_DENIAL = lazy_regex(
    r"\W*(?:no|nope|nah|not yet|no thanks|no,? thank you|don['’]t|do not|stop|cancel(?: it| that)?|nein|noch nicht|non"
    r"|no gracias|não|nee|nej|nie|нет|hayır|いいえ|いや|아니요?|不|不要|不用|不行|取消|算了)[\s.!。！,，]*",
    re.IGNORECASE,
)
_GO_ON = (
    "continue|continuing|go on|carry on|keep going|keep at it|keep it going|resume|retry|try again|try it again"
    "|again|pick up(?: from)? where you (?:left off|stopped)|go|proceed|move on|onwards?|next"
    "|weiter|weitermachen|mach (?:bitte )?weiter|weiter so|fahr fort|fahre fort|nochmal|noch mal"
    "|continuer|continuez|poursuis"
    "|poursuivez|encore|continúa|continua|continúe|sigue|siga|adelante|seguir|otra vez|continuare|vai avanti|avanti"
    "|prosegui|ancora|continue assim|prossiga|segue|ga door|doorgaan|ga verder|verder|fortsätt|kör vidare|gå vidare"
    "|kontynuuj|dalej|продолжай|продолжайте|продолжи|дальше|devam|devam et|続けて|続けてください|続き|続行|進めて"
    "|계속|계속해|계속해줘|계속해 주세요|진행|继续|繼續|请继续|請繼續|接着做|接着|往下|继续吧|继续做"
)
_GO_ON_END = (
    "please|now|then|on|again|working|from (?:here|there|where you (?:left off|stopped|were|are))"
    "|where you (?:left off|stopped|were)|(?:with|on) (?:it|that|this|the (?:task|work|job|rest|plan))"
    "|(?:with |on )?your (?:work|task)|the (?:task|work)"
    "|until (?:it is|you are|it['’]s|you['’]re|everything is)? ?(?:done|finished|complete)"
    "|bitte|damit|wo du aufgehört hast|s['’]il (?:te|vous) plaît|por favor|per favore|daarmee"
    "|吧|下去|一下|先前的(?:任务|工作)"
)
_CONTINUATION = lazy_regex(
    r"\W*(?:(?:ok|okay|yes|yeah|right|good|great|fine|thanks|thank you|please|pls|now|and|so|just|you can|ja|bitte"
    rf"|gut|oui|sí|vale|да|好的?|请|請)[\s,.!，。]*)*(?:{_GO_ON})(?:[\s,.!，。]*(?:{_GO_ON_END}|{_GO_ON}))*[\s.!…。！]*",
    re.IGNORECASE,
)


def is_continuation(text: str) -> bool:
    """True if a whole text only says to go on: "continue", "please keep going", "weiter", 继续."""
    text = text.strip()
    return len(text) <= 2 * _BARE_CHARS and _CONTINUATION.fullmatch(text) is not None


# --- choices -----------------------------------------------------------------------------------------------------

_ORDINALS: tuple[tuple[int, str], ...] = (
    (1, "first|1st|former|erste[nrs]?|premi[eè]re?|primer[oa]?|prim[oa]|primeir[oa]|eerste|första|pierwsz[ayę]"
        "|первы[йе]|первую|birinci|ilk|一つ目|最初|첫 ?번째|첫째|第一"),
    (2, "second|2nd|zweite[nrs]?|deuxième|seconde?|segund[oa]|second[oa]|tweede|andra|drug[aią]|втор(?:ой|ую|ое)|ikinci"
        "|二つ目|두 ?번째|둘째|第二"),
    (3, "third|3rd|dritte[nrs]?|troisième|tercer[oa]?|terz[oa]|terceir[oa]|derde|tredje|trzeci[aą]?|трет(?:ий|ью|ье)"
        "|üçüncü|三つ目|세 ?번째|셋째|第三"),
    (4, "fourth|4th|vierte[nrs]?|quatrième|cuart[oa]|quart[oa]|vierde|fjärde|czwart[aąy]|четверт(?:ый|ую|ое)|dördüncü"
        "|四つ目|네 ?번째|넷째|第四"),
    (-1, "last|latter|final|letzte[nrs]?|dernière?|últim[oa]|ultim[oa]|laatste|sista|ostatni[aą]?|последн(?:ий|юю|ее)"
         "|sonuncu|最後|마지막|最后"),
)  # fmt: skip
_ALL = (
    "both(?: of them)?|all(?: of (?:them|these|the above))?|the lot|beide|alle|les deux|tou(?:s|tes)|amb[oa]s|todos"
    "|todas|tutti|都|全部|両方|全て|둘 다|모두"
)
_ORDINAL = "|".join(f"(?:{words})" for _, words in _ORDINALS)
_LABEL = rf"(?:[#(\[]?(?:\d{{1,2}}|(?-i:[A-Z])|[a-h])(?:[)\].:]|(?![\w]))|{_ORDINAL})"
_BEFORE_LABEL = (
    r"(?:(?:ok|okay|yes|let['’]?s|i['’]?d|i|would|will|want|we|prefer|choose|chose|pick|select|take|use|try|do|go|going|with|for"
    r"|say|please|the|number|no|nr|option|choice|variant|version|plan|answer|and|or|nehmen|nimm|wir|ich|bitte|die|der|das|den"
    r"|variante|le|la|les|el|los|l['’]|prends|elijo|scelgo|elige|opción|opzione|opção|de|den|вариант|选择?|選擇?|選|用|就|我|要"
    r"|方案|选项|オプション|案|옵션)\.?[\s,:]*)*"
)
_AFTER_LABEL = (
    r"(?:[\s,]*(?:please|one|ones|option|choice|then|thanks|thank you|it is|bitte|variante|option|個|个|种|種|番目?"
    r"|で|を|にします|お願いします|번|번째|요|で?お願い|的))*[\s.!。！]*"
)
_CHOICE = lazy_regex(
    rf"{_BEFORE_LABEL}(?P<labels>(?:{_LABEL}|{_ALL})(?:\s*(?:,|&|\+|/|and|und|et|y|e|和|と|、)\s*(?:{_LABEL}))*)"
    rf"{_AFTER_LABEL}",
    re.IGNORECASE,
)
_LED_CHOICE = lazy_regex(
    rf"{_BEFORE_LABEL}(?P<labels>{_LABEL})"
    r"(?:\s*[,;—–-]\s+|\s+(?=(?:but|and|with|without|aber|mit|mais|pero|但|不过)\b))\S",
    re.IGNORECASE,
)
_ONE_LABEL = lazy_regex(
    rf"(?P<all>{_ALL})|(?P<ordinal>{_ORDINAL})|(?<!\w)(?P<label>\d{{1,2}}|[A-Za-z])(?![A-Za-z0-9])", re.IGNORECASE
)
_LED_CHARS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceLabel:
    """A label that a reply names.

    Attributes:
        label: As options bear it, in lower case; empty for a place.
        place: The place among the options, from 1; -1 for the last one, 0 for a label, None for all of them.
    """

    label: str
    place: int | None


def chosen_labels(reply: str) -> list[ChoiceLabel]:
    """The labels of options that a reply chooses, and nothing else, or before it says more; none for other texts.

    "2", "b)", "the second", "option 3 please", "1 and 3", "2, but with TLS", 选第二个.
    """
    reply = reply.strip()
    found = _CHOICE.fullmatch(reply) if len(reply) <= _BARE_CHARS else None
    found = found or (_LED_CHOICE.match(reply) if len(reply) <= _LED_CHARS else None)
    return list(_labels(found["labels"])) if found else []


def _labels(words: str) -> Iterator[ChoiceLabel]:
    for found in _ONE_LABEL.finditer(words):
        if found["all"]:
            yield ChoiceLabel(label="", place=None)
        elif ordinal := found["ordinal"]:
            place = next(place for place, known in _ORDINALS if re.fullmatch(known, ordinal, re.IGNORECASE))
            yield ChoiceLabel(label="", place=place)
        elif found["label"]:
            yield ChoiceLabel(label=found["label"].lower(), place=0)
