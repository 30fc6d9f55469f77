##@ Lanes
# Searches for faults (docs/reliability.md).

.PHONY: programs api mutation interrupts signals faults states contents packages plugins names modules processes machines pairs mixed writes half-precision specials perturbed batches growth seeded-lanes lanes reliability

# Each lane has a short form, which the tests run too, and a long one: make pairs COUNT=100 SEED=1. The long forms record their
# figures for docs/reliability.md by REPORT=docs/reliability.json.
LANE = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tools.lanes.
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
	$(BIN)/python -m tools.lanes.signals $(LANE_OPTIONS) --samples $(SAMPLES)

faults: $(VENV)/.core ## let saving fail by a full disk, a kill or a read-only folder
	$(LANE)faults $(LANE_OPTIONS)

states: $(VENV)/.core ## run, kill, resume and repeat trainings in folders
	$(LANE)states $(LANE_OPTIONS)

contents: $(VENV)/.core ## change values inside files whose checksums are right
	$(LANE)contents $(LANE_OPTIONS)

packages: $(VENV)/.core ## install packages that misbehave beside programs that do not use them
	$(LANE)packages $(LANE_OPTIONS)

plugins: $(VENV)/.core ## use a plugin whose parts raise or return what they should not; COUNT=0: all parts, all faults
	$(LANE)plugins $(LANE_OPTIONS)

names: $(VENV)/.extensions ## write what files name after paths, devices and control characters; COUNT=0: everything
	$(LANE)hostile_names $(LANE_OPTIONS)

modules: $(VENV)/.extensions ## run commands and readers in a folder of hostile modules; COUNT=0: everything
	$(LANE)hostile_modules $(LANE_OPTIONS)

processes: $(VENV)/.extensions ## compute in processes that are forked or spawned beside threads
	$(LANE)processes $(LANE_OPTIONS)

machines: $(VENV)/.extensions ## train on older processors, which qemu emulates (apt install qemu-user)
	$(BIN)/python -m tools.lanes.machines

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

DTYPE ?= float32
batches: $(VENV)/.extensions ## compute samples in batches of many sizes in deterministic mode; COUNT=0: all samples
	$(LANE)batches $(LANE_OPTIONS) --dtype $(DTYPE)

SHAPES ?= 200
STRUCTURES ?= 2000
growth: $(VENV)/.extensions ## compute shapes and graphs that never come back within a limit of memory
	$(LANE)growth --shapes $(SHAPES) --structures $(STRUCTURES) --seed $(SEED) $(if $(REPORT),--report $(REPORT))

# What the seed alone decides, so that CI runs it: nothing of time, load or memory. The longest come first, so that two processes
# end together.
seeded-lanes: mutation pairs programs writes batches specials mixed perturbed packages half-precision contents modules names plugins ## the short forms of the lanes that CI runs
lanes: seeded-lanes api interrupts signals faults states processes growth ## the short forms of all lanes

reliability: $(VENV)/.core ## write the figures of docs/reliability.json into docs/reliability.md
	$(BIN)/python -m tools.lanes.reliability
