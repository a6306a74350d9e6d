"""Words of English: data alone."""

from indexer.language.base import Replies

ENGLISH_REPLIES = Replies(
    option_words=("[Oo]ption|OPTION|Variant[e]?|Plan"),
    or_words=(r"\s+(?:or|oder|ou|o)\b"),
    or_labels=(r"(?:[,;]|\s+or\b)\s*[A-H1-9][.:]\s"),
)
