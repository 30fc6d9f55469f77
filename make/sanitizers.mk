##@ Sanitizers
# Native code with sanitizers, and the kernels of nn_ext_cuda on an emulated device.

.PHONY: sanitize sanitize-long emulated sanitize-cuda sanitize-cuda-long sanitize-threads

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
	$(SANITIZED) tools.lanes.fuzz api --seed $(SEED) --count 10000
	$(SANITIZED) tools.lanes.fuzz programs --seed $(SEED) --count 1000

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
	$(SANITIZED_KERNELS) --tier=full -k 'test_layouts and float16 and not bfloat16' $(EMULATED_KIT)
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
	$(call WATCHED,known) tools.lanes.known_race; test $$? = 66
	$(WATCHED_PYTEST) -m 'not slow' $(THREADED)
	$(WATCHED_PYTEST) -m slow -k several_threads extensions/nn_ext_cpu/tests/test_deterministic.py
