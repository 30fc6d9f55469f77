"""C from an integer network: a step for each node."""

from collections.abc import Callable
from typing import Final

import numpy as np

from nn_ext_c.emitting.convolution import Geometry, grouped, window_places
from nn_ext_c.emitting.registry import copied, delivered, shown
from nn_ext_c.integer.network import IntegerNetwork, Node, Tensor
from nn_ext_c.integer.numbers import HIGH, LOW, Scale
from nn_ext_c.integer.statements import centered, rescale
from nn_ext_c.integer.writing_recurrent import write_recurrent
from nn_ext_c.loops import Code, Index, dot, merged, number
from nn_ext_c.program import Argument, Buffer, Program, Step, Value, whole


class Writing:
    """The program of an integer network that grows; see `integer_program`."""

    def __init__(self, network: IntegerNetwork, is_raw: bool) -> None:
        self.network, self.is_raw = network, is_raw
        self.program = Program()
        self.values: dict[int, Value] = {}

    def result(self) -> Program:
        for name, tensor in self.network.inputs.items():
            made = self.network.tensors[tensor]
            dtype = "int8" if self.is_raw else "float32"
            value = whole(Buffer(int(np.prod(made.shape)), dtype, "input", name), made.shape)
            self.program.inputs[name] = value
            self.values[tensor] = value if self.is_raw else self._quantized(value, made)
        for node in self.network.nodes:
            made = self.network.tensors[node.output]
            self.values[node.output] = _WRITE[node.kind](self, node, made)
        for name, tensor in self.network.outputs.items():
            value = self.values[tensor]
            scale = self.network.tensors[tensor].scale
            made_value = delivered(self.program, name, value) if self.is_raw else self._dequantized(name, value, scale)
            self.program.outputs[name] = made_value
        if self.is_raw:
            self._note_scales()
        self.program.keep_used()
        return self.program

    def _note_scales(self) -> None:
        ports = ((self.program.inputs, self.network.inputs), (self.program.outputs, self.network.outputs))
        for values, tensors in ports:
            for name, tensor in tensors.items():
                scale = self.network.tensors[tensor].scale
                self.program.scales[values[name].buffer] = (scale.scale, scale.zero)

    def zero(self, node: Node, index: int = 0) -> int:
        """Return the integer of an input that stands for 0."""
        return self.network.tensors[node.inputs[index]].scale.zero

    def _quantized(self, value: Value, made: Tensor) -> Value:
        target = self.program.new(made.shape, "int8")
        code = Code()
        (counter,) = code.loops([value.size])
        code.line(f"const float q = roundf(x[{counter}] / {number(made.scale.scale)}) + {number(made.scale.zero)};")
        code.line(f"y[{counter}] = (int8_t)(q >= {HIGH}.0f ? {HIGH}.0f : q > {LOW}.0f ? q : {LOW}.0f);")
        self.program.add(Step("quantize", code.text(), [Argument("x", value), Argument("y", target, True)]))
        return target

    def _dequantized(self, name: str, value: Value, scale: Scale) -> Value:
        target = whole(Buffer(value.size, "float32", "output", name), value.shape)
        lengths, (out, strides) = merged(value.shape, [target.strides, value.strides])
        code = Code()
        counters = code.loops(lengths)
        element = centered(f"x[{dot(counters, strides)}]", scale.zero)
        code.line(f"y[{dot(counters, out)}] = (float)({element}) * {number(scale.scale)};")
        self.program.add(Step("dequantize", code.text(), [Argument("x", value), Argument("y", target, True)]))
        return target


def _window(w: Writing, node: Node, made: Tensor) -> Value:
    x = w.values[node.inputs[0]]
    target = w.program.new(made.shape, "int8")
    weight = w.program.constant(node.data["weight"], "int8", "weight")
    groups = weight.shape[0]
    data = node.data
    g = Geometry(grouped(x, 1, groups), weight, grouped(target, 1, groups), data["pad"], data["stride"], data["dilation"])
    code = Code()
    b, group, filter_, *counts = code.loops(g.y.shape)
    row = dot([group, filter_], (weight.shape[1], 1))
    code.line(f"int32_t total = bias[{row}];")
    depth = code.depth
    offset, weight_at = window_places(code, g, b, group, filter_, counts)
    element = centered(f"x[{offset}]", w.zero(node))
    code.line(f"total += {f'({element})' if ' ' in element else element} * w[{weight_at}];")
    code.close_to(depth)
    place = dot([b, group, filter_, *counts], g.y.strides)
    rescale(code, f"(int64_t)total * multiplier[{row}]", f"shift[{row}]", place, made.scale.zero, node)
    constants = [Argument(name, w.program.constant(data[name], "int32", name)) for name in ("bias", "multiplier", "shift")]
    arguments = [Argument("x", g.x), Argument("w", g.weight), *constants, Argument("y", g.y, True)]
    w.program.add(Step(data["title"], code.text(), arguments))
    return target


def _elementwise(w: Writing, node: Node, made: Tensor, total: Callable[[list[str]], str]) -> Value:
    target = w.program.new(made.shape, "int8")
    values = [w.values[k].broadcast(made.shape) for k in node.inputs]
    lengths, (out, *ins) = merged(made.shape, [target.strides, *(value.strides for value in values)])
    code = Code()
    counters = code.loops(lengths)
    elements = [f"({centered(f'x{k}[{dot(counters, s)}]', w.zero(node, k))})" for k, s in enumerate(ins)]
    rescale(code, total(elements), str(node.data["shift"]), dot(counters, out), made.scale.zero, node)
    arguments = [Argument(f"x{k}", value) for k, value in enumerate(values)]
    w.program.add(Step(node.data["title"], code.text(), [*arguments, Argument("y", target, True)]))
    return target


def _sum(w: Writing, node: Node, made: Tensor) -> Value:
    factors = node.data["multipliers"]
    return _elementwise(
        w, node, made, lambda elements: " + ".join(f"{x} * (int64_t){f}" for x, f in zip(elements, factors, strict=True))
    )


def _product(w: Writing, node: Node, made: Tensor) -> Value:
    factor = node.data["multiplier"]
    return _elementwise(w, node, made, lambda elements: f"(int64_t){elements[0]} * {elements[1]} * {factor}")


def _pooled(w: Writing, node: Node, made: Tensor, start: str, update: str) -> tuple[Code, Value, Index]:
    """Return the loops of a pooling up to what is done with the total of a window."""
    x = w.values[node.inputs[0]]
    target = w.program.new(made.shape, "int8")
    data, n = node.data, len(node.data["kernel"])
    lead = len(made.shape) - n
    code = Code()
    places = code.loops(made.shape)
    code.windows(made.shape[lead:], x.shape[lead:], data["kernel"], data["stride"], data["pad"], places[lead:])
    code.line(f"int32_t total = {start};")
    depth = code.depth
    offset = dot([*places[:lead], *code.window_loops(n)], x.strides)
    code.line(update.format(x=f"x[{offset}]", centered=centered(f"x[{offset}]", w.zero(node))))
    code.close_to(depth)
    return code, target, dot(places, target.strides)


def _largest(w: Writing, node: Node, made: Tensor) -> Value:
    code, target, place = _pooled(w, node, made, "INT8_MIN", "total = {x} > total ? {x} : total;")
    code.line(f"y[{place}] = (int8_t)total;")
    arguments = [Argument("x", w.values[node.inputs[0]]), Argument("y", target, True)]
    w.program.add(Step(node.data["title"], code.text(), arguments))
    return target


def _pool(w: Writing, node: Node, made: Tensor) -> Value:
    code, target, place = _pooled(w, node, made, "0", "total += {centered};")
    factor, shift = node.data["multiplier"], node.data["shift"]
    rescale(code, f"(int64_t)total * {factor}", str(shift), place, made.scale.zero, node)
    arguments = [Argument("x", w.values[node.inputs[0]]), Argument("y", target, True)]
    w.program.add(Step(node.data["title"], code.text(), arguments))
    return target


def _lookup(w: Writing, node: Node, made: Tensor) -> Value:
    value = w.values[node.inputs[0]]
    target = w.program.new(made.shape, "int8")
    table = w.program.constant(node.data["table"], "int8", "table")
    lengths, (out, strides) = merged(made.shape, [target.strides, value.strides])
    code = Code()
    counters = code.loops(lengths)
    code.line(f"y[{dot(counters, out)}] = table[x[{dot(counters, strides)}] + 128];")
    argument = Argument("x", value)
    step = Step(node.data["title"], code.text(), [argument, Argument("table", table), Argument("y", target, True)])
    step.in_place = [argument] if value.is_whole else []
    w.program.add(step)
    return target


def _softmax(w: Writing, node: Node, made: Tensor) -> Value:
    axis, value = node.data["axis"], w.values[node.inputs[0]]
    target = w.program.new(made.shape, "int8")
    table = w.program.constant(node.data["table"], "int32", "exponentials")
    order = [k for k in range(len(made.shape)) if k != axis] + [axis]
    x, y = value.transpose(order), target.transpose(order)
    code = Code()
    outer = code.loops(x.shape[:-1])
    code.line("int32_t largest = INT8_MIN;")
    code.line("int64_t total = 0;")
    depth = code.depth

    def each(*lines: str) -> None:
        k = code.loop(x.shape[-1])
        element, place = f"x[{dot([*outer, k], x.strides)}]", f"y[{dot([*outer, k], y.strides)}]"
        for line in lines:
            code.line(line.format(x=element, y=place))
        code.close_to(depth)

    each("largest = {x} > largest ? {x} : largest;")
    each("total += table[largest - {x}];")
    each(
        "const int64_t q = ((int64_t)table[largest - {x}] * 256 + total / 2) / total - 128;",
        "{y} = (int8_t)(q > 127 ? 127 : q);",
    )
    arguments = [Argument("x", value), Argument("table", table), Argument("y", target, True)]
    w.program.add(Step(node.data["title"], code.text(), arguments))
    return target


def _move(w: Writing, node: Node, made: Tensor) -> Value:
    value = w.values[node.inputs[0]]
    places = value.places().reshape(-1)[node.data["places"]]
    return shown(
        w.program, node.data["title"], value.buffer, np.where(node.data["places"] < 0, -1, places), str(made.scale.zero)
    )


def _join(w: Writing, node: Node, made: Tensor) -> Value:
    target = w.program.new(made.shape, "int8")
    axis, start = node.data["axis"], 0
    for k in node.inputs:
        value = w.values[k]
        copied(w.program, node.data["title"], value, target.at(axis, start, value.shape[axis]))
        start += value.shape[axis]
    return target


def _constant(w: Writing, node: Node, made: Tensor) -> Value:
    return w.program.constant(node.data["values"], "int8", node.data["title"])


def _recurrent(w: Writing, node: Node, made: Tensor) -> Value:
    others, tensors = node.data["others"], w.network.tensors
    inputs = [w.values[k] for k in node.inputs]
    given = [tensors[k] for k in node.inputs]
    y, *rest = write_recurrent(w.program, node, inputs, given, [made, *(tensors[k] for k in others)])
    w.values.update(zip(others, rest, strict=True))
    return y


_WRITE: Final[dict[str, Callable[[Writing, Node, Tensor], Value]]] = {
    "window": _window,
    "sum": _sum,
    "product": _product,
    "largest": _largest,
    "pool": _pool,
    "lookup": _lookup,
    "softmax": _softmax,
    "move": _move,
    "join": _join,
    "constant": _constant,
    "recurrent": _recurrent,
}


def integer_program(network: IntegerNetwork, io: str) -> Program:
    """Return the program of an integer network; inputs and outputs are "float32" or "int8"."""
    return Writing(network, io == "int8").result()
