"""Name the attacks on texts that another attack may run on vectors that it prepared."""

from collections.abc import Mapping

from leakboard.attacks.bag_of_words import BagOfWords
from leakboard.attacks.inversion import Inversion
from leakboard.attacks.nearest_text import NearestText
from leakboard.attacks.search import Search
from leakboard.attacks.stacked_words import StackedWords
from leakboard.threats.texts import TextsAttack

READERS: Mapping[str, type[TextsAttack]] = {
    "bag_of_words": BagOfWords,
    "inversion": Inversion,
    "nearest_text": NearestText,
    "search": Search,
    "stacked_words": StackedWords,
}
