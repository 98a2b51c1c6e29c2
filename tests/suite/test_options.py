"""Options are strict, named where they differ from their defaults, and described with unit, range and default."""

import dataclasses
import enum
import inspect
from datetime import date
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pytest
from pydantic import Field

from leakboard.errors import RequestError
from leakboard.interfaces import Attack
from leakboard.suite.options import (
    ALWAYS_NAMED,
    Strings,
    always_named,
    as_dict,
    attack,
    build,
    describe,
    field_names,
    label,
    shared,
    victim,
)
from leakboard.suite.plan import identity_of


@victim
class Fake:
    noise: Annotated[float, Field(gt=0)] | Literal["off"] = 1.0
    """Scale of the noise,
    in nats."""
    layers: int = Field(default=2, ge=1, le=12)
    """Layers."""
    words: Strings = ()
    """Words to hide."""
    path: str | None = None
    sizes: list[int] = Field(default_factory=list)


@victim
class Demanding:
    path: str
    """Where."""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "fake"),
        ({"noise": 1.0, "layers": 2, "words": [], "path": None, "sizes": []}, "fake"),
        ({"noise": 1}, "fake"),
        ({"noise": 0.05}, "fake(noise=0.05)"),
        ({"noise": "off"}, "fake(noise=off)"),
        ({"words": ["a", "b"], "layers": 3}, 'fake(layers=3, words=["a", "b"])'),
        ({"path": "x.csv", "sizes": [1]}, "fake(path=x.csv, sizes=[1])"),
    ],
)
def test_a_label_names_the_options_that_differ_from_their_defaults(options, expected):
    assert label("fake", build(Fake, options, "suite")) == expected
    assert label("d", Demanding(path="p")) == "d(path=p)"


@pytest.mark.parametrize("default", ["weak", "strong"])
def test_an_option_that_is_always_named_is_named_at_any_default(default):
    @attack(revision=1)
    class Portfolio:
        portfolio: Annotated[str, ALWAYS_NAMED] = default
        size: int = 1

    assert always_named(Portfolio) == {"portfolio"}
    assert label("fake", Portfolio(portfolio="weak")) == "fake(portfolio=weak)"
    assert identity_of("fake", Portfolio(portfolio="weak"))["options"] == {"portfolio": "weak"}
    assert identity_of("fake", Portfolio())["options"] == {"portfolio": default}


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            {"layer": 3},
            "s.layer: unknown name 'layer' (allowed: noise, layers, words, path, sizes); did you mean 'layers'?",
        ),
        ({"my-layers": 3}, "s: unknown name 'my-layers'"),
        ({True: 3}, "s.True: unknown name 'True'"),
        ({"layers": 0}, "s.layers: 0 is not allowed: input should be greater than or equal to 1"),
        ({"layers": 13}, "s.layers: 13 is not allowed: input should be less than or equal to 12"),
        ({"layers": "3"}, "s.layers: '3' is not allowed: input should be a valid integer"),
        ({"layers": True}, "s.layers: True is not allowed"),
        ({"layers": 2.0}, "s.layers: 2.0 is not allowed"),
        ({"noise": 0.0}, "s.noise: 0.0 is not allowed: input should be greater than 0, or input should be 'off'"),
        ({"noise": float("nan")}, "s.noise: nan is not allowed"),
        ({"noise": "of"}, "; did you mean 'off'?"),
        ({"words": "one"}, "s.words: 'one' is not allowed"),
        ({"words": ["a", 1]}, "s.words[1]: 1 is not allowed: input should be a valid string"),
        ({"sizes": [1, "x"]}, "s.sizes[1]: 'x' is not allowed"),
    ],
)
def test_a_wrong_option_is_one_line_with_place_value_and_nearest(options, line):
    with pytest.raises(RequestError) as caught:
        build(Fake, options, "s")
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_option_is_named():
    with pytest.raises(RequestError, match=r"^suite.yaml: victims\[0\].path: required, but missing$"):
        build(Demanding, {}, "suite.yaml: victims[0]")


def test_python_follows_the_same_rules_as_yaml():
    for wrong in ({"layers": "3"}, {"layer": 3}):
        with pytest.raises(ValueError, match="layer"):
            Fake(**wrong)
    with pytest.raises((TypeError, ValueError)):
        Demanding("p")  # keyword only
    with pytest.raises(dataclasses.FrozenInstanceError):
        Fake().layers = 3


def test_options_as_json_values():
    assert field_names(Fake) == ["noise", "layers", "words", "path", "sizes"]
    assert as_dict(Fake(words=("a",))) == {"noise": 1.0, "layers": 2, "words": ["a"], "path": None, "sizes": []}


def test_a_description_has_type_range_default_and_text():
    described = {option.name: option for option in describe(Fake)}
    assert set(described) == set(field_names(Fake))
    assert dataclasses.astuple(described["noise"]) == (
        "noise",
        "number > 0 | off",
        "1.0",
        "Scale of the noise, in nats.",
    )
    assert described["layers"].allowed == "integer from 1 to 12"
    assert (described["words"].allowed, described["words"].default) == ("list of string", "[]")
    assert (described["path"].allowed, described["path"].default) == ("string | null", "null")
    assert describe(Demanding)[0].default == "required"


@shared
class Common:
    width: int = 3
    """How wide (units)."""


def test_inherited_options_are_as_strict_and_as_well_described():
    @attack
    class Heir(Common):
        depth: int = 1
        """How deep."""

    assert [(option.name, option.text) for option in describe(Heir)] == [
        ("width", "How wide (units)."),
        ("depth", "How deep."),
    ]
    assert label("heir", build(Heir, {"width": 4}, "here")) == "heir(width=4)"
    with pytest.raises(RequestError, match=r"here.width: '4' is not allowed"):
        build(Heir, {"width": "4"}, "here")


def test_source_is_read_only_for_a_description(monkeypatch):
    def read(*_):
        raise AssertionError("source was read")

    for reader in ("getsource", "getsourcelines", "findsource"):
        monkeypatch.setattr(inspect, reader, read)

    @attack
    class Unread(Common):
        depth: int = 1
        """How deep."""

    monkeypatch.undo()
    assert [option.text for option in describe(Unread)] == ["How wide (units).", "How deep."]


def test_an_option_without_source_has_no_text():
    made = {"__name__": __name__, "attack": attack}
    exec('@attack\nclass Typed:\n    depth: int = 1\n    """How deep."""', made)
    assert [(option.name, option.text) for option in describe(made["Typed"])] == [("depth", "")]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@attack(revision=1)
class Odd(Attack):
    sizes: tuple[int, ...] = (1, 2)
    """Several numbers."""
    pair: tuple[int, str] | None = None
    """A number and a text."""
    colour: Colour = Colour.RED
    """One of several."""
    file: Path = Path("a/b")
    """A path."""
    day: date = date(2020, 1, 31)
    """A day."""

    threat: ClassVar = None

    def fit(self, view, seed):
        return None


def test_options_of_other_types_are_written_as_yaml_has_them():
    written = {"sizes": [3, 4], "pair": [5, "x"], "colour": "blue", "file": "c", "day": "2021-02-28"}
    made = build(Odd, written, "attacks: odd")
    assert made == Odd(sizes=(3, 4), pair=(5, "x"), colour=Colour.BLUE, file=Path("c"), day=date(2021, 2, 28))
    assert identity_of("odd", made)["options"] == written
    assert label("odd", made) == 'odd(colour=blue, day=2021-02-28, file=c, pair=[5, "x"], sizes=[3, 4])'
    assert build(Odd, written | {"day": date(2021, 2, 28)}, "attacks: odd") == made  # YAML has dates
    assert label("odd", Odd()) == "odd"


def test_options_of_other_types_are_described():
    assert {option.name: (option.allowed, option.default) for option in describe(Odd)} == {
        "sizes": ("list of integer", "[1, 2]"),
        "pair": ("list of integer, string | null", "null"),
        "colour": ("red | blue", "red"),
        "file": ("path", "a/b"),
        "day": ("date", "2020-01-31"),
    }


@pytest.mark.parametrize("wrong", [{"sizes": ["3"]}, {"sizes": 3}, {"colour": "green"}, {"pair": [1]}, {"day": "soon"}])
def test_wrong_options_of_other_types_are_refused(wrong):
    with pytest.raises(RequestError, match=f"attacks: odd.{next(iter(wrong))}"):
        build(Odd, wrong, "attacks: odd")


@pytest.mark.parametrize("name", ["grid", "seeds", "attacks", "auxiliary"])
def test_an_option_named_as_a_key_of_entries_is_refused(name):
    with pytest.raises(TypeError, match=f"the option '{name}' is a key of entries of a suite: rename it"):
        attack(revision=1)(type("Odd", (Attack,), {"__annotations__": {name: int}, name: 3, "__module__": __name__}))


@pytest.mark.parametrize("name", ["fit", "threat", "example", "threads"])
def test_an_option_that_hides_a_member_is_refused(name):
    with pytest.raises(TypeError, match=f"the option '{name}' hides .*Attack.{name}|hides Plugin.{name}"):
        attack(revision=1)(type("Hides", (Attack,), {"__annotations__": {name: int}, name: 3, "__module__": __name__}))
