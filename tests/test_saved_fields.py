"""Test that the fields of a dataclass come back as they were saved."""

import math
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

from leakboard.store import load_fields, save_fields


@dataclass
class Fields:
    """Fields of every type that is saved."""

    numbers: np.ndarray
    words: np.ndarray
    names: np.ndarray
    threshold: float
    text: str
    nested: list
    nothing: None = None
    yes: bool = True


def test_fields_come_back_as_they_were(tmp_path):
    words = np.array([["a", "Infinity"], ["nan", "ü"]], object)
    listed = ["Infinity", math.inf, [-math.inf, 1, 0.5, None]]
    saved = Fields(np.eye(2), words, np.array(["a", "bcd"]), -math.inf, "Infinity", listed)
    save_fields(saved, tmp_path)
    loaded = load_fields(Fields, tmp_path)
    for name in ("numbers", "words", "names"):
        before, after = getattr(saved, name), getattr(loaded, name)
        assert (after.dtype, after.tolist()) == (before.dtype, before.tolist())
    assert (loaded.threshold, loaded.text, loaded.nested) == (-math.inf, "Infinity", listed)
    assert (loaded.nothing, loaded.yes) == (None, True)


def test_fields_that_are_not_a_number_stay_so(tmp_path):
    save_fields(Fields(np.eye(2), np.array([], object), np.array([], "U"), math.nan, "", [math.nan]), tmp_path)
    loaded = load_fields(Fields, tmp_path)
    assert math.isnan(loaded.threshold)
    assert math.isnan(loaded.nested[0])
    assert loaded.words.dtype == object


@pytest.mark.parametrize("value", [{"a": 1}, (1, 2), [(1, 2)], {1}, b"a"])
def test_fields_of_other_types_are_refused(tmp_path, value):
    with pytest.raises(TypeError, match=r"Fields\.nested is or has a \w+: fields that are no array"):
        save_fields(Fields(np.eye(2), np.array(["a"]), np.array(["b"]), 1.0, "", value), tmp_path)


def test_a_long_word_costs_its_own_memory_alone(tmp_path):
    words = np.array(["word"] * 1000 + ["x" * 1_000_000], object)
    tracemalloc.start()
    save_fields(Fields(np.eye(2), words, np.array(["b"]), 1.0, "", []), tmp_path)
    loaded = load_fields(Fields, tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert loaded.words.tolist() == words.tolist()
    assert peak < 20e6
