"""Short replies: assent to what was asked or shown, and a refusal to do what was asked. Pure.

Invariants: linear; an assent is the whole of a first sentence, so that "good morning" is none; a refusal begins a line,
in the words of whoever refuses. Thirteen languages have the same rules.
"""

from __future__ import annotations

import re

from indexer.text import lazy_regex

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
