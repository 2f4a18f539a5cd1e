# Two commands matter: `make demo` and `make test`. Both set up what they need.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DEMO   ?= .demo

# The newest results of the demo are what `show` prints.
DEMO_MODEL   := $(DEMO)/model
DEMO_RESULTS := $(DEMO)/results

.DEFAULT_GOAL := help
.PHONY: help install demo demo-model test test-fast lint format docs clean

help: ## Print this list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

# The stamp is younger than what it was installed from, so a second call does nothing.
$(VENV)/installed: pyproject.toml constraints.txt hatch_build.py lm_eval_ext_autoload.pth
	@echo "== Installing into $(VENV) (a few minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

install: $(VENV)/installed ## Create .venv and install the project with everything it needs.

demo-model: $(VENV)/installed
	@echo "== Training a tiny model (about a minute, once)"
	$(BIN)/lm-eval-ext demo-model --out $(DEMO_MODEL)

demo: demo-model ## Train a tiny model and evaluate it on what is embedded.
	@echo "== Evaluating it with plain lm_eval"
	@rm -rf $(DEMO_RESULTS)
	$(BIN)/lm_eval --tasks lieder_mini --model hf --model_args pretrained=$(DEMO_MODEL) \
		--device cpu --batch_size 32 --output_path $(DEMO_RESULTS) --log_samples \
		> $(DEMO)/lm_eval.log
	@echo "== Results (lm_eval's own table: $(DEMO)/lm_eval.log)"
	$(BIN)/lm-eval-ext show $(DEMO_RESULTS)

test: $(VENV)/installed ## Run the whole test suite.
	$(BIN)/python -m pytest -n auto

test-fast: $(VENV)/installed ## Run the tests that start no subprocess.
	$(BIN)/python -m pytest -m "not e2e"

lint: $(VENV)/installed ## Check style, types and the layers of the package.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/installed ## Format the code.
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .

docs: $(VENV)/installed ## Build the documentation into site/.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

clean: ## Remove what the other commands made.
	rm -rf $(VENV) $(DEMO) site build dist
