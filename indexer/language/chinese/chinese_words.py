"""Words of Chinese: data alone."""

from indexer.language.base import Replies

CHINESE_REPLIES = Replies(
    option_words=("方案|选项"),
    or_words=("或"),
)
