# make demo   the main job on what ships with the repository
# make test   ruff, mypy and the tests
# Both create .venv and install into it first; a second run reuses it.

VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install demo test test-slow test-gpu lint format clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(STAMP)

demo: install
	$(BIN)/python examples/demo.py

test: lint
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

test-slow: install
	$(BIN)/python -m pytest -m slow

test-gpu: install
	$(BIN)/python -m pytest -m gpu

lint: install
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

format: install
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

clean:
	rm -rf $(VENV) build dist src/*.egg-info
