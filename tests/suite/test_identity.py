"""An identity changes with everything that determines a result, and with nothing else."""

import importlib
import importlib.util
import sys

import pytest

import leakboard
from leakboard.store import SCHEMA, digest
from leakboard.suite import code, revisions
from leakboard.suite.code import file_digest, package_digest
from leakboard.suite.plan import Identities, plan
from leakboard.suite.registry import Registry, load_file
from leakboard.suite.suites import load_suite
from leakboard.threats.secrets import SecretsThreat
from leakboard.threats.words import WordsThreat
from leakboard.victims.lstm import Lstm

KEYS = ("corpus_key", "fit_key", "victim_key", "key")
"""Of a job, in the order of the chain."""


@pytest.fixture
def jobs(bench):
    """Plan a suite of the tiny plugins and return its jobs."""

    def planned(**content):
        registry = Registry(bench.files)
        suite = load_suite(str(bench.suite(**content)), registry)
        return plan(suite, suite.cells(), Identities())

    return planned


@pytest.fixture
def keys(jobs):
    """Return a function that returns the keys of a suite's first cell."""

    def planned(**content):
        job = jobs(**content)[0]
        return {name: getattr(job, name) for name in KEYS}

    return planned


@pytest.fixture
def defended(jobs):
    """Return a function that plans a victim with an LSTM as the default of an option."""
    return lambda: jobs(victims=[{"adversarial": {"method": "multidetasking"}}])[0]


def changed(before, after):
    return [name for name in KEYS if before[name] != after[name]]


class TestConditions:
    """A key holds what determines a result, and each key all before it."""

    @pytest.mark.parametrize(
        ("content", "first"),
        [
            ({"datasets": [{"letters": {"size": 60}}]}, "corpus_key"),
            ({"datasets": [{"letters": {"auxiliary": "overlap"}}]}, "fit_key"),
            ({"seeds": [1]}, "fit_key"),
            ({"threads": 2}, "fit_key"),
            ({"victims": [{"hashed": {"noise": 0.5}}]}, "fit_key"),
            ({"attacks": [{"ridge": {"penalty": 0.5}}]}, "key"),
            ({"datasets": [{"letters": {"auxiliary": {"letters": {"size": 60}}}}]}, "fit_key"),
            ({"text_classifier": False}, "key"),
        ],
    )
    def test_what_determines_a_result(self, keys, content, first):
        assert changed(keys(), keys(**content)) == list(KEYS[KEYS.index(first) :])

    @pytest.mark.parametrize(
        "content",
        [
            {"victims": [{"hashed": {"noise": 0.0, "dimensions": 24}}]},
            {"victims": [{"hashed": {"noise": 0}}]},
            {"attacks": [{"ridge": {"penalty": 0.1}}]},
            {"datasets": [{"letters": {"auxiliary": "within"}}]},
            {"description": "another", "timeout": 9.0, "reuse": False},
            {"gold": "hashed", "queries": ["a"]},  # no words are published: nothing is compared
            {"attacks": ["ridge", "nearest_neighbour"], "victims": ["hashed", "word2vec"], "seeds": [0, 5]},
        ],
    )
    def test_what_does_not(self, keys, content):
        assert changed(keys(), keys(**content)) == []

    def test_gold_and_queries_count_where_words_are_published(self, jobs):
        given = {"victims": ["word2vec"], "attacks": ["nearest_neighbour"]}
        golds = [{}, {"gold": "word2vec"}, {"gold": "word2vec", "queries": ["good"]}]
        assert len({jobs(**given, **gold)[0].key for gold in golds}) == 3

    def test_text_classifiers_count_only_where_a_score_is_compared_with_them(self, jobs):
        given = {"victims": ["word2vec"], "attacks": ["nearest_neighbour"]}
        assert jobs(**given)[0].key == jobs(**given, text_classifier=False)[0].key

    def test_options_that_act_at_publication_share_a_fit(self, bench, jobs):
        trained = (
            "    def training_config(self):\n        return Hashed(dimensions=self.dimensions)\n\n    def fit(self"
        )
        bench.plugin("hashed", "shared", ("    def fit(self", trained))
        planned = jobs(victims=[{"shared": {"grid": {"noise": [0.1, 0.2], "dimensions": [8, 9]}}}])
        assert [len({getattr(job, name) for job in planned}) for name in KEYS] == [1, 2, 4, 4]

    @pytest.mark.parametrize(
        ("name", "first"), [("CORPUS", "corpus_key"), ("FIT", "fit_key"), ("PUBLISH", "victim_key"), ("UTILITY", "key")]
    )
    def test_revisions_of_stages(self, keys, monkeypatch, name, first):
        before = keys()
        monkeypatch.setattr(revisions, name, 7)
        assert changed(before, keys()) == list(KEYS[KEYS.index(first) :])

    def test_revisions_of_scoring_are_those_of_the_attacks_threat(self, keys, monkeypatch):
        before = keys()
        monkeypatch.setattr(WordsThreat, "revision", 7)
        assert changed(before, keys()) == []
        monkeypatch.setattr(SecretsThreat, "revision", 7)
        assert changed(before, keys()) == ["key"]

    def test_an_attack_without_a_threat_fails_its_cells_alone(self, bench, jobs):
        imported = ("import numpy as np\n", "import numpy as np\n\nfrom leakboard.interfaces import Attack\n")
        bench.plugin("ridge", "odd", ("class Ridge(SecretsAttack)", "class Ridge(Attack)"), imported)
        odd, good = jobs(attacks=["odd", "ridge"])
        assert "odd.py) is broken: Ridge has no threat: derive it from" in odd.problem
        assert "threat" in odd.problem
        assert good.problem == ""

    def test_the_schema(self):
        assert digest({"a": 1}) == digest({"a": 1, "schema": SCHEMA}) != digest({"a": 1, "schema": SCHEMA - 1})


DECLARED = "@victim(revision=1)\nclass"


class TestThreads:
    """Threads that a plugin declares are in the keys of its stages, instead of the suite's."""

    @pytest.fixture
    def declared(self, monkeypatch):
        """Return a function that gives the keys where the tiny victim and attack declare threads."""

        def keyed(jobs, victim=None, attack=None, **content):
            job = jobs(**content)[0]
            for choice, threads in ((job.cell.victim, victim), (job.cell.attack, attack)):
                monkeypatch.setattr(type(choice.plugin), "threads", threads)
            again = Identities().of_cell(job.cell, job.conditions)
            return {name: getattr(again, name) for name in KEYS}

        return keyed

    @pytest.mark.parametrize(("stage", "first"), [("victim", "fit_key"), ("attack", "key")])
    def test_of_a_stage(self, jobs, declared, stage, first):
        assert changed(declared(jobs), declared(jobs, **{stage: 2})) == list(KEYS[KEYS.index(first) :])

    def test_replace_the_suites(self, jobs, declared):
        """A fit with two threads is the same fit, whether the victim or the suite asks for them."""
        of_victim, of_suite = declared(jobs, victim=2), declared(jobs, threads=2)
        assert changed(of_victim, of_suite) == ["key"]  # the attack has one thread, and two
        assert changed(declared(jobs, victim=2, attack=2, threads=2), of_suite) == []

    @pytest.mark.slow
    def test_each_choice_of_threads_in_force_has_a_key_of_its_own(self, jobs, declared):
        keys = {
            (threads, victim or threads, attack or threads, declared(jobs, victim, attack, threads=threads)["key"])
            for victim in (None, 1, 2, 3)
            for attack in (None, 1, 2, 3)
            for threads in (1, 2)
        }
        assert len(keys) == len({key for *_, key in keys}) == 2 * 3 * 3  # of suite, victim and attack

    def test_of_a_part_are_those_of_the_whole_plugin(self, defended, monkeypatch):
        before = defended()
        monkeypatch.setattr(Lstm, "threads", 2)
        after = defended()
        assert (before.needs.threads, after.needs.threads) == (1, 2)
        assert after.fit_key != before.fit_key
        monkeypatch.setattr(type(after.cell.victim.plugin), "threads", 3)
        assert defended().needs.threads == 3

    def test_a_device_changes_no_key(self, keys):
        assert changed(keys(), keys(device="cuda")) == []

    def test_a_defence_uses_a_gpu_where_its_encoder_does(self, jobs):
        given = [{"dpnr": {"epsilon": 1.0, "encoder": name}} for name in ("lstm", "embedding_bag")]
        assert [job.needs.uses_gpu for job in jobs(victims=given)] == [True, False]


@pytest.fixture
def declared(bench):
    """Return a function that writes a variant of the tiny victim with revision 1."""

    def write(*replacements, name="mine"):
        return bench.plugin("hashed", name, ("@victim\nclass", DECLARED), *replacements)

    return write


class TestDeclaredRevisions:
    """The identity of a plugin with a revision has the revision, and not its code."""

    @pytest.mark.parametrize(
        "replacement",
        [
            ('"""A text', '# a comment\n"""Another docstring: a text'),
            ("    def _vector(self", "    def _helper(self):\n        return 1\n\n    def _vector(self"),
            ("@victim(revision=1)", "@victim(\n    revision=1,\n)"),
        ],
    )
    def test_a_comment_message_or_helper_changes_no_key(self, declared, keys, replacement):
        declared()
        before = keys(victims=["mine"])
        declared(replacement)
        assert changed(before, keys(victims=["mine"])) == []

    def test_a_moved_file_changes_no_key(self, bench, declared, keys):
        path = declared()
        before = keys(victims=["mine"])
        moved = bench.folder / "elsewhere" / "mine.py"
        moved.parent.mkdir()
        path.rename(moved)
        bench.files[-1] = moved
        assert changed(before, keys(victims=["mine"])) == []

    def test_another_revision_changes_every_key_after_it(self, bench, declared, keys, monkeypatch):
        monkeypatch.setattr(sys, "dont_write_bytecode", False)
        declared()
        before = keys(victims=["mine"])
        declared(("revision=1", "revision=2"))
        assert changed(before, keys(victims=["mine"])) == ["fit_key", "victim_key", "key"]
        assert not list(bench.folder.rglob("__pycache__"))

    def test_the_revision_of_a_part_counts_even_where_it_is_the_default(self, defended, monkeypatch):
        before = defended()
        assert before.undeclared == ()
        monkeypatch.setattr(Lstm, "__leakboard_revision__", 7)
        assert defended().fit_key != before.fit_key
        monkeypatch.setattr(Lstm, "__leakboard_revision__", None)
        assert defended().undeclared == ("victims/lstm",)

    def test_a_job_knows_the_code_of_its_plugins(self, declared, jobs):
        declared()
        first = jobs(victims=["mine"])[0]
        assert set(first.code) == {"datasets/letters", "victims/mine", "attacks/ridge"}
        declared(("means + self.noise", "means + 2 * self.noise"))
        second = jobs(victims=["mine"])[0]
        assert first.key == second.key
        assert [name for name in first.code if first.code[name] != second.code[name]] == ["victims/mine"]


PLUGIN = '''"""A victim in a file."""

from leakboard.randomness import stream
from leakboard.suite.options import victim


@victim
class Mine:
    publishes = ("documents",)
'''

CODE = "import math\n\n\ndef f(x):\n    return math.sqrt(x) + 1\n"


def of(path):
    """Return the digests of the plugin in a file: of the file, and of its package."""
    plugin = load_file(path)
    return file_digest(plugin), package_digest(plugin)


class TestCode:
    """The identity of a plugin without a revision is its code and that of its package, without comments and layout."""

    @pytest.mark.parametrize(
        ("content", "same"),
        [
            ('"""What it does."""\n\n' + CODE.replace("    return", '    """It."""\n    # why\n    return'), True),
            ("import math\ndef f(\n    x,\n):\n    return (math.sqrt(x) + 1)  # one\n", True),
            (CODE.replace("+ 1", "+ 2"), False),
            (CODE.replace("+ 1", "+ True"), False),
            (CODE.replace("+ 1", "+ 1.0"), False),
            (CODE.replace("sqrt", "exp"), False),
            (CODE.replace("f(x)", "f(x, y=0)"), False),
        ],
    )
    def test_changes_with_code_and_with_nothing_else(self, tmp_path, content, same):
        (tmp_path / "a.py").write_text(PLUGIN + CODE)
        (tmp_path / "b.py").write_text(PLUGIN + content)
        first, second = of(tmp_path / "a.py"), of(tmp_path / "b.py")
        assert [one == two for one, two in zip(first, second, strict=True)] == [same, same]

    def test_identifies_cells_of_plugins_that_are_being_written(self, bench, keys):
        bench.plugin("ridge", "mine")
        before = keys(attacks=["mine"])
        bench.plugin("ridge", "mine", ("        square =", "        # a comment\n        square ="))
        assert changed(before, keys(attacks=["mine"])) == []
        bench.plugin("ridge", "mine", ("        square =", "        seed += 1\n        square ="))
        assert changed(before, keys(attacks=["mine"])) == ["key"]

    @pytest.mark.parametrize(
        "statement", ["from {0}.part import A", "from .part import A", "from . import part", "import {0}.part"]
    )
    @pytest.mark.parametrize("package", ["elsewhere", "leakboard.victims"])
    def test_its_own_package_counts_and_the_engine_does_not(self, tmp_path, monkeypatch, package, statement):
        folder = tmp_path / package.split(".")[-1]
        folder.mkdir()
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setattr(leakboard, "__path__", [*leakboard.__path__, str(tmp_path)])
        if package == "elsewhere":
            (folder / "__init__.py").write_text("")
        parsed = code._parsed
        (folder / "tried.py").write_text(f"{PLUGIN}\n\ndef g():\n    {statement.format(package)}\n")
        (folder / "part.py").write_text(f"from {package}.deeper import B\nA = 1\n")
        (folder / "deeper.py").write_text("from leakboard.randomness import stream\nB = 1\n")
        try:
            plugin = importlib.import_module(f"{package}.tried").Mine
            first = package_digest(plugin)
            (folder / "part.py").write_text(f"from {package}.deeper import B\nA = 1  # one\n")
            assert package_digest(plugin) == first
            (folder / "deeper.py").write_text("from leakboard.randomness import stream\nB = 22\n")
            second = package_digest(plugin)
            (folder / "part.py").write_text("A = 22\n")
            assert len({first, second, package_digest(plugin)}) == 3
            read = []
            monkeypatch.setattr(code, "_parsed", lambda path: read.append(path.name) or parsed(path))
            package_digest(plugin)
            assert set(read) - {"__init__.py"} == {"tried.py", "part.py"}
        finally:
            for name in [name for name in sys.modules if name.startswith((f"{package}.tried", "elsewhere"))]:
                del sys.modules[name]

    @pytest.mark.parametrize("place", ["beside", "elsewhere"])
    def test_the_helpers_that_a_single_file_imports_count(self, tmp_path, monkeypatch, place):
        (tmp_path / place).mkdir()
        monkeypatch.syspath_prepend(str(tmp_path / place))
        helper = tmp_path / place / "its_helper.py"
        digests = []
        for content in ("A = 1", "A = 1  # a comment", "A = 2"):
            helper.write_text(content)
            (tmp_path / "beside").mkdir(exist_ok=True)
            (tmp_path / "beside" / "a.py").write_text(PLUGIN + "\ndef g():\n    import its_helper\n")
            monkeypatch.delitem(sys.modules, "its_helper", raising=False)
            importlib.import_module("its_helper")
            digests.append(package_digest(load_file(tmp_path / "beside" / "a.py")))
        assert digests[0] == digests[1] != digests[2]
        monkeypatch.delitem(sys.modules, "its_helper")

    def test_the_plugins_that_a_single_file_imports_are_not_its_package(self, tmp_path, monkeypatch):
        (tmp_path / "a.py").write_text(PLUGIN + "from leakboard.victims import _encoders\n")
        plugin, parsed, read = load_file(tmp_path / "a.py"), code._parsed, []
        monkeypatch.setattr(code, "_parsed", lambda path: read.append(path.name) or parsed(path))
        package_digest(plugin)
        assert read == ["a.py"]

    def test_a_part_of_the_package_that_cannot_be_read_fails_its_cells(self, tmp_path, monkeypatch):
        """A function imports it, so that loading the plugin does not notice."""
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.syspath_prepend(str(tmp_path))
        (tmp_path / "elsewhere" / "__init__.py").write_text(PLUGIN + "def g():\n    from . import part\n")
        (tmp_path / "elsewhere" / "part.py").write_text("def f(:\n")
        try:
            with pytest.raises(SyntaxError):
                package_digest(importlib.import_module("elsewhere").Mine)
        finally:
            del sys.modules["elsewhere"]


class TestScripts:
    """A class of a script is identified by the values that the script's functions and classes name, too."""

    SCRIPT = """from numpy import exp
from leakboard.interfaces import Floats
NOISE = 0.0
other = 1
Pair = tuple[Floats, Floats]

class Mine:
    def fit(self, given: Floats) -> Pair:
        return exp(given), NOISE * given
"""

    @pytest.fixture
    def digest_with(self, tmp_path, monkeypatch):
        """Return the digest of the class, given values of variables."""
        script = tmp_path / "script.py"
        script.write_text(self.SCRIPT)
        spec = importlib.util.spec_from_file_location("__main__", script)
        main = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "__main__", main)
        spec.loader.exec_module(main)

        def digest_of(**values):
            vars(main).update(values)
            return package_digest(main.Mine)

        return digest_of

    @pytest.mark.parametrize("value", [0.0, "text", (1, ("a", None)), True])
    def test_a_named_value_counts(self, digest_with, value):
        first = digest_with(NOISE=value)
        assert digest_with(NOISE=100.0) != first
        assert digest_with(NOISE=value) == first

    def test_a_variable_that_no_function_names_does_not(self, digest_with):
        assert digest_with(other=1) == digest_with(other=2)

    def test_an_object_gives_a_new_digest_at_each_call(self, digest_with):
        assert digest_with(NOISE=[1]) != digest_with(NOISE=[1])
