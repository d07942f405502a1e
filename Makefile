# Two commands do all the set-up on a machine with Python 3.11: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: run test check bench fuzz interop format clean

$(INSTALLED): pyproject.toml hatch_build.py $(wildcard proto/*.proto)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[test,check,bench]'
	touch $@

run: $(INSTALLED)
	$(BIN)/hopline up

test: $(INSTALLED)
	$(BIN)/pytest

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/unit tests/contract tests/conformance

format: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

fuzz: $(INSTALLED)
	HYPOTHESIS_PROFILE=long $(BIN)/pytest -q --timeout=0 -m fuzz tests

clean:
	rm -rf $(VENV) build dist services/rpc data
