"""Images in other sizes."""

import numpy as np

from nn_ext_c.emitting.registry import Call, NotExportableError, emitter
from nn_ext_c.loops import Code, dot
from nn_ext_c.program import Argument, Array, Step, Value

#: Elements of x that one element of the result may depend on, along an axis.
_TAPS = 4


@emitter("Interpolate")
def _interpolate(call: Call) -> Value:
    """One axis after the other; the weights are what the function itself gives for unit vectors."""
    sizes = tuple(call.args["output_size"])
    first = len(call.shape) - len(sizes) - call.args["channel_last"]
    x = call.x
    for position in range(len(sizes)):
        matrix = _matrix(call, first, sizes, position)
        if not np.array_equal(matrix, np.eye(*matrix.shape)):
            x = _resampled(call, x, first + position, matrix)
    return x


def _matrix(call: Call, first: int, sizes: tuple[int, ...], position: int) -> Array:
    """Return the share of each element along an axis in each element of the result: (before, after)."""
    n = call.shape[first + position]
    shape = [1] * len(call.shape)
    shape[0] = shape[first + position] = n
    units = np.eye(n, dtype=np.float32).reshape(shape)
    output_size = tuple(size if k == position else 1 for k, size in enumerate(sizes))
    (found,) = call.run([units], {**call.args, "output_size": output_size})
    return found.reshape(n, sizes[position])


def _resampled(call: Call, x: Value, axis: int, matrix: Array) -> Value:
    n_after = matrix.shape[1]
    count = max(1, int((matrix != 0).sum(axis=0).max()))
    if count > _TAPS:
        raise NotExportableError(f"elements must depend on at most {_TAPS} along an axis, got {count}")
    order = np.argsort(matrix == 0, axis=0, kind="stable")[:count]  # the elements that count come first
    places = call.program.constant(order.T, "int32", "places")
    weights = call.program.constant(np.take_along_axis(matrix, order, axis=0).T, name="weights")
    target = call.program.new([n_after if k == axis else length for k, length in enumerate(x.shape)])
    code = Code()
    counters = code.loops(target.shape)
    others = dot([c for k, c in enumerate(counters) if k != axis], [s for k, s in enumerate(x.strides) if k != axis])
    code.line("float total = 0.0f;")
    depth = code.depth
    tap = counters[axis] * count + code.loop(count)
    place = f"places[{tap}] * {x.strides[axis]}" if x.strides[axis] != 1 else f"places[{tap}]"
    code.line(f"total += weights[{tap}] * x[{f'{others} + ' if others.terms else ''}{place}];")
    code.close_to(depth)
    code.line(f"y[{dot(counters, target.strides)}] = total;")
    tables = [Argument("places", places), Argument("weights", weights)]
    call.program.add(Step(call.name, code.text(), [Argument("x", x), *tables, Argument("y", target, True)]))
    return target
