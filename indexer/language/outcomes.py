"""Words of failure and success: outputs, exit codes, lines, sentences, error pages, acknowledgements. Pure; linear.

The tables differ by what is asked: is an end worth keeping (any sign, even within a word), which line of a result is
its failure (at the beginning of a line), does a sentence speak of a failure, is a whole answer an error page, does it
say that all went well and nothing else.
"""

from __future__ import annotations

import re

from indexer.common.patterns import lazy_regex

# Found anywhere in a word: one sign too many keeps some of an end that could have gone, one too few loses the reason.
_SIGNS = (
    *("error", "exception", "traceback", "fail", "fatal", "panic", "denied", "timed out", "timeout", "abort", "killed"),
    *("segmentation fault", "core dumped", "not found", "no such file", "exit code", "exit status", "exited with"),
    *("错误", "報錯", "报错", "錯誤", "失败", "失敗", "异常", "異常", "例外", "致命", "崩溃", "崩潰", "超时", "超時"),
    *("拒绝", "拒絕", "中止", "找不到", "未找到", "退出码", "退出代码", "返回码", "エラー", "오류"),
)
_LOOKED_AT = 2_000  # of the end, in characters, for such signs

_EXIT = lazy_regex(
    r"(?:\bexit(?:ed)?(?:[ _-]?with)?(?:[ _-]?(?:code|status))?|\breturn[ _-]?code|退出码|退出代码|退出状态|返回码)"
    r"[\s:=\"'>:]{0,4}(-?\d{1,5})\b",
    re.IGNORECASE,
)
_EXIT_SIGNS = ("exit", "return", "退出", "返回")
# Of a command whose failure is recorded: no number that goes on behind a dot, and fewer signs in between.
_ENDED = lazy_regex(
    r"(?:exit(?:ed)?(?: with)?[ _]?(?:code|status)?|return[ _]?code|退出码)"
    r"[\"'>]{0,2}[ \t]{0,3}[:=：]?[ \t]{0,3}(-?\d{1,5})(?![\d.])"
)
_FAILURE = lazy_regex(
    r"""(?mx)^[ \t>|*-]{0,8}(?:[\w.]{0,60}(?:Error|Exception|Panic)\b
      |[Ee]rror\b|ERROR\b|FAILED\b|FATAL\b|[Ff]atal:|panic:|E[ ]{3}
      |npm[ ]ERR!|[Ff]ailed\b|[Pp]ermission[ ]denied|Traceback|错误|失败|异常|报错|无法|找不到)[^\n]{0,240}
    | ^[^\n:]{1,80}:[^\n]{0,80}(?:command[ ]not[ ]found|[Nn]o[ ]such[ ]file|[Pp]ermission[ ]denied
      |[Cc]onnection[ ]refused)[^\n]{0,120}"""
)
# Stricter than that of sentences: "Failed: 3, no warnings" is a failure.
_NO_FAILURE = lazy_regex(r"(?i)\b(?:0|no) (?:errors?|failed|failures?)\b|没有(?:错误|失败|异常)|无错误")
_ERROR_PAGE = lazy_regex(
    r"\W{0,8}(?:[\w.]{0,40}(?:error|exception)\b[^\n]{0,40}[:：]|(?:error|exception|traceback|fatal|http) ?[:(\d]"
    r"|(?:4\d\d|5\d\d) [A-Z]|(?:request|connection|upstream|call) (?:failed|timed out|error)"
    r"|(?:rate limit|quota|context length|maximum context|too many requests|internal server error|service unavailable"
    r"|bad gateway|overloaded|insufficient)\b|(?:i'?m|i am|we'?re) (?:very )?(?:sorry|unable)|sorry,"
    r"|i (?:can(?:'t|not)|could ?n[o']t)\b|(?:错误|出错|请求失败|调用失败|服务不可用|抱歉|对不起|很抱歉))",
    re.IGNORECASE,
)


def ends_in_error(text: str) -> bool:
    """True if the end of a text looks like a diagnosis: an error, a traceback, an exit code; English or Chinese."""
    end = text[-_LOOKED_AT:].lower()
    return any(sign in end for sign in _SIGNS)


def exit_code_of(piece: str) -> str:
    """Exit code in the beginning or the end of an output, as it is written; empty if there is none."""
    lowered = piece.lower()
    # The pattern is slow, and most results tell no exit code.
    found = _EXIT.search(piece) if any(sign in lowered for sign in _EXIT_SIGNS) else None
    return found[1] if found else ""


def command_exit_of(text: str) -> str:
    """Exit code that the result of a command reports, as it is written; empty if there is none."""
    lowered = text.lower()
    told = _ENDED.search(lowered) if "exit" in lowered or "code" in lowered or "退出码" in text else None
    return told[1] if told else ""


def failure_lines(text: str) -> list[str]:
    """Lines of a result that report a failure."""
    return [match[0].strip() for match in _FAILURE.finditer(text) if not _NO_FAILURE.search(match[0])]


def begins_as_error(text: str) -> bool:
    """True if a text begins as an error page or a refusal does."""
    return _ERROR_PAGE.match(text) is not None


# --- sentences ---------------------------------------------------------------------------------------------------

_FAILED = lazy_regex(
    r"\b(?:fail(?:s|ed|ing|ure)?|errors?|exceptions?|traceback|crash(?:es|ed|ing)?|tim(?:ed?|es) ?out|timeouts?|broken?"
    r"|could ?n[o'’]t|can(?:no|['’])t|unable|denied|refused|revert(?:ed)?|rolled back|not found|no such file|panic"
    r"|(?:does|did|do|is|was)(?:n['’]t| not) (?:work|help|fix|start|run|compile|working|load|connect)(?:ing)?"
    r"|no luck|dead end|segfault|unauthori[sz]ed|forbidden|aborted)\b"
)
_NOT_FAILED = lazy_regex(
    r"\b(?:0|no|without|zero) (?:errors?|fail(?:ures?|ed)?|exceptions?|warnings?)\b|没有(?:报错|错误|异常|失败)"
)
_FAILED_HINT = lazy_regex("[失败报错异不没无崩超找拒回]")
_FAILED_ZH = lazy_regex(
    "失败|报错|出错|错误|异常|不行|没用|无效|崩溃|超时|找不到|被?拒绝|回滚|没成功|没有成功|不起作用|没解决|起不来"
)
# What a program prints when it fails is no rule, whatever words it has.
_ERROR_LINE = lazy_regex(
    r"^(?:error|fatal|warn(?:ing)?|panic|e {2}|npm err!|err!|\[(?:error|warn|fatal)|traceback|\d{4}-\d\d-\d\d[t ]\d\d:)"
    r"|^\W*\w*(?:error|exception)\b ?[:：(]|^(?:报错|错误)[:：]"
)
_OUTCOME = lazy_regex(
    r"\b\d+ (?:tests? )?(?:passed|failed|errors?|warnings?|failures?)\b|\bexit(?:ed)?(?: with)?(?: code"
    r"| status)?[ :=]+\d"
    r"|\bbuild (?:succe|fail)|\b(?:succeeded|successful(?:ly)?|deployed|published)\b|\w*(?:error|exception)\b ?:"
    r"|测试|成功|失败|报错|通过"
)


# What it was the exit of stands in no line; the commands of the ledger have it.
_EXIT_ONLY = lazy_regex(
    r"\W*(?:error:? )?(?:process |command )?(?:failed with )?(?:exit(?:ed)?(?: with)?(?: code| status)?"
    r"|return code|退出码)\W*-?\d+\W*"
)


def has_failed(lower: str, chinese: str) -> bool:
    """True if a text, given in lower case and as Chinese if it has any, speaks of a failure."""
    if _NOT_FAILED.search(lower):
        return False
    if "error" in lower or "exception" in lower or _FAILED.search(lower):
        return True
    return bool(chinese) and _FAILED_HINT.search(chinese) is not None and _FAILED_ZH.search(chinese) is not None


def is_error_line(lower: str) -> bool:
    """True if a line, in lower case, is what a program prints when it fails: no rule, whatever words it has."""
    return _ERROR_LINE.search(lower) is not None


def names_outcome(lower: str) -> bool:
    """True if a line of a tool's result, in lower case, tells an outcome: "3 passed", "exit code 1", "部署成功"."""
    return _OUTCOME.search(lower) is not None


def is_exit_only(lower: str) -> bool:
    """True if a line, in lower case, tells an exit code and nothing else."""
    return _EXIT_ONLY.fullmatch(lower) is not None


# --- acknowledgements --------------------------------------------------------------------------------------------

_ACKNOWLEDGED_CHARS = 120
_WORD = lazy_regex(r"\w+(?:\.\d+)?")
_FINE = (
    "ok|okay|done|yes|true|success|successful|successfully|succeeded|accepted|complete|completed|finished"
    "|成功|已?完成|好的?|操作成功|执行成功|已确认"
)
_DEED = (
    "sent|saved|stored|updated|created|deleted|removed|written|added|delivered|received|applied|queued|scheduled"
    "|acknowledged|posted|moved|copied|renamed|已?(?:发送|保存|更新|创建|删除|添加|送达|提交)(?:成功)?"
)
# "exit code 0" and "1 sent" say that it went well; "exit code 1" and "0 sent" are news.
_CLAUSES = (
    f"(?:(?:status|result|state|message) )?(?:{_FINE})",
    f"(?:{_DEED})(?: (?:true|yes|ok|successfully|[1-9][0-9]{{0,2}}))?",
    "(?:[1-9][0-9]{0,2} )(?:sent|saved|stored|updated|created|deleted|removed|written|added|delivered)",
    "(?:exit_?code|exit_status|returncode|return_code|rc|(?:exit |return )?(?:code|status)) 0",
    "(?:status|code|status_code) 20[0-4]",
    "(?:errors?|stderr|stdout|output) (?:null|none|false|empty)",
    "stdout|stderr|no output|无输出|退出码 0",
)
_TAKEN = r"[0-9]{1,4}(?:\.[0-9]+)? ?(?:s|ms|seconds|秒)"
_ACKNOWLEDGEMENT = lazy_regex(f"(?:(?:{'|'.join(_CLAUSES)})(?: |$))+(?:{_TAKEN})?")


def is_acknowledgement(text: str) -> bool:
    """True if an answer says that something went well, and nothing else: `{"ok": true}`, "exit code 0"."""
    if len(text) > _ACKNOWLEDGED_CHARS:
        return False
    return _ACKNOWLEDGEMENT.fullmatch(" ".join(_WORD.findall(text.casefold()))) is not None
