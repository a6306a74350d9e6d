"""Words of sentences of English that say again, with another value, what another said: data alone."""

from indexer.language.fact_tables import Restatements

# Of what is so for some time; nouns that look like them ("books", "orders") are none here.
_BASES = (
    "live work run start begin end close open meet take drive go use pay co"
    "st write send keep store hang lie stand sit sleep listen connect deplo"
    "y report prefer like love enjoy eat drink play study teach learn speak"
    " call need want expire leave arrive last wear serve commute attend han"
    "dle manage maintain own have know support sell wake get come happen re"
    "ad follow belong publish stay weigh contain include accept offer recei"
    "ve save spell pronounce lead"
)
# What may be several at a time, so that another is no new value of it.
_SEVERAL_BASES = (
    "like love enjoy eat drink play speak need want own have know support r"
    "ead watch order buy contain include accept offer sell learn teach take use visit follow"
)


def _forms(bases: str) -> frozenset[str]:
    keys = set[str]()
    for base in bases.split():
        ending = "es" if base.endswith(("s", "sh", "ch", "x", "o")) else "s"
        keys |= {base, "studies" if base == "study" else "has" if base == "have" else base + ending}
    return frozenset(keys)


ENGLISH_RESTATEMENTS = Restatements(
    articles=frozenset("a an the".split()),
    which=frozenset("second old former previous".split()),
    speakers=frozenset(("i", "we")),
    be=frozenset("is are am be".split()),
    imperatives=frozenset(("use",)),
    elsewhere=frozenset(
        "this that these those it he she they you there here let let's i'll we'll i'd we'd will".split()
    ),
    verbs=_forms(_BASES),
    several=_forms(_SEVERAL_BASES),
    several_behind=frozenset("on with in".split()),
    running=frozenset("run runs work works connect connects".split()),
    positions=frozenset(
        "is are hangs hang lies lie stands stand sits sit lives live stays stay sleeps sleep goes go".split()
    ),
    placed=frozenset("kept stored hidden located placed parked put left locked".split()),
    places=frozenset("in on at under behind inside near beside above below next between outside".split()),
    manners=frozenset("as in with by".split()),
    directions=frozenset("to into onto from until till".split()),
    before_place=frozenset("front of to".split()),
    scopes=frozenset(
        "for of about than when if while and or because per during after before with without unless".split()
    ),
    definite=frozenset("the my our his her their its your".split()),
    no_places=frozenset(
        "morning evening afternoon night week weekend month year summer winter process way middle"
        " mood works making same beginning end market news lead mean meantime past future".split()
    ),
    hours=frozenset("am pm a.m p.m".split()),
    days=frozenset(
        "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays"
        " thursdays fridays saturdays sundays january february march april may june july august"
        " september october november december".split()
    ),
    adverbs=("ly",),
)
