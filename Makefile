# Carry Lab. `make help` lists what can be done. Needs Python 3.12 or newer (or uv), and nothing else.

PORT ?= 8501
VENV := .venv
PYTHON := $(VENV)/bin/python
NEWEST := .venv-newest

# HOST counts when given to make; from the environment only if it is an address (deploy/run.py says why).
ifeq ($(origin HOST),command line)
host_option := --host '$(HOST)'
endif

.DEFAULT_GOAL := help
.PHONY: help run dev install install-test browser proxy test test-newest test-slow faults lint format types imports bench lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

run: install ## start the app on PORT (8501); HOST=0.0.0.0 opens it to the room, with a QR code
	@exec $(PYTHON) deploy/run.py --port '$(PORT)' $(host_option)

dev: install ## the same with file watching and full error details
	@exec $(PYTHON) deploy/run.py --dev --port '$(PORT)' $(host_option)

install: ## only the set-up: .venv with the locked requirements, and the code editor's bundle
	@sh deploy/install.sh $(VENV) requirements.txt
	@$(PYTHON) -I pages/widgets/editor/build.py

install-test: install
	@sh deploy/install.sh $(VENV) requirements.txt requirements-test.txt

browser: install-test
	@sh deploy/browser.sh $(PYTHON)

proxy:
	@sh deploy/proxy.sh

test: lint types imports browser proxy ## everything: lint, types, imports, then unit, property, app and browser tests
	$(PYTHON) -m pytest -n auto --maxprocesses 4 --durations 15

test-newest: ## core's tests on the newest jax and flax, in a virtual environment of its own
	@sh deploy/install.sh $(NEWEST) requirements-test.txt
	@sh deploy/newest.sh $(NEWEST)
	HYPOTHESIS_PROFILE=short $(NEWEST)/bin/python -m pytest -n auto --maxprocesses 4 tests/unit tests/property

test-slow: install-test ## the tests that take minutes: the walk over all that a script may reach
	$(PYTHON) -m pytest -m slow tests

faults: browser ## every fault that a server meets: killed workers and servers, floods, full disks, cut sockets
	$(PYTHON) -m pytest -p no:xdist -m 'faults or not faults' tests/faults

lint: install-test ## ruff: rules and format
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

format: install-test ## ruff: put right what can be
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

types: install-test ## mypy --strict on core
	$(PYTHON) -m mypy

imports: install-test ## imports go one way
	$(VENV)/bin/lint-imports --no-logo

bench: browser ## the benchmarks: one table, and tests/bench/results.json
	$(PYTHON) -m pytest tests/bench -p no:xdist -s -o python_files='bench_*.py'

lock: ## compile both locks anew from pyproject.toml (needs uv)
	@sh deploy/lock.sh

clean: ## remove the virtual environments and every cache
	rm -rf $(VENV) $(NEWEST) pages/widgets/editor/dist pages/widgets/editor/node_modules .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis test-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
