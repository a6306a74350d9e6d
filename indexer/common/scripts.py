"""Table of scripts: ranges of characters, to stand between brackets in a pattern. Pure.

Invariants: the ranges overlap and differ where what is asked of a character differs; each says what it is for. Part of
the fingerprint of an index: a passage or a term may change with a range.
"""

from __future__ import annotations

SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")

COMMON_HAN = "\u4e00-\u9fff"
HAN = "\u3400-\u4dbf" + COMMON_HAN
# With compatibility and rare characters.
ALL_HAN = HAN + "\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3040-\u30ff"
HANGUL = "\uac00-\ud7a3"
# Thai, Lao, Burmese, Khmer: written without spaces, in letters and signs that make a syllable together.
SYLLABIC = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
# Scripts written without spaces between words, and Hangul, whose words carry endings.
UNSPACED = SYLLABIC + f"\u3005-\u3007{KANA}\u31f0-\u31ff{HANGUL}{ALL_HAN}"
# The vowel signs of Indian scripts are no letters to `re`, but parts of words all the same.
INDIC = "\u0900-\u0963\u0966-\u0dff"
# Characters that no identifier written in ASCII goes on with, full-width punctuation among them.
EAST_ASIAN = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef"

# Han, kana, Hangul, their punctuation and full-width forms: tokenizers spend about one token on each.
DENSE = f"\u1100-\u11ff{EAST_ASIAN}\U00020000-\U0003ffff"
# Characters of twice the width of a letter, as an editor wraps them.
WIDE = "\u3000-\u9fff\uac00-\ud7a3\uff00-\uffef"
# Characters that a vocabulary for Chinese, Japanese or Korean has; nothing of punctuation.
CJK_LETTERS = f"{KANA}\u3400-\u9fff\uac00-\ud7ff"
