"""What a record says of where it was computed."""

from leakboard.execution.environment import environment


def test_libraries_are_named_as_their_projects_are():
    named = environment()["packages"]
    assert {"torch", "transformers", "gensim", "scikit-learn", "datasets", "faiss-cpu", "pandas"} <= set(named)
    assert all(name == name.lower() and version for name, version in named.items())
