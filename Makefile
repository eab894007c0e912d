# Every target makes and reuses .venv in this folder; python3 (3.11 or newer) with pip and venv is all that is needed.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: quickstart test test-slow lint bench docs
.DEFAULT_GOAL := quickstart

quickstart: .venv/.installed
	$(BIN)/keypatch quickstart

test: .venv/.installed-dev
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

test-slow: .venv/.installed-dev
	$(BIN)/python -m pytest -q -m slow

lint: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.installed-dev
	$(BIN)/python bench/training.py
	$(BIN)/python bench/describing.py
	$(BIN)/python bench/sampling.py
	$(BIN)/python bench/cutting.py
	$(BIN)/python bench/neighbours.py
	$(BIN)/python bench/photos.py

# The pictures, the example page and the notebook that the docs show, made again by what they show.
docs: .venv/.installed-dev
	$(BIN)/python docs/match_picture.py
	$(BIN)/python docs/example_report.py
	$(BIN)/python tests/notebooks.py examples/first-steps.ipynb

# The stamps are younger than what they were made from, so a second call installs nothing.
.venv/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing keypatch into .venv (torch is large; this takes a few minutes the first time)"
	$(PIP) --editable .
	@touch $@

.venv/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing keypatch and its development tools into .venv"
	$(PIP) --editable '.[dev]'
	@touch .venv/.installed $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("keypatch needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
