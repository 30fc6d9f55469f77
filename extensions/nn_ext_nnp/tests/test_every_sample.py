"""The samples of the conformance kit in files of NNabla: read back with the same results, or refused by nn_core."""

import numpy as np
import pytest

import nn_core as nn
from nn_core.engine.graph.apply import apply
from nn_core.ext import NNCoreError, function_spec
from nn_core.testing.samples.registry import numbers_of, samples_of
from nn_core.variable import forward_all
from nn_ext_nnp.document import Document
from nn_ext_nnp.network import build, plan_network
from nn_ext_nnp.nnb.c_source import c_source
from nn_ext_nnp.nnb.options import NnbOptions
from nn_ext_nnp.nnb.writing import nnb_bytes
from nn_ext_nnp.saving import create_proto
from nn_ext_nnp.schema import functions
from tests.slow import some_slow

NAMES = sorted(name for name in functions() if function_spec(name) is not None)
PARTS = 8
#: Functions of integers, which inputs of files do not have, and of lengths that must fit while the graph is made.
OF_VALUES = {"BitShift", "PadPackedSequence"}


def built(spec, sample):
    """Return the inputs by name, and the results."""
    given = [None if array is None else nn.Variable.from_numpy_array(in_single(array)) for array in numbers_of(spec, sample)]
    missing = [] if spec.variadic else [None] * (len(spec.inputs) - len(given))
    made = apply(spec, (*given, *missing), sample.args)
    results = [result for result in (made if isinstance(made, (tuple, list)) else [made]) if result is not None]
    inputs = {f"x{number}": variable for number, variable in enumerate(given) if variable is not None}
    return inputs, {f"y{number}": result for number, result in enumerate(results)}


def in_single(array):
    return np.asarray(array, np.float32) if np.asarray(array).dtype.kind == "f" else np.asarray(array)


def proto_of(inputs, outputs):
    network = {"name": "net", "batch_size": 1, "outputs": outputs, "names": inputs}
    executor = {"name": "run", "network": "net", "data": list(inputs), "output": list(outputs)}
    return create_proto({"networks": [network], "executors": [executor]}, variable_batch_size=False)


@pytest.mark.parametrize("part", some_slow(range(PARTS), 4))
def test_every_sample_is_refused_or_read_back(part):
    wrong, n_equal = [], 0
    for spec in map(function_spec, NAMES[part::PARTS]):
        for sample in samples_of(spec):
            inputs, outputs = built(spec, sample)
            try:
                proto = proto_of(inputs, outputs)
            except NNCoreError:
                continue
            if spec.has("seeded") or spec.has("dynamic_shape") or spec.name in OF_VALUES:
                continue
            read = build(plan_network(proto.network[0], "file"), None).variables
            for name, variable in inputs.items():
                read[name].d = variable.d
            forward_all(list(outputs.values()))
            forward_all([read[name] for name in outputs])
            equal = [np.array_equal(read[name].d, result.d, equal_nan=True) for name, result in outputs.items()]
            wrong += [] if all(equal) else [(spec.name, sample.name)]
            n_equal += all(equal)
    assert not wrong
    assert n_equal > 60


@pytest.mark.parametrize("part", some_slow(range(PARTS), 4))
@pytest.mark.parametrize("write", [nnb_bytes, c_source])
def test_every_sample_is_refused_or_written_for_the_c_runtime(write, part):
    n_written = 0
    for spec in map(function_spec, NAMES[part::PARTS]):
        for sample in samples_of(spec):
            try:
                n_written += bool(write(Document(proto_of(*built(spec, sample)), name="file"), NnbOptions()))
            except NNCoreError:
                continue
    assert n_written > 20
