# One command runs everything: make check. Each target does its own set-up on a machine with python3 and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: setup check test lint format types imports pytest demo serve clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml requirements.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet -c requirements.lock -e '.[cli]' --group dev
	@touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format --quiet .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

pytest: setup
	$(BIN)/python -m pytest -q -n auto --cov --cov-report=term:skip-covered

check: lint types imports pytest

test: check

demo: setup
	$(BIN)/hayfork demo

serve: setup
	$(BIN)/hayfork demo --keep

clean:
	rm -rf $(VENV) build .aws-sam .hypothesis .mypy_cache .ruff_cache .pytest_cache .coverage*
