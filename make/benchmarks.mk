##@ Benchmarks
# Measurements; see benchmarks/README.md.

.PHONY: bench bench-training

BENCH_PARTS := scaling operators memory overhead trainer checkpoint loading import_time

bench: $(VENV)/.extensions ## the benchmarks, beside the peers that are installed, into build/bench (see benchmarks/README.md)
	mkdir -p build/bench
	$(BIN)/python -m benchmarks --json build/bench/workloads.json --markdown build/bench/workloads.md
	for part in $(BENCH_PARTS); do $(BIN)/python -m benchmarks.$$part > build/bench/$$part.txt || exit 1; cat build/bench/$$part.txt; done

bench-training: $(VENV)/.extensions ## what training costs beside its limits, on an idle machine; the page goes to benchmarks/results
	$(BIN)/python -m benchmarks.training --markdown benchmarks/results/training.md
