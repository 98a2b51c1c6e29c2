"""Corpora that victims are fitted on in milliseconds, and their words as a public list."""

import pytest

from leakboard.data.tokens import words
from leakboard.datasets.generated_reviews import GeneratedReviews


@pytest.fixture(scope="session")
def corpus(reviews):
    """Return train and dev of the generated reviews."""
    return reviews.only("train", "dev")


@pytest.fixture(scope="module")
def few_reviews():
    """Return 39 training texts with 2,140 words."""
    return GeneratedReviews(users=20, texts_per_user=3).load().only("train", "dev")


@pytest.fixture(scope="module")
def word_list(few_reviews, tmp_path_factory):
    """Return the path of a file with the words of the reviews."""
    path = tmp_path_factory.mktemp("listed") / "words.txt"
    path.write_text("\n".join(sorted({word for text in few_reviews.texts("train") for word in words(text)})))
    return str(path)
