"""Functions of many kinds, and everything that ``variable.parent`` says and computes for each.

``python function_cases.py nnabla > nnabla_functions.json`` records what the package of this name answers.
"""

import importlib
import json
import sys
from typing import Any

import numpy as np


class Cases:
    """Makes the functions with the package `nn`."""

    def __init__(self, package: str) -> None:
        self.nn = importlib.import_module(package)
        self.functions = importlib.import_module(f"{package}.functions")
        self.function = importlib.import_module(f"{package}.function")
        self.rng = np.random.RandomState(313)

    def leaf(self, *shape: int, need_grad: bool = True) -> Any:
        """A variable with numbers from 0.5 to 1.5."""
        values = (self.rng.rand(*shape) + 0.5).astype(np.float32)
        return self.nn.Variable.from_numpy_array(values, need_grad=need_grad)

    def indices(self, *values: int) -> Any:
        """A variable of indices."""
        return self.nn.Variable.from_numpy_array(np.array(values), need_grad=False)

    def double(self, x: Any) -> Any:
        """A function in Python of `x`."""

        class Double(self.function.PythonFunction):
            @property
            def name(self) -> str:
                return "Double"

            @property
            def args(self) -> dict[str, int]:
                return {"factor": 2}

            def min_outputs(self) -> int:
                return 1

            def setup_impl(self, inputs: Any, outputs: Any) -> None:
                outputs[0].reset_shape(inputs[0].shape, True)

            def forward_impl(self, inputs: Any, outputs: Any) -> None:
                outputs[0].d = inputs[0].d * 2

            def backward_impl(self, inputs: Any, outputs: Any, propagate_down: Any, accum: Any) -> None:
                if propagate_down[0]:
                    inputs[0].g = outputs[0].g * 2 + (inputs[0].g if accum[0] else 0)

            def grad_depends_input_data(self, i: int, j: int) -> bool:
                return False

            def grad_depends_output_data(self, i: int, o: int) -> bool:
                return False

        return Double()(x)

    def all(self) -> dict[str, Any]:
        """One result of each function, by a name for the case."""
        F, leaf = self.functions, self.leaf
        x, image, statistics = leaf(2, 4), leaf(2, 3, 4, 4), [leaf(1, 3, 1, 1, need_grad=False) for _ in range(2)]
        scale = [leaf(1, 3, 1, 1) for _ in range(2)]
        frozen = [leaf(1, 3, 1, 1, need_grad=False) for _ in range(2)]
        labels = self.nn.Variable.from_numpy_array(np.array([[0], [3]]), need_grad=False)
        return {
            "affine": F.affine(x, leaf(4, 3), leaf(3)),
            "affine without bias": F.affine(x, leaf(4, 3)),
            "convolution": F.convolution(image, leaf(4, 3, 3, 3), leaf(4), pad=(1, 1)),
            "deconvolution": F.deconvolution(image, leaf(3, 4, 3, 3)),
            "batch_normalization": F.batch_normalization(image, *scale, *statistics),
            "batch_normalization without beta": F.batch_normalization(image, None, scale[1], *statistics),
            "batch_normalization, frozen": F.batch_normalization(image, *scale, *frozen, batch_stat=False),
            "layer_normalization": F.layer_normalization(x, leaf(1, 4), leaf(1, 4)),
            "relu": F.relu(x),
            "relu in place": F.relu(F.tanh(x), inplace=True),
            "prelu": F.prelu(image, leaf(3)),
            "elu": F.elu(x),
            "sigmoid": F.sigmoid(x),
            "tanh": F.tanh(x),
            "softmax": F.softmax(x),
            "softmax_cross_entropy": F.softmax_cross_entropy(x, labels),
            "reshape": F.reshape(x, (4, 2)),
            "reshape to new memory": F.reshape(x, (4, 2), inplace=False),
            "dropout": F.dropout(x, 0.5, seed=7),
            "embed": F.embed(self.indices(0, 2), leaf(5, 3)),
            "gather": F.gather(x, self.indices(0, 2), axis=1),
            "concatenate": F.concatenate(x, leaf(2, 2), axis=1),
            "split": F.split(x, axis=0)[0],
            "transpose": F.transpose(x, (1, 0)),
            "slice": x[1:],
            "broadcast": F.broadcast(leaf(2, 1), (2, 5)),
            "max_pooling": F.max_pooling(image, (2, 2)),
            "average_pooling": F.average_pooling(image, (2, 2)),
            "sum": F.sum(x, axis=1),
            "mean": F.mean(x),
            "add2 of one variable twice": F.add2(x, x),
            "mul2": F.mul2(x, leaf(2, 4)),
            "div2": F.div2(x, leaf(2, 4)),
            "where": F.where(F.greater_scalar(leaf(2, 4, need_grad=False), 1.0), x, leaf(2, 4)),
            "add_scalar": F.add_scalar(x, 1.5),
            "pow_scalar": F.pow_scalar(x, 2.0),
            "exp": F.exp(x),
            "batch_matmul": F.batch_matmul(leaf(2, 3, 4), leaf(2, 4, 5)),
            "greater_scalar": F.greater_scalar(leaf(2, 4, need_grad=False), 1.0),
            "constant": F.constant(2.0, (2, 3)),
            "add_n": F.add_n(x, leaf(2, 4), leaf(2, 4)),
            "PythonFunction": self.double(x),
        }


def described(function: Any) -> dict[str, Any]:
    """Return the statements of `function` about itself."""
    inputs, outputs = range(len(function.inputs)), range(len(function.outputs))
    return {
        "name": function.info.type_name,
        "args": function.args,
        "inputs": [list(variable.shape) for variable in function.inputs],
        "outputs": [list(variable.shape) for variable in function.outputs],
        "rank": function.rank,
        "need_grad": function.need_grad,
        "min_outputs": function.min_outputs(),
        "reads_inputs": [[function.grad_depends_input_data(i, j) for j in inputs] for i in inputs],
        "reads_outputs": [[function.grad_depends_output_data(i, o) for o in outputs] for i in inputs],
        "in_place": [function.inplace_data(i) for i in inputs],
        "draws": [function.need_setup_recompute(o) for o in outputs],
    }


def computed(function: Any) -> dict[str, Any]:
    """Return the results of its methods on its own inputs, with the gradients that they find before."""
    inputs, outputs = function.inputs, [type(v)(v.shape) for v in function.outputs]
    function.setup(inputs, outputs)
    function.forward(inputs, outputs)
    values = [summary(variable.d) for variable in outputs]
    for variable in outputs:
        variable.g = np.linspace(0.5, 1.5, variable.size).reshape(variable.shape)
    found = {}
    for what, before, accum in (("added", 3, None), ("overwritten", float("nan"), [False] * len(inputs))):
        for variable in inputs:
            variable.g = before
        function.backward(inputs, outputs, *[accum] * (accum is not None))
        found[what] = [summary(variable.g) if variable.need_grad else None for variable in inputs]
    return {"values": values, **found}


def summary(array: Any) -> list[float]:
    """Three numbers that tell arrays apart."""
    flat = np.asarray(array, np.float64).ravel()
    weights = np.linspace(1, 2, flat.size)
    return [float(f"{number:.6g}") for number in (flat.sum(), (flat * weights).sum(), (flat**2 * weights).sum())]


def record(package: str) -> dict[str, Any]:
    """Everything about every function of `package`."""
    cases = Cases(package)
    found: dict[str, Any] = {"version": cases.nn.__version__, "functions": {}}
    for name, result in cases.all().items():
        function = result.parent
        says = described(function)
        if not any(says["draws"]):
            result.forward()  # what it reads
            says |= computed(function)
        found["functions"][name] = says
    return found


if __name__ == "__main__":
    recorded = record(sys.argv[1])
    lines = [f"{json.dumps(name)}: {json.dumps(says)}" for name, says in recorded["functions"].items()]
    head = f'{{"version": {json.dumps(recorded["version"])}, "functions": {{\n'
    sys.stdout.write(head + ",\n".join(lines) + "\n}}\n")
