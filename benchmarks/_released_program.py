"""Replace words by a released package: one word a line in, one word a line out. It runs in the package's environment.

    python _released_program.py mldp-text tem 4 words.txt

Options of a mechanism follow as ``name=value``. ``words.txt`` has a word and its numbers in each line. Nothing of
LeakBoard is imported, so ``leakboard audit --command`` can run this program, too.
"""

import contextlib
import sys
import tempfile
from pathlib import Path


def read(path):
    """Return the words of a file, and their vectors."""
    lines = [line.split() for line in Path(path).read_text("utf-8").splitlines()]
    return [word for word, *_ in lines], [[float(number) for number in numbers] for _, *numbers in lines]


def mldp_text(mechanism, epsilon, path, **options):
    """Return mldp-text's mechanism without FAISS, which needs 100 words."""
    import mldp_text
    import numpy as np
    from gensim.models import KeyedVectors

    words, vectors = read(path)
    table = KeyedVectors(len(vectors[0]))
    table.add_vectors(words, np.array(vectors, np.float32))
    made = mldp_text.get_mechanism(
        mechanism, epsilon=epsilon, embedding_matrix=table, dim=len(vectors[0]), use_faiss=False, **options
    )
    return made.replace_word


def pypantera(mechanism, epsilon, path, **options):
    """Return a mechanism of pypantera."""
    import importlib

    kind, module = {
        "TEM": ("Sampling", "tem"),
        "CusText": ("Sampling", "custext"),
        "SanText": ("Sampling", "santext"),
        "Mahalanobis": ("Embedding", "mahalanobis"),
        "VickreyCMP": ("Embedding", "vickrey"),
    }[mechanism]
    cls = getattr(importlib.import_module(f"src.{kind}PerturbationMechanism.{module}"), mechanism)
    made = cls({"embPath": path, "epsilon": epsilon, **options})
    assert len(made.embMatrix) == len(read(path)[0]), "its reader lost a word"
    if kind == "Embedding":
        return lambda word: made.processText(made.noisyEmb([word]))
    return lambda word: made.processText([word])


def dp_diffractor(mechanism, epsilon, path, seed=42, **options):
    """Return dp-diffractor on one list: each call is the next draw of its worker."""
    import os

    os.environ["HOME"] = tempfile.mkdtemp()  # it reads vectors from a cache there
    from diffractor import core

    words, vectors = read(path)
    file = Path(os.environ["HOME"]) / "words.txt"
    file.write_text(f"{len(words)} {len(vectors[0])}\n{Path(path).read_text('utf-8')}", "utf-8")
    core.ensure_embeddings = lambda names: [str(file)]
    core.nltk.corpus.stopwords = type("NoWords", (), {"words": staticmethod(lambda language: [])})
    seed = None if seed == "none" else seed
    settings = core.DiffractorConfig(epsilon=epsilon, method=mechanism, seed=seed, verbose=False, **options)
    made = core.Diffractor(settings)
    made.start()
    return lambda word: made._pool.apply(core.apply_privacy_mechanism, (word, epsilon))


def main(package, mechanism, epsilon, path, *options):
    """Replace the words on standard input."""
    given = {}
    for name, _, value in (option.partition("=") for option in options):
        try:
            given[name] = int(value) if value.isdecimal() else float(value)
        except ValueError:
            given[name] = value
    with contextlib.redirect_stdout(sys.stderr):  # packages print while they load
        replace = globals()[package.replace("-", "_")](mechanism, float(epsilon), path, **given)
    for line in sys.stdin:
        print(replace(line.strip()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
