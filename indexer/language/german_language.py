"""German: data alone."""

import re

from indexer.language.base import (
    Authorship,
    Days,
    Grammar,
    Labels,
    Language,
    Lasting,
    Numerals,
    Outcomes,
    PersonNames,
    Phrases,
    Questions,
    Recall,
    Replies,
    Sameness,
    Secrets,
    Sections,
    Statements,
)
from indexer.language.fact_tables import Clauses, FactTable, Frames, Nouns, Restatements, Script, Values

_MONTHS = (
    "januar februar märz april mai juni juli august september oktober november dezember",
    "jänner feber maerz april mai juni juli august september oktober november dezember",
)
_MONTH = "|".join(dict.fromkeys(" ".join(_MONTHS).split()))
_WEEKDAYS = "montag dienstag mittwoch donnerstag freitag samstag sonntag".split()
_WEEKDAY = f"(?P<weekday>(?i:{'|'.join(_WEEKDAYS)}|sonnabend))"
_SHIFT = r"(?P<shift>(?i:letzte|vorige|vergangene|nächste|kommende|diese)[nmrs]?)"
_NUMBERS = "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"
_COUNTS = {word: (at, at) for at, word in enumerate(_NUMBERS.split(), 2)}
_COUNTS |= dict.fromkeys(("einem", "einer", "ein", "eine"), (1, 1)) | dict.fromkeys(
    ("ein paar", "einigen", "wenigen"), (2, 6)
)
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))})"
_UNITS = {"tag": "day", "nacht": "day", "woche": "week", "monat": "month", "jahr": "year"}
_UNIT = "(?P<unit>tag|nacht|woche|monat|jahr|stunde|minute)(?:en?)?"

_GAP = (
    r"\s+(?:(?:jetzt|nun|derzeit|aktuell|momentan|gerade|wieder|noch|weiterhin|inzwischen|mittlerweile"
    r"|seit kurzem|endlich"
    r"|ab sofort|künftig)\s+)*"
)
_PARTS = {"F": r"(?P<f>[^,]{1,40}?)", "O": r"(?P<o>\S.{0,50}?)", "N": r"(?P<n>\S.{0,60}?)", "V": r"(?P<v>\S.{0,50}?)"}
_SCRIPT = Script(
    gap=_GAP,
    first_gap=r"\b",
    word_end=r"(?!\w)",
    parts=_PARTS,
    firsts={"S": "", **{name: f"^{part}" for name, part in _PARTS.items()}},
    lasts={name: rf"(?P<{name.lower()}>\S.*)" for name in _PARTS},
    end="",
    units=re.compile(r"[a-zäöüß]+|\d"),
    forms={"be": ("ist", "sind", "bin")},
)
_WORDINGS = """
@moved verschoben/verlegt/vorverlegt/vorgezogen
@set geändert/erhöht/gesenkt/angehoben/reduziert/gesetzt/umgestellt

when!         N ~wurde/wird/wurden/werden [von F] auf/auf_den V {moved}
when!         N ~wurde/wird/wurden/werden auf/auf_den V {set}
when          N be am/um/ab/an_dem V
when          N be auf/auf_den V ~{moved}
when          N ~findet/finden am/um/ab V statt
when          N ~beginnt/startet/endet/beginnen/enden am/um/ab V
attribute!    N ~wurde/wird/wurden/werden [von F] auf V {set}
attribute     N ~lautet/beträgt V
attribute     N be V
price         S ~kostet/kosten V

location!     S be nach/in V ~gezogen/umgezogen
location!     S ~ziehe/zieht/ziehen nach V
location      S ~wohne/wohnt/wohnen/lebe/lebt/leben in/bei V
employer!     S be zu/zur V ~gewechselt
employer      S ~arbeite/arbeitet/arbeiten bei/für V
name          S ~heiße/heißt V
age           S be V ~jahre_alt

use           S ~nutze/nutzt/nutzen/verwende/verwendet/verwenden/benutze/benutzt/benutzen V
prefer        S ~bevorzuge/bevorzugt/bevorzugen V
on:drink      S ~trinke/trinkt V
on:eat        S ~esse/isst V
on:like       S ~mag/liebe/liebt V
on:play       S ~spiele/spielt V
"""

_ASKING = {
    "shop": r"\bwo\b.*\bgekauft\b",
    "employer": r"\bwo arbeitet\b|\bfür wen arbeitet\b",
    "job": r"\bwas macht\b.*\bberuflich\b",
    "home": r"\bwo wohnt\b|\bwo lebt\b",
    "origin": r"\bwoher kommt\b",
    "place": r"\bwo (?:ist|sind|steht|stehen|liegt|liegen|hängt|befindet|finde)\b",
    "price": r"\bwas kostet\b|\bwie ?viel kostet\b|\bwie teuer\b",
    "birth": r"\bwie alt\b|\bwann\b.*\bgeboren\b",
    "brand": r"\bwer hat\b.*\bhergestellt\b|\bwelche marke\b",
    "contact": r"\bwie erreiche\b",
    "size": r"\bwie (?:groß|hoch|breit|lang) (?:ist|sind)\b",
    "weight": r"\bwie schwer\b",
    "owner": r"\bwem gehört\b",
    "lead": r"\bwer (?:leitet|betreut)\b|\bwer ist\b.*\b(?:zuständig|verantwortlich)\b",
    "spouse": r"\bmit wem ist\b.*\bverheiratet\b",
}
_ANSWERS = {
    "shop": "gekauft händler laden geschäft",
    "employer": "arbeitgeber firma arbeitet",
    "job": "beruf stelle",
    "home": "wohnt wohnort adresse",
    "origin": "herkunft",
    "place": "standort ort platz raum steht liegt hängt aufbewahrt lagerort",
    "price": "preis kosten kostet miete gebühr",
    "birth": "alter geburtstag geboren baujahr",
    "brand": "hersteller marke fabrikat",
    "contact": "telefon handy kontakt",
    "size": "größe maße höhe breite länge fläche",
    "weight": "gewicht wiegt",
    "owner": "besitzer eigentümer gehört",
    "lead": "zuständig verantwortlich leitung",
    "spouse": "ehefrau ehemann partnerin",
}

GERMAN = Language(
    name="German",
    capitalises_nouns=True,
    grammar=Grammar(
        abbreviations=frozenset(
            "bzw ca evtl ggf inkl exkl zzgl nr str bspw vgl mio mrd abs art hr fr dipl ing geb max min".split()
        ),
        last_abbreviations=frozenset("usw okt dez".split()),
        lettered=frozenset("variante option gruppe klasse teil".split()),
        before_ordinals=frozenset(
            "am im der die das den dem des vom zum zur bis beim ab seit dieser jeder ihr sein unser mein".split()
        ),
        behind_ordinals=(
            "(?:Jan|Jän|Feb|März|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)[a-zä]{0,6}"
            "|Stock|Etage|OG|Kapitel|Quartal|Platz|Woche|Tag|Klasse|Mal|Auflage|Bezirk|Geburtstag|Jahrhundert"
            "|Semester|Halbjahr|Spieltag"
        ),
        stop_words=frozenset(
            """
            aber alle allem allen aller alles als also am an auch auf aus bei beim bin bis bist da damit dann das dass
            dein deine deinem deinen deiner dem den denn der des dessen dich die dies diese diesem diesen dieser dieses
            dir doch dort du durch ein eine einem einen einer eines er es euch euer eure für gab gibt habe haben hat
            hatte hatten hier ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist ja jede jedem jeden jeder jedes
            kann kannst kein keine keinem keinen keiner mein meine meinem meinen meiner mich mir mit nach nicht noch nun
            nur ob oder ohne sehr sein seine seinem seinen seiner seit sich sie sind so über um und uns unser unsere
            unserem unseren unserer vom von vor wann war waren warum was weil welche welchem welchen welcher welches
            wem wen wenn wer werde werden wessen wie wieso wir wird wo woher wohin wurde wurden zu zum zur
            """.split()
        ),
        grammar_words=(
            "der und das ist nicht ich wir sie ein eine einen einem einer mit für auf von zu zum zur den dem des "
            "auch sich im aber nur noch nach bei wird werden wurde haben hat hatte sind wenn dass weil oder wie "
            "über unser unsere mein meine ihr immer kein keine vor bis aus um vom beim ins heute morgen jeden "
            "soll muss kann"
        ),
    ),
    days=Days(
        months=_MONTHS,
        near=(
            "heute|morgen|gestern|übermorgen|vorgestern|(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?"
            "|(?:nächste|letzte|diese)[nrs]? (?:woche|monat)"
        ),
        lone_months={name: at for names in _MONTHS for at, name in enumerate(names.split(), 1)},
        weekdays={name: at for at, name in enumerate(_WEEKDAYS)} | {"sonnabend": 5},
        shifts={
            f"{word}{ending}": shift
            for words, shift in (("letzte vorige vergangene", -1), ("nächste kommende", 1), ("diese", 0))
            for word in words.split()
            for ending in ("", "n", "m", "r", "s")
        },
        counts=_COUNTS,
        units=_UNITS,
        relative=(
            # "Morgen" is the morning, too.
            (r"(?:^Morgen|(?<![\w-])(?<!heute )(?<!gestern )(?<!jeden )(?<!am )morgen)(?![\w-])", "1"),
            (rf"\b{_SHIFT} {_WEEKDAY}\b", "weekday"),
            (rf"\b{_WEEKDAY}(?: der)? {_SHIFT} (?i:woche)\b", "day of week"),
            (rf"\b{_SHIFT} (?i:wochenende)\b", "weekend"),
            (rf"\b{_SHIFT} (?i:woche)\b", "week"),
            (rf"\b{_SHIFT} (?i:monat)s?\b", "month"),
            (rf"(?i:\bvor {_COUNT} {_UNIT}\b)", "ago"),
            (rf"(?i:\bin den (?:letzten|vergangenen) {_COUNT} {_UNIT}\b)", "until now"),
        ),
        shifted_years=(rf"\b{_SHIFT} (?i:jahr)(?:es)?\b",),
        bare_weekdays=(rf"\bam (?:{_WEEKDAY}\b|Wochenende\b)",),
        past="war|waren|hatte|hatten|wurde|passierte?|gesagt",
        day_words={"vorgestern": -2, "gestern": -1, "heute": 0, "übermorgen": 2},
        latest="kürzlich|neulich|zuletzt|in letzter zeit|neueste[nrs]?",
        happening="passiert(?:e)?|geschah|geschehen",
        before_months="im|seit|bis|vom|letzten|nächsten|diesen|anfang|ende|mitte",
        day_joints="und|bis",
    ),
    replies=Replies(
        assents=(
            "ja|jawohl|gut|sehr gut|super|perfekt|passt|passt so|genau|klar|na klar|einverstanden|gern|gerne|mach das"
            "|mach mal|in ordnung|geht klar|alles klar|abgemacht|ja bitte|stimmt|prima|toll"
        ),
        refusals=(
            "(?:es )?tut mir (?:sehr )?leid|leider kann|ich (?:kann|darf) (?:nicht|das|dabei|dies|ihnen|dir|leider)"
            "|als (?:eine? )?(?:ki|sprachmodell)|entschuldig"
        ),
        denials="nein|noch nicht",
        go_on="weiter|weitermachen|mach (?:bitte )?weiter|weiter so|fahr fort|fahre fort|nochmal|noch mal",
        go_on_ends="bitte|damit|wo du aufgehört hast",
        go_on_leads="ja|bitte|gut",
        thanks="danke|bitte",
        all_options="beide|alle",
        before_label="nehmen|nimm|wir|ich|bitte|die|der|das|den|variante",
        after_label="bitte|variante",
        and_words="und",
        but_words="aber|mit",
        ordinals={1: "erste[nrs]?", 2: "zweite[nrs]?", 3: "dritte[nrs]?", 4: "vierte[nrs]?", -1: "letzte[nrs]?"},
        refusal_leads="leider|hallo",
    ),
    sections=Sections(
        names={
            "goal": "ziel|ziele|aufgabe|auftrag|zweck",
            "constraints": (
                "vorgaben|einschränkungen|vorgaben des nutzers|regeln|beschränkungen|bedingungen|anforderungen"
                "|rahmenbedingungen|nutzervorgaben"
            ),
            "decisions": "entscheidungen|beschlüsse|entschieden|wichtige entscheidungen",
            "progress": "fortschritt|stand",
            "done": "erledigt|fertig|abgeschlossen|getan|ergebnisse|erledigtes",
            "in progress": "in arbeit|laufend|in bearbeitung|läuft|aktuell|begonnen",
            "failed": (
                "fehlversuche|fehlgeschlagen|fehlgeschlagene versuche|fehler|gescheitert|gescheiterte versuche|probleme"
            ),
            "blocked": "blockiert|wartend|hindernisse",
            "asks": "offene fragen|offene bitten|offene anfragen|offen|fragen|offene punkte",
            "todos": "aufgabenliste|noch zu tun|zu tun|ausstehend|ausstehende aufgaben",
            "next": "nächster schritt|nächste schritte|als nächstes|weiteres vorgehen",
            "files": "dateien|relevante dateien|wichtige dateien",
            "identifiers": "kennungen|bezeichner|genaue kennungen",
            "context": "kontext|hintergrund|fakten|wichtiges|notizen|zusammenhang|wichtige fakten",
        },
    ),
    questions=Questions(
        of_asker=r"ich|mich|mir|mein\w{0,2}|wir|uns|unser\w{0,2}",
        of_assistant=(
            r"\b(?:hast du|haben sie|habt ihr)\b[^.?!\n]{0,60}\b(?:gesagt|empfohlen|vorgeschlagen|geraten|erklärt"
            r"|erwähnt)\b|\b(?:dein|ihr)e? (?:rat|antwort|vorschlag|empfehlung)\b"
        ),
        overview=r"zusammenfass\w{0,5}|überblick",
        asking_when=r"\b(?:seit |bis )?wann\b|\bwie lange\b|\b(?:an )?welche[nmrs]? (?:tag|monat|jahr|datum|uhrzeit)\b",
        requests=(
            r"\W*(?:bitte|kannst du|könntest du|können sie|zeig|such|finde|erklär|schreib|gib mir|sag mir"
            r"|hilf mir|erstell)"
            r"\w{0,2}\b"
        ),
    ),
    outcomes=Outcomes(
        failed=r"\b(?:fehlgeschlagen|gescheitert|abgestürzt|fehlermeldung|funktioniert nicht|geht nicht)\b",
        not_failed=r"\b(?:keine?|ohne) fehler\b",
    ),
    authorship=Authorship(
        passed_on=r"\b(?:sagte|sagt|schrieb|schreibt|antwortete|antwortet|fragte)\b[^.!?\n]{0,40}[:：]$",
        own_words=r"\bich (?:habe |hatte )?(?:gesagt|geschrieben|geantwortet)\b",
        speaks_again=r"\W{0,6}(?:bitte|ich|wir|mein|meine|danke|übrigens|außerdem|ab jetzt|immer|nie)\b",
        reports=(
            r"\b(?:die|der|das|diese[rs]?)\s+(?:[\w-]+\s+){0,2}(?:seite|mail|nachricht|kundin|kunde"
            r"|artikel|text|brief)\s+(?:\w+\s+){0,2}?(?:sagte?|schreibt|schrieb|fordert|behauptet"
            r"|meint)\b\s*[:：,]?"
        ),
    ),
    statements=Statements(
        standing=(
            r"\b(?:immer|stets|nie|niemals|ab (?:jetzt|sofort|heute)|von nun an|künftig|in zukunft"
            r"|auf keinen fall)\b"
        ),
        rules=(
            r"ab (?:jetzt|sofort|heute)\b|von nun an\b|künftig\b|in zukunft\b|auf keinen fall\b"
            r"|unter keinen umständen\b"
            r"|(?:darf|darfst|dürfen) (?:nicht|nie|niemals|kein\w*)\b|bitte (?:immer|stets|nie|niemals|nur|kein\w*)\b"
            r"|(?:antworte|schreib|schreibe|nutze|nutz|verwende|benutze|benutz|frag|frage|sag|sage|mach|mache"
            r"|nimm|lösche"
            r"|prüfe|teste|speichere|behalte)\s(?:[^\s.!?]+\s){0,3}?(?:immer|stets|nie|niemals|nur)\b"
            r"|(?:nie|niemals) (?:ohne|vor|nach)\b|jedes mal,? (?:wenn|bevor)\b"
        ),
        orders=r"(?:nie|niemals|immer|stets)\s[a-zäöü]",
        order_starts="bitte|du|sollst|musst|und|aber|wir|also",
        rule_hints=(
            *("immer ", "stets ", "nie ", "niemals", "ab jetzt", "ab sofort", "ab heute", "von nun an", "künftig"),
            *("zukunft", "keinen fall", "umständen", "darf", "dürfen", "bitte ", "nur ", "jedes mal"),
        ),
        rule_words=frozenset(
            "immer stets nie niemals jetzt sofort heute nun künftig zukunft keinen darf darfst dürfen bitte nur "
            "mal soll "
            "sollst sollte sollen sollten solltest höchstens mindestens".split()
        ),
        strong_rules=(
            r"(?:^|[,;:.—–(] ?|\b(?:bitte|und|aber|du|wir|also) )(?:immer|stets|nie|niemals)\b"
            r"|\bab (?:jetzt|sofort|heute)\b|\b(?:von nun an|künftig|in zukunft|auf keinen fall"
            r"|unter keinen umständen)\b"
            r"|\b(?:darf|darfst|dürfen) (?:nicht|nie|niemals|kein\w*)\b|\bbitte (?:immer|stets|nie|niemals|nur"
            r"|kein\w*)\b"
            r"|^(?:antworte|schreibe?|nutze?|verwende|benutze?|frage?|sage?|mache?|nimm|lösche|prüfe|teste)\b.{0,40}"
            r"\b(?:immer|stets|nie|niemals|nur)\b"
        ),
        weak_rules=r"\bsoll(?:st|te|test|ten|en)?\b|\b(?:höchstens|mindestens)\b",
        decisions=(
            r"(?:entschieden|beschlossen|geeinigt|wir (?:nehmen|bleiben bei)|lass uns\b[^.!?\n]{0,40}\b(?:nehmen"
            r"|nutzen))\b"
        ),
        decision_hints=("entschieden", "beschlossen", "geeinigt", "wir nehmen", "wir bleiben", "lass uns"),
        decision_wordings=r"\b(?:entschieden|beschlossen|geeinigt|wir (?:nehmen|bleiben bei))\b",
        decision_words=frozenset("entschieden beschlossen geeinigt nehmen bleiben".split()),
        undecided=r"\b(?:vielleicht|schlage vor|vorschlag|könnten|sollen wir|ob)\b",
        requests=r"\b(?:bitte|kannst du|könntest du|würdest du|hilf mir)\b",
        asks=r"^\W*(?:bitte|kannst du|könntest du|würdest du|hilf mir|ich (?:brauche|möchte))\b",
        yes=r"(?:^|[.!\n,]\s{0,3})(?:ja|jawohl|genau|passt|einverstanden|klar|gerne?|in ordnung)\b",
        no=r"^\s{0,3}(?:nein|noch nicht|abbrechen|lass das)\b",
        tags="ok|ja|oder|bitte|einverstanden",
        deciding=r"\b(?:entschieden|entscheidung|beschlossen)\b",
        done=r"\b(?:erledigt|behoben|repariert|abgeschlossen|umgesetzt|implementiert|gebucht|verschickt)\b",
        not_done=r"\b(?:noch nicht|nicht|sobald)\b",
        empty="gut|super|danke|vielen dank|alles klar|passt|genau|prima|in ordnung|hallo|gern geschehen",
    ),
    phrases=Phrases(
        relative_times=(
            r"\b(?:gestern|vorgestern|heute|morgen|übermorgen|neulich|kürzlich|derzeit|gerade"
            r"|(?:letzte|nächste|diese|vorige|kommende)[nrs]? (?:woche|monat|jahr|nacht|\w+tag|mittwoch|wochenende))\b"
        ),
        pointing=r"(?:es|das|dies|dieser|diese|sie|er|dort|weil|aber|und|auch|dann)\b",
        joints=r"(?:und|aber|außerdem|dann|übrigens)\b,? (?=\w)",
        pleasantries=(
            r"(?:tschüss|bis (?:bald|morgen|später|dann)|schönen? |viel (?:spaß|erfolg)|gute nacht"
            r"|vielen dank)[^\d]*$"
        ),
        requests=r"(?:kannst|könntest|würdest) du\b|bitte\b",
        own=r"\b(?:ich|wir)\b",
        nothing="keine?|nichts",
        reasons=r"(?i:weil|da|denn|der grund|damit|sonst)\b",
        interjections=(
            "hallo|ja|nein|danke|genau|klar|ach so|ach|übrigens|ehrlich gesagt|guten morgen|guten abend"
            "|alles klar|in ordnung"
        ),
    ),
    recall=Recall(
        small_talk=(
            "guten (?:morgen|tag|abend)|gute nacht|wie geht(?:'s| es dir| es ihnen)?|bis (?:bald|morgen|später|dann)"
            "|schonen (?:tag|abend)(?: noch)?|vielen dank|danke (?:schon|dir|ihnen)|in ordnung|alles klar|mach weiter"
            "|gern geschehen|bitte (?:schon|sehr)|sehr gut|na klar|passt so"
        ),
        fillers=frozenset(
            "ja jawohl nein doch gut super prima toll klasse genau passt klar okay danke bitte hallo servus moin "
            "tschuss "
            "gerne gern einverstanden perfekt stimmt weiter fertig verstanden achso aha".split()
        ),
        triggers=(
            r"\b(?:erinner\w+|weißt\ du\ noch|letztes\ mal|neulich|vorgestern|gestern|letzte\ woche|wie\ besprochen"
            r"|(?:haben|hatten)\ wir\b[^.?!\n]{0,40}\b(?:beschlossen|besprochen|gesagt|vereinbart|entschieden))\b"
        ),
        courtesies=r"(?:hallo|guten\ (?:morgen|tag|abend)|danke)\s{0,3}[,.!]+\s|(?:bitte|(?:kannst|könntest)\ du)\s",
        thanks=r"[\s,.!?]*\b(?:bitte|danke(?: (?:schön|dir))?|vielen dank)[.!\s]*$",
        asking=r"(?:wer|was|wann|wo|warum|wie|welche[rsnm]?|kannst|könntest|bitte|zeig|finde|sag|gib)\b",
    ),
    lasting=Lasting(
        remember=(
            r"(?:^|[,;.–—-]\s|\b(?:bitte|und)\s)(?:merke?\sdir|denke?\sdaran|vergiss\snicht"
            r"|notiere?)[:,]?(?:\sdass)?\s\S.{5}"
        ),
        address=(
            r"(?:^|[,;–—-]\s|\b(?:bitte|und)\s)(?:(?:antworte|schreibe?)\smir\s(?:auf|in|nur)"
            r"|nenne?\smich)\s[a-zäöü]"
        ),
        oneself=(
            r"(?:^|[,;–—-]\s|\b(?:und|aber|denn)\s)(?:ich\s(?:wohne|lebe|arbeite|studiere|heiße|komme\saus)\b"
            r"|ich\sbin\s(?:allergisch|vegetarier|veganer|verheiratet|ledig|geschieden|\d{1,3}\sjahre)"
            r"|ich\s(?:mag|liebe|hasse|esse|trinke)\s(?!es\b|das\b)[a-zäöü]"
            r"|meine?\s(?:frau|mann|tochter|sohn|mutter|vater|bruder|schwester|geburtstag|name|adresse|telefonnummer)\s"
            r"(?:ist|heißt|hat|wohnt|arbeitet|lautet)\b)"
        ),
    ),
    clauses=Clauses(
        corrections=(
            "korrektur|korrigiert|änderung|planänderung|aktualisierung|tatsächlich|ab (?:jetzt|sofort|heute)|von nun an"
        ),
        between="und",
        openings="bitte|übrigens|hinweis|achtung|und|aber|heute|gestern|neulich|merke? dir|seit \\w+",
        now=r"\b(?:jetzt|nicht mehr|ab sofort|von nun an|stattdessen|inzwischen|mittlerweile|neuerdings|künftig)\b",
        no_longer=r"\s*\b(?:nicht|kein(?:e[nmrs]?)?)\b(.*?)\smehr\b",
        speaks=r"(?:.*\s)?(?:[Ii]ch|[Ww]ir|[Mm]eine?|[Uu]nsere?)\b",
        genitives=r"\b(?:von|des)\b",
        turns="nutzer|assistent",
        former_words=r"\b(?:früher|ehemals|bisher) \w+$",
        somebody=r"\b(?:er|es|sie|ihm|ihn|ihr|sein|seine|dies|dieser|diese|du|dein|deine)\b",
        of_value="früher|vorher|seit|ab|bis|jetzt|neu|aktuell|ca|nicht|statt|inkl\\w*|zzgl\\w*",
        hedges=(
            "vielleicht|würde|würden|könnte|könnten|möchte|möchten|überlege|überlegen|planen|früher|damals"
            "|sollte|eventuell|wahrscheinlich|manchmal|gelegentlich|außerdem|zusätzlich|ehemalige[rsn]?"
        ),
        hour_ends="uhr",
        asks="wo|wessen|wann|welche[rsmn]?|warum|wieso|weshalb|wem|wen",
        joints="und|aber|dann",
        roles=frozenset("nutzer benutzer".split()),
    ),
    nouns=Nouns(
        former=r"^(?:der |die |das |meine? |unsere? )?(?:alte|frühere|ehemalige|vorige|letzte|nächste|andere)[rsnm]?\b",
        new=r"^(?:der |die |das |meine? |unsere? )?(?:neue|neueste|aktuelle)[rsn]?\b",
        definite=r"^(?:der|die|das|meine?|unsere?|deine?)\b",
        me=frozenset("ich mich mir mein meine meiner meinem meinen".split()),
        pronouns={"wir": "@we", "uns": "@we", "unser team": "@we", "das team": "@we", "er": "@he", "es": "@it"},
        stop_words=frozenset(
            ("der die das den dem des ein eine einen einem einer unser unsere ist sind jetzt nun neue neuer").split()
        ),
        of="von|des",
        attributes={
            "price": ("preis", "kosten", "miete", "gebühr"),
            "deadline": ("frist", "abgabetermin", "stichtag", "abgabefrist"),
            "day": ("termin", "datum"),
            "time": ("uhrzeit", "startzeit"),
            "phone": ("telefonnummer", "handynummer", "nummer", "telefon", "handy"),
            "email": ("mailadresse", "e mail adresse", "mail adresse"),
            "address": ("adresse", "anschrift"),
            "password": ("passwort", "kennwort"),
            "owner": ("besitzer", "besitzerin", "eigentümer", "verantwortlicher", "verantwortliche"),
            "manager": ("chef", "chefin", "vorgesetzter", "vorgesetzte"),
            "employer": ("arbeitgeber",),
            "location": ("wohnort",),
            "database": ("datenbank",),
            "landlord": ("vermieter", "vermieterin"),
            "school": ("schule", "universität"),
            "spouse": ("ehefrau", "ehemann"),
            "room": ("raum", "besprechungsraum"),
            "birthday": ("geburtstag",),
            "color": ("farbe",),
            "limit": ("obergrenze", "grenzwert"),
            "weight": ("gewicht",),
            "height": ("größe",),
            "age": ("alter",),
        },
        one_at_a_time={"relationship": "ledig verheiratet geschieden verlobt verwitwet", "level": "niedrig hoch"},
        indefinite="(?:jetzt )?ein(?:e[nmr]?)? ",
        owners=dict.fromkeys("sein seine seinen seinem seiner".split(), "@he")
        | dict.fromkeys("ihr ihre ihren ihrem ihrer".split(), "@she"),
        several=frozenset(
            "freund freundin kollege kollegin bruder schwester sohn tochter nachbar nachbarin katze"
            " hund ziel idee gast aufgabe".split()
        ),
        tickets="aufgabe|fehler|vorgang",
    ),
    values=Values(
        about="etwa|rund|ungefähr|gut|knapp|fast|über|unter",
        least_or_most="mindestens|höchstens|etwa|rund|ungefähr",
        days=(
            rf"\b\d{{1,2}}\. ?(?:{_MONTH})\b|\b(?:{_MONTH})\b|\b\d{{1,2}}\.\d{{1,2}}\.(?!\d)|\b(?:übermorgen"
            rf"|wochenende)\b"
            rf"|\b(?:{'|'.join(_WEEKDAYS)})s?\b|\bnächste[nrs]? (?:woche|monat|jahr)\b"
        ),
        hours=r"\b\d{1,2}(?:[:.]\d\d)? ?uhr\b|\bmitternacht\b",
        before_day="den|dem|nächsten|kommenden|jeden",
        fresh="jetzt|ab sofort|inzwischen|mittlerweile|wieder",
        lead="derzeit|aktuell|nur|etwa|rund|der|das",
        late="jetzt|wieder|stattdessen|derzeit|inzwischen|ab sofort",
        cuts="weil|aber|obwohl|sondern|damit",
        corrects=r"\s*[,(]?\s*\b(?:statt(?= \w)|anstatt|anstelle von|nicht mehr|früher|vorher)\b.*$",
        when=(
            r"heute|gestern|vorgestern|kürzlich|neulich|(?:letzte|vorige|diese|nächste)[nmrs]? \w+"
            r"|vor (?:einem|einer|zwei|drei|\d+) \w+"
        ),
        asides="für|mit",
        of="von",
        duration_joints="und",
        denials=("nicht ", "kein ", "keine "),
    ),
    labels=Labels(asking=_ASKING, answers={kind: frozenset(words.split()) for kind, words in _ANSWERS.items()}),
    numerals=Numerals(
        first_twelve=("eins " + _NUMBERS,),
        others={"ein": 1, "zwo": 2},
        noon="mittags?|mitternachts?",
        before_hour={"halb": -30, "viertel nach": 15, "viertel vor": -15, "dreiviertel": -15, "viertel": -45},
        hour_signs="uhr",
        clock_hints="uhr|halb|viertel|mitt",
        day_leads="am|den",
        shares=" von ",
    ),
    secrets=Secrets(
        passwords="passworts?|kennwort",
        password_hints=("kennwort",),
        unsigned_passwords="passwort",
        gives="ist",
        placeholders=r"dein\b|dein[-_]|mein[-_]|beispiel",
    ),
    frames=Frames(
        days=rf"(?:{'|'.join(_WEEKDAYS)})s?|(?:{_MONTH})(?= \d|[ ,]*$)",
        of_days="uhr",
        former="statt|anstatt|nicht|vorher|früher",
        changed=(
            "gestiegen|stieg|erhöht|gesenkt|gesunken|sank|verschoben|verlegt|geändert|reduziert|verlängert|verkürzt"
        ),
        now=("jetzt|nun|derzeit|aktuell|momentan|inzwischen|mittlerweile|ab sofort|künftig|bereits"),
        light=frozenset(
            "der das ein eine einen dem ist sind waren wird werden wurde wurden haben im auf um bis ab"
            " von zu zum zur und".split()
        ),
        grammar=frozenset(
            "der das ein eine einen dem ist sind waren wird werden wurde wurden haben im auf um bis"
            " von zu zum zur und".split()
        ),
        articles=frozenset("der das dem ein eine einen unser unsere mein meine".split()),
    ),
    restatements=Restatements(
        speakers=frozenset("ich wir".split()),
        be=frozenset("ist sind".split()),
        imperatives=frozenset("nutze verwende benutze".split()),
        elsewhere=frozenset("dieser diese dieses jener es er du dort hier".split()),
        verbs=frozenset(
            "wohne wohnt wohnen arbeite arbeitet arbeiten nutze nutzt nutzen verwende verwendet"
            " verwenden beginnt beginnen startet starten endet enden öffnet öffnen schließt schließen"
            " kostet kosten zahle zahlt zahlen heißt liegt liegen steht stehen hängt hängen läuft"
            " laufen fährt fahren nehme nimmt nehmen braucht brauchen".split()
        ),
        several=frozenset(
            "nutze nutzt nutzen verwende verwendet verwenden nehme nimmt nehmen braucht brauchen".split()
        ),
        positions=frozenset("ist sind liegt liegen steht stehen hängt hängen".split()),
        placed=frozenset("abgelegt aufbewahrt gelagert versteckt geparkt".split()),
        places=frozenset("im auf hinter unter neben über bei zwischen".split()),
        manners=frozenset("als um ab".split()),
        directions=frozenset("nach zu zum zur bis".split()),
        scopes=frozenset("für wenn falls während vor ohne und oder weil".split()),
        definite=frozenset("der das dem mein meine unser unsere sein seine ihr ihre".split()),
        hours=frozenset("uhr".split()),
        days=frozenset(_WEEKDAYS) | frozenset(_MONTH.split("|")),
    ),
    sameness=Sameness(
        unsaid=frozenset("bitte auch".split()),
        clause_joints=" und (?=(?:mein|meine|dein|deine|das|unser|unsere|ich|du|wir) )",
        assistants_named="assistent",
    ),
    names=PersonNames(
        no_parts=frozenset("von der den".split()),
        no_capitals=frozenset(
            "der die das dieser diese dieses wenn nach vor bis seit mit ohne von dann dort sie ihr"
            " sein ihre unser nicht immer nie bitte".split()
        ),
    ),
    facts=FactTable(wordings=_WORDINGS, script=_SCRIPT),
)
