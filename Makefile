# Every target does its own set-up: a machine with make and a Python from 3.10 to 3.12 is enough.
# PYTHON=... picks that Python, VENV=... the folder of the virtual environment.

VENV ?= .venv
# The bound from above is flytekit's.
SUITABLE = import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 13))
PYTHON ?= $(shell for python in python3 python3.12 python3.11 python3.10; do \
	"$$python" -c '$(SUITABLE)' 2>/dev/null && { echo "$$python"; break; }; done)

BIN := $(VENV)/bin
PY := $(BIN)/python
UV := $(BIN)/uv
INSTALLED := $(VENV)/.installed
# What waits for a cluster waits longer.
CLUSTER := -o faulthandler_timeout=600 --durations=10
ROOTS := workloads registry transformers plugins

# What a user has set for other projects must not leak into the checks.
unexport PYTHONPATH
unexport VIRTUAL_ENV
# Without its bytecode every process compiles the checkout anew.
unexport PYTHONDONTWRITEBYTECODE
# pyright: take node from the package that constraints.txt pins, say nothing of newer versions.
export PYRIGHT_PYTHON_GLOBAL_NODE := off
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test cover check lint types imports fmt bench bench-check docs constraints \
	wheel-check clean cluster-tools cluster-tools-all test-cluster test-cluster-all cluster-up cluster-down fuzz

help: ## say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ------------------------------------------------------------------------------------------- set-up
$(VENV)/.made:
	@test -n "$(PYTHON)" && "$(PYTHON)" -c '$(SUITABLE)' || \
		{ echo "kubetailor is built with Python 3.10, 3.11 or 3.12: make PYTHON=python3.12 ..." >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
	$(PY) -m pip --quiet --disable-pip-version-check install $(addprefix --constraint ,$(wildcard constraints.txt)) uv
	@touch $@

$(INSTALLED): pyproject.toml constraints.txt $(VENV)/.made
	$(UV) pip install --quiet --python $(PY) --constraint constraints.txt --build-constraint constraints.txt \
		--editable '.[flyte,kubernetes,testing,webhook]' --group dev
	@touch $@

install: $(INSTALLED) ## make the virtual environment that the other targets use

# ---------------------------------------------------------------------------------------------- use
demo: $(INSTALLED) ## see a chain cut a pod, a job and a Flyte task to a cluster
	$(PY) examples/demo.py

test: $(INSTALLED) ## run the tests; ARGS="-k stamp" for some of them
	$(BIN)/pytest --numprocesses=logical --dist=loadfile --no-loadscope-reorder $(ARGS)

cover: $(INSTALLED) ## run the tests and say which lines they miss
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

bench: $(INSTALLED) ## measure, and print each ratio beside its goal
	$(PY) -m benchmarks

bench-check: $(INSTALLED) ## measure, and fail where a ratio is beyond its limit
	$(PY) -m benchmarks --check

docs: $(INSTALLED) ## write what is generated in docs/ and deploy/ anew
	$(PY) docs/generate.py
	$(PY) deploy/generate.py

# ------------------------------------------------------------------------------- real control planes
cluster-tools: $(INSTALLED) ## build the control planes for test-cluster, where they are missing (needs Go)
	@$(PY) -m tests.cluster.build

cluster-tools-all: $(INSTALLED)
	$(PY) -m tests.cluster.build --all

test-cluster: cluster-tools ## run the tests against real control planes on loopback
	cd tests/cluster/tools/flyteadmin && go vet . && go test .
	$(BIN)/pytest -m "cluster and not all_tools" $(CLUSTER) $(ARGS)

test-cluster-all: cluster-tools-all ## the same with KubeRay and JobSet
	$(BIN)/pytest -m cluster $(CLUSTER) $(ARGS)

fuzz: $(INSTALLED) ## a million reviews that nobody has seen, of the webhook's decisions; FUZZ="--seconds 180"
	$(PY) -m tests.plugins.webhook.fuzz $(or $(FUZZ),--reviews 1000000)

cluster-up: cluster-tools ## start such a stack and leave it running
	@$(PY) -m tests.cluster.up

cluster-down: $(INSTALLED) ## end it
	@$(PY) -m tests.cluster.up --down

# -------------------------------------------------------------------------------------------- checks
check: lint types imports ## ruff, mypy, pyright and the import contracts

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

# pyright finds packages by the first python in PATH; with --verifytypes it reads no --pythonpath.
types: PATH := $(abspath $(BIN)):$(PATH)
types: $(INSTALLED)
	mypy
	pyright
	@for root in $(ROOTS); do \
		echo "pyright --verifytypes kubetailor.$$root --ignoreexternal"; \
		said=$$(pyright --verifytypes kubetailor.$$root --ignoreexternal) || { echo "$$said"; exit 1; }; \
	done

imports: $(INSTALLED)
	$(BIN)/lint-imports

fmt: $(INSTALLED) ## format, and fix what can be fixed
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# ------------------------------------------------------------------------------------------ releases
constraints: $(VENV)/.made ## pin the newest versions of everything anew
	@{ echo "# Made by 'make constraints' for Python 3.10 to 3.12: what development and CI install."; \
	   echo "# Users are bound by pyproject.toml alone."; \
	   $(UV) pip compile --quiet --python $(PY) --universal --python-version 3.10 --all-extras --group dev \
		--no-header --no-annotate pyproject.toml; } > constraints.tmp
	@mv constraints.tmp constraints.txt

wheel-check: $(INSTALLED) ## build the wheel and install it as a user would, with plain pip
	UV="$(abspath $(UV))" PYTHON="$(abspath $(PY))" bash tests/wheel_check.sh

clean: ## remove what was made, the virtual environment too
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.*
	find $(ROOTS) tests examples benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
