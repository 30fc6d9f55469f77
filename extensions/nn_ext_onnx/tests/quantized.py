"""Small networks, quantized by onnxruntime in all of its ways, and its results without optimization."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

make = helper.make_node


def model_of(nodes, inputs, outputs, constants, opset=13):
    """Return a model from nodes; inputs and outputs by their types and shapes, float where there is none."""

    def described(entries):
        typed = [
            (name, *(entry if isinstance(entry, tuple) else (TensorProto.FLOAT, entry))) for name, entry in entries.items()
        ]
        return [helper.make_tensor_value_info(*entry) for entry in typed]

    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", described(inputs), described(outputs), tensors)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8 if opset < 20 else 10)


def _drawn(rng, *shape):
    return (rng.normal(size=shape) / np.sqrt(max(np.prod(shape[1:]), 1))).astype(np.float32)


def dense(rng, opset):
    nodes = [
        make("Gemm", ["x", "w1", "b1"], ["h"], transB=1),
        make("Relu", ["h"], ["r"]),
        make("Gemm", ["r", "w2", "b2"], ["y"]),
    ]
    constants = {"w1": _drawn(rng, 24, 16), "b1": _drawn(rng, 24), "w2": _drawn(rng, 24, 5), "b2": _drawn(rng, 5)}
    return model_of(nodes, {"x": [4, 16]}, {"y": [4, 5]}, constants, opset)


def convolutional(rng, opset):
    nodes = [
        make("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        make("Relu", ["c1"], ["r1"]),
        make("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        make("Conv", ["p1", "w2", "b2"], ["c2"], strides=[2, 2], pads=[0, 0, 1, 1]),
        make("LeakyRelu", ["c2"], ["l"], alpha=0.1),
        make("GlobalAveragePool", ["l"], ["g"]),
        make("Flatten", ["g"], ["f"]),
        make("Gemm", ["f", "w3", "b3"], ["y"], transB=1),
    ]
    constants = {"w1": _drawn(rng, 8, 3, 3, 3), "b1": _drawn(rng, 8), "w2": _drawn(rng, 12, 8, 3, 3), "b2": _drawn(rng, 12)}
    constants |= {"w3": _drawn(rng, 7, 12), "b3": _drawn(rng, 7)}
    return model_of(nodes, {"x": [2, 3, 12, 12]}, {"y": [2, 7]}, constants, opset)


def pooled(rng, opset):
    nodes = [
        make("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        make("AveragePool", ["c1"], ["p"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        make("Conv", ["p", "w2", "b2"], ["y"]),
    ]
    constants = {"w1": _drawn(rng, 8, 3, 3, 3), "b1": _drawn(rng, 8), "w2": _drawn(rng, 6, 8, 3, 3), "b2": _drawn(rng, 6)}
    return model_of(nodes, {"x": [2, 3, 12, 12]}, {"y": [2, 6, 4, 4]}, constants, opset)


def residual(rng, opset):
    nodes = [
        make("Conv", ["x", "w1"], ["c1"], pads=[1, 1, 1, 1], group=4),
        make("Sigmoid", ["c1"], ["s"]),
        make("Mul", ["c1", "s"], ["m"]),
        make("Add", ["m", "x"], ["a"]),
        make("Concat", ["a", "x"], ["c"], axis=1),
        make("Conv", ["c", "w2", "b2"], ["d"]),
        make("AveragePool", ["d"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    constants = {"w1": _drawn(rng, 4, 1, 3, 3), "w2": _drawn(rng, 6, 8, 1, 1), "b2": _drawn(rng, 6)}
    return model_of(nodes, {"x": [2, 4, 8, 8]}, {"y": [2, 6, 4, 4]}, constants, opset)


def attention(rng, opset):
    nodes = [make("MatMul", ["x", name], [name[1]]) for name in ("wq", "wk", "wv")]
    nodes += [
        make("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        make("MatMul", ["q", "kt"], ["s"]),
        make("Softmax", ["s"], ["p"], axis=-1),
        make("MatMul", ["p", "v"], ["a"]),
        make("MatMul", ["a", "w"], ["o"]),
        make("Add", ["o", "b"], ["y"]),
    ]
    constants = {name: _drawn(rng, 8, 8) for name in ("wq", "wk", "wv", "w")} | {"b": _drawn(rng, 8)}
    return model_of(nodes, {"x": [2, 5, 8]}, {"y": [2, 5, 8]}, constants, opset)


def recurrent(rng, opset):
    nodes = [
        make("LSTM", ["x", "w", "r", "b"], ["o", "h"], hidden_size=6),
        make("Reshape", ["h", "shape"], ["s"]),
        make("MatMul", ["s", "w2"], ["y"]),
    ]
    constants = {"w": _drawn(rng, 1, 24, 4), "r": _drawn(rng, 1, 24, 6), "b": _drawn(rng, 1, 48), "w2": _drawn(rng, 6, 3)}
    constants["shape"] = np.array([2, 6])
    return model_of(nodes, {"x": [5, 2, 4]}, {"y": [2, 3]}, constants, opset)


def enlarging(rng, opset):
    nodes = [
        make("Conv", ["x", "w", "b"], ["c"]),
        make("Clip", ["c", "low", "high"], ["l"]),
        make("Pad", ["l", "pads"], ["p"]),
        make("Resize", ["p", "", "scales"], ["r"], mode="nearest"),
        make("Split", ["r"], ["s", "t"], axis=1, **({"num_outputs": 2} if opset >= 18 else {})),
        make("Sub", ["s", "t"], ["d"]),
        make("Div", ["d", "two"], ["y"]),
    ]
    constants = {"w": _drawn(rng, 4, 3, 3, 3), "b": _drawn(rng, 4), "low": np.float32(0), "high": np.float32(2)}
    constants |= {
        "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "scales": np.array([1, 1, 2, 2], np.float32),
        "two": np.float32(2),
    }
    return model_of(nodes, {"x": [1, 3, 6, 6]}, {"y": [1, 2, 12, 12]}, constants, opset)


NETS = {net.__name__: net for net in (dense, convolutional, pooled, residual, attention, recurrent, enlarging)}


class Samples(CalibrationDataReader):
    """Random inputs of a model."""

    def __init__(self, model, count=8):
        shapes = {entry.name: [axis.dim_value for axis in entry.type.tensor_type.shape.dim] for entry in model.graph.input}
        rng = np.random.default_rng(1)
        self.all = [{name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()} for _ in range(count)]
        self.rest = iter(self.all)

    def get_next(self):
        return next(self.rest, None)


def _dynamic(weights, per_channel=False):
    # onnxruntime's products of uint8 and int8 saturate on processors without instructions for them: seven bits do not
    return lambda model, path: quantize_dynamic(model, path, weight_type=weights, per_channel=per_channel, reduce_range=True)


def _static(quant_format, activations, weights, per_channel=False):
    settings = {
        "quant_format": quant_format,
        "activation_type": activations,
        "weight_type": weights,
        "per_channel": per_channel,
    }
    reduce_range = weights == QuantType.QInt8
    return lambda model, path: quantize_static(model, path, Samples(model), reduce_range=reduce_range, **settings)


WAYS = {
    "dynamic_uint8": _dynamic(QuantType.QUInt8),
    "dynamic_int8": _dynamic(QuantType.QInt8),
    "dynamic_channels": _dynamic(QuantType.QInt8, per_channel=True),
    "qdq_int8": _static(QuantFormat.QDQ, QuantType.QInt8, QuantType.QInt8),
    "qdq_uint8": _static(QuantFormat.QDQ, QuantType.QUInt8, QuantType.QUInt8),
    "qdq_channels": _static(QuantFormat.QDQ, QuantType.QUInt8, QuantType.QInt8, per_channel=True),
    "qdq_uint16": _static(QuantFormat.QDQ, QuantType.QUInt16, QuantType.QInt8),
    "qdq_int16": _static(QuantFormat.QDQ, QuantType.QInt16, QuantType.QInt16),
    "qoperator_uint8": _static(QuantFormat.QOperator, QuantType.QUInt8, QuantType.QUInt8),
    "qoperator_mixed": _static(QuantFormat.QOperator, QuantType.QUInt8, QuantType.QInt8),
    "qoperator_int8": _static(QuantFormat.QOperator, QuantType.QInt8, QuantType.QInt8),
    "qoperator_channels": _static(QuantFormat.QOperator, QuantType.QInt8, QuantType.QInt8, per_channel=True),
}


def quantized(net, way, opset, path):
    """Return the quantized model of a network, and inputs for it."""
    model = NETS[net](np.random.default_rng(0), opset)
    WAYS[way](model, path)
    return onnx.load(path), Samples(model, 3).all


def expected(model, feed):
    """Return the results of onnxruntime without optimization."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def step_of(model):
    """Return the distance of two levels of the first output, None where it is not quantized."""
    numbers = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    last = [node for node in model.graph.node if model.graph.output[0].name in node.output]
    return float(numbers[last[0].input[1]].max()) if last[0].op_type == "DequantizeLinear" else None


# By the definitions of ONNX: a number between two levels goes to either, on processors and in versions of onnxruntime -----


def dynamic_levels(x):
    """Return the levels, the scale and the zero point of DynamicQuantizeLinear; x holds float32, whose steps are exact."""
    low, high = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
    scale = (high - low) / np.float32(255) or np.float32(1)
    zero_point = np.uint8(np.rint(-low / scale))
    return np.clip(np.rint(x / scale) + np.float32(zero_point), 0, 255).astype(np.uint8), np.asarray(scale), zero_point


def _product(x, weight, scale):
    levels, step, zero_point = dynamic_levels(x)
    return (levels.astype(float) - zero_point) @ weight * (float(step) * scale)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_steps(x, given, w, r, bias, h, c, peepholes, scales, lengths):
    """Return the outputs of one direction of DynamicQuantizeLSTM in float64; each step starts from the output given before it.

    That keeps a difference of rounding, which can move a state to the next level, from growing over the steps.
    """
    n_steps, n_batch, hidden = given.shape
    h, c = (np.zeros((n_batch, hidden)) if state is None else state for state in (h, c))
    h, p = h.astype(np.float32), np.zeros(3 * hidden) if peepholes is None else peepholes
    from_inputs, results = _product(x, w, scales[0]) + bias[: 4 * hidden], []
    for t in range(n_steps):
        total = from_inputs[t] + _product(h, r, scales[1]) + bias[4 * hidden :]
        i, o, f, g = np.split(total, 4, axis=1)
        new = _sigmoid(f + p[2 * hidden :] * c) * c + _sigmoid(i + p[:hidden] * c) * np.tanh(g)
        y = _sigmoid(o + p[hidden : 2 * hidden] * new) * np.tanh(new)
        valid = (np.full(n_batch, n_steps) if lengths is None else lengths)[:, None] > t
        c, h = np.where(valid, new, c), np.where(valid, given[t], h)
        results.append(np.where(valid, y, 0))
    return np.stack(results)
