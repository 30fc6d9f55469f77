##@ GPU
# Tests and measurements on a machine with a GPU.

.PHONY: gpu-smoke gpu-sanitize gpu-cudnn gpu-layouts gpu-cuda test-gpu gpu-wheels gpu-install bench-gpu

# On a machine whose Python has everything already: make test-gpu GPU_PYTHON=python3
CUDA ?= 13
ifdef GPU_PYTHON
GPU_READY :=
# Wheels are installed there: a change of this folder counts nevertheless.
OURS := $(CURDIR):$(CURDIR)/extensions/nn_ext_cuda:$(CURDIR)/extensions/nn_ext_cudnn
gpu-smoke gpu-sanitize gpu-cudnn gpu-layouts gpu-cuda test-gpu bench-gpu: export PYTHONPATH := $(OURS)$(if $(PYTHONPATH),:$(PYTHONPATH))
else
GPU_PYTHON := $(BIN)/python
GPU_READY := $(VENV)/.gpu
endif
GPU_CONTEXT ?= cudnn

$(VENV)/.gpu: $(VENV)/.extensions
	$(BIN)/python -m pip install --quiet --editable './extensions/nn_ext_cuda[cuda$(CUDA)]' --editable './extensions/nn_ext_cudnn[cuda$(CUDA)]'
	@touch $@

# If time is short: make test-gpu TIER=smoke (minutes), or parts by SHARD=2/5; JOBS processes share the device.
TIER ?= full
SHARD ?= 1/1
# Warnings are shown and fail no test: those of the CuPy and the NumPy of a machine are not ours.
GPU_PYTEST := $(GPU_PYTHON) -m pytest -W default -n $(JOBS) --tier=$(TIER) --shard=$(SHARD) --require-backend=cuda,cudnn

# For a device that is there for a short time: pieces of ten minutes at most, in this order. Longer ones can be cut by SHARD.
FAMILIES := Convolution or Deconvolution or Pooling or BatchNormalization or Softmax- or RNN- or LSTM- or GRU-
SANITIZER ?= compute-sanitizer --error-exitcode 1

gpu-smoke: $(GPU_READY) ## on a GPU: doctor, ten functions, normalizations, recurrent networks, steps whose bits must agree
	$(GPU_PYTHON) -m nn_core doctor --test cuda cudnn
	$(GPU_PYTHON) -m tools.release.smoke -c cudnn
	$(GPU_PYTHON) -m tools.release.smoke -c cuda

gpu-sanitize: $(GPU_READY) ## on a GPU: the same checks in their short form, looking for accesses outside of arrays
	$(SANITIZER) $(GPU_PYTHON) -m tools.release.smoke -c cudnn --short --unpooled

gpu-cudnn: $(GPU_READY) ## on a GPU: conformance of what cuDNN computes, without the layouts
	$(GPU_PYTEST) --backend=cudnn -m conformance -k '($(FAMILIES)) and not test_layouts' extensions/nn_ext_cudnn

gpu-layouts: $(GPU_READY) ## on a GPU: the layouts of what cuDNN computes
	$(GPU_PYTEST) --backend=cudnn -m conformance -k '($(FAMILIES)) and test_layouts' extensions/nn_ext_cudnn

gpu-cuda: $(GPU_READY) ## on a GPU: conformance of our own kernels in float32
	$(GPU_PYTEST) --tier=core --backend=cuda -m conformance extensions/nn_ext_cuda

# The other tests replace CuPy and cuDNN by emulations, and the true ones may not be loaded beside them.
ON_DEVICE := $(wildcard extensions/nn_ext_cuda/tests/*_on_device.py extensions/nn_ext_cudnn/tests/*_on_device.py)

test-gpu: $(GPU_READY) ## conformance, demo and tutorials on a GPU; what cannot run there fails
	$(GPU_PYTHON) -m nn_core doctor --test cuda cudnn
	$(GPU_PYTHON) examples/digits_demo.py -c $(GPU_CONTEXT)
	$(GPU_PYTEST) --backend=cuda,cudnn -m conformance extensions/nn_ext_cuda extensions/nn_ext_cudnn
ifneq ($(TIER),smoke)
	$(GPU_PYTEST) -m 'slow or not slow' $(ON_DEVICE)
	NN_CORE_TUTORIAL_CONTEXT=$(GPU_CONTEXT) $(GPU_PYTEST) -m 'slow or not slow' tests/integration/test_tutorials.py
endif

GPU_WHEELS := build/gpu-wheels
gpu-wheels: ## what a machine with a GPU and no network needs, as wheels in build/gpu-wheels; install them there with make gpu-install
	$(PYTHON) -m pip wheel --quiet --wheel-dir $(GPU_WHEELS) '.[test,examples]' ./extensions/nn_ext_cpu \
		'./extensions/nn_ext_cuda[cuda$(CUDA)]' './extensions/nn_ext_cudnn[cuda$(CUDA)]'

gpu-install: ## install build/gpu-wheels into GPU_PYTHON without a network
	$(GPU_PYTHON) -m pip install --no-index --find-links $(GPU_WHEELS) 'nn-core[test,examples]' nn-ext-cpu \
		'nn-ext-cuda[cuda$(CUDA)]' 'nn-ext-cudnn[cuda$(CUDA)]'

CASES ?=
bench-gpu: $(GPU_READY) ## the benchmarks on a GPU beside PyTorch, if that is installed, or some CASES; the page goes to benchmarks/results
	$(GPU_PYTHON) -m benchmarks.gpu $(CASES) -c $(GPU_CONTEXT) -o benchmarks/results
