"""German: data alone."""

from indexer.language.base import Days, Grammar, Language, Replies, Sections

GERMAN = Language(
    name="German",
    grammar=Grammar(
        grammar_words=(
            "der und das ist nicht ich wir sie ein eine einen einem einer mit für auf von zu zum zur den dem des "
            "auch sich im aber nur noch nach bei wird werden wurde haben hat hatte sind wenn dass weil oder wie "
            "über unser unsere mein meine ihr immer kein keine vor bis aus um vom beim ins heute morgen jeden "
            "soll muss kann"
        ),
    ),
    days=Days(
        months=(
            "januar februar märz april mai juni juli august september oktober november dezember",
            "jänner feber maerz april mai juni juli august september oktober november dezember",
        ),
        day_words={"vorgestern": -2, "gestern": -1, "heute": 0},
        latest="kürzlich|neulich|zuletzt|in letzter zeit|neueste[nrs]?",
        happening="passiert(?:e)?|geschah|geschehen",
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
        ordinals={1: "erste[nrs]?", 2: "zweite[nrs]?", 3: "dritte[nrs]?", 4: "vierte[nrs]?", -1: "letzte[nrs]?"},
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
)
