"""Words of French: data alone."""

from indexer.language.base import Days, Grammar, Language, Numerals, Questions, Replies, Secrets
from indexer.language.fact_tables import Nouns, Values

FRENCH = Language(
    name="French",
    grammar=Grammar(
        grammar_words=(
            "le les des une est et pour dans que qui pas nous vous je il elle ils sur avec au aux ce cette ces "
            "son sa ses mon ma mes notre votre leur plus ne se du par sont été être avoir ont mais ou où quand "
            "comme chez sans très tous tout toujours jamais c'est d'un d'une qu'il n'est l'on chaque après avant "
            "avons"
        ),
    ),
    days=Days(
        near="aujourd['’]hui|demain|hier|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche",
        months=(
            "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
            "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
        ),
        day_words={"avant-hier": -2, "hier": -1, "aujourd'hui": 0, "aujourd’hui": 0, "demain": 1},
        ambiguous=frozenset({"hier"}),
        latest="récemment|recemment|dernièrement|ces derniers temps",
        happening="passé",
        other_ends="er",
    ),
    replies=Replies(
        before_label="le|la|les|l['’]|prends",
        and_words="et",
        but_words="mais",
        assents=(
            "oui|ouais|d'accord|parfait|très bien|bien|bien sûr|vas-y|allez-y|ça marche|ça me va|entendu|validé"
            "|c'est bon"
        ),
        refusals="(?:je suis )?(?:vraiment )?désolée?|je ne (?:peux|suis) pas|en tant qu|malheureusement",
        denials="non",
        go_on="continuer|continuez|poursuis|poursuivez|encore",
        go_on_ends="s['’]il (?:te|vous) plaît",
        go_on_leads="oui",
        thanks="merci",
        all_options="les deux|tou(?:s|tes)",
        ordinals={1: "premi[eè]re?", 2: "deuxième|seconde?", 3: "troisième", 4: "quatrième", -1: "dernière?"},
    ),
    secrets=Secrets(passwords="mot de passe", gives="est"),
    questions=Questions(
        of_asker="je|moi|mon|mes|nous|notre|nos",
        of_asker_within="\\bj['’]",
        of_assistant=(
            r"\b(?:as-tu|tu as|avez-vous|vous avez)\b[^.?!\n]{0,30}\b(?:dit|conseillé|suggéré|recommandé|proposé)\b"
        ),
        overview=r"résum\w{1,4}|aperçu",
    ),
    values=Values(
        about="environ|presque|près de|plus de|moins de",
    ),
    nouns=Nouns(
        names=frozenset({"nom", "titre"}),
    ),
    numerals=Numerals(
        first_twelve=("une deux trois quatre cinq six sept huit neuf dix onze douze",),
        others={"un": 1, "midi": 12},
        noon="midi|minuit",
        behind_unit={"et quart": 15, "et demie": 30, "et demi": 30, "moins le quart": -15},
        hour_units="h(?:eures?)?",
        clock_hints="heure|midi|minuit",
        day_leads="le",
        day_ends="er",
        shares=" sur | de ",
    ),
)
