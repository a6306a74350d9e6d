"""English words of failure and success: data alone."""

from indexer.language.base import Outcomes

ENGLISH_OUTCOMES = Outcomes(
    exit_words=(r"\bexit(?:ed)?(?:[ _-]?with)?(?:[ _-]?(?:code|status))?|\breturn[ _-]?code"),
    command_exit_words=("exit(?:ed)?(?: with)?[ _]?(?:code|status)?|return[ _]?code"),
    failure_starts=(
        r"[\w.]{0,60}(?:Error|Exception|Panic)\b|[Ee]rror\b|ERROR\b|FAILED\b|FATAL\b|[Ff]atal:|panic:|E[ ]{3}"
        r"|npm[ ]ERR!|[Ff]ailed\b|[Pp]ermission[ ]denied|Traceback"
    ),
    failure_lines=(
        r"^[^\n:]{1,80}:[^\n]{0,80}(?:command[ ]not[ ]found|[Nn]o[ ]such[ ]file|[Pp]ermission[ ]denied"
        r"|[Cc]onnection[ ]refused)[^\n]{0,120}"
    ),
    no_failures=(r"\b(?:0|no) (?:errors?|failed|failures?)\b"),
    error_pages=(
        r"[\w.]{0,40}(?:error|exception)\b[^\n]{0,40}[:：]|(?:error|exception|traceback|fatal|http) ?[:(\d]"
        "|(?:request|connection|upstream|call) (?:failed|timed out|error)|(?:rate limit|quota|context length"
        "|maximum context|too many requests|internal server error|service unavailable|bad gateway|overloaded"
        r"|insufficient)\b|(?:i'?m|i am|we'?re) (?:very )?(?:sorry|unable)|sorry,|i (?:can(?:'t|not)"
        r"|could ?n[o']t)\b"
    ),
    not_failed=(r"\b(?:0|no|without|zero) (?:errors?|fail(?:ures?|ed)?|exceptions?|warnings?)\b"),
    error_lines=(
        r"^(?:error|fatal|warn(?:ing)?|panic|e {2}|npm err!|err!|\[(?:error|warn|fatal)|traceback"
        r"|\d{4}-\d\d-\d\d[t ]\d\d:)|^\W*\w*(?:error|exception)\b ?[:：(]"
    ),
    outcomes=(
        r"\b\d+ (?:tests? )?(?:passed|failed|errors?|warnings?|failures?)\b|\bexit(?:ed)?(?: with)?(?: code"
        r"| status)?[ :=]+\d|\bbuild (?:succe|fail)|\b(?:succeeded|successful(?:ly)?|deployed|published)\b"
        r"|\w*(?:error|exception)\b ?:"
    ),
    exit_only=("exit(?:ed)?(?: with)?(?: code| status)?|return code"),
    fine=("ok|okay|done|yes|true|success|successful|successfully|succeeded|accepted|complete|completed|finished"),
    deeds=(
        "sent|saved|stored|updated|created|deleted|removed|written|added|delivered|received|applied|queued"
        "|scheduled|acknowledged|posted|moved|copied|renamed"
    ),
    seconds=("s|ms|seconds"),
    failed=(
        r"\b(?:fail(?:s|ed|ing|ure)?|errors?|exceptions?|traceback|crash(?:es|ed|ing)?|tim(?:ed?|es) ?out"
        "|timeouts?|broken?|could ?n[o'’]t|can(?:no|['’])t|unable|denied|refused|revert(?:ed)?|rolled back"
        "|not found|no such file|panic|(?:does|did|do|is|was)(?:n['’]t| not) (?:work|help|fix|start|run|compile"
        r"|working|load|connect)(?:ing)?|no luck|dead end|segfault|unauthori[sz]ed|forbidden|aborted)\b"
    ),
    signs=(
        *("error", "exception", "traceback", "fail", "fatal", "panic", "denied", "timed out", "timeout", "abort"),
        *("killed", "segmentation fault", "core dumped", "not found", "no such file", "exit code", "exit status"),
        "exited with",
    ),
    exit_signs=("exit", "return"),
    command_exit_signs=("exit", "code"),
    results="status|result|state|message",
    deed_results="true|yes|ok|successfully",
    acknowledgements=(
        "(?:[1-9][0-9]{0,2} )(?:sent|saved|stored|updated|created|deleted|removed|written|added|delivered)"
        "|(?:exit_?code|exit_status|returncode|return_code|rc|(?:exit |return )?(?:code|status)) 0"
        "|(?:status|code|status_code) 20[0-4]|(?:errors?|stderr|stdout|output) (?:null|none|false|empty)"
        "|stdout|stderr|no output"
    ),
    exit_leads="(?:error:? )?(?:process |command )?(?:failed with )?",
)
