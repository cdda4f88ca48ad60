# `make demo` and `make test` each do all their own set-up in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test fuzz coverage lint docs package minimum peers bench clean

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

# FAIRMATCH_FUZZ=14 draws 14 times as many examples, which takes about a minute of CPU time.
fuzz: $(STAMP)
	$(BIN)/python -m pytest -q tests/test_fuzz.py

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

# The tests of the packages that users' arrays and tables go through, and of the extras, with the
# smallest versions that are allowed. pytest 9 does not take the checks of a scikit-learn that old.
MINIMUM ?= tests/people tests/matching tests/measures tests/auditing
EXTRAS ?= tests/learning/test_deploy.py tests/learning/test_wrapped.py tests/cli/test_monitor.py
minimum:
	$(PYTHON) -m venv .venv-minimum
	.venv-minimum/bin/python -m pip install --quiet -c constraints-minimum.txt -e ".[all]" \
	  "pytest<9" pytest-xdist hypothesis polars==1.20.0 distributed statsmodels
	.venv-minimum/bin/python -m pytest -n 2 $(MINIMUM) $(EXTRAS) $(patsubst tests/%,src/fairmatch/%,$(MINIMUM))

# Other libraries, in an environment of its own; one that does not install is named on the page. Some
# of them ask for an older NumPy than fairmatch, so NumPy and CVXPY are installed last.
peers:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet -c constraints.txt -e ".[boost,train]" pyarrow
	-grep -v '^#' benchmarks/peers/requirements.txt | xargs -n 1 .venv-peers/bin/python -m pip install --quiet
	.venv-peers/bin/python -m pip install --quiet -c constraints.txt numpy pandas scikit-learn
	.venv-peers/bin/python -m pip install --quiet --upgrade cvxpy
	.venv-peers/bin/python -m benchmarks.peers

bench: $(STAMP)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .venv-minimum .venv-peers
