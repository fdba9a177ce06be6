# `make help` lists the targets. Set-up is done once: a stamp in each virtual environment remembers it.
# `make TARGET PYTHON=python` sets nothing up and uses that Python, for example of the environment of conda-env.yml.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup setup-current-petsc demo test test-all test-current-petsc lint dist docs docs-serve papers doctor clean

SYSTEM_PYTHON ?= /usr/bin/python3
RANKS ?= 2
DEMO_OPTIONS ?= -fe_backend cg_gpu -fe_degree 2 -ksp_type cg -pc_type gamg -snes_monitor -ksp_monitor -fe_view
# Two processes, a file of tests to one of them, long files first, as tests/tiers.py orders them.
TEST_OPTIONS ?= -n 2 --dist loadfile --no-loadscope-reorder
TIER ?= --quick
PETSC_VERSION := 3.26.1
PETSC_PREFIX ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/petsc_hdg/petsc-$(PETSC_VERSION)

SETUP_FILES := setup.py pyproject.toml scripts/install_system.sh scripts/setup_venv.sh scripts/constraints-distribution.txt
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin/python
ifeq ($(origin PYTHON),command line)
READY :=
RUN := $(PYTHON)
endif
CURRENT_VENV := .venv-current
CURRENT_READY := $(CURRENT_VENV)/.ready
CURRENT := PYTHONPATH=$(PETSC_PREFIX)/site $(CURRENT_VENV)/bin/python
DOCS_VENV := .venv-docs
DOCS_READY := $(DOCS_VENV)/.ready
DOCS := $(DOCS_VENV)/bin/python
ifeq ($(origin PYTHON),command line)
DOCS_READY :=
DOCS := $(PYTHON)
endif
DOCS_PORT ?= 8000
PETSC_STAMP := $(PETSC_PREFIX)/.built-$(PETSC_VERSION)

# Compiled Python is kept: without it pytest takes twice as long to collect the tests.
export PYTHONDONTWRITEBYTECODE :=

include scripts/mpi.mk

help:                  ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 22

setup: $(READY)        ## install the system packages and the virtual environment .venv

demo: $(READY)         ## solve the main example on 2 ranks (RANKS=n, DEMO_OPTIONS=...)
	mpiexec -n $(RANKS) $(RUN) examples/demo.py $(DEMO_OPTIONS)

test: $(READY)         ## run the quick tier of the tests (TEST_OPTIONS=...)
	$(RUN) -m pytest --quick $(TEST_OPTIONS)

test-all: $(READY)     ## run all tests (TEST_OPTIONS=...), or one part of the files (PART=0/2)
	$(RUN) -m pytest $(TEST_OPTIONS) $(if $(PART),--part $(PART))

setup-current-petsc: $(CURRENT_READY)  ## build a current PETSc with ViennaCL into the user's cache, and the virtual environment .venv-current

test-current-petsc: $(CURRENT_READY)  ## run the quick tier (TIER= for all tests) with the current PETSc
	$(CURRENT) -m pytest $(TIER) $(TEST_OPTIONS)

lint: $(READY)         ## check the code's style, and the types of the public API
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

dist: $(READY)         ## build the sdist and the wheel, and solve with the wheel in an empty environment
	scripts/check_dist.sh $(RUN) $(SYSTEM_PYTHON)

docs: $(DOCS_READY)    ## build the documentation's site in docs/_build/html; a warning is an error
	$(DOCS) -m sphinx -E -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

docs-serve: docs       ## show the site on http://localhost:8000 (DOCS_PORT=...)
	$(DOCS) -m http.server -b localhost -d docs/_build/html $(DOCS_PORT)

papers: $(READY)       ## measure the tables of the papers at a small scale on a CPU, and write docs/papers.md (PAPERS_OPTIONS=...)
	$(RUN) benchmarks/papers/all.py -fe_device cpu $(PAPERS_OPTIONS)

doctor: $(READY)       ## say what works on this machine and what is missing
	$(RUN) -m petsc_hdg doctor

clean:                 ## remove what was made here (virtual environments, builds, outputs); the user's cache stays
	rm -rf $(VENV) $(CURRENT_VENV) $(DOCS_VENV) docs/_build build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache
	find output -mindepth 1 ! -name .gitignore -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.ready: $(SETUP_FILES)
	scripts/install_system.sh run
	scripts/setup_venv.sh $(SYSTEM_PYTHON) $(VENV) distribution
	@touch $@

$(DOCS_VENV)/.ready: $(SETUP_FILES)
	scripts/install_system.sh run
	EXTRAS=docs scripts/setup_venv.sh $(SYSTEM_PYTHON) $(DOCS_VENV) distribution
	@touch $@

$(PETSC_STAMP):
	PETSC_VERSION=$(PETSC_VERSION) scripts/build_petsc.sh $(PETSC_PREFIX)

$(CURRENT_READY): $(SETUP_FILES) | $(PETSC_STAMP)
	scripts/install_system.sh build
	scripts/setup_venv.sh $(SYSTEM_PYTHON) $(CURRENT_VENV) current
	@touch $@
