"""Results of tools that a host sends as messages of the user: nobody's words. Pure, linear.

They are known by their heads, or by being lines of programs throughout, such as numbered code and traces.

Source: SWE-agent 1.1, mini-swe-agent 2, OpenHands, Cline, Roo Code, aider 0.86.
"""

from __future__ import annotations

from collections.abc import Sequence

from indexer.common.patterns import lazy_regex

# Heads of what tools answered, where hosts send that as a message of the user.
_OUTPUT_HEADS = lazy_regex(
    r"""(?x)\s*(?:
      (?:OBSERVATION|Observation|observation)(?:\ \d{1,6})?\s?:
    | <(?:returncode|output|stdout|stderr|tool_(?:result|response|output)|function_results?|observation|command_output
        |execution_result|result|terminal_output)\b[^<>\n]*>
    | (?:EXECUTION\ RESULT|OBSERVATION)\ (?:of|from)\b
    | \[[\w.:-]{1,60}(?:\ for\ [^\]\n]{1,400})?\]\ Result:
    | Your\ command\ ran\ successfully\ and\ did\ not\ produce\ any\ output
    | \[File:\ \S{1,400}\ \(\d{1,9}\ lines\ total\)\]
    | Exit\ code:?\ -?\d{1,5}\s*(?:\n|\Z)
    | \#\ Fix\ any\ (?:linting\ )?errors\ below
    | The\ command\ (?:completed|exited|finished|timed\ out)\b[^\n]{0,80}\b(?:exit|output|code|seconds)\b
    | Your\ (?:last\ )?(?:command|output|proposed\ edit)\ (?:timed\ out|was\ not\ formatted|has\ introduced)
    | Here\ (?:is|are)\ the\ results?\ of\ (?:running\ )?(?:`|the\ command|executing)
    )"""
)
# The same in words that a person may write in front of a question.
_OUTPUT_LABELS = lazy_regex(
    r"""(?x)\s*(?:
      (?:Tool|Function|Command|Terminal|Shell|Execution|Bash|Script)\ (?:results?|outputs?|response)\b[^\n:]{0,80}:
    | (?:STDOUT|STDERR)\s?: | I\ ran\ this\ command:\s*\n
    )"""
)
# Lines that programs print, and that nobody types several of without a word beside them.
_OUTPUT_LINE = lazy_regex(
    r"""(?x)\s{0,40}(?:
      \d{1,7}(?:\t|→|\s?[|│]|:\s{2,}|\s{4,}) | \d{1,7}:\s?\S.*[;{}()=\[\]]\s*$ | [\w./-]{1,300}:\d{1,7}:
    | File\ ".{1,300}",\ line\ \d | Traceback\ \(most\ recent | at\ [\w.$<>/: -]{1,160}\s?\(.{0,300}\)$ | Caused\ by:
    | [\w.]{1,80}(?:Error|Exception|Warning):\s | goroutine\ \d | panic:\s | thread\ '.{1,80}'\ panicked
    | \[?\d{4}[-/]\d\d[-/]\d\d[T\ ]\d\d:\d\d:\d\d | @@\ -\d | (?:\+\+\+|---)\ [ab]/ | diff\ --git\ | \x1b\[
    )"""
)
_LEAST_OUTPUT_LINES = 3
_OUTPUT_SHARE = 0.6
_LOOKED_AT_LINES = 200


def is_tool_output(text: str) -> bool:
    """True if a message of a user's is what a tool answered: by its head, or since programs print such lines alone."""
    if _OUTPUT_HEADS.match(text) is not None or _is_printed(text):
        return True
    return _OUTPUT_LABELS.match(text) is not None and not text.rstrip().endswith(("?", "？"))


def _is_printed(text: str) -> bool:
    """True if most lines are those of programs, and the others continue them: indented code, brackets, blanks."""
    lines = [line for line in text.split("\n", _LOOKED_AT_LINES)[:_LOOKED_AT_LINES] if line.strip()]
    printed_values = [_OUTPUT_LINE.match(line[:600]) is not None for line in lines]
    if sum(printed_values) < max(_LEAST_OUTPUT_LINES, _OUTPUT_SHARE * len(lines)):
        # Of a trace, the lines between are the code.
        return _is_trace(lines, printed_values)
    return all(flag or _goes_on(line) for line, flag in zip(lines, printed_values, strict=True))


def _is_trace(lines: Sequence[str], printed_values: Sequence[bool]) -> bool:
    begins = bool(lines) and printed_values[0] and sum(printed_values) >= _LEAST_OUTPUT_LINES
    return begins and all(flag or line[:2].isspace() for line, flag in zip(lines, printed_values, strict=True))


def _goes_on(line: str) -> bool:
    return line[:2].isspace() or not any(map(str.isalpha, line)) or line.lstrip()[:1] in "+-<[(…."
