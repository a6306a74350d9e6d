"""Small things that both libraries need: patterns compiled late, what was used last, who waits for whom, scripts."""

from indexer.common.lru import LRU, cached_for_short_texts
from indexer.common.patterns import lazy_regex
from indexer.common.scripts import ALL_HAN, COMMON_HAN, EAST_ASIAN, HAN, HANGUL, KANA, UNSPACED
from indexer.common.throttle import THROTTLE

__all__ = [
    "ALL_HAN",
    "COMMON_HAN",
    "EAST_ASIAN",
    "HAN",
    "HANGUL",
    "KANA",
    "LRU",
    "THROTTLE",
    "UNSPACED",
    "cached_for_short_texts",
    "lazy_regex",
]
