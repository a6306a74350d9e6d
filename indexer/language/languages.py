"""Language that a text is written in, as far as an embedding model is chosen by it: by its script, and by small words.

Invariants: pure; a text that tells nothing, such as a number, a name or code, is in no language; in doubt a text in
Latin letters is English, so that an English model is left for a reason alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from indexer.common.patterns import lazy_regex
from indexer.common.scripts import ALL_HAN, HANGUL, KANA

ENGLISH_NAME: Final = "English"

# The script of a language that alone, or more than others, is written in it.
_SCRIPTS: tuple[tuple[str, str], ...] = (
    ("Japanese", KANA),
    ("Korean", HANGUL + "\u1100-\u11ff\u3130-\u318f"),
    ("Chinese", ALL_HAN),
    ("Cyrillic", "\u0400-\u052f"),
    ("Greek", "\u0370-\u03ff\u1f00-\u1fff"),
    ("Arabic script", "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff"),
    ("Hebrew", "\u0590-\u05ff"),
    ("Devanagari", "\u0900-\u097f"),
    ("Thai", "\u0e00-\u0e7f"),
    ("another script", "\u0530-\u058f\u0700-\u074f\u0780-\u08ff\u0980-\u0dff\u0e80-\u10ff\u1200-\u1cff\ua000-\uabff"),
)
_OF_SCRIPT = tuple((name, lazy_regex(f"[{ranges}]")) for name, ranges in _SCRIPTS)
_LATIN_WORD = lazy_regex("[a-z\u00df-\u024f\u1e00-\u1eff]+(?:['’][a-z\u00df-\u024f]+)?")
# An address, a path, code in a line: what is written in it is no language.
_NO_PROSE = lazy_regex(r"`[^`\n]*`|https?://\S+|\S+[/\\@_=]\S+|<[^>\n]*>")
# Letters of scripts without spaces count as the third of a word of two, and more, as English words have five.
_LETTERS_PER_WORD = 2.5

# Words of grammar, of which one in three words of a text is one. A word that is common in English has no place in
# another list ("die", "am", "a", "no", "me", "on", "or"), nor has one of another language in the English one.
_ENGLISH = frozenset(
    """
    the of and to in is it that for was on with as are this be at by have from or not but you i we they he she his her
    my our your their will would can could should has had were been do does did what when where which who how why if
    then than there here about into after before because every each all any some more most only also just never always
    no yes an me us them its it's don't i'm let's up out over again between until while so
    """.split()
)
_OTHERS: tuple[tuple[str, str], ...] = (
    ("German", """der und das ist nicht ich wir sie ein eine einen einem einer mit für auf von zu zum zur den dem des
        auch sich im aber nur noch nach bei wird werden wurde haben hat hatte sind wenn dass weil oder wie über unser
        unsere mein meine ihr immer kein keine vor bis aus um vom beim ins heute morgen jeden soll muss kann"""),
    ("French", """le les des une est et pour dans que qui pas nous vous je il elle ils sur avec au aux ce cette ces son
        sa ses mon ma mes notre votre leur plus ne se du par sont été être avoir ont mais ou où quand comme chez sans
        très tous tout toujours jamais c'est d'un d'une qu'il n'est l'on chaque après avant avons"""),
    ("Spanish", """el los las una del que por para con está es en y se lo al su sus como más pero muy mi nos nuestro
        nuestra yo ella fue ha han hay cuando porque donde desde hasta sin sobre todos cada siempre nunca también
        este esta esto son era tiene tengo ya hoy mañana le les un la de"""),
    ("Portuguese", """o os uma não que para com em é do da dos das na nos nas um ao aos pelo pela mais mas muito meu
        minha nosso nossa ele ela eu foi são está tem quando porque onde desde até sem sobre cada sempre nunca também
        isso este esta depois antes já às à você"""),
    ("Italian", """il lo gli una di che è per con non sono del della dei delle nel nella alla dal dalla sul sulla più ma
        anche come quando perché dove mio mia nostro lui lei noi ho hai abbiamo hanno questo questa ogni sempre
        mai dopo prima fino tutti tutto le i e un al"""),
    ("Dutch", """het een van en niet dat voor met zijn op te ik wij je we hij zij ze maar ook als bij naar uit om aan
        wordt worden werd heeft hebben nog wel dan deze dit die door over onze mijn altijd nooit elke tot geen er"""),
    ("Polish", """i w na nie się z do że jest to jak o po ale przez dla od są był była co tak już tylko czy może przed
        nasz moja mój oraz kiedy gdzie każdy zawsze nigdy ma mam przy też jego jej ich"""),
    ("Turkish", """ve bir bu için ile çok da de ama olarak var yok her daha en gibi kadar sonra önce ben biz sen siz o
        değil mi mı ne nasıl hangi zaman olan oldu benim bizim hep hiç şu kez göre"""),
    ("Vietnamese", """là và của có không được cho các một những với trong để này người đã đang sẽ khi ở từ đến tôi
        chúng anh chị thì mà ra vào lên về như nhưng cũng rất nhà ngày mỗi phải vì ai gì nào"""),
    ("Indonesian", """yang dan di ke dari untuk dengan ini itu tidak ada akan pada saya kami kita adalah sudah bisa
        juga atau karena oleh setiap harus belum lebih hanya kalau mereka dia anda"""),
    ("Swedish", """och att det som en ett är inte för med på av den till har jag vi du han hon de ska var kan från
        men om eller när där vår min alltid aldrig varje efter före också sig hos"""),
    ("Danish or Norwegian", """og at det som en et er ikke for med på af av den til har jeg vi du han hun de skal var
        kan fra men om eller når hvor vår vores min alltid altid aldri aldrig hver etter efter før også seg sig hos"""),
    ("Finnish", """ja on ei se että hän oli mutta kun myös joka ovat olen tai niin kuin vain jos mitä minun meidän
        minä me aina ennen jälkeen kanssa pitää tämä sen ole"""),
    ("Czech or Slovak", """a je se na že to s z do v ve pro jak ale jsem jsme jsou byl byla není nebo podle který
        která když kde každý vždy nikdy po od si sa aby pre keď"""),
    ("Hungarian", """az és hogy nem egy meg csak ha már még mert minden vagy volt lesz mint ezt azt
        után előtt mindig soha nekem nálunk kell"""),
    ("Romanian", """și în de la nu este cu pe care un o să din pentru mai ce sau când sunt au am fost dar după
        înainte fiecare mereu niciodată noastră meu mea lui ei al ale"""),
)  # fmt: skip
# Words of those lists that an English text has, too.
_SHARED = frozenset(
    """
    a all an as at by den die do for had has he her his i in is it its man me men no of on or over so to up us was we
    """.split()
)


def _by_word() -> dict[str, tuple[str, ...]]:
    """The languages of each word of grammar but English."""
    found: dict[str, tuple[str, ...]] = {}
    for name, words in _OTHERS:
        for word in set(words.split()) - _SHARED:
            found[word] = (*found.get(word, ()), name)
    return found


_WORDS = _by_word()
# So much more of another language is needed than of English: quotations and names stand in English texts.
_CLEARLY = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """Languages of a collection of texts.

    Attributes:
        shares: Share of the texts in each language, of those that tell one, the largest first; empty where none does.
    """

    shares: Mapping[str, float]

    @property
    def foreign(self) -> float:
        """Share of the texts that are not in English; 0 where nothing is written."""
        return sum(share for name, share in self.shares.items() if name != ENGLISH_NAME)


def writing_of(found: Iterable[tuple[str, float]]) -> Writing:
    """The languages of texts, each by the name of its language and the weight that it has."""
    weights = Counter[str]()
    for name, weight in found:
        if name:
            weights[name] += weight  # type: ignore[assignment]  # a Counter adds up any numbers
    whole = sum(weights.values())
    return Writing(shares={name: weight / whole for name, weight in weights.most_common()})


def language_of(text: str) -> str:
    """The language of a text, "English" or the name of another or of its script; empty where it does not tell."""
    lowered = _NO_PROSE.sub(" ", text[:4_000]).lower()
    words = _LATIN_WORD.findall(lowered)
    script, letters = ("", 0) if lowered.isascii() else _script(lowered)
    if letters and letters / _LETTERS_PER_WORD >= len(words):
        return script
    return _latin(words)


def _script(text: str) -> tuple[str, int]:
    """The script that most letters other than Latin ones are in, and their number."""
    counts = {name: len(pattern.findall(text)) for name, pattern in _OF_SCRIPT}
    if counts["Japanese"]:
        # Its nouns are written in Chinese characters.
        counts["Japanese"] += counts["Chinese"] if 5 * counts["Japanese"] >= counts["Chinese"] else 0
    most = max(counts, key=lambda name: counts[name])
    return (most, sum(counts.values()) - (counts["Chinese"] if most == "Japanese" else 0)) if counts[most] else ("", 0)


def _latin(words: list[str]) -> str:
    """The language of words in Latin letters."""
    found = Counter[str]()
    for word in words:
        found.update(_WORDS.get(word, ()))
    english = sum(word in _ENGLISH for word in words)
    if found:
        name, most = found.most_common(1)[0]
        if most > _CLEARLY * english:
            return name
    return ENGLISH_NAME if english else ""
