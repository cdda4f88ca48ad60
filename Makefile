# `make demo` and `make test` each do all their own set-up in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test coverage lint docs package bench clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: $(STAMP)
	$(BIN)/python -m pytest -n 2

# The same tests, with the share of the lines that they run; that takes a third longer.
coverage: $(STAMP)
	$(BIN)/python -m pytest -n 2 --cov=fairmatch --cov-report=term

lint: $(STAMP)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

# Runs the gallery, which takes a few minutes, and then only what has changed.
docs: $(STAMP)
	rm -rf docs/reference/generated  # pages of names that are gone would stay
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html

# Builds wheel and sdist, checks them, and tries the wheel with each extra in a fresh environment.
package: $(STAMP)
	.ci/package $(abspath $(BIN)/python)

bench: $(STAMP)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV)
