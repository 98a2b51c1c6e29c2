"""Bins have equal sizes and are named by their edges; columns that cannot be secrets are refused."""

import numpy as np
import pandas as pd
import pytest

from leakboard.data.classes import about_kind, check_secret, encode_bins, listed
from leakboard.errors import RequestError

AGES = np.random.default_rng(0).permutation(np.repeat(np.arange(18, 78), 5))


def binned(values, bins):
    frame = pd.DataFrame({"age": np.asarray(values, float)})
    names = encode_bins(frame, "age", bins)
    return [names[code] for code in frame["age"]], names


def test_bins_of_equal_size():
    binned_rows, names = binned(AGES, 4)
    assert names == ("18-32", "33-47", "48-62", "63-77")
    assert [binned_rows.count(name) for name in names] == [75] * 4
    for age, name in zip(AGES, binned_rows, strict=True):
        low, high = map(int, name.split("-"))
        assert low <= age <= high


def test_fewer_bins_than_asked_are_told_and_may_be_single_numbers(caplog):
    names = binned(AGES, 1000)[1]
    assert names == tuple(map(str, range(18, 78)))
    assert "age: 60 bins instead of 1000, since many rows have the same value" in caplog.text
    check_secret(names, "age", "a.csv", is_binned=True)


def test_bins_begin_at_given_numbers():
    binned_rows, names = binned([17, 18, 29, 30, 44, 45, 90], [18, 30, 45])
    assert names == ("below 18", "18-29", "30-44", "45 and above")
    assert binned_rows == ["below 18", "18-29", "18-29", "30-44", "30-44", "45 and above", "45 and above"]
    assert binned([20, 50], [18, 30, 45])[1] == ("18-29", "45 and above")  # no bin without rows


def test_bins_of_fractions_and_of_single_numbers():
    assert binned([0.5, 1.5, 2.5, 3.5], 2)[1] == ("0.5 to under 2.5", "2.5 to 3.5")
    assert binned([1, 2, 3], [2, 3])[0] == ["below 2", "2", "3 and above"]


def test_large_numbers_are_written_in_full():
    incomes = [1_000_000, 1_234_567, 1_234_568, 2_000_000]
    assert binned(incomes, 2)[1] == ("1000000-1234567", "1234568-2000000")
    assert binned(incomes, [1e6, 1_234_568])[1] == ("1000000-1234567", "1234568 and above")
    assert binned([0.5, 1e6, 1e9], [1e6, 1e9])[1] == (
        "below 1000000",
        "1000000 to under 1000000000",
        "1000000000 and above",
    )


def test_fractions_have_enough_digits_to_differ():
    names = binned([1.0, 2.00000012, 2.00000034, 3.5], [2.00000012, 2.00000034])[1]
    assert names == ("below 2.0000001", "2.0000001 to under 2.0000003", "2.0000003 and above")
    assert binned([0.0, 1 / 3, 1.0], [1 / 3])[1] == ("below 0.333333", "0.333333 and above")
    assert binned([0.5, 7654321.25, 1e8], [7654321.25])[1] == ("below 7654321", "7654321 and above")
    close = [0.1, np.nextafter(0.1, 1)]
    assert len({*binned([0.0, *close], close)[1]}) == 3


def test_many_rows_of_one_number_share_a_bin():
    binned_rows, names = binned([0] * 80 + list(range(1, 21)), 6)
    assert names == ("0-3", "4-20")
    assert [binned_rows.count(name) for name in names] == [83, 17]


def test_a_secret_of_one_value_is_refused():
    check_secret(["f", "m"], "gender", "a.csv")
    with pytest.raises(RequestError, match=r"^a.csv: the secret 'gender' has one value only, 'f'"):
        check_secret(["f"], "gender", "a.csv")


def test_measurements_are_refused_and_bins_offered():
    check_secret([str(age) for age in range(20)], "age", "a.csv")
    check_secret([f"town {i}" for i in range(50)], "town", "a.csv")
    check_secret([*map(str, range(10)), *(f"town {i}" for i in range(11))], "town", "a.csv")
    with pytest.raises(
        RequestError, match=r"'age' has 21 values, most of them numbers \(from 0 to 20\).*bins: {age: 5}"
    ):
        check_secret([str(age) for age in range(21)], "age", "a.csv")


DAYS = [f"20{year:02}-01-31" for year in range(30)]


@pytest.mark.parametrize(
    "names",
    [
        DAYS,
        [f"{day} 10:00" for day in DAYS],
        [f"{day}.1.1990" for day in range(1, 26)],
        [f"{day}/12/90" for day in range(1, 26)],
        [*DAYS, "unknown"],
    ],
)
def test_many_dates_are_refused_with_a_way_out(names):
    complaint = about_kind(names, "born")
    assert complaint.startswith(
        f"{len(names)} values, most of them dates, as {min(names)}; write the year into a column"
    )
    assert "--bins year=4" in complaint
    assert "pandas.cut(frame['born'].dt.year, 4)" in complaint
    assert about_kind(names, "born", is_label=True).endswith("; allowed: classes, such as decades")


@pytest.mark.parametrize("value", [["a", "b"], ("a",), {"a"}, np.array(["a", "b"]), np.array([1, 2])])
def test_lists_are_refused_with_a_way_out(value):
    complaint = about_kind([listed(value)], "topics")
    assert complaint.startswith("lists of values, as ['")
    assert "--entities a,b" in complaint
    assert about_kind([listed(value)], "topics", is_label=True).endswith("; allowed: one class a row")


@pytest.mark.parametrize(
    "names",
    [
        DAYS[:20],  # the days of a survey
        ["[0, 30]", "[30, 60]"],
        ["(0, 30]", "(30, 60]"],
        ["f", "m", "['x']"],
        [f"1.{minor}" for minor in range(40)],
        [f"{number}-{number + 4}" for number in range(0, 200, 5)],
    ],
)
def test_classes_that_look_a_little_like_them_are_taken(names):
    assert about_kind(names, "a") == ""


def test_one_value_stays_as_it_is():
    assert [listed(value) for value in ("a", 1, None)] == ["a", 1, None]
