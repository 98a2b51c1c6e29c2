"""Test the noise of private training: the generator by published values, the normal numbers by their distribution."""

import numpy as np
import pytest
from scipy import stats

from leakboard.models.skip_gram.noisy_tables import NoiseStream
from leakboard.models.skip_gram.normals import BLOCK, LANES, philox


def draw(key, size, block=0):
    stream = NoiseStream(key, block)
    out = np.empty(size, np.float32)
    stream.fill(out)
    return out, stream


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_gives_the_known_answers_of_random123(counter, key, expected):
    with np.errstate(over="ignore"):
        words = philox.py_func(*map(np.uint32, (*counter, *key)))
    assert " ".join(f"{int(word):08x}" for word in words) == expected


@pytest.mark.slow
def test_numbers_are_box_and_muller_in_double_precision():
    key, block = 0x0123456789ABCDEF, 5
    numbers, _ = draw(key, BLOCK, block)
    with np.errstate(over="ignore"):
        words = [
            philox.py_func(*(np.uint32(w) for w in (lane, block, 0, 0, key & 0xFFFFFFFF, key >> 32)))
            for lane in range(LANES)
        ]
    a, b, c, d = np.array(words, dtype=np.float64).T

    def pair(high, low):
        u = (np.floor(high / 2) * 256 + low % 256 + 0.5) * 2.0**-39
        angle = np.floor(low / 256)
        radius = np.sqrt(-2 * np.log(u))
        quadrant, part = np.divmod(angle, 2**22)
        turn = (part + 0.5) * 2.0**-22 * np.pi / 2 - np.pi / 4 - quadrant * np.pi / 2
        return radius * np.cos(turn), radius * np.sin(turn)

    expected = np.concatenate([*pair(a, b), *pair(c, d)])
    assert np.abs(numbers - expected).max() < 2e-6


class TestDistribution:
    N = 1_000_000

    @pytest.fixture(scope="class")
    @classmethod
    def numbers(cls):
        return draw(2**62 + 12_345, cls.N)[0].astype(np.float64)

    def test_is_normal(self, numbers):
        assert stats.kstest(numbers, "norm").pvalue > 1e-3
        assert abs(numbers.mean()) < 4 / self.N**0.5
        assert abs(numbers.var() - 1) < 4 * (2 / self.N) ** 0.5
        assert abs((numbers**4).mean() - 3) < 4 * (96 / self.N) ** 0.5

    @pytest.mark.parametrize("beyond", [2.0, 3.0, 4.0])
    def test_tails_have_the_right_weight(self, numbers, beyond):
        expected = 2 * stats.norm.sf(beyond) * self.N
        assert abs((np.abs(numbers) > beyond).sum() - expected) < 4 * expected**0.5

    @pytest.mark.parametrize("lag", [1, LANES, 2 * LANES, BLOCK])
    def test_neighbours_are_uncorrelated_also_in_size(self, numbers, lag):
        for values in (numbers, numbers**2):
            assert abs(np.corrcoef(values[:-lag], values[lag:])[0, 1]) < 4 / self.N**0.5

    def test_other_keys_give_uncorrelated_numbers(self, numbers):
        for other in (draw(2**62 + 12_346, self.N)[0], draw(12_345, self.N)[0]):
            assert abs(np.corrcoef(numbers, other)[0, 1]) < 4 / self.N**0.5


def test_a_stream_continues_where_it_stopped():
    whole, _ = draw(7, 3 * BLOCK)
    first, stream = draw(7, BLOCK)
    later = np.empty(2 * BLOCK, np.float32)
    stream.fill(later)
    assert stream.block == 3
    np.testing.assert_array_equal(np.concatenate([first, later]), whole)
    np.testing.assert_array_equal(draw(7, 2 * BLOCK, block=1)[0], later)
    assert draw(7, BLOCK + 1)[1].block == 2  # the rest of a block is skipped
