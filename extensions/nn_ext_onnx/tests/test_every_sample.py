"""The samples of the conformance kit as models: refused by nn_core, or with its results in onnxruntime."""

import numpy as np
import pytest

import nn_core as nn
from nn_core.engine.graph.apply import apply
from nn_core.ext import NNCoreError, function_spec
from nn_core.testing.samples.registry import numbers_of, samples_of
from nn_core.variable import forward_all
from nn_ext_onnx import export_model
from nn_ext_onnx.exporting.topics import converters
from tests.slow import some_slow

onnxruntime = pytest.importorskip("onnxruntime", reason="the judge of exported models")

CONVERTED = sorted(converters())
PARTS = 16
#: Samples that onnxruntime refuses, or computes otherwise than the definitions: zero points by row, filters of integers,
#: int16, a batch of nothing, and nearest places of a part of an image.
BESIDE = {
    ("ConvInteger", "filters"),
    ("GroupNormalization", "empty"),
    ("MatMulInteger", "rows_and_columns"),
    ("MatMulInteger", "zero_points"),
    ("ONNXResize", "nearest_tf_crop_and_resize"),
    ("QuantizeInteger", "int16"),
    ("QuantizeInteger", "uint16"),
}
#: Of the largest number, as sums in another order differ.
TOLERANCE = 2e-3


def exported(spec, sample):
    """Return the inputs and results of a sample, and its model; None where nn_core refuses to write it."""
    given = [None if array is None else nn.Variable.from_numpy_array(in_single(array)) for array in numbers_of(spec, sample)]
    missing = [] if spec.variadic else [None] * (len(spec.inputs) - len(given))
    made = apply(spec, (*given, *missing), sample.args)
    results = [result for result in (made if isinstance(made, (tuple, list)) else [made]) if result is not None]
    inputs = {f"x{number}": variable for number, variable in enumerate(given) if variable is not None}
    try:
        return inputs, results, export_model({f"y{k}": result for k, result in enumerate(results)}, inputs, opset=21)
    except NNCoreError:
        return inputs, results, None


def in_single(array):
    return np.asarray(array, np.float32) if np.asarray(array).dtype.kind == "f" else np.asarray(array)


def differences(inputs, results, model):
    """Yield what onnxruntime computes otherwise."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    types = {"float": "float32", "double": "float64", "float16": "float16"}
    kinds = {entry.name: entry.type.removeprefix("tensor(").removesuffix(")") for entry in session.get_inputs()}
    feed = {name: np.asarray(inputs[name].d).astype(types.get(kind, kind)) for name, kind in kinds.items()}
    found = session.run([f"y{number}" for number in range(len(results))], feed)
    forward_all(results)
    for number, (one, result) in enumerate(zip(found, results, strict=True)):
        other = np.asarray(result.d, np.float64)
        scale = max(1.0, float(np.max(np.abs(other), initial=0.0, where=np.isfinite(other))))
        if one.shape != other.shape or not np.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True):
            yield f"output {number}: {one} in place of {other}"


@pytest.mark.parametrize("part", some_slow(range(PARTS), 4))
def test_every_sample_is_refused_or_computes_the_same(part):
    wrong, n_equal = {}, 0
    for spec in map(function_spec, CONVERTED[part::PARTS]):
        for sample in samples_of(spec):
            inputs, results, model = exported(spec, sample)
            if model is None or spec.has("seeded") or spec.name == "Dropout" or (spec.name, sample.name) in BESIDE:
                continue
            found = list(differences(inputs, results, model))
            wrong |= {(spec.name, sample.name): found} if found else {}
            n_equal += not found
    assert not wrong
    assert n_equal > 40
