"""English words by which a secret is known: data alone."""

from indexer.language.base import Secrets

ENGLISH_SECRETS = Secrets(
    passwords="pass(?:word|wd|code)s?|(?<![a-z])pwd",
    password_hints=("pass", "pwd"),
    unsigned_passwords="password|passcode|passwd|pwd",
    tokens=(
        r"(?:api|access|secret|private|auth|encryption|signing|licen[sc]e|account|master|webhook|deploy)[ _-]?keys?"
        r"(?:[ _-]id)?(?![a-z])|(?:access|auth|api|bearer|refresh|session|secret|bot|id|csrf|xsrf|oauth|deploy)"
        r"[ _-]?tokens?|tokens?|client[ _-]?secret|secrets?(?:[ _-]key)?|credentials?|sharedaccesskey|x-amz-signature"
    ),
    token_hints=("key", "token", "secret", "credential", "x-amz-"),
    unsigned_tokens="tokens?|keys?|secrets?|credentials?",
    codes=(
        r"(?<![a-z])pin(?:[ -]?(?:code|number))?(?![a-z])|(?<![a-z])otp(?![a-z])|(?<![a-z])cv[vc]2?(?![a-z])"
        r"|(?:2fa|door|gate|alarm|access|entry|lock|unlock|safe|security|verification|one-time|garage|keypad|login|bike"
        r"|building|house|authentication)[ -]?(?:code|combination)s?"
        r"|(?:code|combination)(?=[ ](?:for|of|to)[ ](?:the|my|our|his|her|their)[ ][a-z ]{0,20}"
        r"(?:door|gate|alarm|safe|lock|garage|house|building|bike|keypad))"
    ),
    code_hints=(" pin", " otp", " cvv", " cvc", "code", "combination"),
    unsigned_codes=r"(?<![A-Za-z])PIN|(?i:pin[ -](?:code|number)|(?:door|gate|alarm|safe|garage|keypad)[ -]code)",
    bare_codes=r"(?i:\bcode)",
    code_places="door|gate|alarm|safe|garage|lock",
    phrases="pass[ -]?phrase",
    phrase_hints=("phrase",),
    seeds=(r"(?:seed|recovery|backup|mnemonic|secret)[ -](?:phrase|words)|mnemonic|seed of (?:my|the|our) wallet"),
    seed_hints=("seed", "phrase", "mnemonic", "wallet"),
    accounts=r"(?:bank )?account (?:number|no\.?)|(?:credit|debit|bank) ?card(?: number| no\.?)?",
    account_hints=("account", "card"),
    purposes="for|of|to|on|at",
    gives="is|was|are|will be|became|changed to|set to|reads",
    fillers="now|still|set to|called|just",
    plain_gives="is|was",
    plain_fillers="now",
    announcements="below|following|here it is",
    # What is asked of it, what became of it, what a program has.
    no_values=frozenset(
        """
        a an and any are ask at be been blank bool boolean by bytes can char changed config default disabled do does
        don't empty enabled encrypted env expired expires false field for forgot forgotten format found from generated
        get has hash hashed have he help hidden how i if in incorrect inherit input int integer invalid is it its leave
        length let like lost mandatory managed max may min minimum missing must my needs never new nil no none not null
        number object of off ok okay on once only optional or our pending policy private protected provide provided
        public read recovery required requires reset rotate rotated rules safe salted same secret secure see send set
        should show so somewhere still store stored str string strong take text than that the their them there these
        they this those to too true type undefined unchanged unknown unset until update updated use used valid value
        varchar very via was we weak were what when where which who why will with wrong yes yet you your
        """.split()
    ),
    labels="pass(?:word|wd|code)|token|secret|key|pin|code",
    measures=(
        "characters?|chars?|digits?|letters?|symbols?|words?|bits?|bytes?|days?|weeks?|months?|years?|hours?|minutes?"
        "|seconds?|times?|percent|tokens"
    ),
    identified=(
        "id|ids|hash|sha|commit|digest|checksum|etag|integrity|uuid|fingerprint|public key|order|invoice"
        "|tracking|imei|isbn|issn|doi|ticket|case|parcel|phone|tel|sku|ean|gtin|serial|part|version|build|base64"
    ),
    id_words="no|number|id|code",
    placeholders=r"your\b|your[-_]|my[-_]|example|changeme",
    word_ends="ed|ing|able|ible|ful|ory|ent|ive|ly|al|er|ong|eak",
    measured=r"bit|-?char\w*|-?digit\w*|-?bit|st|nd|rd|th",
    no_keys="cache|primary|foreign|partition|object|sort|row|public|s3|map|dict|max",
    no_seeds=frozenset(
        "the and for are not from your have was were has had but his her our their been could would should because its"
        " which these those some into also only than what where".split()
    ),
)
