# Every target sets up what it needs in .venv first. PYTHON=python3.12 make test picks another interpreter.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
NATIVE := $(wildcard exactstate/csrc/*.cpp exactstate/csrc/*.hpp)

.PHONY: help install demo paper paper-long test test-paper test-slow sanitize fuzz fuzz-long lint format docs docs-serve web web-test wheel-check clean

help:
	@echo "make install    set up .venv with everything locked in constraints.txt"
	@echo "make demo       learn S3, certify it, sweep it to a million steps (about a minute)"
	@echo "make paper      every table and figure of the paper from the rows, on one page: build/paper/index.html"
	@echo "make paper-long resume the experiments that take hours (LONG='--cluster local' runs them side by side)"
	@echo "make test       run the quick tests (a few minutes)"
	@echo "make test-paper run the tests of the paper's experiments, figures and theory"
	@echo "make test-slow  run all tests, the long ones as well"
	@echo "make sanitize   run the tests of the compiled kernels under ASan and UBSan (part of test-slow)"
	@echo "make fuzz       fuzz the readers of files and text for a minute; make fuzz-long for half an hour"
	@echo "make lint       ruff and mypy"
	@echo "make docs       build the documentation into build/site; a dead link is an error"
	@echo "make docs-serve serve the documentation on http://127.0.0.1:8000"
	@echo "make web        build the page to play with from web/ into exactstate/report/play.html (node 20)"
	@echo "make web-test   build it and test it: Vitest, and chromium driven by Playwright"
	@echo "make wheel-check  build an sdist and a wheel, install them elsewhere, use them"
	@echo "make format     let ruff rewrite what it can"
	@echo "make clean      remove .venv and everything that was built"

install: $(STAMP)

$(STAMP): pyproject.toml setup.py constraints.txt $(NATIVE)
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -m exactstate.native
	@touch $(STAMP)

demo: install
	$(BIN)/exactstate demo

paper: install
	$(BIN)/python -m paper overview -o build/paper

paper-long: install
	$(BIN)/python -m paper long $(LONG)

test: install
	$(BIN)/pytest -n 2

test-paper: install
	$(BIN)/pytest -n 2 -m "paper and not slow"

test-slow: install
	$(BIN)/pytest -n 2 -m ""

sanitize: install
	$(BIN)/python -m tests.native.sanitize

fuzz: install
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[fuzz]'
	$(BIN)/python -m tests.fuzz --seconds 60

fuzz-long: install
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[fuzz]'
	$(BIN)/python -m tests.fuzz --seconds 1800

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: install
	$(BIN)/python docs/api_pages.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: install
	$(BIN)/python docs/api_pages.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

web: web/node_modules/.package-lock.json
	cd web && npm run --silent build
	cp web/dist/index.html exactstate/report/play.html

web-test: web/node_modules/.package-lock.json
	cd web && npm run --silent build && npm run --silent test

web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	cd web && npm ci --silent
	@touch $@

wheel-check: install
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt build
	$(BIN)/python -m tests.packaging.wheel_check

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf web/node_modules web/dist
	rm -rf .venv build dist *.egg-info exactstate/_kernels*.so .mypy_cache .ruff_cache .pytest_cache
