"""Functions that move, choose and reduce elements."""

from math import prod
from typing import Any

from tools.lanes.drawn.network import Net, Var
from tools.lanes.drawn.pointwise import axis, flag, number, unit


def reshape(net: Net, x: Var, inner: tuple[int, ...] | None = None) -> Var:
    """Another shape of each sample."""
    if inner is None:
        count, options = prod(x.inner), [(prod(x.inner),)]
        for first in range(1, min(count, 9) + 1):
            if count % first == 0:
                options.append((first, count // first))
                rest = count // first
                options += [(first, n, rest // n) for n in range(1, min(rest, 9) + 1) if rest % n == 0]
        inner = net.rng.choice(options)
    return net.add("Reshape", [x], (x.shape[0], *inner), shape=(x.shape[0], *inner), inplace=False)


def reduction(net: Net, x: Var) -> Var:
    """Return a sum, mean, ... over axes."""
    kind = net.rng.choice(("Sum", "Mean", "Max", "Min", "Prod", "Norm"))
    axes = sorted(net.rng.sample(range(1, x.ndim), net.rng.randint(1, x.ndim - 1)))
    keep_dims = net.rng.random() < 0.6
    shape = tuple(1 if k in axes else n for k, n in enumerate(x.shape) if keep_dims or k not in axes)
    count = prod(x.shape[k] for k in axes)
    settings: dict[str, Any] = {"axes": axes, "keep_dims": keep_dims}
    size = {"Sum": x.size * count, "Norm": x.size * count, "Prod": 1.0}.get(kind)
    if kind in ("Max", "Min"):
        settings.update(with_index=False, only_index=False)
    if kind == "Prod":
        x = unit(net, x)
    if kind == "Norm":
        settings["p"] = net.rng.choice((1.0, 2.0))
    return net.add(kind, [x], shape, size, **settings)


def whole_reduction(net: Net, x: Var) -> Var:
    """Return a number from all elements, samples included; arrays get it back by an addition."""
    kind = net.rng.choice(("ReduceSum", "ReduceMean", "Sum", "Mean"))
    ones = (1,) * x.ndim
    if kind.startswith("Reduce"):
        whole = net.add(kind, [unit(net, x)], (), 5.0)
        whole = net.add("Reshape", [whole], ones, shape=ones, inplace=False)
        return net.add("Add2", [x, whole], x.shape, x.size + 300, inplace=False)
    whole = net.add(kind, [unit(net, x)], ones, 5.0, axes=list(range(x.ndim)), keep_dims=True)
    return net.add("Sub2", [x, whole], x.shape, x.size + 300, inplace=False)


def transpose(net: Net, x: Var) -> Var:
    """Another order of the axes of each sample."""
    axes = [0, *net.rng.sample(range(1, x.ndim), x.ndim - 1)]
    return net.add("Transpose", [x], tuple(x.shape[k] for k in axes), axes=axes)


def cut(net: Net, x: Var) -> Var:
    """Return a part of each sample."""
    start, stop, step, lengths = [0], [x.shape[0]], [1], []
    for n in x.inner:
        first = net.rng.randint(0, n - 1)
        start.append(first)
        stop.append(net.rng.randint(first + 1, n))
        step.append(net.rng.choice((1, 1, 2)))
        lengths.append(-(-(stop[-1] - first) // step[-1]))
    stop[0] = 10**6  # more samples than there are: all of them, at any number
    if flag(net):
        return net.add("Slice", [x], (x.shape[0], *lengths), start=start[1:], stop=stop[1:], step=step[1:])
    return net.add("Slice", [x], (x.shape[0], *lengths), start=start, stop=stop, step=step)


def padded(net: Net, x: Var) -> Var:
    """Borders around each sample."""
    widths = [(net.rng.randint(0, 1), net.rng.randint(0, 1)) for _ in x.inner[-2:]]
    mode = net.rng.choice(("constant", "reflect", "repeat"))
    if mode == "reflect" and min(x.inner[-2:]) < 2:
        mode = "constant"
    lengths = tuple(n + a + b for n, (a, b) in zip(x.inner[-2:], widths, strict=True))
    shape = (*x.shape[: x.ndim - len(lengths)], *lengths)
    return net.add("Pad", [x], shape, pad_width=[n for pair in widths for n in pair], mode=mode, constant_value=number(net))


def joined(net: Net, x: Var) -> Var:
    """Several arrays side by side, or on a new axis."""
    others = [v for v in net.visible() if v.shape == x.shape]
    inputs = [x, *(net.rng.choice(others) for _ in range(net.rng.randint(1, 2)))]
    size = max(v.size for v in inputs)
    if flag(net):
        place = net.rng.randint(1, x.ndim)
        return net.add("Stack", inputs, (*x.shape[:place], len(inputs), *x.shape[place:]), size, axis=place)
    place = axis(net, x)
    shape = (*x.shape[:place], len(inputs) * x.shape[place], *x.shape[place + 1 :])
    return net.add("Concatenate", inputs, shape, size, axis=place)


def split(net: Net, x: Var) -> Var:
    """Each slice along an axis, of which a few are used."""
    places = [k for k in range(1, x.ndim) if x.shape[k] > 1]  # NNabla does not split one slice
    if not places:
        return transpose(net, x)
    place = net.rng.choice(places)
    shape = (*x.shape[:place], *x.shape[place + 1 :])
    parts = net.add_all("Split", [x], [shape] * x.shape[place], axis=place)
    return net.rng.choice(parts)


def repeated(net: Net, x: Var) -> Var:
    """Return copies of elements along axes of length 1, or of whole samples."""
    if 1 in x.inner and flag(net):
        shape = (x.shape[0], *(net.rng.randint(1, 3) if n == 1 else n for n in x.inner))
        return net.add("Broadcast", [x], shape, shape=shape)
    if flag(net):
        place = net.rng.randint(1, x.ndim)
        whole = net.add("Reshape", [x], (*x.shape[:place], 1, *x.shape[place:]), inplace=False,
                        shape=(*x.shape[:place], 1, *x.shape[place:]))  # fmt: skip
        shape = (*x.shape[:place], 2, *x.shape[place:])
        return net.add("Broadcast", [whole], shape, shape=shape)
    reps = [1, *(net.rng.randint(1, 2) for _ in x.inner)]
    return net.add("Tile", [x], tuple(n if k == 0 else n * r for k, (n, r) in enumerate(zip(x.shape, reps, strict=True))),
                   reps=reps)  # fmt: skip


def broadcast_to(net: Net, x: Var) -> Var:
    """Return a parameter broadcast to the shape of an array, and added."""
    small_ = net.parameter("bias", (x.shape[-1],), 0.5)
    wide = net.add("BroadcastTo", [x, small_], x.shape, 1.0, axis=x.ndim - 1)
    return net.add("Add2", [x, wide], x.shape, x.size + 1, inplace=False)


def gathered(net: Net, x: Var) -> Var:
    """Elements by labels."""
    place, count = axis(net, x), net.rng.randint(1, 3)
    indices = net.add("Constant", [], (count,), 1.0, val=float(net.rng.randrange(x.shape[place])), shape=(count,))
    shape = (*x.shape[:place], count, *x.shape[place + 1 :])
    return net.add("Gather", [x, indices], shape, axis=place, batch_dims=0)


def diagonal(net: Net, x: Var) -> Var:
    """Return a diagonal matrix of each vector, or the diagonal of each matrix."""
    if x.shape[-1] == x.shape[-2:][0] and x.ndim > 2:
        return net.add("MatrixDiagPart", [x], x.shape[:-1])
    return net.add("MatrixDiag", [x], (*x.shape, x.shape[-1]))


def doubled(net: Net, x: Var) -> Var:
    """Positive and negative parts."""
    place = axis(net, x)
    shape = tuple(2 * n if k == place else n for k, n in enumerate(x.shape))
    if flag(net):
        return net.add("CReLU", [x], shape, axis=place)
    return net.add("CELU", [x], shape, axis=place, alpha=1.0)


def resized(net: Net, x: Var) -> Var:
    """Return an image of another size."""
    output = [net.rng.randint(1, 6) for _ in range(2)]
    mode = net.rng.choice(("linear", "nearest"))
    half = flag(net)
    settings: dict[str, Any] = {
        "mode": mode,
        "align_corners": not half and mode == "linear",
        "half_pixel": half,
        "half_pixel_for_nn": False,
        "channel_last": False,
    }
    return net.add("Interpolate", [x], (*x.shape[:-2], *output), output_size=output, **settings)


def sized(net: Net, x: Var) -> Var:
    """Random crops, whose shape is known."""
    shape = tuple(net.rng.randint(1, n) for n in x.inner)
    return net.add("RandomCrop", [x], (x.shape[0], *shape), shape=shape, base_axis=1, seed=-1)
