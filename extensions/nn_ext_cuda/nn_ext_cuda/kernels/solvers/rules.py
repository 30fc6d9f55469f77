"""The rules of solvers on one element: of the parameter w, its gradient g, and the states by name, as C statements."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final


@dataclass(frozen=True, slots=True)
class Rule:
    """The change of one element.

    Attributes:
        states: Names of the states, in the solver's order.
        body: Statements in terms of w, g, the states and the numbers.
        numbers: Names of the numbers, and their values from the numbers of the solver.
        writes: The arrays that change.
    """

    states: tuple[str, ...]
    body: str
    numbers: Callable[[Sequence[float]], Mapping[str, float]]
    writes: tuple[str, ...] = ("w",)


@dataclass(frozen=True, slots=True)
class LayerwiseRule:
    """The change of one element that depends on two norms of its parameter.

    Attributes:
        states: Names of the states, in the solver's order.
        prepare: Statements before the norms are taken, in terms of w, g, the states and the numbers.
        norms: The two values of an element whose norms are taken.
        ratio: Statements that compute a number from the norms `first` and `second`, in double precision.
        move: Statements that use it.
        numbers: Names of the numbers, and their values from the numbers of the solver.
        prepared: The arrays that `prepare` changes.
        moved: The arrays that `move` changes.
    """

    states: tuple[str, ...]
    prepare: str
    norms: tuple[str, str]
    ratio: str
    move: str
    numbers: Callable[[Sequence[float]], Mapping[str, float]]
    prepared: tuple[str, ...] = ()
    moved: tuple[str, ...] = ("w",)


def _named(*names: str) -> Callable[[Sequence[float]], Mapping[str, float]]:
    return lambda hyper: dict(zip(names, hyper, strict=False))


def _corrected(alpha: float, beta1: float, beta2: float, t: float) -> float:
    """Step size that makes up for means that started at zero."""
    return alpha * sqrt(1 - beta2**t) / (1 - beta1**t)


def _means(beta1: float, beta2: float) -> dict[str, float]:
    return {"beta1": beta1, "rest1": 1 - beta1, "beta2": beta2, "rest2": 1 - beta2}


def _adam(h: Sequence[float]) -> Mapping[str, float]:
    return {"rate": _corrected(h[0], h[1], h[2], h[4]), "eps": h[3], **_means(h[1], h[2])}


def _adam_w(h: Sequence[float]) -> Mapping[str, float]:
    rate = _corrected(h[0], h[1], h[2], h[6])
    return {"rate": rate, "eps": h[3], "decay": h[0] / h[5] * h[4], **_means(h[1], h[2])}


def _adamax(h: Sequence[float]) -> Mapping[str, float]:
    return {"rate": h[0] / (1 - h[1] ** h[4]), "eps": h[3], **_means(h[1], h[2])}


def _ams_grad(h: Sequence[float]) -> Mapping[str, float]:
    rate = _corrected(h[0], h[1], h[2], h[5]) if h[4] else h[0]
    return {"rate": rate, "eps": h[3], **_means(h[1], h[2])}


def _bound(h: Sequence[float], rate: float) -> Mapping[str, float]:
    """AdaBound and AMSBound: the bounds close in on the final rate."""
    t, final = h[-1], h[4] * h[0] / h[-2]
    low, high = final * (1 - 1 / (h[5] * t + 1)), final * (1 + 1 / (h[5] * t))
    return {"rate": rate, "eps": h[3], "low": low, "high": high, **_means(h[1], h[2])}


def _ams_bound(h: Sequence[float]) -> Mapping[str, float]:
    return _bound(h, _corrected(h[0], h[1], h[2], h[-1]) if h[6] else h[0])


def _ada_belief(h: Sequence[float]) -> Mapping[str, float]:
    alpha, beta1, beta2, eps, decay, has_max, decouples, is_fixed, rectifies, t = h[:10]
    rectification = _rectification(beta2, t) if rectifies else 1.0
    return {
        "rate": alpha if rectification is None else alpha * rectification / (1 - beta1**t),
        "divides": 0.0 if rectification is None else 1.0,
        "rest": 1 - beta2**t,
        "eps": eps,
        "added": 0.0 if has_max else eps,
        "decouples": float(decouples),  # 0 * w would make an infinite w NaN
        "decay": decay if is_fixed else alpha * decay,
        **_means(beta1, beta2),
    }


def _rectification(beta2: float, t: float) -> float | None:
    """Factor of Liu et al. (2020), algorithm 2; None while the variance of the step is unknown."""
    limit = 2 / (1 - beta2) - 1
    length = limit - 2 * t * beta2**t / (1 - beta2**t)
    if length <= 4:
        return None
    return sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length))


def _lamb(h: Sequence[float]) -> Mapping[str, float]:
    eta, beta1, beta2, low, high, eps, corrects, decay, t = h[:9]
    scales = (1 - beta1**t, 1 - beta2**t) if corrects else (1.0, 1.0)
    bounds = {"low": low, "high": high, "eps": eps, "decay": decay}
    return {"eta": eta, **bounds, "m_scale": scales[0], "v_scale": scales[1], **_means(beta1, beta2)}


_MOVE: Final = "m = beta1 * m + rest1 * g; v = beta2 * v + rest2 * g * g;"
_TOP: Final = "top = larger(top, v);"

#: w is decayed first; w - decay w is what the solver computes.
_BELIEF: Final = (
    "if (decouples != 0) w -= decay * w; m = beta1 * m + rest1 * g;"
    " s = beta2 * s + rest2 * (g - m) * (g - m) + added;{maximum}"
    " w -= divides != 0 ? rate * m / (sqrt({squares} / rest) + eps) : rate * m;"
)

RULES: Final[Mapping[str, Rule]] = {
    "AdaBelief": Rule(("m", "s"), _BELIEF.format(maximum="", squares="s"), _ada_belief),
    "Sgd": Rule((), "w -= lr * g;", _named("lr")),
    "Momentum": Rule(("m",), "m = momentum * m + lr * g; w -= m;", _named("lr", "momentum")),
    "Nesterov": Rule(
        ("m",),
        "const R next = momentum * m - lr * g; w += (1 + momentum) * next - momentum * m; m = next;",
        _named("lr", "momentum"),
    ),
    "SgdW": Rule(
        ("m",),
        "m = momentum * m + lr * g; w -= m + decay * w;",
        lambda h: {"lr": h[0], "momentum": h[1], "decay": h[0] / h[3] * h[2]},
    ),
    "Adam": Rule(("m", "v"), f"{_MOVE} w -= rate * m / (sqrt(v) + eps);", _adam),
    "AdamW": Rule(("m", "v"), f"{_MOVE} w -= rate * m / (sqrt(v) + eps) + decay * w;", _adam_w),
    "Adamax": Rule(
        ("m", "u"), "m = beta1 * m + rest1 * g; u = larger(beta2 * u, fabs(g)); w -= rate * m / (u + eps);", _adamax
    ),
    "AMSGRAD": Rule(("m", "v", "top"), f"{_MOVE} {_TOP} w -= rate * m / (sqrt(top) + eps);", _ams_grad),
    "AdaBound": Rule(
        ("m", "v"),
        f"{_MOVE} w -= smaller(larger(rate / (sqrt(v) + eps), low), high) * m;",
        lambda h: _bound(h, _corrected(h[0], h[1], h[2], h[-1])),
    ),
    "AMSBound": Rule(
        ("m", "v", "top"), f"{_MOVE} {_TOP} w -= smaller(larger(rate / (sqrt(top) + eps), low), high) * m;", _ams_bound
    ),
    "Adagrad": Rule(("v",), "v += g * g; w -= lr * g / (sqrt(v) + eps);", _named("lr", "eps")),
    "RMSprop": Rule(
        ("v",), "v = decay * v + (1 - decay) * g * g; w -= lr * g / (sqrt(v) + eps);", _named("lr", "decay", "eps")
    ),
    "RMSpropGraves": Rule(
        ("n", "a", "d"),
        "n = decay * n + (1 - decay) * g * g; a = decay * a + (1 - decay) * g;"
        " d = momentum * d - lr * g / sqrt(n - a * a + eps); w += d;",
        _named("lr", "decay", "momentum", "eps"),
    ),
    "Adadelta": Rule(
        ("s", "v"),
        "v = decay * v + (1 - decay) * g * g; const R delta = g * sqrt(s + eps) / sqrt(v + eps);"
        " s = decay * s + (1 - decay) * delta * delta; w -= lr * delta;",
        _named("lr", "decay", "eps"),
    ),
    "Lion": Rule(
        ("m",),
        # mean - mean is NaN where the mean is infinite: its sign would never change again.
        "const R mean = beta1 * m + rest1 * g;"
        " w -= lr * (sign_or(mean, 0) + (mean - mean) + decay * w); m = beta2 * m + rest2 * g;",
        lambda h: {"lr": h[0], "decay": h[3], **_means(h[1], h[2])},
    ),
    "WeightDecay": Rule((), "g += rate * w;", _named("rate"), ("g",)),
    "ScaleGrad": Rule((), "g *= scale;", _named("scale"), ("g",)),
}

#: Rules of solvers that keep one state more by a setting.
RULES_WITH_MAXIMUM: Final[Mapping[str, Rule]] = {
    "AdaBelief": Rule(("m", "s", "top"), _BELIEF.format(maximum=" top = larger(top, s) + eps;", squares="top"), _ada_belief),
}

_LAMB: Final = "(m / m_scale) / (sqrt(v / v_scale) + eps) + decay * w"

LAYERWISE_RULES: Final[Mapping[str, LayerwiseRule]] = {
    "Lars": LayerwiseRule(
        ("v",),
        "",
        ("w", "g"),
        "double bottom = second + decay * first; if (bottom < eps) bottom += eps;"
        " const R rate = R(lr * (first < eps ? 1.0 : coefficient * first / bottom));",
        "v = momentum * v + rate * (g + decay * w); w -= v;",
        _named("lr", "momentum", "coefficient", "eps", "decay"),
        moved=("w", "v"),
    ),
    "Lamb": LayerwiseRule(
        ("m", "v"),
        _MOVE,
        ("w", _LAMB),
        "const double length = first < low ? low : first; const double bounded = length > high ? high : length;"
        " const R rate = R(eta * bounded / second);",
        f"if (second != 0) w -= rate * ({_LAMB});",
        _lamb,
        prepared=("m", "v"),
    ),
}
