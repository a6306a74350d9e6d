"""Words of Romance languages other than French: data alone."""

from indexer.language.base import Days, Grammar, Language, Numerals, PersonNames, Questions, Replies, Secrets
from indexer.language.fact_tables import Nouns, Values

SPANISH = Language(
    name="Spanish",
    names=PersonNames(
        no_parts=frozenset("de da di la le el al".split()),
    ),
    grammar=Grammar(
        grammar_words=(
            "el los las una del que por para con está es en y se lo al su sus como más pero muy mi nos nuestro "
            "nuestra yo ella fue ha han hay cuando porque donde desde hasta sin sobre todos cada siempre nunca "
            "también este esta esto son era tiene tengo ya hoy mañana le les un la de"
        ),
    ),
    days=Days(
        near="hoy|mañana|ayer|lunes|martes|miércoles|jueves|viernes|sábado|domingo",
        months=("enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",),
        day_words={"anteayer": -2, "antier": -2, "ayer": -1, "hoy": 0},
        latest="recientemente|últimamente",
        happening="pasó",
        other_ends="º|ª",
        before_month="de|di",
        before_year="del?",
    ),
    replies=Replies(
        before_label="el|los|elijo|elige|opción",
        and_words="y",
        but_words="pero",
        assents="sí|si|vale|perfecto|de acuerdo|muy bien|claro|adelante|por supuesto|hazlo|está bien|dale|listo",
        refusals=(
            "lo siento|no puedo|como (?:un |una |uma |um )?(?:modelo|ia|inteligencia|inteligência)|lamentablemente"
        ),
        denials="no gracias",
        go_on="continúa|continua|continúe|sigue|siga|adelante|seguir|otra vez",
        go_on_leads="sí|vale",
        thanks="gracias",
        all_options="amb[oa]s|todos|todas",
        ordinals={1: "primer[oa]?", 2: "segund[oa]", 3: "tercer[oa]?", 4: "cuart[oa]", -1: "últim[oa]"},
    ),
    secrets=Secrets(passwords="contraseña", password_hints=("contraseña",), gives="es"),
    questions=Questions(
        of_asker=r"yo|mis?|nuestr\w{1,2}",
        of_assistant=r"\b(?:dijiste|recomendaste|sugeriste|aconsejaste|propusiste)\b",
        overview=r"resum\w{1,4}",
    ),
    values=Values(
        about="unos|unas|alrededor de|cerca de|casi|más de",
    ),
    nouns=Nouns(
        names=frozenset({"nombre"}),
    ),
    numerals=Numerals(
        first_twelve=("una dos tres cuatro cinco seis siete ocho nueve diez once doce",),
        others={"mediodía": 12},
        noon="mediodía|medianoche",
        behind_hour={"y cuarto": 15, "y media": 30, "menos cuarto": -15},
        clock_hints="cuarto|media|medio",
        day_leads="el|dia",
        day_ends="º",
    ),
)
PORTUGUESE = Language(
    name="Portuguese",
    grammar=Grammar(
        grammar_words=(
            "o os uma não que para com em é do da dos das na nos nas um ao aos pelo pela mais mas muito meu "
            "minha nosso nossa ele ela eu foi são está tem quando porque onde desde até sem sobre cada sempre "
            "nunca também isso este esta depois antes já às à você"
        ),
    ),
    days=Days(
        near="hoje|amanhã|ontem|segunda|terça|quarta|quinta|sexta",
        months=("janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",),
        day_words={"anteontem": -2, "ontem": -1, "hoje": 0, "amanhã": 1},
        latest="recentemente",
        happening="aconteceu",
    ),
    replies=Replies(
        before_label="opção",
        and_words="e",
        assents=(
            "sim|certo|perfeito|pode|pode ser|pode fazer|combinado|ótimo|muito bem|tudo bem|beleza|está bom|faça isso"
        ),
        refusals="desculpe|sinto muito|não posso|infelizmente",
        denials="não",
        go_on="continue assim|prossiga|segue",
        go_on_ends="por favor",
        thanks="obrigado",
        ordinals={1: "primeir[oa]", 3: "terceir[oa]"},
    ),
    questions=Questions(
        of_asker=r"eu|meus?|minhas?|nosso\w?|nossa\w?",
    ),
    values=Values(
        about="quase|mais de",
    ),
    nouns=Nouns(
        names=frozenset({"nome"}),
    ),
    numerals=Numerals(
        first_twelve=("uma duas três quatro cinco seis sete oito nove dez onze doze",),
        others={"um": 1, "dois": 2},
        noon="meio-dia|meia-noite",
        behind_hour={"e meia": 30, "e quinze": 15},
        clock_hints="meia",
        day_leads="o",
    ),
)
ITALIAN = Language(
    name="Italian",
    grammar=Grammar(
        grammar_words=(
            "il lo gli una di che è per con non sono del della dei delle nel nella alla dal dalla sul sulla più "
            "ma anche come quando perché dove mio mia nostro lui lei noi ho hai abbiamo hanno questo questa ogni "
            "sempre mai dopo prima fino tutti tutto le i e un al"
        ),
    ),
    days=Days(
        near="oggi|domani|ieri|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica",
        months=("gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",),
        day_words={"ieri": -1, "oggi": 0, "domani": 1, "l'altro ieri": -2},
        latest="ultimamente|di recente",
        happening="ha passato|successo",
    ),
    replies=Replies(
        before_label="scelgo|opzione",
        assents="sì|va bene|perfetto|d'accordo|certo|procedi|ottimo|benissimo|fallo|certamente",
        refusals="mi (?:dis)?piace, (?:ma )?non|mi dispiace|non posso|come (?:modello|ia|intelligenza)",
        go_on="continuare|vai avanti|avanti|prosegui|ancora",
        go_on_ends="per favore",
        thanks="grazie",
        all_options="tutti",
        ordinals={1: "prim[oa]", 2: "second[oa]", 3: "terz[oa]", 4: "quart[oa]", -1: "ultim[oa]"},
    ),
    questions=Questions(
        of_asker=r"mio|mia|miei|nostr\w",
        overview=r"riassu\w{1,5}",
    ),
    values=Values(
        about="quasi",
    ),
    numerals=Numerals(
        first_twelve=("uno due tre quattro cinque sei sette otto nove dieci undici dodici",),
        others={"mezzogiorno": 12},
        noon="mezzogiorno|mezzanotte",
        behind_hour={"e un quarto": 15, "e mezza": 30, "meno un quarto": -15},
        clock_hints="quarto|mezz",
        day_leads="il",
    ),
)
