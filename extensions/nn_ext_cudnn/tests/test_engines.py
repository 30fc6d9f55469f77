"""The engines that the true libcudnn finds for a described device: `make test-engines` installs cuDNN; no device is needed.

cuDNN takes the properties of a device as JSON (since 9.8) and then asks its heuristics and makes plans without one. Where
there is no CUDA driver or no cuBLASLt, the libraries of the folder link_stub let it be linked. The checks run in processes of
their own, because a stand-in may have taken the place of the library in this one.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from itertools import chain, product
from pathlib import Path

import pytest

#: An H100, as `cudaDeviceGetAttribute` tells.
H100 = {
    "cudaDeviceId": 0, "deviceName": "NVIDIA H100 80GB HBM3", "deviceVer": 900, "driverVer": 13000, "isTccDriver": 0,
    "l2CacheSize": 52428800, "maxBlockSize": [1024, 1024, 64], "maxCtasPerSM": 32,
    "maxGridSize": [2147483647, 65535, 65535], "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152,
    "maxSharedMemoryPerBlockOptin": 232448, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048,
    "memClockRateKHz": 2619000, "memoryBusWidth": 5120, "multiProcessorCount": 132, "oversizedSharedMemoryPerBlock": 0,
    "pciDeviceId": 0, "regsPerBlock": 65536, "reservedSharedMemoryPerBlock": 1024, "smClockRateKHz": 1980000,
    "supportCoopLaunch": 1, "totalGlobalMem": 84929347584, "warpSize": 32,
}  # fmt: skip

#: The beginning of both scripts, which print one line for each plan or group of plans.
PREPARED = """
import json, sys
import fake_cupy
sys.modules["cupy"] = fake_cupy.make()
import emulated
import numpy as np
import sources
from nn_ext_cuda.gemm.precision import allow_tf32
from nn_ext_cudnn import precision
from nn_ext_cudnn.errors import NotSupportedError
from nn_ext_cudnn.graph import attention_graph as attention
from nn_ext_cudnn.graph import attributes, plans, runner
from nn_ext_cudnn.graph.convolution import CONVOLUTION
from nn_ext_cudnn.graph.descriptor import described
from nn_ext_cudnn.graph.fused import FUSED

device = described(attributes.DEVICEPROP, json_representation=json.dumps(json.loads(sys.argv[1])).encode())
"""
#: The calls that kernels of convolutions prepare: what was asked, and the engines or the refusal.
CONVOLUTIONS = """
built = []

def plan_of(graph, excluded, device_id):
    plan = plans.build(graph, excluded, device)
    built.append((graph[0].result, len(graph), plan.engine, plan.workspace_bytes))
    return plan

runner.plan_of = plan_of
for name, kernel in {**CONVOLUTION, **FUSED}.items():
    for dtype, tf32 in [("float32", False), ("float32", True), ("float16", False), ("bfloat16", False), ("float64", False)]:
        allow_tf32(tf32)
        for sample, call in sources.calls(name, dtype):
            if sample == "empty":
                continue
            built.clear()
            refusal = kernel.refuse(call)
            laid_out = kernel._preferred(call)
            gradients = None if refusal else kernel.backward(laid_out, [desc is not None for desc in call.inputs])
            print(json.dumps({
                "what": [name, dtype, tf32, sample], "refusal": refusal and refusal.reason,
                "backward": gradients is not None, "built": built,
            }))

shapes = [(32, 128, 28, 28), (128, 128, 3, 3)]
for dtype in ("float16", "bfloat16", "float32"):
    allow_tf32(True)
    built.clear()
    zeros = [np.broadcast_to(np.float32(0), shape) for shape in shapes]
    call = emulated.call_of("Convolution", [*zeros, None], dtype, pad=(1, 1))
    call, kernel = CONVOLUTION["Convolution"]._preferred(call), CONVOLUTION["Convolution"]
    kernel.forward(call), kernel.backward(call, [True, False, False])
    print(json.dumps({"what": [dtype], "workspaces": {result: n_bytes for result, _, _, n_bytes in built}}))
    engines = {result: engine for result, _, engine, _ in built}
    built.clear()
    adder = kernel.backward(call, [True, False, False]).accumulating([5])
    print(json.dumps({"what": [dtype], "adds": adder is not None, "same": built[-1][2] == engines["wide"]}))
"""
#: The plans of attention: what was asked, and the engine or the refusal.
ATTENTIONS = """
def packed(batch, heads, queries, keys, width, depth):
    # Rows of q, k and v are parts of the same rows, as those of their gradients; heads are within the rows of y.
    row = heads * (2 * width + depth)
    of_queries, of_keys = ((n * row, features, row, 1) for n, features in ((queries, width), (keys, width)))
    of_values, of_results = (keys * row, depth, row, 1), (queries * heads * depth, depth, heads * depth, 1)
    strides = {attention.Q: of_queries, attention.K: of_keys, attention.V: of_values, attention.Y: of_results}
    strides |= {attention.DQ: of_queries, attention.DK: of_keys, attention.DV: of_values, attention.DY: of_results}
    return tuple(strides.items())

def backward_in_any_order(sizes):
    return attention.backward_graph(sizes, adds_in_any_order=True)

graphs = {
    "forward": attention.forward_graph, "backward": attention.backward_graph, "backward in any order": backward_in_any_order
}
for graph, dtype, (batch, heads, *lengths), is_causal, layout in json.loads(sys.argv[2]):
    queries, keys = lengths[:2]
    masks = {"keys": (1, 1, 1, keys), "samples": (batch, 1, queries, keys), "heads": (1, heads, queries, keys)}
    lying = packed(batch, heads, *lengths) if layout == "packed" else ()
    sizes = attention.Sizes((batch, heads), *lengths, dtype, masks.get(layout), is_causal, lying=lying)
    record = {"what": [graph, dtype, batch, heads, *lengths, is_causal, layout], "engine": None}
    try:
        plan = plans.build(graphs[graph](sizes), precision.excluded_notes(dtype), device)
        record |= {"engine": plan.engine, "workspace": plan.workspace_bytes}
    except NotSupportedError as error:
        record["refusal"] = str(error)
    print(json.dumps(record))
"""
#: (batch, heads, queries, keys, features of queries and keys, features of values)
ATTENTION = [
    (2, 12, 1024, 1024, 64, 64),
    (2, 4, 100, 77, 64, 64),
    (1, 1, 7, 9, 8, 8),
    (2, 3, 128, 128, 128, 128),
    (1, 2, 64, 64, 40, 48),
]
#: The graph, the dtype, the sizes, whether it is causal, and the mask, or rows that q, k and v share.
CASES = [*product(
    ["forward", "backward", "backward in any order"], ["float16", "bfloat16"], ATTENTION, [False, True],
    ["plain", "keys", "samples", "heads", "packed"],
)]  # fmt: skip
#: A plan takes a second or more. Of 300 cases, every seventh holds each pair of values of two columns.
CASES = CASES[:: int(os.environ.get("NN_ENGINES_EVERY", "1"))]


def link_stubs(folder):
    """Compile a stand-in for each library that cuDNN is linked with and that is not there; the folder."""
    here = Path(__file__).with_name("link_stub")
    compiler = shutil.which("gcc") or shutil.which("cc")
    for source, name, wheel in (("libcuda.c", "libcuda.so.1", None), ("libcublasLt.c", "libcublasLt.so.12", "nvidia.cublas")):
        if compiler and not is_installed(name, wheel):
            options = ["-shared", "-fPIC", "-Wall", "-Werror", f"-Wl,-soname,{name}", "-o", str(folder / name)]
            subprocess.run([compiler, *options, str(here / source)], check=True)
    return folder


def is_installed(name, wheel):
    """Return whether a library can be loaded, or is in a wheel."""
    try:
        return bool(wheel and find_spec(wheel)) or bool(ctypes.CDLL(name))
    except (OSError, ModuleNotFoundError):
        return False


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Run both scripts, each in a process of minutes, and return all records."""
    here = Path(__file__).parent
    cuda = here.parents[1] / "nn_ext_cuda" / "tests"
    paths = [str(cuda), str(cuda / "emulation"), *filter(None, sys.path)]
    libraries = [str(link_stubs(tmp_path_factory.mktemp("stubs"))), os.environ.get("LD_LIBRARY_PATH", "")]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(paths), "LD_LIBRARY_PATH": ":".join(filter(None, libraries))
    }  # fmt: skip
    with ThreadPoolExecutor() as pool:
        return [*chain.from_iterable(pool.map(partial(printed, environment), (CONVOLUTIONS, ATTENTIONS)))]


def printed(environment, script):
    """Run a script and return the records that it prints."""
    command = [sys.executable, "-c", PREPARED + script, json.dumps(H100), json.dumps(CASES)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    for missing in ("libcudnn 9 must be installed", "NOT_INITIALIZED", "SUBLIBRARY_LOADING_FAILED", "Cannot load symbol"):
        if missing in done.stderr:
            line = next(line for line in done.stderr.splitlines() if missing in line)
            pytest.skip(f"the true cuDNN cannot be started here: {line.strip()}")
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def found(records):
    """The records of convolutions."""
    return [record for record in records if "built" in record]


@pytest.mark.slow
def test_every_sample_has_an_engine_for_each_direction(found):
    assert len(found) > 100
    for record in found:
        if record["what"][0] == "FusedConvolution":
            assert not (record["refusal"] or "").startswith("no engine"), record
        else:
            assert record["refusal"] is None, record
            assert record["backward"], record


@pytest.mark.slow
def test_what_follows_a_convolution_is_part_of_the_plan(found):
    kinds = {("float32", False), ("float32", True), ("float16", False), ("bfloat16", False), ("float64", False)}
    sizes = {(*record["what"][1:3], n) for record in found for _, n, *_ in record["built"]}
    assert {(dtype, tf32) for dtype, tf32, n in sizes if n == 2} == kinds
    assert {(dtype, tf32) for dtype, tf32, n in sizes if n == 3} == kinds


@pytest.mark.slow
def test_filters_are_not_copied_in_each_call(records):
    """cuDNN would do so in its scratch memory, were they not laid out as the images are."""
    found = [record["workspaces"] for record in records if "workspaces" in record]
    assert len(found) == 3
    for sizes in found:
        assert set(sizes) == {"narrow", "wide"}
        assert max(sizes.values()) < 1024


@pytest.mark.slow
def test_gradients_are_added_by_the_engines_that_compute_them(records):
    found = [record for record in records if "adds" in record]
    assert len(found) == 3
    for record in found:
        assert record["adds"], record
        assert record["same"], record


@pytest.mark.slow
def test_attention_has_an_engine_for_each_direction_mask_and_size(records):
    found = [record for record in records if "engine" in record]
    assert len(found) == len(CASES)
    assert not [record for record in found if record["engine"] is None]


@pytest.mark.slow
def test_the_gradient_of_attention_gets_the_engines_that_hold_no_scores(records):
    """A graph in which cuDNN does not know attention gets memory for the scores in float32, too, and faults on a device."""
    for record in records:
        if record.get("workspace") is None or not record["what"][0].startswith("backward"):
            continue
        name, _, batch, heads, queries, keys, width, *_ = record["what"]
        rows, changes = batch * heads * queries * (4 * width + 8), batch * heads * queries * keys * 2
        assert record["workspace"] <= 256 * 1024 + rows + (changes if name == "backward" else 0), record
