"""An argument of a wrong type is one line that names it, from every function of the package."""

import numpy as np
import pandas as pd
import pytest
import torch

import leakboard
from leakboard.errors import RequestError

VECTORS, SECRETS = np.zeros((8, 2)), {"s": ["a", "b"] * 4}
SUITE = {"datasets": ["generated_reviews"], "victims": ["word2vec"], "attacks": ["attribute_inference"]}


def double(vectors, generator):
    return 2 * vectors


CALLS = {
    "a board of no name": (lambda: leakboard.open_board(None), "name: None is not allowed"),
    "a board of a number": (lambda: leakboard.open_board(5), "name: 5 is not allowed"),
    "a run without a folder": (lambda: leakboard.run(SUITE, out=None), "out: None is not allowed"),
    "a run of nothing": (lambda: leakboard.run(None), "suite: None is not allowed"),
    "no names to keep": (lambda: leakboard.run(SUITE, only={"victim": 5}), "only.victim: 5 is not allowed"),
    "only a text": (lambda: leakboard.run(SUITE, only="victim"), "only: 'victim' is not allowed"),
    "no seeds": (lambda: leakboard.run(SUITE, seeds=[]), r"seeds: \[\] is not allowed"),
    "no victims": (
        lambda: leakboard.run(SUITE, only={"victim": []}),
        r"only: victim: \[\] is not allowed: at least one",
    ),
    "one seed": (lambda: leakboard.run(SUITE, seeds=5), "seeds: 5 is not allowed"),
    "seeds as a text": (lambda: leakboard.run(SUITE, seeds="01"), "seeds: '01' is not allowed"),
    "one plugin": (lambda: leakboard.run(SUITE, plugins="x.py"), "plugins: 'x.py' is not allowed"),
    "plugins without files": (lambda: leakboard.run(SUITE, plugins=[5]), r"plugins\[0\]: 5 is not allowed"),
    "a folder with a zero": (
        lambda: leakboard.evaluate(VECTORS, SECRETS, out="a\0b"),
        r"out: 'a\\x00b' is not allowed",
    ),
    "a folder without a name": (lambda: leakboard.evaluate(VECTORS, SECRETS, out=""), "out: '' is not allowed"),
    "a folder of a number": (lambda: leakboard.evaluate(VECTORS, SECRETS, out=5), "out: 5 is not allowed"),
    "a secret that no file holds": (
        lambda: leakboard.evaluate(VECTORS, {"s\ud800": ["a", "b"] * 4}),
        r"secrets: 's\\ud800' is not allowed as the name of a secret",
    ),
    "an option that is an object": (
        lambda: leakboard.evaluate(VECTORS, SECRETS, attacks=[{"attribute_inference": {"portfolio": object()}}]),
        "not what a YAML file can hold",
    ),
    "a tensor without numbers": (
        lambda: leakboard.evaluate(torch.empty(8, 2, device="meta"), SECRETS),
        "vectors: a tensor of torch.float32 on meta has no plain numbers",
    ),
    "a quantised tensor": (
        lambda: leakboard.evaluate(torch.quantize_per_tensor(torch.ones(8, 2), 0.1, 0, torch.qint8), SECRETS),
        "vectors: a tensor of torch.qint8 on cpu has no plain numbers",
    ),
    "a number that is missing": (
        lambda: leakboard.evaluate(pd.DataFrame({0: [1, None] * 4, 1: [2] * 8}, dtype="Int64"), SECRETS),
        r"vectors: .*row 1",
    ),
    "a set of texts": (
        lambda: leakboard.evaluate(VECTORS, SECRETS, texts=set("abcdefgh")),
        "texts: a set is not one col",
    ),
    "a seed of another type": (lambda: leakboard.evaluate(VECTORS, SECRETS, seed="1"), "seed: '1' is not allowed"),
    "a device of another type": (
        lambda: leakboard.evaluate(VECTORS, SECRETS, device=torch.device("cpu")),
        r"device: device\(type='cpu'\) is not allowed: Input should be 'auto', 'cpu' or 'cuda'",
    ),
    "an audit of nothing": (lambda: leakboard.audit(None, 1, dimension=2), "release: None is not allowed: a function"),
    "an audit of a function that fails": (
        lambda: leakboard.audit(lambda vectors, generator: int("a\nb"), 1, dimension=2),
        "release: invalid literal",
    ),
    "an audit of too wide vectors": (
        lambda: leakboard.audit(double, 1, dimension=10**9),
        "dimension: 1000000000 is not allowed: a whole number from 1 to 1,000,000",
    ),
    "a page without a path": (lambda: leakboard.open_board("demo").save(None), "path: None is not allowed"),
    "a plot of no column": (
        lambda: leakboard.open_board("demo").plot("task_acuracy"),
        "plot: 'task_acuracy' is no column .*; did you mean 'task_accuracy'",
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_wrong_argument_is_one_line(case):
    call, message = CALLS[case]
    with pytest.raises(RequestError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_message_that_lists_very_much_is_cut():
    message = str(RequestError(", ".join(map(str, range(100_000)))))
    assert len(message) < 2_100
    assert message.endswith("more characters)")
