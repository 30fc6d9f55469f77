"""The ResNet-18 of the workloads as an ONNX model, for the runtimes that only infer."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.workloads.resnet18_train import CLASSES, STAGES


class _Graph:
    """Collects nodes and random weights."""

    def __init__(self):
        self.nodes, self.weights = [], []
        self._rng = np.random.default_rng(0)

    def add(self, kind, *inputs, **attributes):
        """Return the name of the output of a new node."""
        output = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def weight(self, array):
        """Return the name of a new constant."""
        name = f"weight{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def convolution(self, x, inputs, maps, kernel, stride):
        """Return a convolution without bias and a batch normalization with its running statistics."""
        w = self._rng.standard_normal((maps, inputs, kernel, kernel)) * np.sqrt(2 / (inputs * kernel**2))
        pad = kernel // 2
        h = self.add("Conv", x, self.weight(w), strides=[stride] * 2, pads=[pad] * 4, kernel_shape=[kernel] * 2)
        ones, zeros = np.ones(maps), np.zeros(maps)
        return self.add("BatchNormalization", h, *(self.weight(values) for values in (ones, zeros, zeros, ones)))


def resnet18(size):
    """Return the model for one image of 3 x `size` x `size`, in bytes."""
    graph = _Graph()
    h = graph.add("Relu", graph.convolution("x", 3, STAGES[0], 7, 2))
    h = graph.add("MaxPool", h, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inputs = STAGES[0]
    for i, maps in enumerate(STAGES):
        for j in range(2):
            stride = 2 if i > 0 and j == 0 else 1
            shortcut = h if inputs == maps else graph.convolution(h, inputs, maps, 1, stride)
            h = graph.add("Relu", graph.convolution(h, inputs, maps, 3, stride))
            h = graph.add("Relu", graph.add("Add", graph.convolution(h, maps, maps, 3, 1), shortcut))
            inputs = maps
    h = graph.add("Flatten", graph.add("GlobalAveragePool", h))
    weight = np.random.default_rng(1).standard_normal((inputs, CLASSES)) / np.sqrt(inputs)
    y = graph.add("Gemm", h, graph.weight(weight), graph.weight(np.zeros(CLASSES)))
    ends = [("x", [1, 3, size, size]), (y, [1, CLASSES])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ends)
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(helper.make_graph(graph.nodes, "resnet18", [x], [y], graph.weights), opset_imports=opset)
    model.ir_version = 9
    onnx.checker.check_model(model)
    return model.SerializeToString()
