# Every target sets up what it needs in .venv by itself; Python 3.11 or newer is all that has to be there.
# Wheels come from wherever pip is told to look (PIP_FIND_LINKS, pip.conf, its own cache); versions from requirements/*.txt.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)
VENV := .venv
STAMPS := $(VENV)/.stamps
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check
# Models are fetched once and kept outside the tree.
export TILEWORK_MODELS ?= $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/tilework/models

.PHONY: help demo demo-magika test check format suites bench docs peers fuzz lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(RUN):
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv is needed: install it or set PYTHON=/path/to/python" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

# The package itself, editable, over whatever group of requirements a target asked for.
define install
	$(PIP) -r $<
	$(PIP) --no-deps --no-build-isolation --editable .
	@mkdir -p $(STAMPS) && touch $@
endef

$(STAMPS)/test $(STAMPS)/demo $(STAMPS)/check $(STAMPS)/docs $(STAMPS)/suites: $(STAMPS)/%: requirements/%.txt pyproject.toml | $(RUN)
	$(install)

# PyTorch's processor build is not on PyPI: where pip finds no such wheel by itself, PyTorch's own index is asked for it.
$(STAMPS)/peers: requirements/peers.txt pyproject.toml | $(RUN)
	$(PIP) --no-deps "$$(grep '^torch==' $<)" 2>/dev/null \
	|| $(PIP) --no-deps --index-url https://download.pytorch.org/whl/cpu "$$(grep '^torch==' $<)"
	$(install)

demo: $(STAMPS)/demo ## read the text on a picture of a page with three networks that people use
	$(RUN) -m examples.read_page

demo-magika: $(STAMPS)/demo ## tell the type of every file here, and see every stage of a small network
	$(RUN) -m examples.file_types

test: $(STAMPS)/test ## run the tests (the core and onnx only)
	$(RUN) -m pytest

check: $(STAMPS)/check $(STAMPS)/docs ## lint, types, floors, documentation
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(VENV)/bin/pyright
	$(VENV)/bin/lint-imports
	$(RUN) -m pytest --quiet tests/test_floors.py tests/test_doors.py tests/test_codegen_knows_no_operator.py
	$(sphinx)

format: $(STAMPS)/check ## put the source into the house's form
	$(RUN) -m ruff check --fix
	$(RUN) -m ruff format

suites: $(STAMPS)/suites ## real models against their recorded outputs, and the benchmarks that need them
	$(RUN) -m benchmarks.harness.models
	$(if $(wildcard benchmarks/small_models.py),$(RUN) -m benchmarks small-models --quick --ignore-times)
	$(RUN) -m pytest tests/suites

bench: $(STAMPS)/demo ## every benchmark, in its quick form
	$(RUN) -m benchmarks --all --quick

define sphinx
	$(RUN) -m sphinx --quiet --fail-on-warning --keep-going --builder html docs docs/_build/html
endef

docs: $(STAMPS)/docs ## build the documentation into docs/_build/html
	$(sphinx)

peers: $(STAMPS)/peers ## install the libraries that benchmarks compare with
	@echo "peers are installed"

fuzz: $(STAMPS)/test ## the drawn tests with many more draws, and 100,000 damaged models: it takes long
	$(RUN) -m pytest --hypothesis-profile=fuzz tests
	FUZZ_MUTANTS=100000 $(RUN) -m benchmarks fuzz-onnx

lock: $(RUN) ## resolve requirements/*.txt anew
	$(RUN) requirements/lock.py

clean: ## remove what the targets made, the environment included
	rm -rf $(VENV) docs/_build docs/generated .pytest_cache .ruff_cache .import_linter_cache build dist
