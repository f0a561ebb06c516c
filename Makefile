# `make demo` and `make test` need nothing but Python 3.11+ and a package index.
# Both create .venv when it is missing and may be run as often as you like.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

# uv installs about three times faster than pip; it reads pip's local wheel folder only by this name.
INSTALL := UV_FIND_LINKS="$${PIP_FIND_LINKS:-}" $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt

# Small models on few cores: threads that wait for each other cost more than they bring.
export OMP_NUM_THREADS ?= 1

.PHONY: help demo test coverage check docs fuzz fuzz-folders format clean

help:
	@echo "make demo    tour the four conditions of labels in about two minutes, leave ./labelweave-demo"
	@echo "make test    run every test"
	@echo "make coverage  the same, and which lines no test runs"
	@echo "make check   lint, format, imports, types and doctests"
	@echo "make docs    build the documentation into ./site, without network"
	@echo "make fuzz    a million generated files for the readers (INPUTS=1000000): about half an hour"
	@echo "make fuzz-folders  ten thousand changed model folders (MUTATIONS=10000): about a quarter of an hour"
	@echo "make format  let ruff rewrite the files"
	@echo "make clean   remove the virtual environment, caches and the demo's model"

$(BIN)/uv:
	@echo "== creating the virtual environment $(VENV)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv

# One stamp an extra: reinstalled when the dependencies change, not otherwise.
$(VENV)/.installed-%: pyproject.toml constraints.txt | $(BIN)/uv
	@echo "== installing labelweave[$*] (a few minutes the first time)"
	$(INSTALL) -e ".[$*]"
	@touch $@

demo: $(VENV)/.installed-demo
	$(BIN)/labelweave demo --out labelweave-demo

test: $(VENV)/.installed-test
	@echo "== running the tests"
	$(BIN)/python -m pytest -n auto --dist worksteal

coverage: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term:skip-covered

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python -m pytest -q src

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

fuzz: $(VENV)/.installed-dev
	$(BIN)/python tests/fuzz/fuzz_readers.py --inputs $${INPUTS:-1000000}

fuzz-folders: $(VENV)/.installed-dev
	$(BIN)/python tests/fuzz/fuzz_folders.py --mutations $${MUTATIONS:-10000}

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) labelweave-demo site .pytest_cache .mypy_cache .ruff_cache .hypothesis
