"""Samples of functions as models, and their results here and in onnxruntime."""

from dataclasses import dataclass

import numpy as np
import onnx

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx import export_model
from nn_ext_onnx.exporting.verification import largest_difference, run_model
from tools.nnabla.nnabla_samples import SAMPLES, Draw


@dataclass
class Exported:
    """A model of one call: what goes in, what nn_core computes."""

    model: onnx.ModelProto
    arrays: dict
    expected: list
    is_random: bool

    def differences(self, found):
        """The differences of other results, by output."""
        wrong = []
        for number, (mine, other) in enumerate(zip(self.expected, found, strict=True)):
            if mine.shape != other.shape:
                wrong.append(f"output {number} has shape {other.shape} in place of {mine.shape}")
            elif not self.is_random and (difference := largest_difference(other, mine)) > 1e-4:
                wrong.append(f"output {number} differs by {difference:.2e}")
        return wrong


def setting(value):
    if isinstance(value, str) and value.startswith("np."):
        return getattr(np, value.removeprefix("np."))
    return tuple(value) if isinstance(value, list) else value


def sample_model(api, repetition, opset):
    """The model of a random call of a function."""
    sample = SAMPLES[api](Draw([0, repetition, *api.encode()]))
    arrays = {f"x{n}": np.asarray(array) for n, array in enumerate(sample.inputs) if array is not None}
    arrays.update(sample.named)
    variables = {name: nn.Variable.from_numpy_array(array.copy()) for name, array in arrays.items()}
    inputs = [None if array is None else variables[f"x{n}"] for n, array in enumerate(sample.inputs)]
    named = {name: variables[name] for name in sample.named}
    with nn.auto_forward(sample.dynamic):
        outputs = getattr(F, api)(*inputs, **named, **{key: setting(value) for key, value in sample.settings.items()})
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    model = export_model(outputs, variables, opset=opset)
    for output in outputs:
        output.persistent = True
    (outputs[0] if len(outputs) == 1 else F.sink(*outputs)).forward()
    return Exported(model, typed(model, arrays), [np.asarray(output.d) for output in outputs], sample.random)


def typed(model, arrays):
    """Arrays in the dtypes that the inputs of a model have."""
    dtypes = {
        entry.name: onnx.helper.tensor_dtype_to_np_dtype(entry.type.tensor_type.elem_type) for entry in model.graph.input
    }
    return {name: arrays[name].astype(dtype) for name, dtype in dtypes.items()}


def compare(api, repetition, opset):
    """Return the differences of onnxruntime's results."""
    exported = sample_model(api, repetition, opset)
    return exported.differences(run_model(exported.model, exported.arrays))
