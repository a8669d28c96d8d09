# make demo   the main job on what ships with the repository
# make test   ruff, mypy and the tests
# make serve  the server and its page, with the shipped models and the example memory
# All create .venv and install into it first; a second run reuses it.

VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SERVED_MEMORIES := demo-data/ombravella demo-data/ombravella-de-en

# Waiting threads sleep instead of spinning, which would slow everything down on a busy machine.
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: install demo serve test test-slow test-gpu test-wheel lint format docs clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(STAMP)

demo: install
	$(BIN)/python examples/demo.py

serve: install $(SERVED_MEMORIES)
	$(BIN)/kster serve --model models/en-de --model models/de-en $(SERVED_MEMORIES:%=--memory %) --data demo-data

# The example memory in both directions, the first time only. The models carry a smoother that serves any
# memory; fitting one of its own takes a minute or two, and can be started from the page.
demo-data/ombravella: SERVED_MODEL := models/en-de
demo-data/ombravella-de-en: SERVED_MODEL := models/de-en
$(SERVED_MEMORIES): | install
	rm -rf $@.new
	$(BIN)/kster memory create $@.new --model $(SERVED_MODEL)
	$(BIN)/kster memory import $@.new examples/ombravella.tmx
	mv $@.new $@

test: lint
	tests/page/chromium.sh
	tests/documents/gettext.sh
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test-slow: install
	$(BIN)/python -m pytest -m slow

test-gpu: install
	$(BIN)/python -m pytest -m gpu

# The wheel, installed into an empty environment.
test-wheel: install
	tests/release/smoke.sh

lint: install
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

# The documentation as a site in build/site; a broken link fails.
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

clean:
	rm -rf $(VENV) build dist src/*.egg-info
