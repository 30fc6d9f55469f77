"""The emulated device finds what a device would do wrong, or not in the same way each time."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

N = 256
PRELUDE = "typedef float R;\ntypedef long long int64;\n"
OPEN = 'extern "C" __global__ void kernel(const R* x, R* y) {'


@pytest.fixture
def launched(device, monkeypatch):
    """``launched(body, grid, block, shared_mem)`` runs a kernel that reads x and writes y, and returns y."""
    import machine

    monkeypatch.setattr(machine, "ORDERS", [1])

    def launch(body, *, grid=1, block=N, n=N, shared_mem=0):
        function = machine.compile_source(f"{PRELUDE}{OPEN}\n{body}\n}}\n", "kernel")
        x = device.asarray(np.arange(n, dtype=np.float32))
        y = device.asarray(np.zeros(n, np.float32))
        try:
            function((grid,), (block,), (x, y), shared_mem=shared_mem)
        finally:
            machine.FINDINGS.clear()
        return y.get()

    return launch


def neighbours(barrier):
    """A kernel in which each thread reads what its neighbour has left in shared memory."""
    return f"""\
  __shared__ R held[{N}];
  held[threadIdx.x] = x[threadIdx.x];
  {barrier}
  y[threadIdx.x] = held[(threadIdx.x + 1) % {N}];"""


def test_a_barrier_orders_threads(launched):
    np.testing.assert_array_equal(launched(neighbours("__syncthreads();")), np.roll(np.arange(N), -1))


def fault(text):
    return pytest.raises(AssertionError, match=text)


def test_a_missing_barrier_is_a_race(launched):
    with fault("kernel: threads in order 1 give other bits than in ascending order: a race"):
        launched(neighbours(""))


def test_a_missing_barrier_between_warps_is_a_race(launched):
    body = neighbours("const R mine = __shfl_xor_sync(0xffffffffu, x[threadIdx.x], 0);")
    with fault("a race"):
        launched(body)


def test_two_blocks_that_write_one_place_are_a_race(launched):
    with fault("a race"):
        launched("  if (threadIdx.x == 0) y[0] = blockIdx.x;", grid=2)


def test_sums_in_an_order_of_chance_are_a_race(launched):
    with fault("a race"):
        launched("  y[0] += 1 / (1 + x[threadIdx.x]);")


def test_two_threads_that_write_the_same_are_none(launched):
    assert launched("  y[0] = x[1];", grid=2)[0] == 1


def test_memory_of_a_block_is_not_zero_and_not_that_of_the_last_one(launched):
    body = "  __shared__ R held[1];\n  y[blockIdx.x] = held[0];\n  held[0] = blockIdx.x;"
    assert np.isnan(launched(body, grid=4, block=1)[:4]).all()


def test_a_barrier_that_some_threads_do_not_reach(launched):
    with fault(r"thread 0 waits at line \d+ `if \(threadIdx.x < 40\) __syncthreads\(\);` for thread 40, which has returned"):
        launched("  if (threadIdx.x < 40) __syncthreads();")


def test_a_barrier_in_each_branch(launched):
    body = "  if (threadIdx.x % 2)\n    __syncthreads();\n  else\n    { __syncthreads(); y[0] = 1; }"
    with fault(r"thread 0 waits at line .* for thread 1, which waits at line"):
        launched(body)


EXCHANGE = "y[threadIdx.x] = __shfl_xor_sync({mask}, x[threadIdx.x], {by});"


def test_lanes_exchange_values(launched):
    np.testing.assert_array_equal(launched(EXCHANGE.format(mask="0xffffffffu", by=1)), np.arange(N) ^ 1)


def test_half_a_warp_exchanges_values_by_its_mask(launched):
    body = "  if (threadIdx.x % 32 < 16) " + EXCHANGE.format(mask="0xffffu", by=8)
    lower = np.arange(N) % 32 < 16
    np.testing.assert_array_equal(launched(body)[lower], (np.arange(N) ^ 8)[lower])


def test_an_exchange_with_a_lane_that_has_returned(launched):
    with fault(r"thread 32 waits at line .* for thread 40, which has returned"):
        launched("  if (threadIdx.x >= 40) return;\n  " + EXCHANGE.format(mask="0xffffffffu", by=1))


def test_an_exchange_with_a_lane_that_does_not_exist(launched):
    with fault(r"thread 32 waits at line .* for thread 48, which does not exist: the block has 48"):
        launched(EXCHANGE.format(mask="0xffffffffu", by=1), block=48)


def test_an_exchange_with_a_lane_that_is_elsewhere(launched):
    one, other = (EXCHANGE.format(mask="0xffffffffu", by=by) for by in (1, 2))
    with fault(r"thread 0 waits at line .* for thread 1, which waits at line"):
        launched(f"  if (threadIdx.x % 2)\n    {one}\n  else\n    {other}")


def test_an_exchange_without_the_mask_of_a_lane(launched):
    with fault(r"thread \d+ reads lane \d+ at line .* and the mask lacks one of them"):
        launched(EXCHANGE.format(mask="0xffffu", by=1))


def test_dynamic_shared_memory_ends(launched):
    body = "  extern __shared__ R shared[];\n  shared[threadIdx.x] = x[threadIdx.x];\n  y[threadIdx.x] = shared[threadIdx.x];"
    assert launched(body, shared_mem=4 * N)[1] == 1
    with fault("something was written beyond the 1020 bytes of dynamic shared memory"):
        launched(body, shared_mem=4 * N - 4)


@pytest.mark.parametrize(
    ("grid", "block", "shared_mem"), [((1, 65536), (1,), 0), ((1,), (1025,), 0), ((1,), (1,), 49153), ((0,), (1,), 0)]
)
def test_launches_that_a_device_refuses(device, grid, block, shared_mem):
    import machine

    function = machine.compile_source(f"{PRELUDE}{OPEN} }}\n", "kernel")
    x = device.asarray(np.zeros(1, np.float32))
    with pytest.raises(AssertionError):
        function(grid, block, (x, x), shared_mem=shared_mem)


def test_a_kernel_may_bound_its_threads(device):
    import machine

    source = f"{PRELUDE}{OPEN} }}\n".replace("void kernel", "void __launch_bounds__(128) kernel")
    x = device.asarray(np.zeros(1, np.float32))
    function = machine.compile_source(source, "kernel")
    function((1,), (128,), (x, x))
    with pytest.raises(AssertionError):
        function((1,), (256,), (x, x))


def test_a_table_of_addresses_is_followed(device):
    """Each of the orders starts from the same memory, also where kernels find it by a table."""
    import machine

    source = 'extern "C" __global__ void kernel(const uint64* pointers, const int64* sizes) { ((R*)pointers[0])[0] += 1; }'
    function = machine.compile_source(f"{PRELUDE}typedef unsigned long long uint64;\n{source}", "kernel")
    y = device.asarray(np.zeros(1, np.float32))
    function((1,), (1,), (device.asarray(np.array([[y.data.ptr]], np.uint64)), device.asarray(np.array([1], np.int64))))
    assert y.item() == 1


#: The words of sanitizers about the launches of known_faults.py.
SAID = {
    "none": "^$",
    "beyond_an_array": "heap-buffer-overflow",
    "before_an_array": "heap-buffer-overflow",
    "beyond_dynamic_shared_memory": "heap-buffer-overflow",
    "beyond_static_shared_memory": "insufficient space|global-buffer-overflow",
    "beyond_registers": "index 4 out of bounds",
    "misaligned": "misaligned address",
    "overflow": "signed integer overflow",
    "shift": "shift exponent 44 is too large",
    "conversion": "outside the range of representable values of type 'int'",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAID)
def test_sanitizers_object_to_known_faults(device, name):
    import machine

    libraries = [machine.library(name) for name in ("libasan.so", "libstdc++.so")]
    if None in libraries:
        pytest.skip("the sanitizers of g++ are not installed (libasan.so)")
    environment = {
        **os.environ,
        "NN_EMULATION_ORDERS": "",
        "NN_EMULATION_SANITIZE": machine.ALL_SANITIZERS,
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",
    }
    script = Path(__file__).parent / "emulation" / "known_faults.py"
    done = subprocess.run([sys.executable, str(script), name], capture_output=True, text=True, env=environment, check=False)
    assert re.search(SAID[name], done.stderr), done.stderr[-4000:]
    assert (done.returncode == 0) == (name == "none")
