# Everything is one line that calls a tool of the project; `make help` lists it.

PYTHON ?= python3
PY := .venv/bin/python
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help env data reports reports-slurm replicate run lab pairs exercises items models test test-lab lint audit browser bench clean-scores clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1	/' | expand -t 24

env: $(READY) ## the environment in .venv, from pyproject.toml

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Litmus needs Python 3.11 or newer; name one: make env PYTHON=python3.12")'
	@echo "Making .venv: about 0.8 GB to download where torch has a CPU build, some minutes."
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# Shuffles in 30_inference: by itself the notebook draws 100, which a laptop's grid has no time for.
DRAWS ?= 20
SHUFFLES = $(if $(filter 30_inference,$(or $(NOTEBOOKS),30_inference)),--set draws=$(DRAWS))
GRID = $(PY) -m lib.grid $(SHUFFLES) $(if $(MODELS),--models "$(MODELS)") $(if $(NOTEBOOKS),--notebooks "$(NOTEBOOKS)") $(if $(LIMIT),--limit $(LIMIT)) $(if $(JOBS),--jobs $(JOBS)) $(if $(TIMEOUT),--timeout $(TIMEOUT)) $(if $(DRY),--dry-run)
reports: $(READY) ## every notebook for every model of the grid, then reports/index.html (MODELS= NOTEBOOKS= LIMIT= DRAWS= JOBS= TIMEOUT= DRY=1)
	$(GRID)

reports-slurm: $(READY) ## the same on a SLURM cluster (reports/README.md)
	$(GRID) --profile slurm

replicate: $(READY) ## the papers' models on the papers' data: published value, ours, difference (PAPERS= MODELS= DRY=1)
	$(PY) -m lib.replicate $(if $(PAPERS),--papers "$(PAPERS)") $(if $(MODELS),--models "$(MODELS)") $(if $(JOBS),--jobs $(JOBS)) $(if $(DRY),--dry-run)

OUT ?= /tmp/litmus-trial
run: $(READY) ## one notebook for one model, and its page: make run NB=20_agreement MODEL=distilbert-mlm OUT=/tmp/trial
	$(PY) -m lib.run $(NB) $(if $(MODEL),--model "$(MODEL)") --out "$(OUT)"; status=$$?; \
	$(PY) -m lib.report "$(OUT).ipynb"; exit $$status

test: $(READY) ## all tests, two files at a time (browser tests skip in words where there is no Chromium)
	OMP_NUM_THREADS=1 $(PY) -m pytest -n 2 --dist loadfile

test-lab: $(READY) ## every notebook and exercise in a real JupyterLab, with its seconds (a quarter of an hour)
	LITMUS_LAB=all $(PY) -m pytest -s tests/test_jupyterlab.py

lint: $(READY) ## ruff and mypy
	$(PY) -m ruff check lib notebooks tests
	$(PY) -m ruff format --check lib tests
	$(PY) -m mypy

lab: $(READY) ## JupyterLab at the first notebook; your copy of the exercises in notebooks/my_exercises (LAB=words for it)
	$(PY) -m lib.lab $(LAB)

audit: $(READY) ## known security holes in what .venv holds (pip-audit; needs a network)
	$(PY) -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.10'
	$(PY) -m pip_audit --local --skip-editable

data: $(READY) ## the published data sets into data/published (FROM=folder for a local copy)
	$(PY) -m lib.published $(if $(FROM),--from "$(FROM)")

pairs: $(READY) ## the .ipynb of every notebook from its .py
	$(PY) -m lib.pairs

exercises: $(READY) ## notebooks/exercises from notebooks/solutions: the cells tagged solution go out
	$(PY) -m lib.exercises

items: $(READY) ## our generated items from the lexicon
	$(PY) -m lib.templates agreement --out data/items/agreement
	$(PY) -m lib.templates coordination --out data/items/coordination/coordination.tab
	$(PY) -m lib.templates tense --out data/items/tense/tense.tab
	$(PY) -m lib.templates long-distance --out data/items/long_distance/long_distance.tab

models: $(READY) ## the bundled models, trained again (hours; stop it as you like, it goes on where it stopped)
	$(PY) -m lib.training books
	$(PY) -m lib.training masked
	$(PY) -m lib.training recurrent

bench: $(READY) ## our speed against minicons, the evaluation harness and plain loops, into tests/bench/*.md (a quarter of an hour)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(PY) -m tests.bench.agreement --write
	$(PY) -m tests.bench.sentences --write

browser: ## Debian's Chromium and its driver, for the browser tests (needs root)
	apt-get update -qq && apt-get install -y -qq chromium chromium-driver

clean-scores: $(READY) ## forget kept scores
	@$(PY) -c 'import shutil; from lib.paths import cache; shutil.rmtree(cache() / "scores", ignore_errors=True); print("gone:", cache() / "scores")'

clean: ## built reports (scores and models are kept)
	git clean -fdXq reports
