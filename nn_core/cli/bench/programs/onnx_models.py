"""The workloads that infer as ONNX models, run by ONNX Runtime."""

from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from nn_core.cli.bench.workloads import DEMO_CLASSES, DEMO_MAPS, Programs, Sizes, Step


def programs(package: str, sizes: Sizes) -> Programs:
    """No training: ONNX Runtime only infers."""

    def matmul() -> Step:
        a, b = sizes.matrices()
        graph = _Graph()
        graph.add("MatMul", graph.weight(b))
        return graph.step(a, sizes.threads)

    def convolution() -> Step:
        x, w = sizes.convolution()
        graph = _Graph()
        graph.add("Conv", graph.weight(w), pads=[1] * 4)
        return graph.step(x, sizes.threads)

    def inference() -> Step:
        rng, graph, inputs = np.random.default_rng(0), _Graph(), 1
        for i, maps in enumerate(DEMO_MAPS):
            w = rng.standard_normal((maps, inputs, 3, 3)) / np.sqrt(9 * inputs)
            ones, zeros = np.ones(maps), np.zeros(maps)
            graph.add("Conv", graph.weight(w), pads=[1] * 4)
            graph.add("BatchNormalization", *map(graph.weight, (ones, zeros, zeros, ones)))
            graph.add("Relu")
            if i > 0:
                graph.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
            inputs = maps
        graph.add("Flatten")
        w = rng.standard_normal((inputs * 4, DEMO_CLASSES)) / np.sqrt(inputs * 4)
        graph.add("Gemm", graph.weight(w), graph.weight(np.zeros(DEMO_CLASSES)))
        graph.add("Softmax")
        return graph.step(sizes.digits()[0], sizes.threads)

    return {"matmul": matmul, "convolution": convolution, "inference": inference}


class _Graph:
    """A chain of nodes, each on the result of the one before."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._weights: list[Any] = []

    def add(self, kind: str, *inputs: str, **attributes: Any) -> None:
        """Append a node, whose other inputs are weights."""
        last = f"h{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, [last, *inputs], [f"h{len(self._nodes) + 1}"], **attributes))

    def weight(self, values: Any) -> str:
        """Return the name of a new constant."""
        name = f"w{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(np.asarray(values, np.float32), name))
        return name

    def step(self, x: Any, threads: int) -> Step:
        """Run the model on x."""
        source = helper.make_tensor_value_info("h0", TensorProto.FLOAT, x.shape)
        result = helper.make_tensor_value_info(f"h{len(self._nodes)}", TensorProto.FLOAT, None)
        graph = helper.make_graph(self._nodes, "bench", [source], [result], self._weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 9
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, {"h0": x})
