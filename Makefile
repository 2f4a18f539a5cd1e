# Two commands matter: `make demo` and `make test`. Both set up what they need.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

DEMO := .demo
DEMO_TASKS := lieder_mini,magnifico_mini,cogs_mini,conceptual_mini,diner_mini

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all test-fast bench lint format docs docs-update clean

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

# Two commands at once, one thread each: what the first one prints is shown if it fails.
BESIDE = { wait $$! || { cat $(DEMO)/short.log; exit 1; }; }

DEMO_TRAIN := OMP_NUM_THREADS=1 $(BIN)/lm-eval-ext train -o $(DEMO)

demo-model: $(VENV)/installed
	@echo "== Training two tiny models, one on each core (two minutes, once)"
	@mkdir -p $(DEMO)
	@$(DEMO_TRAIN) demo_short >$(DEMO)/short.log 2>&1 & \
	$(DEMO_TRAIN) demo && $(BESIDE)

DEMO_RUN := OMP_NUM_THREADS=1 $(BIN)/lm-eval-ext run --tasks $(DEMO_TASKS) --output $(DEMO)/results --models

demo: demo-model ## Train two tiny models, evaluate them on five _mini tasks, make a leaderboard page.
	@echo "== Evaluating both on five _mini tasks (existing results are kept)"
	@$(DEMO_RUN) $(DEMO)/models/demo_short.yaml >$(DEMO)/short.log 2>&1 & \
	$(DEMO_RUN) $(DEMO)/models/demo.yaml && $(BESIDE)
	@echo "== LIEDER, and what the longer training has changed in all five"
	$(BIN)/lm-eval-ext show --tasks lieder_mini $(DEMO)/results/demo
	$(BIN)/lm-eval-ext compare $(DEMO)/results
	@echo "== A page with everything"
	$(BIN)/lm-eval-ext leaderboard $(DEMO)/results -o $(DEMO)/site --title "The demonstration's two models"

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

clean: ## Remove what the other commands made.
	rm -rf $(VENV) $(DEMO) site build dist
