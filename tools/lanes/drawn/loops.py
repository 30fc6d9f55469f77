"""Loops of networks: repeated layers, and layers along an axis with delays."""

from collections.abc import Callable

from tools.lanes.drawn.arrays import reshape
from tools.lanes.drawn.layers import affine
from tools.lanes.drawn.network import BATCH, Call, Net, Var, quoted
from tools.lanes.drawn.pointwise import flag, unit

#: Draws some functions; gets the network, the variable to start from, and how many.
Body = Callable[[Net, Var, int], Var]


def _pseudo(net: Net, kind: str, inputs: list[Var], output: Var, setting: dict[str, str], at: int | None = None) -> Var:
    call = Call(output.name, kind, inputs, [output], net.loops, dict(setting))
    net.calls.insert(len(net.calls) if at is None else at, call)
    return output


def fitted(net: Net, x: Var, shape: tuple[int, ...]) -> Var:
    """`x` computed on, so that it has a shape and elements of at most 1."""
    if x.ndim == 1:
        x = reshape(net, x, (1,))
    if x.shape != shape:
        x = affine(net, x, shape[1:])
    return unit(net, x)


def _new_loop(net: Net, stem: str, times: int) -> str:
    loop = net.new_name(stem)
    net.times[loop] = times
    return loop


def repeat(net: Net, x: Var, body: Body, length: int) -> Var:
    """Return some functions again and again, each time on their last result."""
    times = net.rng.randint(1, 4)
    loop = _new_loop(net, "RepeatStart", times)
    setting = {"repeat_param": f"{{ repeat_id: {quoted(loop)} times: {times} }}"}
    firsts = [unit(net, x)]
    if net.rng.random() < 0.3:
        second = net.pick(2)
        firsts += [unit(net, second)] if second is not None else []
    with net.inside(loop):
        at = len(net.calls)
        starts = [net.variable("RepeatStart", first.shape) for first in firsts]
        last = body(net, starts[0], length)
        ends = [fitted(net, last, firsts[0].shape)]
        if len(firsts) > 1:
            ends.append(fitted(net, body(net, starts[1], 1), firsts[1].shape))
        for start, first, end in zip(starts, firsts, ends, strict=True):
            _pseudo(net, "RepeatStart", [first, end], start, setting, at)
        inner = [v for v in net.visible() if loop in v.loops and v.loops == net.loops and v.shape[:1] == (BATCH,)]
    results = [_pseudo(net, "RepeatEnd", [end], net.variable("RepeatEnd", end.shape), setting) for end in ends]
    if flag(net):
        other = net.rng.choice(inner)
        end = _pseudo(net, "RepeatEnd", [other], net.variable("RepeatEnd", other.shape, other.size), setting)
        net.add("SoftSign", [end], end.shape, 1.0)
    return results[0]


def recur(net: Net, x: Var, body: Body, length: int) -> Var:
    """Return some functions for each slice along an axis, with results of the slice before."""
    axis = net.rng.choice([k for k in range(1, x.ndim) if x.shape[k] > 1])  # NNabla does not split one slice
    loop = _new_loop(net, "RecurrentInput", x.shape[axis])
    start_shape = (x.shape[0], net.rng.randint(2, 4)) if flag(net) else (x.shape[0], 2, 2)
    start = _start_of_delay(net, start_shape)
    with net.inside(loop):
        part = net.variable("RecurrentInput", (*x.shape[:axis], *x.shape[axis + 1 :]), x.size)
        _pseudo(net, "RecurrentInput", [x], part, _recurrent(loop, x.shape[axis], axis))
        delayed = net.variable("Delay", start_shape)
        at = len(net.calls)
        first = body(net, part, max(1, length // 2))
        joined = net.add("Add2", [fitted(net, first, start_shape), delayed], start_shape, 2.0, inplace=False)
        last = body(net, joined, max(1, length // 2))
        back = fitted(net, last, start_shape)
        _pseudo(net, "Delay", [back, start], delayed, _recurrent(loop, x.shape[axis], axis), at if flag(net) else None)
        inner = [v for v in net.visible() if v.loops == net.loops and v.shape[:1] == (BATCH,)]
    y = _stacked(net, net.rng.choice((last, back)), loop, x.shape[axis])
    if flag(net):
        _stacked(net, net.rng.choice(inner), loop, x.shape[axis])
    return y


def _stacked(net: Net, x: Var, loop: str, length: int) -> Var:
    place = net.rng.randint(1, x.ndim)
    y = net.variable("RecurrentOutput", (*x.shape[:place], length, *x.shape[place:]), x.size)
    return _pseudo(net, "RecurrentOutput", [x], y, _recurrent(loop, length, place))


def _recurrent(loop: str, length: int, axis: int) -> dict[str, str]:
    return {"recurrent_param": f"{{ repeat_id: {quoted(loop)} length: {length} axis: {axis} }}"}


def _start_of_delay(net: Net, shape: tuple[int, ...]) -> Var:
    """Return the value of a delay in the first step."""
    kind = net.rng.choice(("initializer", "generator", "variable", "constant", "input"))
    if kind == "variable":
        x = net.pick(2)
        if x is not None:
            return fitted(net, x, shape)
    if kind == "constant":
        return net.add("Constant", [], shape, 1.0, val=0.25, shape=shape)
    if kind == "input":
        return net.input(shape)
    start = net.variable("Delay_Initial", shape, loops=())
    if kind == "initializer":  # executors fill it as well: NNabla's load loses the initializer together with the delay
        start.initializer = ("Constant", 0.5)
        net.generators[start.name] = ("Constant", 0.5)
    else:
        net.inputs[start.name] = "normal"
        net.generators[start.name] = net.rng.choice((("Constant", 0.5), ("Normal", 0.5), ("Uniform", 1.0)))
    return start
