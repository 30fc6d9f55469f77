##@ Environment
# The environment in .venv, what CI installs, and wheels.

.PHONY: lock audit wheels-check pure-wheels cpu-wheels clean

NATIVE := $(shell find extensions/nn_ext_cpu extensions/nn_ext_contrib -path '*/build' -prune -o \
	\( -name '*.c' -o -name '*.cpp' -o -name '*.hpp' -o -name 'CMakeLists.txt' -o -name 'pyproject.toml' \) -print) \
	$(shell find extensions/nn_ext_cpu/nn_ext_cpu -name '*.py') # it is not installed editable
EXTENSIONS := $(addprefix ./extensions/nn_ext_,cuda cudnn nnp c caffe contrib serve sklearn tensorboard[viewer]) \
	$(addprefix ./extensions/nn_ext_,onnx[test] mpi[mpich]) # the last two are about 150 MB installed
# What builds our packages. It is installed once, and not into a folder of its own for each build: then paths stay as they are,
# and only what has changed is compiled again.
BUILD_PACKAGES := 'hatchling>=1.27,<2' editables 'scikit-build-core>=0.11,<2' 'pybind11>=3,<4' cmake ninja 'setuptools>=77' pip \
	"onednn-devel-cpu-gomp>=2023.2,<2024; sys_platform == 'linux' and platform_machine == 'x86_64'"
# What is imported is compiled then; all modules of all packages take half a minute.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --no-compile

# LOCKED=1 installs the files of constraints/ci.txt, which fit CPython 3.11 on Linux x86-64, and nothing else from an index.
CONSTRAINTS := constraints/ci.txt
ifdef LOCKED
PREPARE := $(PIP_INSTALL) --require-hashes --requirement $(CONSTRAINTS)
INSTALL := $(PIP_INSTALL) --no-build-isolation --no-deps
else
PREPARE := $(PIP_INSTALL) --upgrade $(BUILD_PACKAGES)
INSTALL := $(PIP_INSTALL) --no-build-isolation
endif

$(VENV)/.core: pyproject.toml $(if $(LOCKED),$(CONSTRAINTS))
	$(PYTHON) -m venv $(VENV)
	$(PREPARE)
	$(INSTALL) --editable '.[test,lint,examples]'
	@touch $@

$(VENV)/.extensions: $(VENV)/.core $(NATIVE) $(wildcard extensions/*/pyproject.toml)
	$(INSTALL) ./extensions/nn_ext_cpu
	$(INSTALL) $(addprefix --editable ,$(EXTENSIONS))
	@touch $@

lock: $(VENV)/.core ## write constraints/ci.txt: versions and hashes of what CI installs, newest that fit
	mkdir -p build
	$(BIN)/python -m pip install --quiet --dry-run --ignore-installed --report build/lock.json \
		'.[test,lint,examples]' ./extensions/nn_ext_cpu $(EXTENSIONS) $(BUILD_PACKAGES)
	$(BIN)/python -m tools.release.lock build/lock.json $(CONSTRAINTS)

# --strict: a package that the service does not know is a failure, and so is an index that knows of no vulnerabilities.
audit: $(VENV)/.core ## look for known vulnerabilities of what CI installs; needs an index that lists them
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/pip-audit --strict --require-hashes --disable-pip --requirement $(CONSTRAINTS) || \
		{ echo "audit: pip-audit found vulnerabilities, or asked an index that does not list them"; exit 1; }

WHEELS_OPTIONS ?=
wheels-check: $(VENV)/.core ## build every wheel twice in different folders and compare them; WHEELS_OPTIONS=--fast does not optimize
	$(BIN)/python -m tools.release.wheels $(WHEELS_OPTIONS)

# SOURCE_DATE_EPOCH is the time of the commit, so that who builds the same commit gets the same bytes.
RELEASE_TIME = SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct)
PURE := $(filter-out ./extensions/nn_ext_cpu/,. $(sort $(dir $(wildcard ./extensions/*/pyproject.toml))))
pure-wheels: $(VENV)/.core ## build the wheels of a release that no machine needs to compile, and their bills of materials, into dist
	for package in $(PURE); do $(RELEASE_TIME) $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist $$package || exit 1; done
	$(RELEASE_TIME) $(BIN)/python -m tools.release.sbom dist/*.whl

cpu-wheels: $(VENV)/.core ## the same of nn-ext-cpu for each Python, in containers, with libraries inside; needs Docker
	$(PIP_INSTALL) cibuildwheel
	$(RELEASE_TIME) $(BIN)/cibuildwheel --output-dir dist extensions/nn_ext_cpu
	$(RELEASE_TIME) $(BIN)/python -m tools.release.sbom dist/*.whl

clean: ## remove what the targets made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
