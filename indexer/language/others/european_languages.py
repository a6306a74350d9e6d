"""Words of other European languages and of Turkish: data alone."""

from indexer.language.base import Days, Grammar, Language, Numerals, PersonNames, Questions, Replies, Sections
from indexer.language.fact_tables import Nouns, Values

DUTCH = Language(
    name="Dutch",
    names=PersonNames(
        no_parts=frozenset(("van",)),
    ),
    grammar=Grammar(
        grammar_words=(
            "het een van en niet dat voor met zijn op te ik wij je we hij zij ze maar ook als bij naar uit om "
            "aan wordt worden werd heeft hebben nog wel dan deze dit die door over onze mijn altijd nooit elke "
            "tot geen er"
        ),
    ),
    days=Days(
        near="vandaag|gisteren|maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag",
        months=("januari februari maart april mei juni juli augustus september oktober november december",),
        day_words={"eergisteren": -2, "gisteren": -1, "vandaag": 0},
        latest="onlangs",
        happening="gebeurd(?:e)?",
    ),
    replies=Replies(
        before_label="de|den",
        assents="goed|heel goed|akkoord|doe maar|doe dat|zeker|natuurlijk|klopt|mooi",
        refusals="het spijt me|ik kan (?:niet|geen|je|u)|als ai",
        denials="nee",
        go_on="ga door|doorgaan|ga verder|verder",
        go_on_ends="daarmee",
        ordinals={1: "eerste", 2: "tweede", 3: "derde", 4: "vierde", -1: "laatste"},
    ),
    values=Values(
        about="ongeveer|bijna",
    ),
    nouns=Nouns(
        names=frozenset({"naam", "titel"}),
    ),
    numerals=Numerals(first_twelve=("één twee drie vier vijf zes zeven acht negen tien elf twaalf",)),
)
POLISH = Language(
    name="Polish",
    grammar=Grammar(
        grammar_words=(
            "i w na nie się z do że jest to jak o po ale przez dla od są był była co tak już tylko czy może "
            "przed nasz moja mój oraz kiedy gdzie każdy zawsze nigdy ma mam przy też jego jej ich"
        ),
    ),
    days=Days(
        near="dziś|jutro|wczoraj",
        months=("stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",),
        day_words={"przedwczoraj": -2, "wczoraj": -1, "dziś": 0, "dzisiaj": 0, "jutro": 1},
        latest="ostatnio",
    ),
    replies=Replies(
        assents="tak|dobrze|bardzo dobrze|zgoda|świetnie|jasne|oczywiście|zrób to",
        refusals="przykro mi|przepraszam|nie mogę|niestety",
        denials="nie",
        go_on="kontynuuj|dalej",
        ordinals={1: "pierwsz[ayę]", 2: "drug[aią]", 3: "trzeci[aą]?", 4: "czwart[aąy]", -1: "ostatni[aą]?"},
    ),
    values=Values(
        about="około|prawie",
    ),
    nouns=Nouns(
        names=frozenset({"imię"}),
    ),
)
TURKISH = Language(
    name="Turkish",
    grammar=Grammar(
        grammar_words=(
            "ve bir bu için ile çok da de ama olarak var yok her daha en gibi kadar sonra önce ben biz sen siz o "
            "değil mi mı ne nasıl hangi zaman olan oldu benim bizim hep hiç şu kez göre"
        ),
    ),
    days=Days(
        near="bugün|yarın|dün",
        months=("ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",),
        day_words={"dün": -1, "bugün": 0, "yarın": 1},
    ),
    replies=Replies(
        assents="evet|tamam|olur|güzel|harika|mükemmel|elbette|tabii|tabi|onaylıyorum|yap",
        refusals="üzgünüm|maalesef|yardımcı olamam",
        denials="hayır",
        go_on="devam|devam et",
        ordinals={1: "birinci|ilk", 2: "ikinci", 3: "üçüncü", 4: "dördüncü", -1: "sonuncu"},
    ),
    values=Values(
        about="yaklaşık",
    ),
    nouns=Nouns(
        names=frozenset({"isim"}),
    ),
)
SWEDISH = Language(
    name="Swedish",
    grammar=Grammar(
        grammar_words=(
            "och att det som en ett är inte för med på av den till har jag vi du han hon de ska var kan från men "
            "om eller när där vår min alltid aldrig varje efter före också sig hos"
        ),
    ),
    days=Days(
        near="idag|imorgon|igår",
        months=("januari februari mars april maj juni juli augusti september oktober november december",),
        day_words={"igår": -1, "idag": 0, "imorgon": 1, "i går": -1},
        latest="nyligen",
    ),
    replies=Replies(
        assents="bra|mycket bra|självklart|kör|gör det",
        refusals="jag kan (?:inte|tyvärr)|tyvärr|ledsen",
        denials="nej",
        go_on="fortsätt|kör vidare|gå vidare",
        ordinals={1: "första", 2: "andra", 3: "tredje", 4: "fjärde", -1: "sista"},
    ),
)
RUSSIAN = Language(
    name="Russian",
    days=Days(
        near_within="сегодня|завтра|вчера|понедельник|вторник|сред[ау]|четверг|пятниц|суббот|воскресень",
        months=("января февраля марта апреля мая июня июля августа сентября октября ноября декабря",),
        day_words={"позавчера": -2, "вчера": -1, "сегодня": 0, "завтра": 1},
        latest="недавно",
        happening="произошло|случилось",
    ),
    replies=Replies(
        before_label="вариант",
        assents="да|хорошо|отлично|согласен|согласна|давай|давайте|конечно|ладно|верно|супер|принято",
        refusals="извините|простите|к сожалению|я не могу|как (?:ии|языковая)",
        denials="нет",
        go_on="продолжай|продолжайте|продолжи|дальше",
        go_on_leads="да",
        thanks="спасибо",
        ordinals={
            1: "первы[йе]|первую",
            2: "втор(?:ой|ую|ое)",
            3: "трет(?:ий|ью|ье)",
            4: "четверт(?:ый|ую|ое)",
            -1: "последн(?:ий|юю|ее)",
        },
    ),
    sections=Sections(
        names={
            "goal": "цель|цели|задача|задание",
            "constraints": "ограничения|требования|правила|предпочтения",
            "decisions": "решения|ключевые решения|принятые решения",
            "progress": "прогресс|ход работы|состояние",
            "done": "сделано|готово|выполнено|завершено",
            "in progress": "в процессе|в работе|выполняется",
            "failed": "неудачные попытки|неудачи|ошибки",
            "blocked": "заблокировано|блокеры|препятствия",
            "asks": "открытые вопросы|вопросы|нерешённые вопросы|нерешенные вопросы",
            "todos": "осталось|осталось сделать|что осталось|задачи",
            "next": "следующий шаг|следующие шаги|дальнейшие шаги",
            "files": "файлы|важные файлы",
            "identifiers": "идентификаторы",
            "context": "контекст|факты|фон|справка",
        },
    ),
    questions=Questions(
        of_asker=r"я|меня|мне|мой|моя|мо[её]|мои|мы|нас|нам|наш\w{0,3}",
    ),
    values=Values(
        about="около|примерно|почти|более",
    ),
    nouns=Nouns(
        names=frozenset({"имя", "название"}),
    ),
    numerals=Numerals(
        first_twelve=("один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать",),
        noon="полдень|полночь",
        clock_hints="пол",
        day_leads="день",
        shares=" из ",
    ),
)
