##@ Static checks and generated files
# What is checked without running the program, and what is generated.

.PHONY: changelog lint format types layers check gen docs docs-site docs-browser

CXX_SOURCES := $(shell find extensions/nn_ext_cpu/src -name '*.cpp' -o -name '*.hpp')
lint: $(VENV)/.core ## ruff, and the layout of Python and C++
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CXX_SOURCES)

format: $(VENV)/.core ## lay all sources out as `make lint` wants them
	$(BIN)/ruff format --quiet .
	$(BIN)/clang-format -i $(CXX_SOURCES)

types: $(VENV)/.extensions ## mypy; and mypy and pyright on programs of users
	$(BIN)/mypy
	$(BIN)/python tools/release/check_types.py

layers: $(VENV)/.core ## import layers
	$(BIN)/lint-imports

check: lint types layers ## the static checks, and whether generated files are up to date
	$(BIN)/python -m nn_core.operators.spec --check
	$(BIN)/python -m tools.lanes.reliability --check
	$(BIN)/python -m tools.site.tasks --check
	$(BIN)/python -m tools.nnabla.nnabla_names --check

gen: $(VENV)/.core ## write the generated files from function_spec.yaml and examples/tasks
	$(BIN)/python -m nn_core.operators.spec
	$(BIN)/python -m tools.site.tasks
	$(BIN)/python -m tools.nnabla.nnabla_names

VERSION ?=
changelog: $(VENV)/.core ## show what changes/ holds as release notes; VERSION=1.2.3 moves it into CHANGELOG.md
	$(PIP_INSTALL) towncrier
	$(BIN)/towncrier build $(if $(VERSION),--yes --version $(VERSION),--draft --version next)

docs: $(VENV)/.extensions ## write docs/support.md: who runs what in which dtype
	$(BIN)/python -m nn_core.testing.support

$(VENV)/.docs: $(VENV)/.extensions
	$(BIN)/python -m pip install --quiet --editable '.[docs,examples]'
	@touch $@

docs-site: $(VENV)/.docs ## run the tutorials and build the documentation as a site into build/site
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.site.tutorials # small networks: on a busy machine two threads take twice as long
	$(BIN)/mkdocs build --quiet
	$(BIN)/python -m tools.site.search build/site

docs-browser: docs-site ## look at every page of the site in Chromium, which must be installed
	$(BIN)/python -m tools.site.browser build/site
