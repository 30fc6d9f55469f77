# Everything a user or a developer runs; `make help` lists the targets. The environment lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(shell find extensions/nn_ext_cpu extensions/nn_ext_contrib -path '*/build' -prune -o \
	\( -name '*.c' -o -name '*.cpp' -o -name '*.hpp' -o -name 'CMakeLists.txt' -o -name 'pyproject.toml' \) -print) \
	$(shell find extensions/nn_ext_cpu/nn_ext_cpu -name '*.py') # it is not installed editable
JOBS ?= 2
# One thread for each of the processes that run tests: more would wait for each other.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS)

BENCH_PARTS := scaling operators memory overhead trainer checkpoint loading import_time

.PHONY: contents machines packages emulated half-precision gpu-smoke gpu-sanitize gpu-cudnn gpu-layouts gpu-cuda help lanes seeded-lanes programs api mutation interrupts signals faults states processes pairs mixed writes perturbed specials growth sanitize sanitize-long sanitize-cuda sanitize-cuda-long sanitize-threads reliability lock audit wheels-check demo test test-slow lint format types layers check gen docs docs-site bench conformance test-gpu test-engines test-ray gpu-wheels gpu-install bench-training bench-gpu clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

EXTENSIONS := ./extensions/nn_ext_cuda ./extensions/nn_ext_cudnn ./extensions/nn_ext_nnp ./extensions/nn_ext_c ./extensions/nn_ext_contrib ./extensions/nn_ext_tensorboard[viewer] \
	./extensions/nn_ext_onnx[test] ./extensions/nn_ext_mpi[mpich] # the last two are about 150 MB installed

# LOCKED=1 installs the files of constraints/ci.txt, which fit CPython 3.11 on Linux x86-64, and nothing else from an index.
CONSTRAINTS := constraints/ci.txt
LOCKED_PACKAGES = '.[test,lint,examples]' ./extensions/nn_ext_cpu $(EXTENSIONS) 'hatchling>=1.25,<2' editables 'scikit-build-core>=0.10,<2' \
	'pybind11>=3,<4' 'onednn-devel-cpu-gomp>=2023.2,<2024' cmake ninja 'setuptools>=77' pip
ifdef LOCKED
INSTALL := $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation
PREPARE := $(BIN)/python -m pip install --quiet --require-hashes --requirement $(CONSTRAINTS)
else
INSTALL := $(BIN)/python -m pip install --quiet
PREPARE := $(BIN)/python -m pip install --quiet --upgrade pip
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

demo: $(VENV)/.extensions ## train a convolutional net on handwritten digits and show the result
	$(BIN)/python examples/digits_demo.py

test: $(VENV)/.extensions ## all tests but the slow ones
	$(PYTEST) -m 'not slow' tests extensions

test-slow: $(VENV)/.extensions ## the tests that take longer than two seconds, the tutorials among them
	$(PYTEST) -m slow tests extensions

SEED ?= 0

conformance: $(VENV)/.extensions ## every operator, dtype and sample on every installed backend
	$(PYTEST) --backend=all -m conformance tests/conformance extensions

# Each lane has a short form, which the tests run too, and a long one: make pairs COUNT=100 SEED=1. The long forms record their
# figures for docs/reliability.md by REPORT=docs/reliability.json.
LANE = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tools.
LANE_OPTIONS = $(if $(COUNT),--count $(COUNT)) --seed $(SEED) $(if $(REPORT),--report $(REPORT))

programs: $(VENV)/.extensions ## run random programs in many ways
	$(LANE)fuzz programs $(LANE_OPTIONS)

api: $(VENV)/.extensions ## call every public callable with odd values
	$(LANE)fuzz api $(LANE_OPTIONS)
	$(LANE)fuzz sweep $(if $(REPORT),--report $(REPORT))
	$(LANE)fuzz elements $(LANE_OPTIONS)

mutation: $(VENV)/.extensions ## load mutated files
	$(LANE)mutations $(LANE_OPTIONS)

interrupts: $(VENV)/.extensions ## interrupt calls at random instructions
	$(LANE)interrupts $(LANE_OPTIONS)

SAMPLES ?= 100
signals: $(VENV)/.extensions ## deliver signals while native kernels run; SAMPLES=0: all samples of the kit
	$(BIN)/python -m tools.signals $(LANE_OPTIONS) --samples $(SAMPLES)

faults: $(VENV)/.core ## let saving fail by a full disk, a kill or a read-only folder
	$(LANE)faults $(LANE_OPTIONS)

states: $(VENV)/.core ## run, kill, resume and repeat trainings in folders
	$(LANE)states $(LANE_OPTIONS)

contents: $(VENV)/.core ## change values inside files whose checksums are right
	$(LANE)contents $(LANE_OPTIONS)

packages: $(VENV)/.core ## install packages that misbehave beside programs that do not use them
	$(LANE)packages $(LANE_OPTIONS)

processes: $(VENV)/.extensions ## compute in processes that are forked or spawned beside threads
	$(LANE)processes $(LANE_OPTIONS)

machines: $(VENV)/.extensions ## train on older processors, which qemu emulates (apt install qemu-user)
	$(BIN)/python -m tools.machines

pairs: $(VENV)/.extensions ## run graphs in one way and then in another, all ordered pairs of ways
	$(LANE)pairs $(LANE_OPTIONS)

mixed: $(VENV)/.extensions ## call every function with mixed operands of random shapes
	$(LANE)mixed_operands $(LANE_OPTIONS)

writes: $(VENV)/.extensions ## write leaves in every way between passes; COUNT=0: all pairs of readers
	$(LANE)written_leaves $(LANE_OPTIONS)

half-precision: $(VENV)/.extensions ## count units in the last place in half precision; COUNT=0: all samples
	$(LANE)half_precision $(LANE_OPTIONS)

specials: $(VENV)/.extensions ## plant NaN, infinities, -0.0 and subnormal numbers in samples; COUNT=0: all samples; WAYS=4: so many for each
	$(LANE)specials $(LANE_OPTIONS) $(if $(WAYS),--ways $(WAYS))

perturbed: $(VENV)/.extensions ## compute samples with memory that holds one thing or another; COUNT=0: all samples
	$(LANE)perturbed $(LANE_OPTIONS)

SHAPES ?= 200
STRUCTURES ?= 2000
growth: $(VENV)/.extensions ## compute shapes and graphs that never come back within a limit of memory
	$(LANE)growth --shapes $(SHAPES) --structures $(STRUCTURES) --seed $(SEED) $(if $(REPORT),--report $(REPORT))

# What the seed alone decides, so that CI runs it: nothing of time, load or memory.
seeded-lanes: programs pairs mixed writes perturbed specials half-precision mutation contents packages ## the short forms of the lanes that CI runs
lanes: seeded-lanes api interrupts signals faults states processes growth ## the short forms of all lanes

# nn_ext_cpu with sanitizers is installed beside the environment, where it hides the other one. A finding ends the process and is
# written to build/sanitize. The sanitizers of GCC are loaded first; oneDNN itself is not instrumented.
SANITIZE := build/sanitize
CXX ?= g++
$(SANITIZE)/.built: $(VENV)/.extensions $(NATIVE)
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(SANITIZE)/packages --config-settings=cmake.define.NN_SANITIZE=address \
		--config-settings=cmake.build-type=None --config-settings=build-dir=build/sanitize --config-settings=install.strip=false \
		./extensions/nn_ext_cpu
	@touch $@

FINDINGS = log_path=$(CURDIR)/$(SANITIZE)/finding
SANITIZED = PYTHONPATH=$(CURDIR)/$(SANITIZE)/packages:$(CURDIR) LD_LIBRARY_PATH=$(CURDIR)/$(VENV)/lib \
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:$(FINDINGS) \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:$(FINDINGS) OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m
SANITIZED_PYTEST = $(SANITIZED) pytest -p no:xdist -p no:cacheprovider -c pyproject.toml -m 'not slow'

sanitize: $(SANITIZE)/.built ## the tests of nn_ext_cpu with address and undefined-behaviour sanitizers
	$(SANITIZED_PYTEST) extensions/nn_ext_cpu/tests

sanitize-long: sanitize ## and all samples of the conformance kit, 10,000 hostile calls and 1,000 random programs
	$(SANITIZED_PYTEST) --tier=full extensions/nn_ext_cpu/tests/test_conformance.py
	$(SANITIZED) tools.fuzz api --seed $(SEED) --count 10000
	$(SANITIZED) tools.fuzz programs --seed $(SEED) --count 1000

# The kernels of nn_ext_cuda, compiled for the host and run on its emulated device: NumPy's arrays are the memory of the device.
# The sanitizer of undefined behaviour writes to standard error, and ends the process; so pytest must not hold it back.
CUDA_TESTS := extensions/nn_ext_cuda/tests
EMULATED = PYTHONPATH=$(CURDIR)/$(CUDA_TESTS)/emulation:$(CURDIR) OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
EMULATED_PYTEST = $(BIN)/python -m pytest -p no:xdist -p no:cacheprovider -c pyproject.toml
EMULATED_KIT = -p emulated_device --backend=cuda --require-backend=cuda $(CUDA_TESTS)/test_conformance.py
SANITIZED_KERNELS = $(EMULATED) LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:$(FINDINGS) UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:$(FINDINGS) \
	NN_EMULATION_SANITIZE=address,undefined,float-cast-overflow NN_EMULATION_ORDERS= $(EMULATED_PYTEST) --capture=sys
LARGER_KERNELS := Attention or DropoutMask or Einsum or BatchMatmul or Affine or WarpByGrid or RoiAlign or Interpolate or Quantize or Prune \
	or Binary or INQ or SpectralNorm or WeightNormalization

emulated: $(VENV)/.extensions ## a sample of each function on the emulated device of nn_ext_cuda
	$(EMULATED) $(BIN)/python -m pytest -n $(JOBS) -p no:cacheprovider -c pyproject.toml --tier=smoke $(EMULATED_KIT)

sanitize-cuda: $(VENV)/.extensions ## the kernels of nn_ext_cuda on the emulated device with address and undefined-behaviour sanitizers
	mkdir -p $(SANITIZE)
	$(SANITIZED_KERNELS) --tier=smoke -k 'test_forward or test_backward' $(EMULATED_KIT)
	$(SANITIZED_KERNELS) -m 'not slow' $(addprefix $(CUDA_TESTS)/test_,updates.py rescale.py resampling.py)

sanitize-cuda-long: sanitize-cuda ## and all samples of the larger kernels, arrays at odd addresses, its other tests; and races in all samples
	$(SANITIZED_KERNELS) --tier=core -k '$(LARGER_KERNELS)' $(EMULATED_KIT)
	NN_EMULATION_OFFSET=1 $(SANITIZED_KERNELS) --tier=smoke -k 'test_forward or test_backward' $(EMULATED_KIT)
	$(SANITIZED_KERNELS) -m 'not slow' --ignore=$(CUDA_TESTS)/test_emulation.py $(CUDA_TESTS)
	$(EMULATED) NN_EMULATION_ORDERS=1,2,3 $(EMULATED_PYTEST) --tier=core -k 'test_forward or test_backward' $(EMULATED_KIT)

# The thread sanitizer takes Clang with its OpenMP runtime, whose Archer tells it what waits for what: the runtime of GCC is not
# instrumented, so that each parallel loop would look like a race. Debian: packages clang-16, libclang-rt-16-dev, libomp-16-dev and
# llvm-16, then make sanitize-threads CLANG=clang++-16. A known race must be found first.
CLANG ?= clang++
RACES := build/sanitize-threads
LLVM = $(shell $(CLANG) -print-resource-dir)/../..
$(RACES)/.built: $(VENV)/.extensions $(NATIVE)
	CXX=$(CLANG) $(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(RACES)/packages \
		--config-settings=cmake.define.NN_SANITIZE=thread --config-settings=cmake.build-type=None \
		--config-settings=build-dir=$(RACES) --config-settings=install.strip=false ./extensions/nn_ext_cpu
	@touch $@

WATCHED = PYTHONPATH=$(CURDIR)/$(RACES)/packages:$(CURDIR) LD_LIBRARY_PATH=$(CURDIR)/$(VENV)/lib:$(LLVM) \
	LD_PRELOAD="$$($(CLANG) -print-file-name=libclang_rt.tsan-x86_64.so) $(LLVM)/libomp.so" OMP_TOOL_LIBRARIES=$(LLVM)/libarcher.so \
	TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1:die_after_fork=0:exitcode=66:external_symbolizer_path=$$($(CLANG) -print-prog-name=llvm-symbolizer):log_path=$(CURDIR)/$(RACES)/$(1) \
	OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m
WATCHED_PYTEST = $(call WATCHED,finding) pytest -p no:xdist -p no:cacheprovider -p no:faulthandler -c pyproject.toml
THREADED = $(shell grep -rlE '^import threading|^from concurrent' tests/unit tests/integration extensions/nn_ext_cpu/tests --include='*.py')

sanitize-threads: $(RACES)/.built ## the tests that start threads with the thread sanitizer of Clang
	$(call WATCHED,known) tools.known_race; test $$? = 66
	$(WATCHED_PYTEST) -m 'not slow' $(THREADED)
	$(WATCHED_PYTEST) -m slow -k several_threads extensions/nn_ext_cpu/tests/test_deterministic.py

lock: $(VENV)/.core ## write constraints/ci.txt: versions and hashes of what CI installs, newest that fit
	mkdir -p build
	$(BIN)/python -m pip install --quiet --dry-run --ignore-installed --report build/lock.json $(LOCKED_PACKAGES)
	$(BIN)/python -m tools.lock build/lock.json $(CONSTRAINTS)

# --strict: a package that the service does not know is a failure, and so is a mirror of PyPI that knows of no vulnerabilities.
audit: $(VENV)/.core ## look for known vulnerabilities of what CI installs; needs pypi.org
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/pip-audit --strict --require-hashes --disable-pip --requirement $(CONSTRAINTS) || \
		{ echo "audit: the packages are not known to be free of vulnerabilities; if pip-audit could not audit them, run this where https://pypi.org/pypi answers"; exit 1; }

WHEELS_OPTIONS ?=
wheels-check: $(VENV)/.core ## build every wheel twice in different folders and compare the bytes; WHEELS_OPTIONS=--fast does not optimize
	$(BIN)/python -m tools.wheels $(WHEELS_OPTIONS)

CXX_SOURCES := $(shell find extensions/nn_ext_cpu/src -name '*.cpp' -o -name '*.hpp')
lint: $(VENV)/.core ## ruff, and the layout of the C++ sources
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CXX_SOURCES)

format: $(VENV)/.core ## lay the C++ sources out as `make lint` wants them
	$(BIN)/clang-format -i $(CXX_SOURCES)

types: $(VENV)/.extensions ## mypy; and mypy and pyright on programs of users
	$(BIN)/mypy
	$(BIN)/python tools/check_types.py

layers: $(VENV)/.core ## import layers
	$(BIN)/lint-imports

check: lint types layers ## the static checks, and whether generated files are up to date
	$(BIN)/python -m nn_core.spec --check
	$(BIN)/python -m nn_core.spec.pages --check
	$(BIN)/python -m tools.reliability --check
	$(BIN)/python -m tools.tasks --check
	$(BIN)/python -m tools.nnabla_names --check

gen: $(VENV)/.core ## write the generated files from function_spec.yaml and examples/tasks
	$(BIN)/python -m nn_core.spec
	$(BIN)/python -m nn_core.spec.pages
	$(BIN)/python -m tools.tasks
	$(BIN)/python -m tools.nnabla_names

reliability: $(VENV)/.core ## write the figures of docs/reliability.json into docs/reliability.md
	$(BIN)/python -m tools.reliability

docs: $(VENV)/.extensions ## write docs/support.md: who runs what in which dtype
	$(BIN)/python -m nn_core.testing.support

$(VENV)/.docs: $(VENV)/.extensions
	$(BIN)/python -m pip install --quiet --editable '.[docs,examples]'
	@touch $@

docs-site: $(VENV)/.docs ## run the tutorials and build the documentation as a site into build/site
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.tutorials # small networks: on a busy machine two threads take twice as long
	$(BIN)/mkdocs build --quiet

bench: $(VENV)/.extensions ## the benchmarks, beside the peers that are installed, into build/bench (see benchmarks/README.md)
	mkdir -p build/bench
	$(BIN)/python -m benchmarks --json build/bench/workloads.json --markdown build/bench/workloads.md
	for part in $(BENCH_PARTS); do $(BIN)/python -m benchmarks.$$part > build/bench/$$part.txt || exit 1; cat build/bench/$$part.txt; done

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
	$(GPU_PYTHON) -m tools.smoke -c cudnn
	$(GPU_PYTHON) -m tools.smoke -c cuda

gpu-sanitize: $(GPU_READY) ## on a GPU: the same checks in their short form, looking for accesses outside of arrays
	$(SANITIZER) $(GPU_PYTHON) -m tools.smoke -c cudnn --short --unpooled

gpu-cudnn: $(GPU_READY) ## on a GPU: conformance of what cuDNN computes, without the layouts
	$(GPU_PYTEST) --backend=cudnn -m conformance -k '($(FAMILIES)) and not test_layouts' extensions/nn_ext_cudnn

gpu-layouts: $(GPU_READY) ## on a GPU: the layouts of what cuDNN computes
	$(GPU_PYTEST) --backend=cudnn -m conformance -k '($(FAMILIES)) and test_layouts' extensions/nn_ext_cudnn

gpu-cuda: $(GPU_READY) ## on a GPU: conformance of our own kernels in float32
	$(GPU_PYTEST) --tier=core --backend=cuda -m conformance extensions/nn_ext_cuda

test-gpu: $(GPU_READY) ## conformance, demo and tutorials on a GPU; what cannot run there fails
	$(GPU_PYTHON) -m nn_core doctor --test cuda cudnn
	$(GPU_PYTHON) examples/digits_demo.py -c $(GPU_CONTEXT)
	$(GPU_PYTEST) --backend=cuda,cudnn -m conformance extensions/nn_ext_cuda extensions/nn_ext_cudnn
ifneq ($(TIER),smoke)
	$(GPU_PYTEST) -m '(slow or not slow) and not conformance' extensions/nn_ext_cuda extensions/nn_ext_cudnn
	NN_CORE_TUTORIAL_CONTEXT=$(GPU_CONTEXT) $(GPU_PYTEST) -m 'slow or not slow' tests/integration/test_tutorials.py
endif

# Where no wheel of cuDNN can be had, the tests are skipped and say so.
CUDNN := build/cudnn
$(CUDNN)/nvidia/cudnn: | $(VENV)/.extensions
	$(BIN)/python -m pip install --quiet --no-deps --target $(CUDNN) 'nvidia-cudnn-cu12>=9.8,<10' || mkdir -p $@

test-engines: $(CUDNN)/nvidia/cudnn ## make plans by the true cuDNN (a wheel of 700 MB) for a described device; without a device
	PYTHONPATH=$(CUDNN) $(PYTEST) -n 0 -c pyproject.toml -rs -m slow extensions/nn_ext_cudnn/tests/test_engines.py

$(VENV)/.ray: $(VENV)/.extensions extensions/nn_ext_ray/pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ./extensions/nn_ext_ray
	@touch $@

test-ray: $(VENV)/.ray ## train on a Ray cluster of this machine (a wheel of 80 MB, 360 MB installed)
	$(PYTEST) -n 0 -c pyproject.toml -rs extensions/nn_ext_ray/tests

GPU_WHEELS := build/gpu-wheels
gpu-wheels: ## what a machine with a GPU and no network needs, as wheels in build/gpu-wheels; install them there with make gpu-install
	$(PYTHON) -m pip wheel --quiet --wheel-dir $(GPU_WHEELS) '.[test,examples]' ./extensions/nn_ext_cpu \
		'./extensions/nn_ext_cuda[cuda$(CUDA)]' './extensions/nn_ext_cudnn[cuda$(CUDA)]'

gpu-install: ## install build/gpu-wheels into GPU_PYTHON without a network
	$(GPU_PYTHON) -m pip install --no-index --find-links $(GPU_WHEELS) 'nn-core[test,examples]' nn-ext-cpu \
		'nn-ext-cuda[cuda$(CUDA)]' 'nn-ext-cudnn[cuda$(CUDA)]'

bench-training: $(VENV)/.extensions ## what training costs beside its limits, on an idle machine; the page goes to benchmarks/results
	$(BIN)/python -m benchmarks.training --markdown benchmarks/results/training.md

CASES ?=
bench-gpu: $(GPU_READY) ## the benchmarks on a GPU beside PyTorch, if that is installed, or some CASES; the page goes to benchmarks/results
	$(GPU_PYTHON) -m benchmarks.gpu $(CASES) -c $(GPU_CONTEXT) -o benchmarks/results

clean: ## remove what the targets made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
