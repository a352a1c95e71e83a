# One command each; every target makes the environment it needs.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# Processes that run tests: twice a small machine's cores, as many tests wait for processes of their own.
WORKERS ?= 4

.PHONY: help demo test check bench clean

help:  ## list the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(VENV)/refold-user: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("refold needs Python 3.11 or newer, this is %s; try make PYTHON=python3.11" % sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/refold-dev: $(VENV)/refold-user
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/refold-user  ## run the Game of 24 and step through the same run again
	$(BIN)/refold run tasks/examples/game_of_24.yaml --traces runs/demo
	$(BIN)/refold replay runs/demo --all

test: $(VENV)/refold-dev  ## run every test
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

check: $(VENV)/refold-dev  ## lint, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/refold-dev  ## measure the ratios that the project promises
	$(BIN)/python -m bench

clean:  ## remove the environment and what was built
	rm -rf $(VENV) build dist *.egg-info
