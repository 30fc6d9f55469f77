# Everything a user or a developer runs; `make help` lists the targets, whose rules are in make/*.mk. The environment lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
SEED ?= 0
# Hundreds of tests start interpreters, which must not compile the package again each time.
export PYTHONDONTWRITEBYTECODE :=
# One thread for each of the processes that run tests: more would wait for each other.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS)

.PHONY: help
help: ## list the targets
	@awk '/^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { split($$0, part, ":"); sub(/.*## /, ""); \
		printf "  %-20s %s\n", part[1], $$0 }' $(MAKEFILE_LIST)

include make/environment.mk make/tests.mk make/checks.mk make/lanes.mk make/sanitizers.mk make/benchmarks.mk make/gpu.mk
