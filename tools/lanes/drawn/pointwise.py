"""Functions of single elements, and of several arrays of one shape."""

from collections.abc import Callable
from typing import Any

from tools.lanes.drawn.network import BATCH, Net, Var

Settings = Callable[[Net, Var], dict[str, Any]]


def axis(net: Net, x: Var) -> int:
    """Return an axis that is not that of the samples."""
    return net.rng.randrange(1, x.ndim)


def number(net: Net, low: float = -1.0, high: float = 1.0) -> float:
    """Return a number with few digits."""
    return round(net.rng.uniform(low, high), 3)


def unit(net: Net, x: Var) -> Var:
    """`x`, or what a function squashes it to, so that no element is larger than 1."""
    return x if x.size <= 1 else net.add(net.rng.choice(("Tanh", "Sigmoid", "SoftSign", "HardTanh", "Sin")), [x], x.shape, 1.0)


def small(net: Net, x: Var, limit: float = 12.0) -> Var:
    """`x`, or what a function squashes it to, if it may be large."""
    return x if x.size <= limit else unit(net, x)


def positive(net: Net, x: Var) -> Var:
    """Elements of at least 0.3, computed from `x`."""
    kind = net.rng.choice(("Abs", "Sigmoid", "Exp", "SoftPlus"))
    x = unit(net, x) if kind == "Exp" else small(net, x)
    settings = {"beta": 1.0} if kind == "SoftPlus" else {}
    y = net.add(kind, [x], x.shape, max(3.0, x.size), **settings)
    return net.add("AddScalar", [y], y.shape, y.size + 1, val=number(net, 0.3, 1.0), inplace=False)


#: Functions of one array that keep its shape: the kind of their input, their settings, the largest magnitude of their result
#: (None: that of the input).
UNARY: dict[str, tuple[str, Settings | dict[str, Any], float | None]] = {
    "Sigmoid": ("any", {}, 1.0),
    "Swish": ("any", {}, None),
    "Tanh": ("any", {}, 1.0),
    "ReLU": ("any", {"inplace": False}, None),
    "LeakyReLU": ("any", lambda net, x: {"alpha": number(net, 0, 0.5), "inplace": False}, None),
    "Softmax": ("axis", lambda net, x: {"axis": axis(net, x)}, 1.0),
    "LogSoftmax": ("axis", lambda net, x: {"axis": axis(net, x)}, None),
    "ELU": ("any", lambda net, x: {"alpha": number(net, 0.2, 1.5)}, None),
    "SELU": ("any", {"scale": 1.05, "alpha": 1.673}, None),
    "GELU": ("any", {}, None),
    "Mish": ("any", {}, None),
    "ReLU6": ("any", {}, 6.0),
    "HardSigmoid": ("any", {}, 1.0),
    "HardTanh": ("any", {}, 1.0),
    "LogSigmoid": ("any", {}, None),
    "SoftPlus": ("any", lambda net, x: {"beta": number(net, 0.5, 2)}, None),
    "SoftSign": ("any", {}, 1.0),
    "TanhShrink": ("any", {}, None),
    "Sinc": ("any", {}, 1.0),
    "CumSum": ("axis", lambda net, x: {"axis": axis(net, x), "exclusive": flag(net), "reverse": flag(net)}, 20.0),
    "CumProd": ("unit axis", lambda net, x: {"axis": axis(net, x), "exclusive": flag(net), "reverse": flag(net)}, 1.0),
    "AddScalar": ("any", lambda net, x: {"val": number(net), "inplace": False}, None),
    "MulScalar": ("any", lambda net, x: {"val": number(net), "inplace": False}, None),
    "PowScalar": ("positive", lambda net, x: {"val": number(net, -1.5, 1.5), "inplace": False}, 6.0),
    "RSubScalar": ("any", lambda net, x: {"val": number(net)}, None),
    "RDivScalar": ("positive", lambda net, x: {"val": number(net)}, 3.0),
    "RPowScalar": ("unit", lambda net, x: {"val": number(net, 0.5, 2)}, 2.0),
    "Sign": ("any", {"alpha": 1.0}, 1.0),
    "MinimumScalar": ("any", lambda net, x: {"val": number(net)}, None),
    "MaximumScalar": ("any", lambda net, x: {"val": number(net)}, None),
    "LogicalAndScalar": ("any", lambda net, x: {"val": flag(net)}, 1.0),
    "LogicalOrScalar": ("any", lambda net, x: {"val": flag(net)}, 1.0),
    "LogicalXorScalar": ("any", lambda net, x: {"val": flag(net)}, 1.0),
    "GreaterScalar": ("any", lambda net, x: {"val": number(net)}, 1.0),
    "GreaterEqualScalar": ("any", lambda net, x: {"val": number(net)}, 1.0),
    "LessScalar": ("any", lambda net, x: {"val": number(net)}, 1.0),
    "LessEqualScalar": ("any", lambda net, x: {"val": number(net)}, 1.0),
    "EqualScalar": ("any", lambda net, x: {"val": number(net)}, 1.0),
    "NotEqualScalar": ("any", lambda net, x: {"val": number(net)}, 1.0),
    "LogicalNot": ("any", {}, 1.0),
    "IsNaN": ("any", {}, 1.0),
    "IsInf": ("any", {}, 1.0),
    "ResetNaN": ("any", lambda net, x: {"val": number(net)}, None),
    "ResetInf": ("any", lambda net, x: {"val": number(net)}, None),
    "Abs": ("any", {}, None),
    "Exp": ("unit", {}, 2.7),
    "Log": ("positive", {}, 3.0),
    "Identity": ("any", {}, None),
    "Round": ("any", {}, None),
    "Ceil": ("any", {}, None),
    "Floor": ("any", {}, None),
    "Sin": ("any", {}, 1.0),
    "Cos": ("any", {}, 1.0),
    "Tan": ("unit", {}, 1.6),
    "Sinh": ("unit", {}, 1.2),
    "Cosh": ("unit", {}, 1.6),
    "ATan": ("any", {}, 1.6),
    "ASinh": ("any", {}, None),
    "Erf": ("any", {}, 1.0),
    "Flip": ("axis", lambda net, x: {"axes": [axis(net, x)]}, None),
    "Shift": ("axis", lambda net, x: {"shifts": [0, *(net.rng.randint(-2, 2) for _ in x.inner)],
                                      "border_mode": net.rng.choice(("nearest", "reflect"))}, None),
    "Sort": ("axis", lambda net, x: {"axis": axis(net, x), "reverse": flag(net), "with_index": False, "only_index": False},
             None),
    "Trilu": ("matrix", lambda net, x: {"k": net.rng.randint(-1, 1), "upper": flag(net)}, None),
    "Unlink": ("any", {}, None),
    "BinarySigmoid": ("any", {}, 1.0),
    "BinaryTanh": ("any", {}, 1.0),
    "FixedPointQuantize": ("any", lambda net, x: {"sign": flag(net), "n": 6, "delta": 0.125, "ste_fine_grained": True}, 4.0),
    "Pow2Quantize": ("any", lambda net, x: {"sign": flag(net), "with_zero": flag(net), "n": 6, "m": 1,
                                            "ste_fine_grained": True}, 2.0),
    "Prune": ("any", lambda net, x: {"rate": 0.4}, None),
    "Dropout": ("any", lambda net, x: {"p": 0.3, "seed": -1}, None),
    "NormNormalization": ("positive axis", lambda net, x: {"p": 2.0, "axes": [axis(net, x)], "eps": 1e-12}, 1.0),
    "ClipGradByNorm": ("axis", lambda net, x: {"clip_norm": 1.0, "axes": [axis(net, x)]}, None),
    "TopKData": ("axis", lambda net, x: {"k": 1, "abs": flag(net), "reduce": False, "base_axis": 1, "largest": True,
                                         "with_index": False}, None),
    "RandomShift": ("axis", lambda net, x: {"shifts": [1] * (x.ndim - 1), "border_mode": "nearest", "constant_value": 0.0,
                                            "base_axis": 1, "seed": -1}, None),
    "RandomFlip": ("axis", lambda net, x: {"axes": [axis(net, x)], "base_axis": 1, "seed": -1}, None),
}  # fmt: skip
#: Functions of two arrays whose shapes fit: the kinds of their inputs, and the largest magnitude of their result as above.
BINARY: dict[str, tuple[str, str, float | None]] = {
    "Add2": ("any", "any", None),
    "Sub2": ("any", "any", None),
    "Mul2": ("any", "unit", None),
    "Div2": ("any", "positive", None),
    "Pow2": ("positive", "unit", 6.0),
    "Minimum2": ("any", "any", None),
    "Maximum2": ("any", "any", None),
    "LogicalAnd": ("any", "any", 1.0),
    "LogicalOr": ("any", "any", 1.0),
    "LogicalXor": ("any", "any", 1.0),
    "Equal": ("any", "any", 1.0),
    "NotEqual": ("any", "any", 1.0),
    "GreaterEqual": ("any", "any", 1.0),
    "Greater": ("any", "any", 1.0),
    "LessEqual": ("any", "any", 1.0),
    "Less": ("any", "any", 1.0),
    "ATan2": ("any", "positive", 1.6),
    "Mod2": ("any", "positive", None),
}
#: Losses of two arrays of the same shape.
LOSSES: dict[str, tuple[str, dict[str, Any]]] = {
    "SquaredError": ("any", {}),
    "AbsoluteError": ("any", {}),
    "HuberLoss": ("any", {"delta": 0.7}),
    "EpsilonInsensitiveLoss": ("any", {"epsilon": 0.3}),
    "SigmoidCrossEntropy": ("any", {}),
    "BinaryCrossEntropy": ("probability", {}),
}


def flag(net: Net) -> bool:
    """Return True or false."""
    return net.rng.random() < 0.5


def fitting(net: Net, x: Var, kind: str) -> Var:
    """`x`, computed on so that it is of a kind."""
    if "unit" in kind:
        return unit(net, x)
    if "positive" in kind:
        return positive(net, x)
    if kind == "probability":
        return net.add("Sigmoid", [small(net, x, 4.0)], x.shape, 1.0)
    return small(net, x, 60.0)


def unary(net: Net, x: Var) -> Var:
    """One of the functions of one array."""
    kinds = [kind for kind, (needs, _, _) in UNARY.items() if x.ndim > 1 + ("matrix" in needs) or needs in ("any", "unit")]
    kind = net.rng.choice(kinds)
    needs, settings, size = UNARY[kind]
    x = fitting(net, x, needs)
    written = settings(net, x) if callable(settings) else dict(settings)
    return net.add(kind, [x], x.shape, x.size if size is None else size, **written)


def same_shape(net: Net, x: Var) -> Var:
    """Another variable of the shape of `x`, or `x` itself."""
    others = [v for v in net.visible() if v.shape == x.shape and v is not x]
    return net.rng.choice(others[-6:]) if others else x


def broadcast_partner(net: Net, x: Var) -> Var:
    """Return a variable or parameter whose shape fits that of `x` when axes of length 1 are repeated."""
    if net.rng.random() < 0.6:
        return same_shape(net, x)
    shape = [1 if net.rng.random() < 0.5 else n for n in x.inner]
    return net.parameter("scale", (1, *shape), 0.5)


def binary(net: Net, x: Var) -> Var:
    """One of the functions of two arrays."""
    kind = net.rng.choice(list(BINARY))
    first, second, size = BINARY[kind]
    a, b = fitting(net, x, first), fitting(net, broadcast_partner(net, x), second)
    if second == "any" and a.shape == b.shape and flag(net):
        a, b = b, a
    settings: dict[str, Any] = {"inplace": False} if kind in ("Add2", "Sub2", "Mul2", "Div2", "Pow2") else {}
    if kind == "Mod2":
        settings["fmod"] = flag(net)
    estimate = {"Add2": a.size + b.size, "Sub2": a.size + b.size, "Div2": 3 * a.size}.get(kind, max(a.size, b.size))
    return net.add(kind, [a, b], x.shape, estimate if size is None else size, **settings)


def loss(net: Net, x: Var) -> Var:
    """One of the losses of two arrays, which keep the shape."""
    kind = net.rng.choice(list(LOSSES))
    needs, settings = LOSSES[kind]
    x = fitting(net, x, "unit" if needs == "any" else needs)
    target = fitting(net, same_shape(net, x), "unit")
    if "CrossEntropy" in kind:
        target = net.add("GreaterScalar", [target], x.shape, 1.0, val=0.1)
    return net.add(kind, [x, target], x.shape, 4.0, **settings)


def several(net: Net, x: Var) -> Var:
    """Return sums, products and choices of several arrays of one shape."""
    kind = net.rng.choice(("AddN", "MulN", "Where", "BcAdd2", "ClipGradByValue"))
    if kind == "Where":
        condition = net.add("GreaterScalar", [same_shape(net, x)], x.shape, 1.0, val=number(net))
        return net.add(kind, [condition, x, same_shape(net, x)], x.shape)
    if kind == "BcAdd2":
        other = same_shape(net, x)
        return net.add(kind, [x, other], x.shape, x.size + other.size, inplace=False)
    if kind == "ClipGradByValue":
        return net.add(kind, [x, unit(net, same_shape(net, x)), positive(net, same_shape(net, x))], x.shape, x.size)
    inputs = [unit(net, v) for v in (x, *(same_shape(net, x) for _ in range(net.rng.randint(1, 3))))]
    return net.add(kind, inputs, x.shape, float(len(inputs)))


def drawn_values(net: Net, x: Var) -> Var:
    """Numbers from nowhere, added to an array: constants, ranges, random numbers."""
    shape = (BATCH, *x.inner) if flag(net) else (1, *x.inner)
    kind = net.rng.choice(("Constant", "Constant", "Rand", "Randn", "Randint", "Arange", "Linspace"))
    settings: dict[str, Any] = {
        "Constant": {"val": number(net), "shape": shape},
        "Rand": {"low": -1.0, "high": 1.0, "shape": shape, "seed": -1},
        "Randn": {"mu": 0.0, "sigma": 0.5, "shape": shape, "seed": -1},
        "Randint": {"low": 0, "high": 3, "shape": shape, "seed": -1},
        "Arange": {"start": 0.0, "stop": float(x.shape[-1]), "step": 1.0},
        "Linspace": {"start": -1.0, "stop": 1.0, "num": x.shape[-1]},
    }[kind]
    if kind in ("Arange", "Linspace"):
        shape = (x.shape[-1],)
        values = net.add(kind, [], shape, 8.0, **settings)
        values = net.add("Reshape", [values], (1,) * (x.ndim - 1) + shape, 8.0,
                         shape=(1,) * (x.ndim - 1) + shape, inplace=False)  # fmt: skip
        return net.add("Mul2", [unit(net, x), values], x.shape, 8.0, inplace=False)
    values = net.add(kind, [], shape, 3.0, **settings)
    return net.add("Add2", [x, values], x.shape, x.size + 3, inplace=False)
