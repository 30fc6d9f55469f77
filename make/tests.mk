##@ Tests
# The tests, and the demo.

.PHONY: demo test test-slow test-alone conformance test-engines test-ray

demo: $(VENV)/.extensions ## train a convolutional net on handwritten digits and show the result
	$(BIN)/python examples/digits_demo.py

test: $(VENV)/.extensions ## all tests but the slow ones
	$(PYTEST) -m 'not slow' tests extensions

test-slow: $(VENV)/.extensions ## the tests that take longer than two seconds, the tutorials among them
	$(PYTEST) -m slow tests extensions

# What only the environment of all packages holds is missing there, as it is where a user installs this one.
PACKAGE ?= nn_ext_onnx
ALONE = build/alone/$(PACKAGE)
test-alone: ## install PACKAGE=nn_ext_onnx with what it declares, and nothing else, and run its tests there
	$(PYTHON) -m venv --clear $(ALONE)
	$(ALONE)/bin/python -m pip install --quiet . './extensions/$(PACKAGE)[test]' hypothesis pytest-xdist
	OMP_NUM_THREADS=1 $(ALONE)/bin/pytest -c pyproject.toml -n $(JOBS) -rs -m 'not slow' extensions/$(PACKAGE)/tests

conformance: $(VENV)/.extensions ## every operator, dtype and sample on every installed backend
	$(PYTEST) --backend=all -m conformance tests/conformance extensions

# Where no wheel of cuDNN can be had, the tests are skipped and say so.
CUDNN := build/cudnn
$(CUDNN)/nvidia/cudnn: | $(VENV)/.extensions
	$(BIN)/python -m pip install --quiet --no-deps --target $(CUDNN) 'nvidia-cudnn-cu12>=9.8,<10' || mkdir -p $@

# Of the plans of attention, of a second each, one in so many; every seventh meets all pairs of choices. EVERY=1: all.
EVERY ?= 7
test-engines: $(CUDNN)/nvidia/cudnn ## make plans by the true cuDNN (a wheel of 700 MB) for a described device; without a device
	NN_ENGINES_EVERY=$(EVERY) PYTHONPATH=$(CUDNN) $(PYTEST) -n 0 -c pyproject.toml -rs -m slow extensions/nn_ext_cudnn/tests/test_engines.py

$(VENV)/.ray: $(VENV)/.extensions extensions/nn_ext_ray/pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ./extensions/nn_ext_ray
	@touch $@

test-ray: $(VENV)/.ray ## train on a Ray cluster of this machine (a wheel of 80 MB, 360 MB installed)
	$(PYTEST) -n 0 -c pyproject.toml -rs extensions/nn_ext_ray/tests
