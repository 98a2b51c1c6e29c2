"""Plugin instances in a suite equal their names where they have files; other classes never take over old results."""

import importlib.util
import sys
import types

import pytest
from bench import CHECKOUT, Bench

import leakboard
from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.datasets.generated_reviews import GeneratedReviews
from leakboard.datasets.table import Table
from leakboard.errors import RequestError
from leakboard.suite.plan import Identities, plan
from leakboard.suite.registry import Registry
from leakboard.suite.suites import load_suite
from leakboard.victims.dpnr import Dpnr
from leakboard.victims.embedding_bag import EmbeddingBag

RIDGE = (CHECKOUT / "tests" / "tiny" / "ridge.py").read_text("utf-8")


def planned(files=(), **content):
    registry = Registry(files)
    suite = load_suite({"threads": 1} | content, registry)
    return plan(suite, suite.cells(), Identities())


def written(**content):
    return load_suite({"threads": 1} | content, Registry()).file.model_dump(exclude_unset=True)


def module_of(source, name, file=None):
    """Run code as a module without a file, like a notebook, or as a script's module."""
    module = sys.modules[name] = types.ModuleType(name)
    if file:
        file.write_text(source)
        module.__file__ = str(file)
    exec(compile(source, str(file or "<cell>"), "exec"), vars(module))
    return module


@pytest.fixture
def notebook(monkeypatch):
    """Return the tiny attack as a class that no file has."""
    monkeypatch.setitem(sys.modules, "cells", None)
    return module_of(RIDGE, "cells").Ridge


class TestInstalled:
    @pytest.mark.parametrize(
        ("instances", "names"),
        [
            (
                {
                    "datasets": [GeneratedReviews(users=40)],
                    "victims": [EmbeddingBag()],
                    "attacks": [AttributeInference()],
                },
                {"datasets": [{"generated_reviews": {"users": 40}}], "victims": ["embedding_bag"]},
            ),
            (
                {"victims": [Dpnr(encoder=EmbeddingBag(epochs=2), epsilon=2.0)]},
                {"victims": [{"dpnr": {"encoder": {"embedding_bag": {"epochs": 2}}, "epsilon": 2.0}}]},
            ),
            (
                {"victims": [{"embedding_bag": {"attacks": [AttributeInference(portfolio="mlp")]}}]},
                {"victims": [{"embedding_bag": {"attacks": [{"attribute_inference": {"portfolio": "mlp"}}]}}]},
            ),
        ],
    )
    def test_an_instance_is_its_name_with_options(self, instances, names):
        usual = {"datasets": ["generated_reviews"], "attacks": ["attribute_inference"]}
        (instance,), (name,) = planned(**usual | instances), planned(**usual | names)
        assert (instance.cell.label, instance.key, instance.code) == (name.cell.label, name.key, name.code)
        assert instance.undeclared == ()

    def test_files_stay_relative_to_the_working_folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Table.example(tmp_path)
        victims, attacks = ["embedding_bag"], ["attribute_inference"]
        made = Table(path="table.csv", label="label", secrets=("age",))
        (job,) = planned(datasets=[made], victims=victims, attacks=attacks)
        assert job.cell.source.corpus.plugin.load().secrets[0].values == ("old", "young")
        assert job.cell.source.label == 'table(label=label, path=table.csv, secrets=["age"])'

    def test_a_class_of_a_given_file_is_the_files_plugin(self, bench):
        path = bench.files[2]
        spec = importlib.util.spec_from_file_location("imported_by_the_user", path)
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        given = {"datasets": ["letters"], "victims": ["hashed"]}
        instance, name = (
            planned(bench.files, **given, attacks=[attack])[0]
            for attack in (module.Ridge(penalty=2.0), {"ridge": {"penalty": 2.0}})
        )
        assert (instance.key, instance.cell.attack.name) == (name.key, "ridge")


class TestOfThisProcess:
    def suite(self, attack, **more):
        return {
            "threads": 1,
            "datasets": [{"letters": {"size": 60}}],
            "victims": ["hashed"],
            "attacks": [attack],
        } | more

    @pytest.fixture
    def files(self):
        return Bench.plugins[:2]

    @pytest.mark.slow
    def test_a_class_without_a_file_runs_and_is_never_taken_over(self, notebook, tmp_path, files):
        reports = [leakboard.run(self.suite(notebook(penalty=2.0)), out=tmp_path, plugins=files) for _ in range(2)]
        assert reports[0].suite["attacks"] == [{"ridge": {"penalty": 2.0}}]
        (first,), (second,) = (report.records for report in reports)
        assert first.attack == "ridge(penalty=2.0)"
        assert (first.status, first.metrics) == ("ok", second.metrics)
        assert first.key != second.key
        named = leakboard.run(self.suite({"ridge": {"penalty": 2.0}}), out=tmp_path, plugins=Bench.plugins)
        assert named.records[0].metrics == first.metrics

    def test_its_revision_does_not_count_so_that_it_cannot_be_published(self, notebook, files):
        (job,) = planned(files, **self.suite(notebook()))
        assert job.undeclared == ("attacks/ridge",)

    def test_a_class_of_a_script_is_keyed_by_the_script_and_what_it_imports(self, tmp_path, monkeypatch, files):
        def key(source, helper):
            (tmp_path / "helper.py").write_text(helper)
            monkeypatch.setitem(sys.modules, "__main__", None)
            monkeypatch.syspath_prepend(tmp_path)
            (job,) = planned(files, **self.suite(module_of(source, "__main__", tmp_path / "script.py").Ridge()))
            assert job.undeclared == ("attacks/ridge",)
            return job.key

        def redefined():
            """Define the class anew, as at the prompt of ``python -i script.py``."""
            script = module_of(RIDGE, "__main__", tmp_path / "script.py")
            exec(compile(RIDGE, "<stdin>", "exec"), vars(script))
            return planned(files, **self.suite(script.Ridge()))[0].key

        source = RIDGE + "\nimport helper\n"
        first = key(source, "WEIGHT = 1")
        assert key(source, "WEIGHT = 1  # a comment") == first
        assert key(source, "WEIGHT = 2") != first
        assert key(RIDGE, "WEIGHT = 1") != first
        assert redefined() != redefined()

    def test_other_processes_cannot_have_it(self, notebook, tmp_path, files):
        with pytest.raises(RequestError, match="jobs: 2 is not allowed with Ridge: workers cannot import this class"):
            leakboard.run(self.suite(notebook()), out=tmp_path, plugins=files, jobs=2)

    def test_two_classes_of_one_name_are_refused(self, notebook, files):
        one, same, other = notebook(), notebook(penalty=3.0), module_of(RIDGE, "cells").Ridge(penalty=4.0)
        jobs = planned(files, **self.suite(one, attacks=[one, same]))
        assert [job.cell.attack.label for job in jobs] == ["ridge", "ridge(penalty=3.0)"]
        message = (
            r"suite: attacks\[1\]: the class cells\.Ridge is named 'ridge', but cells\.Ridge has this name already"
        )
        with pytest.raises(RequestError, match=message):
            planned(files, **self.suite(one, attacks=[one, other]))
        with pytest.raises(RequestError, match=r"is named 'ridge', but .*ridge\.py has this name already; rename"):
            planned(Bench.plugins, **self.suite(one))

    def test_a_class_is_no_instance(self, notebook):
        with pytest.raises(RequestError, match=r"suite: attacks\[0\]: Ridge is a class; allowed: an instance of it"):
            planned(**self.suite(notebook))

    def test_its_name_is_that_of_the_class(self, notebook):
        registry = Registry()
        for name, expected in {"MyKNNAttack": "my_knn_attack", "Knn2": "knn2", "lower": "lower"}.items():
            cls = type(name, (notebook,), {"__module__": "cells"})
            assert registry.name_of(cls, "here") == registry.name_of(cls, "there") == expected
