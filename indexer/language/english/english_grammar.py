"""Words of grammar of English: data alone."""

from indexer.language.base import Grammar

ENGLISH_GRAMMAR = Grammar(
    stop_words=frozenset(
        """
        a about after again all also am an and any are aren as at be because been before being but by can could
        couldn d did didn do does doesn doing don down during each few for from further had hadn has hasn have haven
        having he her here hers herself him himself his how i if in into is isn it its itself just ll m me mightn
        more most mustn my myself no nor not now o of off on once only or other our ours ourselves out over own re s
        same shan she should shouldn so some such t than that the their theirs them themselves then there these they
        this those through to too under until up ve very was wasn we were weren what when where which while who whom
        why will with won would wouldn y you your yours yourself yourselves
        """.split()
    ),
    grammar_words=(
        "the of and to in is it that for was on with as are this be at by have from or not but you i we they "
        "he she his her my our your their will would can could should has had were been do does did what "
        "when where which who how why if then than there here about into after before because every each all "
        "any some more most only also just never always no yes an me us them its it's don't i'm let's up out "
        "over again between until while so"
    ),
    verbs=(
        "is|are|was|were|be|has|have|had|will|must|should|can|cannot|may|does|did|do|don['’]t|never|always|use|uses|keep"
        "|keeps|run|runs|own|owns|live|lives|need|needs|want|wants|mean|means|start|starts|end|ends|listen|listens|likes?"
        "|works?|goes|got|made|added|fixed|changed|moved|removed|updated|created|wrote|ask|write|answer|commit|deploy"
        "|avoid"
    ),
    abbreviations=frozenset(
        """
        e.g eg i.e ie dr mr mrs ms prof st vs cf fig figs approx sec vol ch eq ed eds al resp incl excl tel ext art fr
        max min
        """.split()
    ),
    last_abbreviations=frozenset(
        "etc inc ltd co corp jr sr dept est jan feb mar apr jun jul aug sep sept oct nov dec".split()
    ),
    number_abbreviations=frozenset("no nos p pp art ver v".split()),
    lettered=frozenset(
        "plan option variant team group class grade type step vitamin version part section appendix room gate hall "
        "case".split()
    ),
    behind_ordinals="Floor",
    shared_words=frozenset(
        "a all an as at by den die do for had has he her his i in is it its man me men no of on or"
        " over so to up us was we".split()
    ),
    name_words=frozenset("the my our her his their your of and for".split()),
    numbered_words=frozenset(
        "base top step phase option part level stage day week round attempt version type sub pre"
        " post mid non log page line lines item section chapter figure table grade year".split()
    ),
)
