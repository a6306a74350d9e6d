"""Words of languages that have no file of their own yet.

Who makes one of them a file takes its words from here along.
"""

from indexer.language.base import Language
from indexer.language.others.european_languages import DUTCH, POLISH, RUSSIAN, SWEDISH, TURKISH
from indexer.language.others.french_words import FRENCH
from indexer.language.others.grammar_words import CZECH, DANISH, FINNISH, HUNGARIAN, INDONESIAN, ROMANIAN, VIETNAMESE
from indexer.language.others.japanese_words import JAPANESE
from indexer.language.others.korean_words import KOREAN
from indexer.language.others.romance_languages import ITALIAN, PORTUGUESE, SPANISH
from indexer.language.others.shared_words import SHARED

OTHERS: tuple[Language, ...] = (
    FRENCH,
    SPANISH,
    PORTUGUESE,
    ITALIAN,
    DUTCH,
    POLISH,
    TURKISH,
    VIETNAMESE,
    INDONESIAN,
    SWEDISH,
    DANISH,
    FINNISH,
    CZECH,
    HUNGARIAN,
    ROMANIAN,
    RUSSIAN,
    JAPANESE,
    KOREAN,
    SHARED,
)
