# One command runs everything: make check. Each target does its own set-up on a machine with python3 and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
MINISTACK := build/ministack
SAM    := build/sam
RUNTIME := build/runtime
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Modules are compiled when they are first imported: of what the tools bring, few ever are.
export PIP_NO_COMPILE = 1

.PHONY: setup aws-tools build deploy sam-local check test lint format types imports conformance pytest deep coverage soak bench demo serve clean

setup: $(VENV)/.ready

# What runs Hayfork; a newcomer's first look waits for no development package.
$(VENV)/.installed: pyproject.toml requirements.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c requirements.lock -e '.[cli]'
	@touch $@

$(VENV)/.ready: $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet -c requirements.lock --group dev
	@touch $@

# MiniStack and the SAM CLI do not resolve beside our packages or each other, so each has an environment of its own.
# MiniStack gets the Python of our functions where there is one, since it runs them in its own, and the translator
# it expands SAM templates with.
RUNTIME_PYTHON = $(firstword $(shell $(PYTHON) infra/deploy/build_artifact.py --find-python) $(PYTHON))
aws-tools: setup $(MINISTACK)/.ready $(SAM)/.ready $(RUNTIME)/.ready

$(MINISTACK)/.ready: Makefile
	@test -x $(MINISTACK)/bin/python || $(RUNTIME_PYTHON) -m venv --clear $(MINISTACK)
	$(MINISTACK)/bin/python -m pip install --quiet ministack==1.5.33 aws-sam-translator==1.115.0
	@touch $@

$(SAM)/.ready: Makefile
	@test -x $(SAM)/bin/python || $(PYTHON) -m venv --clear $(SAM)
	$(SAM)/bin/python -m pip install --quiet aws-sam-cli==1.170.0 cfn-lint==1.58.0
	@touch $@

# What runs a handler in Lambda, beside the artifact as it is there.
$(RUNTIME)/.ready: Makefile
	@rm -rf $(RUNTIME)
	$(RUNTIME_PYTHON) -m pip install --quiet --root-user-action ignore --target $(RUNTIME) awslambdaric==4.2.2
	@touch $@

# The folder .aws-sam/build, which sam deploy and sam local take. ARCHITECTURE=x86_64 or arm64.
# EXTRAS=x402 adds what callers without an account are sold with.
ARCHITECTURE ?= arm64
EXTRAS ?=
export EXTRAS
build: aws-tools
	SAM_CLI_TELEMETRY=0 $(SAM)/bin/sam build --parameter-overrides Architecture=$(ARCHITECTURE)

# Builds, and deploys with the revision that moves the functions' alias. PARAMETERS='Name=value ...' are those to change,
# over those of parameters.toml; all others stay. See docs/deploy.md.
PARAMETERS ?=
deploy: build
	$(SAM)/bin/python infra/deploy/deploy_stack.py --architecture $(ARCHITECTURE) $(PARAMETERS)

# For those with Docker: an S3 server and a DynamoDB one beside the functions. See docs/deploy.md.
sam-local: aws-tools
	docker compose -f infra/deploy/compose.yaml up --detach --wait
	SAM_CLI_TELEMETRY=0 $(SAM)/bin/sam build --parameter-overrides Architecture=$(if $(filter arm64 aarch64,$(shell uname -m)),arm64,x86_64)
	SAM_CLI_TELEMETRY=0 AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local-secret AWS_REGION=us-east-1 \
		$(SAM)/bin/sam local start-api

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

# The official protocol conformance suite, pinned by a lock file; Node comes with the development packages.
CONFORMANCE := build/conformance

conformance: $(CONFORMANCE)/.ready

$(CONFORMANCE)/.ready: tests/handler/conformance/package.json tests/handler/conformance/package-lock.json | setup
	@mkdir -p $(CONFORMANCE)
	cp $^ $(CONFORMANCE)/
	PATH="$(abspath $(BIN)):$$PATH" npm ci --prefix $(CONFORMANCE) --silent --ignore-scripts --no-audit --no-fund
	@touch $@

pytest: setup aws-tools conformance
	$(BIN)/python -m pytest -q -n 4 --dist worksteal

# Fifty agents for five minutes, then an hour of random calls; SOAK_LOAD_SECONDS and SOAK_MEMORY_SECONDS shorten them.
soak: setup
	$(BIN)/python -m pytest -q -m soak tests/faults/test_soak.py

# The random tests at their full depth: 20,000 queries, 2,000 policies, and so on. Takes long.
deep: setup aws-tools conformance
	DEEP=1 $(BIN)/python -m pytest -q -n auto -m "not soak"

# Branch coverage of the engine, which is to be whole.
coverage: setup
	$(BIN)/python -m pytest -q -n auto --cov --cov-fail-under=100 --cov-report=term-missing:skip-covered \
		tests/engine tests/front tests/access tests/contracts/test_payments.py

# Set-up is mostly waiting for a registry, so what does not need each other is made side by side.
check:
	@$(MAKE) -j 4 lint types imports aws-tools conformance
	@$(MAKE) pytest

test: check

demo: $(VENV)/.installed
	$(BIN)/hayfork demo

# Side by side with SQLite FTS5 and tantivy. BENCH="--messages 10000000" for the largest, which takes an hour.
BENCH ?= --messages 1000000 --s3
bench: setup
	$(BIN)/hayfork bench --messages 40000
	$(BIN)/hayfork bench $(BENCH)
	$(BIN)/hayfork bench --ranking

serve: $(VENV)/.installed
	$(BIN)/hayfork demo --keep

clean:
	rm -rf $(VENV) build .aws-sam .hypothesis .mypy_cache .ruff_cache .pytest_cache .coverage*
