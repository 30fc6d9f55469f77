"""Recurrent networks over sequences: products with the weights by cuBLAS, and a kernel for the rest of each step.

The inputs of all steps are multiplied at once; what depends on the state runs step by step. In training the gates and the
outputs of all layers go to the output `trace`, from which the backward pass is computed; see ``kernels/cuda/recurrent.cu``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nn_core.ext import Array, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.code import Code, from_file, part
from nn_ext_cuda.codegen.compose import refuse_sizes
from nn_ext_cuda.codegen.describe import backward_names, forward_names
from nn_ext_cuda.codegen.dtypes import C_TYPES, ITEM_BYTES, real, real_dtype, real_type, refuse_dtypes
from nn_ext_cuda.gemm.blas import Matrix
from nn_ext_cuda.gemm.precision import is_tf32_allowed
from nn_ext_cuda.gemm.product import Product
from nn_ext_cuda.kernels.random import SeededProgram
from nn_ext_cuda.launch.program import Argument, Chain, ChainStep, Launch, Program, flat
from nn_ext_cuda.memory.workspace import shared

_NULL: Final = np.uint64(0)


@dataclass(frozen=True, slots=True)
class _Cell:
    """A kind of network: matrices of weights, numbers that a step keeps besides its output, parts of the bias."""

    name: str
    gates: int
    saved: int
    bias: int


_CELLS: Final[Mapping[str, _Cell]] = {
    "RNN": _Cell("rnn", 1, 0, 1),
    "LSTM": _Cell("lstm", 4, 5, 4),
    "GRU": _Cell("gru", 3, 4, 4),
}


class Recurrent:
    """A recurrent network; which one, the function of the call says."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, weights of another one, and arrays that are very large or empty."""
        for desc in call.inputs:
            if desc is not None and desc.dtype != call.dtype:
                return Refusal(f"takes weights of {call.dtype}, got {desc.dtype}")
            if desc is not None and desc.size == 0:
                return Refusal("takes arrays of at least one element")
        return refuse_sizes(call.inputs) or refuse_sizes(call.outputs) or refuse_dtypes(call)

    def private_shapes(self, call: Call) -> Sequence[Shape]:
        """Return the shape of `trace`."""
        return [(_Network(call, ()).n_kept if call.args["training"] else 0,)]

    def forward(self, call: Call) -> Runner:
        """All steps, in order."""
        return _Forward(call).runner()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """All steps from the last to the first; None where nothing was kept, so that the rule runs the network again."""
        return _Backward(call, wanted).runner() if call.args["training"] else None


class _Network:
    """Sizes and places of a call, and the launches that are collected for it.

    Args:
        call: The call.
        names: Names of its arrays; memory comes after them.
    """

    def __init__(self, call: Call, names: Sequence[str]) -> None:
        x, h = call.inputs[:2]
        assert x is not None and h is not None
        self.call, self.cell = call, _CELLS[call.spec.name]
        self.steps, self.batch, self.features = x.shape
        self.layers, self.directions, _, self.hidden = h.shape
        self.places = {name: place for place, name in enumerate(names)}
        self.parts: list[Runner] = []
        self.sizes: list[int] = []
        self._launches: list[Launch] = []  # since the last product

    @property
    def n(self) -> int:
        """Elements of a state."""
        return self.batch * self.hidden

    @property
    def width(self) -> int:
        """Outputs of a layer."""
        return self.directions * self.hidden

    @property
    def gates(self) -> int:
        """Results of the products of a step of a sample."""
        return self.cell.gates * self.hidden

    @property
    def outputs_at(self) -> int:
        """The places where outputs begin in the memory of the network, in elements of the dtype of the call.

        Numbers of R come before them, and what these may lose where the memory is off their alignment.
        """
        items = ITEM_BYTES[real_dtype(self.call.dtype)] // ITEM_BYTES[self.call.dtype]
        return self.layers * self.directions * self.steps * self.cell.saved * self.n * items + items - 1

    @property
    def n_kept(self) -> int:
        """Elements of the memory of the network."""
        return self.outputs_at + self.layers * self.steps * self.batch * self.width

    def memory(self, n: int, dtype: str) -> int:
        """Return new memory for `n` elements, which all calls share; its place. Launches come after all memory."""
        self.sizes.append(n * ITEM_BYTES[dtype])
        return len(self.places) + len(self.sizes) - 1

    def place(self, name: str) -> Argument:
        """Return the place of an array, or null where the call has none of that name."""
        return self.places.get(name, _NULL)

    def saved_at(self, layer: int, direction: int, step: int) -> int:
        """Return the place where what a step keeps begins, in numbers of R."""
        return ((layer * self.directions + direction) * self.steps + step) * self.cell.saved * self.n

    def output_at(self, layer: int, direction: int, step: int) -> int:
        """Return the place where the output of a step begins."""
        return self.outputs_at + (layer * self.steps + step) * self.batch * self.width + direction * self.hidden

    def state_at(self, layer: int, direction: int) -> int:
        """Return the place where the first or last state of a layer begins."""
        return (layer * self.directions + direction) * self.n

    def n_inputs(self, layer: int) -> int:
        """Return inputs of a layer."""
        return self.width if layer else self.features

    def weight(self, layer: int, direction: int, prefix: str = "") -> tuple[int, int, int]:
        """Return the place of the matrix of a layer, where it begins, and the length of its rows."""
        lead = self.n_inputs(layer) + self.hidden
        number = (max(layer - 1, 0) * self.directions + direction) * self.gates
        return self.places[f"{prefix}weight{'' if layer else '_l0'}"], number * lead, lead

    def order(self, direction: int) -> Sequence[int]:
        """Return the steps of a direction."""
        return range(self.steps) if direction == 0 else range(self.steps - 1, -1, -1)

    def multiply(self, a: Matrix, b: Matrix, c: Matrix, sizes: tuple[int, int, int], *, accumulate: bool = False) -> None:
        """Add a product."""
        self._end_program()
        tf32 = is_tf32_allowed()
        self.parts.append(Product(a, b, c, sizes, self.call.dtype, tf32=tf32, accumulate=accumulate))

    def launch(self, function: str, n: int, arguments: Sequence[Argument]) -> None:
        """Add a launch with a thread for each of `n` elements."""
        self._launches.append(flat(self.code(function), n, [np.int64(n), *arguments]))

    def launch_blocks(self, function: str, grid: int, block: tuple[int, int], arguments: Sequence[Argument]) -> None:
        """Add a launch of blocks."""
        self._launches.append(Launch(self.code(function), (grid,), block, tuple(arguments)))

    def code(self, function: str) -> Code:
        """Return a function of recurrent.cu for the network."""
        defines = {self.call.spec.name: 1, "GATES": self.cell.gates}
        defines["RELU"] = int(self.call.args.get("nonlinearity") == "relu")
        header = "".join(f"#define {name} {value}\n" for name, value in defines.items())
        header += f"typedef {C_TYPES[self.call.dtype]} T;\n"
        return Code(function, header + part("recurrent.cu"), real_type(self.call.dtype))

    def ended(self) -> Chain:
        """All parts."""
        self._end_program()
        return Chain(self.parts)

    def _end_program(self) -> None:
        if self._launches:
            self.parts.append(Program(self._launches, len(self.places) + len(self.sizes)))
            self._launches = []


class _Forward:
    """The forward pass.

    Args:
        call: The call.
    """

    def __init__(self, call: Call) -> None:
        self._net = net = _Network(call, forward_names(call))
        dtype, rows = call.dtype, net.steps * net.batch
        self._products, self._recurrent = net.memory(rows * net.gates, dtype), net.memory(net.batch * net.gates, dtype)
        self._masked = net.memory(rows * net.width if self._drops else 0, dtype)
        training = bool(call.args["training"])
        self._kept = net.places["trace"] if training else net.memory(net.n_kept, dtype)

    @property
    def _drops(self) -> bool:
        """Whether there is dropout between layers."""
        return len(self._net.call.outputs[-1].shape) > 1

    def runner(self) -> Runner:
        """Return the runner of the whole pass."""
        net = self._net
        for layer in range(net.layers):
            for direction in range(net.directions):
                self._run(layer, direction)
            if self._drops and layer < net.layers - 1:
                n = net.steps * net.batch * net.width
                starts = map(np.int64, (net.output_at(layer, 0, 0), layer * n))
                net.launch("masked", n, [*starts, self._kept, net.places["mask"], self._masked])
        return NetworkRunner(net.ended(), len(net.places), net.sizes, self._mask())

    def _mask(self) -> tuple[SeededProgram, int] | None:
        """Return the launch that draws the factors of the dropout, and the place of these."""
        net = self._net
        if not self._drops:
            return None
        call, chance = net.call, net.call.args["dropout"]
        assert isinstance(chance, float)
        n = call.outputs[-1].size
        numbers = [np.uint32(math.ceil(chance * 2**24)), real(call.dtype, 1 / (1 - chance))]
        code = from_file("random.cu", "dropout_mask", real_type(call.dtype), before=("philox.cuh",), T=C_TYPES[call.dtype])
        return SeededProgram([flat(code, -(-n // 4), [np.int64(n), 1, 0, *numbers])], 2), net.places["mask"]

    def _run(self, layer: int, direction: int) -> None:
        """One layer in one direction."""
        net = self._net
        n_inputs, rows = net.n_inputs(layer), net.steps * net.batch
        place, start, lead = net.weight(layer, direction)
        of_input = Matrix(place, lead, start=start, transposed=True)
        of_state = Matrix(place, lead, start=start + n_inputs, transposed=True)
        products = Matrix(self._products, net.gates)
        net.multiply(self._input(layer), of_input, products, (rows, net.gates, n_inputs))
        before = -1
        for step in net.order(direction):
            old = Matrix(net.places["h"], net.hidden, start=net.state_at(layer, direction))
            if before >= 0:
                old = Matrix(self._kept, net.width, start=net.output_at(layer, direction, before))
            net.multiply(old, of_state, Matrix(self._recurrent, net.gates), (net.batch, net.gates, net.hidden))
            self._step(layer, direction, step, before)
            before = step

    def _input(self, layer: int) -> Matrix:
        net = self._net
        if layer == 0:
            return Matrix(net.places["x"], net.features)
        if self._drops:
            return Matrix(self._masked, net.width)
        return Matrix(self._kept, net.width, start=net.output_at(layer - 1, 0, 0))

    def _step(self, layer: int, direction: int, step: int, before: int) -> None:
        """Compute the launch for one step."""
        net, is_first = self._net, before < 0
        numbers = [net.hidden, net.width, step * net.batch * net.gates]
        numbers += [(layer * net.directions + direction) * net.cell.bias * net.hidden, net.state_at(layer, direction)]
        numbers += [net.saved_at(layer, direction, step), -1 if is_first else net.saved_at(layer, direction, before)]
        numbers += [-1 if is_first else net.output_at(layer, direction, before), net.output_at(layer, direction, step)]
        y_at = step * net.batch * net.width + direction * net.hidden
        numbers += [y_at if layer == net.layers - 1 else -1, step == net.order(direction)[-1]]
        has_bias = net.call.inputs[-1] is not None
        arrays: list[Argument] = [self._products, self._recurrent, net.places["bias"] if has_bias else _NULL]
        arrays += [net.place("h"), net.place("c"), self._kept, net.place("y"), net.place("h_n"), net.place("c_n")]
        net.launch(f"{net.cell.name}_step", net.n, [*map(np.int64, numbers), *arrays])


class _Backward:
    """The backward pass through time.

    Args:
        call: The call.
        wanted: Which gradients are wanted.
    """

    def __init__(self, call: Call, wanted: Sequence[bool]) -> None:
        self._net = net = _Network(call, backward_names(call))
        self._wanted = {entry.name for entry, want in zip(call.spec.inputs, wanted, strict=True) if want}
        dtype, wide, rows = call.dtype, real_dtype(call.dtype), net.steps * net.batch
        self._kept = net.places["trace"]
        self._drops = len(call.outputs[-1].shape) > 1
        self._dproducts = net.memory(rows * net.gates, dtype)
        is_gru = net.cell.name == "gru"
        self._drecurrent = net.memory(rows * net.gates, dtype) if is_gru else self._dproducts
        self._through = net.memory(net.n, dtype)
        self._direct: Argument = net.memory(net.n, wide) if is_gru else _NULL
        self._dmemory: Argument = net.memory(net.n, wide) if net.cell.name == "lstm" else _NULL
        self._between = [net.memory(rows * net.width if net.layers > 1 else 0, dtype) for _ in range(2)]
        self._masked = net.memory(rows * net.width if self._drops else 0, dtype)

    def runner(self) -> Runner:
        """Return the runner of the whole pass."""
        net = self._net
        dy, n = net.places["dy"], net.steps * net.batch * net.width
        for layer in reversed(range(net.layers)):
            below = self._between[layer % 2] if layer else net.places["dx"]
            masks = self._drops and layer > 0
            if masks:
                starts = [np.int64(at) for at in (net.output_at(layer - 1, 0, 0), (layer - 1) * n)]
                net.launch("masked", n, [*starts, self._kept, net.places["mask"], self._masked])
            for direction in range(net.directions):
                self._run(layer, direction, dy)
                if layer or "x" in self._wanted:
                    self._to_input(layer, direction, below)
            if masks:
                starts = [np.int64(0), np.int64((layer - 1) * n)]
                net.launch("masked", n, [*starts, below, net.places["mask"], below])
            dy = below
        return NetworkRunner(net.ended(), len(net.places), net.sizes)

    def _run(self, layer: int, direction: int, dy: int) -> None:
        """One layer in one direction: gradients of its products and its first state, then of its parameters."""
        net = self._net
        place, start, lead = net.weight(layer, direction)
        of_state = Matrix(place, lead, start=start + net.n_inputs(layer))
        order = net.order(direction)
        for number in reversed(range(net.steps)):
            step, before = order[number], order[number - 1] if number else -1
            self._step(layer, direction, step, before, dy)
            gradient = Matrix(self._drecurrent, net.gates, start=step * net.batch * net.gates)
            net.multiply(gradient, of_state, Matrix(self._through, net.hidden), (net.batch, net.hidden, net.gates))
        targets = [net.places[f"d{name}"] if name in self._wanted else _NULL for name in ("h", "c")]
        arrays: list[Argument] = [self._through, self._direct, self._dmemory, *targets]
        net.launch("states_given", net.n, [np.int64(net.state_at(layer, direction)), *arrays])
        if ("weight" if layer else "weight_l0") in self._wanted:
            self._to_weight(layer, direction)
        if "bias" in self._wanted:
            self._to_bias(layer, direction)

    def _step(self, layer: int, direction: int, step: int, before: int, dy: int) -> None:
        """Compute the launch for one step."""
        net, is_first = self._net, before < 0
        numbers = [net.hidden, net.width, net.state_at(layer, direction), net.saved_at(layer, direction, step)]
        numbers += [-1 if is_first else net.saved_at(layer, direction, before)]
        numbers += [-1 if is_first else net.output_at(layer, direction, before), net.output_at(layer, direction, step)]
        numbers += [step * net.batch * net.width + direction * net.hidden, step * net.batch * net.gates]
        numbers += [step == net.order(direction)[-1]]
        arrays: list[Argument] = [net.place("h"), net.place("c"), self._kept, dy, net.place("dh_n"), net.place("dc_n")]
        arrays += [self._through, self._direct, self._dmemory, self._dproducts, self._drecurrent]
        net.launch(f"{net.cell.name}_back", net.n, [*map(np.int64, numbers), *arrays])

    def _to_input(self, layer: int, direction: int, target: int) -> None:
        """Compute the gradient of what a layer reads, the sum over the directions."""
        net, n_inputs = self._net, self._net.n_inputs(layer)
        place, start, lead = net.weight(layer, direction)
        operands = Matrix(self._dproducts, net.gates), Matrix(place, lead, start=start), Matrix(target, n_inputs)
        net.multiply(*operands, (net.steps * net.batch, n_inputs, net.gates), accumulate=direction > 0)

    def _to_weight(self, layer: int, direction: int) -> None:
        """Compute the products with the inputs, and with the states before each step, the first of which is given."""
        net, n_inputs = self._net, self._net.n_inputs(layer)
        place, start, lead = net.weight(layer, direction, "d")
        rows, target = net.steps * net.batch, Matrix(place, lead, start=start + n_inputs)
        of_input = Matrix(self._dproducts, net.gates, transposed=True)
        read = Matrix(net.places["x"], net.features)
        if layer:
            read = Matrix(self._kept, net.width, start=net.output_at(layer - 1, 0, 0))
        if layer and self._drops:
            read = Matrix(self._masked, net.width)
        net.multiply(of_input, read, Matrix(place, lead, start=start), (net.gates, n_inputs, rows))
        first = net.order(direction)[0]
        of_first = Matrix(self._drecurrent, net.gates, start=first * net.batch * net.gates, transposed=True)
        given = Matrix(net.places["h"], net.hidden, start=net.state_at(layer, direction))
        net.multiply(of_first, given, target, (net.gates, net.hidden, net.batch))
        if net.steps > 1:
            forwards = direction == 0
            later = Matrix(self._drecurrent, net.gates, start=net.batch * net.gates if forwards else 0, transposed=True)
            old = Matrix(self._kept, net.width, start=net.output_at(layer, direction, 0 if forwards else 1))
            sizes = net.gates, net.hidden, rows - net.batch
            net.multiply(later, old, target, sizes, accumulate=True)

    def _to_bias(self, layer: int, direction: int) -> None:
        """Compute the sums of the gradients of the products; the last part of a GRU belongs to the product with the state."""
        net = self._net
        target = (layer * net.directions + direction) * net.cell.bias * net.hidden
        self._sums(self._dproducts, 0, target, net.gates)
        if net.cell.bias > net.cell.gates:
            self._sums(self._drecurrent, net.gates - net.hidden, target + net.gates, net.hidden)

    def _sums(self, source: int, first: int, target: int, columns: int) -> None:
        net = self._net
        numbers = columns, net.steps * net.batch, net.gates, first, target
        arguments = [*map(np.int64, numbers), source, net.places["dbias"]]
        net.launch_blocks("bias_given", -(-columns // 32), (32, 8), arguments)


class NetworkRunner:
    """A runner (see `nn_core.ext.Runner`) of products and launches over the arrays of a call and shared memory.

    Args:
        chain: Takes the arrays of the call, then those in shared memory.
        n_arrays: How many arrays the call has; a random key may come after them.
        n_bytes: Size of each array in shared memory.
        mask: What draws a mask before, and the place of that.
    """

    __slots__ = ("_chain", "_mask", "_n_arrays", "_n_bytes")

    def __init__(
        self, chain: Chain, n_arrays: int, n_bytes: Sequence[int], mask: tuple[SeededProgram, int] | None = None
    ) -> None:
        self._chain = chain
        self._n_arrays = n_arrays
        self._n_bytes = tuple(n_bytes)
        self._mask = mask

    @property
    def launches(self) -> tuple[Any, ...]:
        """All launches."""
        return (*(self._mask[0].launches if self._mask else ()), *self._chain.launches)

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> ChainStep:
        """Return the steps on these arrays."""
        own = arrays[: self._n_arrays]
        step = self._chain.bind(*own, *shared(self._n_bytes))
        if self._mask is None:
            return step
        program, place = self._mask
        return ChainStep([program.bind(own[place], arrays[self._n_arrays]), step])


RECURRENT: Final[Mapping[str, Kernel]] = dict.fromkeys(_CELLS, Recurrent())
