"""Every method: against a formula in float64, written here once more, and against updates recorded from NNabla.

nnabla_updates.json was recorded from NNabla 1.39: two parameters, six updates, half the learning rate for the last
two, with a weight decay before each update where one is given.
"""

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.solver
import nn_core.solvers as S
from nn_core.solvers.base import Solver
from nn_core.solvers.states import STATE_KINDS, kinds_of_states
from nn_core.testing.strict_namespace import plain_array, strict_array, strict_namespace

RECORDED = json.loads(Path(__file__).with_name("nnabla_updates.json").read_text())
#: Methods that NNabla does not have.
LACKING = {"Adafactor", "Muon", "NAdam", "RAdam", "ScheduleFreeAdamW", "ScheduleFreeSgd"}
SHAPES = {"a": (2, 3), "b": (4,)}
N_UPDATES = 6


def label(record: dict[str, Any]) -> str:
    settings = ",".join(f"{name}={value}" for name, value in record["hyper"].items())
    return f"{record['solver']}({settings}),decay={record['weight_decay']}"


def train(solver: Solver, weight_decay: float | None, dtype: str) -> dict[str, nn.Variable]:
    random = np.random.RandomState(7)
    parameters = {}
    for name, shape in SHAPES.items():
        values = random.randn(*shape).astype(np.float32).astype(dtype)
        parameters[name] = nn.Variable.from_numpy_array(values, need_grad=True)
    solver.set_parameters(parameters)
    for update in range(N_UPDATES):
        for variable in parameters.values():
            variable.g = random.randn(*variable.shape).astype(np.float32).astype(dtype)
        if update == 4:
            solver.set_learning_rate(solver.learning_rate() * 0.5)
        if weight_decay is not None:
            solver.weight_decay(weight_decay)
        solver.update()
    return parameters


@pytest.mark.parametrize("record", RECORDED, ids=label)
def test_agrees_with_nnabla(record):
    solver = getattr(S, record["solver"])(**record["hyper"])
    parameters = train(solver, record["weight_decay"], "float32")
    states = solver.get_states()
    for name, variable in parameters.items():
        np.testing.assert_allclose(variable.d.ravel(), record["parameters"][name], rtol=1e-5, atol=1e-6)
        assert states[name].t == N_UPDATES
        assert set(states[name].pstate) == set(record["states"][name])
        for state, values in record["states"][name].items():
            given = states[name].pstate[state].d.ravel()
            np.testing.assert_allclose(given, values, rtol=1e-5, atol=1e-6, err_msg=state)


def test_every_method_is_recorded():
    assert {record["solver"] for record in RECORDED} == set(S.__all__) - LACKING


# -- formulas in float64: update(w, g, state, numbers, t) returns the new parameter ---------------------------------


def adam_means(g, s, beta1, beta2, first="mean", second="var"):
    s[first] = beta1 * s.get(first, 0) + (1 - beta1) * g
    s[second] = beta2 * s.get(second, 0) + (1 - beta2) * g**2
    return s[first], s[second]


def corrected(alpha, beta1, beta2, t):
    return alpha * np.sqrt(1 - beta2**t) / (1 - beta1**t)


def sgd(w, g, s, n, t):
    return w - n["lr"] * g


def momentum(w, g, s, n, t):
    s["m"] = n["momentum"] * s.get("m", 0) + n["lr"] * g
    return w - s["m"]


def sgd_w(w, g, s, n, t):
    return momentum(w, g, s, n, t) - n["lr"] / n["first"] * n["decay"] * w


def nesterov(w, g, s, n, t):
    old = s.get("m", 0)
    s["m"] = n["momentum"] * old - n["lr"] * g
    return w + s["m"] + n["momentum"] * (s["m"] - old)


def adagrad(w, g, s, n, t):
    s["v"] = s.get("v", 0) + g**2
    return w - n["lr"] * g / (np.sqrt(s["v"]) + n["eps"])


def rmsprop(w, g, s, n, t):
    s["v"] = n["decay"] * s.get("v", 0) + (1 - n["decay"]) * g**2
    return w - n["lr"] * g / (np.sqrt(s["v"]) + n["eps"])


def rmsprop_graves(w, g, s, n, t):
    s["n"] = n["decay"] * s.get("n", 0) + (1 - n["decay"]) * g**2
    s["g"] = n["decay"] * s.get("g", 0) + (1 - n["decay"]) * g
    s["d"] = n["momentum"] * s.get("d", 0) - n["lr"] * g / np.sqrt(s["n"] - s["g"] ** 2 + n["eps"])
    return w + s["d"]


def adadelta(w, g, s, n, t):
    s["v"] = n["decay"] * s.get("v", 0) + (1 - n["decay"]) * g**2
    delta = np.sqrt((s.get("s", 0) + n["eps"]) / (s["v"] + n["eps"])) * g
    s["s"] = n["decay"] * s.get("s", 0) + (1 - n["decay"]) * delta**2
    return w - n["lr"] * delta


def adam(w, g, s, n, t):
    m, v = adam_means(g, s, n["beta1"], n["beta2"])
    return w - corrected(n["alpha"], n["beta1"], n["beta2"], t) * m / (np.sqrt(v) + n["eps"])


def adam_w(w, g, s, n, t):
    return adam(w, g, s, n, t) - n["alpha"] / n["first"] * n["decay"] * w


def adamax(w, g, s, n, t):
    s["m"] = n["beta1"] * s.get("m", 0) + (1 - n["beta1"]) * g
    s["u"] = np.maximum(n["beta2"] * s.get("u", np.zeros_like(g)), np.abs(g))
    return w - n["alpha"] / (1 - n["beta1"] ** t) * s["m"] / (s["u"] + n["eps"])


def amsgrad(w, g, s, n, t):
    m, v = adam_means(g, s, n["beta1"], n["beta2"])
    s["peak"] = np.maximum(s.get("peak", np.zeros_like(g)), v)
    rate = corrected(n["alpha"], n["beta1"], n["beta2"], t) if n["bias_correction"] else n["alpha"]
    return w - rate * m / (np.sqrt(s["peak"]) + n["eps"])


def bound(rate, divisor, n, t):
    limit = n["final_lr"] * n["alpha"] / n["first"]
    return np.clip(rate / divisor, limit * (1 - 1 / (n["gamma"] * t + 1)), limit * (1 + 1 / (n["gamma"] * t)))


def ada_bound(w, g, s, n, t):
    m, v = adam_means(g, s, n["beta1"], n["beta2"])
    rate = corrected(n["alpha"], n["beta1"], n["beta2"], t)
    return w - bound(rate, np.sqrt(v) + n["eps"], n, t) * m


def ams_bound(w, g, s, n, t):
    m, v = adam_means(g, s, n["beta1"], n["beta2"])
    s["peak"] = np.maximum(s.get("peak", np.zeros_like(g)), v)
    rate = corrected(n["alpha"], n["beta1"], n["beta2"], t) if n["bias_correction"] else n["alpha"]
    return w - bound(rate, np.sqrt(s["peak"]) + n["eps"], n, t) * m


def ada_belief(w, g, s, n, t):
    if n["weight_decouple"]:
        w = w - n["decay"] * (1 if n["fixed_decay"] else n["alpha"]) * w
    beta1, beta2 = n["beta1"], n["beta2"]
    m = s["mean"] = beta1 * s.get("mean", 0) + (1 - beta1) * g
    s["var"] = beta2 * s.get("var", 0) + (1 - beta2) * (g - m) ** 2
    if n["amsgrad"]:
        variance = s["peak"] = np.maximum(s.get("peak", np.zeros_like(g)), s["var"]) + n["eps"]
    else:
        variance = s["var"] = s["var"] + n["eps"]
    step = n["alpha"] / (1 - beta1**t) * m / (np.sqrt(variance / (1 - beta2**t)) + n["eps"])
    if not n["rectify"]:
        return w - step
    limit = 2 / (1 - beta2) - 1
    length = limit - 2 * t * beta2**t / (1 - beta2**t)
    if length <= 4:
        return w - n["alpha"] * m
    ratio = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
    return w - np.sqrt(ratio) * step


def lars(w, g, s, n, t):
    ratio = n["coefficient"] * np.linalg.norm(w) / (np.linalg.norm(g) + n["decay"] * np.linalg.norm(w))
    s["v"] = n["momentum"] * s.get("v", 0) + n["lr"] * ratio * (g + n["decay"] * w)
    return w - s["v"]


def lamb(w, g, s, n, t):
    m, v = adam_means(g, s, n["beta1"], n["beta2"])
    if n["bias_correction"]:
        m, v = m / (1 - n["beta1"] ** t), v / (1 - n["beta2"] ** t)
    r = m / (np.sqrt(v) + n["eps"]) + n["decay"] * w
    return w - n["eta"] * np.clip(np.linalg.norm(w), n["gamma_l"], n["gamma_u"]) / np.linalg.norm(r) * r


def lion(w, g, s, n, t):
    m = s.get("m", 0)
    s["m"] = n["beta2"] * m + (1 - n["beta2"]) * g
    return w - n["lr"] * (np.sign(n["beta1"] * m + (1 - n["beta1"]) * g) + n["decay"] * w)


def radam(w, g, s, n, t):
    m = s["m"] = n["beta1"] * s.get("m", 0) + (1 - n["beta1"]) * g
    v = s["v"] = n["beta2"] * s.get("v", 0) + (1 - n["beta2"]) * g**2
    limit = 2 / (1 - n["beta2"]) - 1
    length = limit - 2 * t * n["beta2"] ** t / (1 - n["beta2"] ** t)
    corrected = m / (1 - n["beta1"] ** t)
    if length <= 4:
        return w - n["alpha"] * corrected
    factor = np.sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length))
    return w - n["alpha"] * factor * corrected / (np.sqrt(v / (1 - n["beta2"] ** t)) + n["eps"])


def nadam(w, g, s, n, t):
    m = s["m"] = n["beta1"] * s.get("m", 0) + (1 - n["beta1"]) * g
    v = s["v"] = n["beta2"] * s.get("v", 0) + (1 - n["beta2"]) * g**2
    ahead = n["beta1"] * m / (1 - n["beta1"] ** (t + 1)) + (1 - n["beta1"]) * g / (1 - n["beta1"] ** t)
    return w - n["alpha"] * ahead / (np.sqrt(v / (1 - n["beta2"] ** t)) + n["eps"])


def adafactor(w, g, s, n, t):
    """Take the steps of algorithms 4 to 6 of the paper, with sums where it has sums; a vector is not factored."""
    kept = 1 - t ** -n["decay_exponent"]
    square = g**2 + n["eps1"]
    if w.ndim > 1:
        rows = s["r"] = kept * s.get("r", 0) + (1 - kept) * square.sum(axis=1)
        columns = s["c"] = kept * s.get("c", 0) + (1 - kept) * square.sum(axis=0)
        variance = np.outer(rows, columns) / rows.sum()
    else:
        variance = s["v"] = kept * s.get("v", 0) + (1 - kept) * square
    u = g / np.sqrt(variance)
    u = u / max(1, np.sqrt(np.mean(u**2)) / n["clip"])
    rate = min(n["lr"], 1 / np.sqrt(t)) * max(n["eps2"], np.sqrt(np.mean(w**2)))
    return (1 - n["lr"] * n["decay"]) * w - rate * u


def muon(w, g, s, n, t):
    """Momentum through singular vectors: the iteration maps each singular value by the quintic five times."""
    if w.ndim < 2:
        m = s["m"] = n["beta1"] * s.get("m", 0) + (1 - n["beta1"]) * g
        v = s["v"] = n["beta2"] * s.get("v", 0) + (1 - n["beta2"]) * g**2
        step = m / (1 - n["beta1"] ** t) / (np.sqrt(v / (1 - n["beta2"] ** t)) + n["eps"])
        return (1 - n["lr"] * n["decay"]) * w - n["lr"] * step
    m = s["m"] = n["momentum"] * s.get("m", 0) + (1 - n["momentum"]) * g
    u = n["momentum"] * m + (1 - n["momentum"]) * g
    left, values, right = np.linalg.svd(u, full_matrices=False)
    values = values / (np.linalg.norm(u) + 1e-7)
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return (1 - n["lr"] * n["decay"]) * w - n["lr"] * 0.2 * np.sqrt(max(w.shape)) * (left * values) @ right


def schedule_free_sgd(w, g, s, n, t):
    x, z = s.get("x", w), s.get("z", w)
    y = (1 - n["momentum"]) * z + n["momentum"] * x
    s["total"] = s.get("total", 0) + n["lr"] ** 2
    c = n["lr"] ** 2 / s["total"]
    z = s["z"] = z - n["lr"] * (g + n["decay"] * y)
    x = s["x"] = (1 - c) * x + c * z
    return (1 - n["momentum"]) * z + n["momentum"] * x


def schedule_free_adam_w(w, g, s, n, t):
    x, z = s.get("x", w), s.get("z", w)
    y = (1 - n["beta1"]) * z + n["beta1"] * x
    v = s["v"] = n["beta2"] * s.get("v", 0) + (1 - n["beta2"]) * g**2
    rate = n["alpha"] * np.sqrt(1 - n["beta2"] ** t)
    s["total"] = s.get("total", 0) + rate**2
    c = rate**2 / s["total"]
    z = s["z"] = z - rate * g / (np.sqrt(v) + n["eps"]) - rate * n["decay"] * y
    x = s["x"] = (1 - c) * x + c * z
    return (1 - n["beta1"]) * z + n["beta1"] * x


FORMULAS = {
    "AMSBound": ams_bound,
    "AMSGRAD": amsgrad,
    "AdaBelief": ada_belief,
    "AdaBound": ada_bound,
    "Adadelta": adadelta,
    "Adafactor": adafactor,
    "Adagrad": adagrad,
    "Adam": adam,
    "AdamW": adam_w,
    "Adamax": adamax,
    "Lamb": lamb,
    "Lars": lars,
    "Lion": lion,
    "Momentum": momentum,
    "Muon": muon,
    "NAdam": nadam,
    "Nesterov": nesterov,
    "RAdam": radam,
    "RMSprop": rmsprop,
    "RMSpropGraves": rmsprop_graves,
    "ScheduleFreeAdamW": schedule_free_adam_w,
    "ScheduleFreeSgd": schedule_free_sgd,
    "Sgd": sgd,
    "SgdW": sgd_w,
}


def test_every_method_has_a_formula():
    assert set(FORMULAS) == set(S.__all__)


def expected(solver: Solver, weight_decay: float | None) -> dict[str, np.ndarray]:
    """Return the results of a method's formula for the training of `train`."""
    numbers = dict(solver.info)
    rate = next(iter(numbers))
    if solver.weight_decay_is_fused() or "wd" in numbers:
        numbers["decay"] = numbers.get("wd", 0.0)
        if solver.weight_decay_is_fused() and weight_decay is not None:
            numbers["decay"] = weight_decay
    numbers["first"] = numbers[rate]
    random = np.random.RandomState(7)
    parameters = {name: random.randn(*shape).astype(np.float32).astype(float) for name, shape in SHAPES.items()}
    states: dict[str, dict[str, np.ndarray]] = {name: {} for name in SHAPES}
    for t in range(1, N_UPDATES + 1):
        grads = {name: random.randn(*shape).astype(np.float32).astype(float) for name, shape in SHAPES.items()}
        if t == 5:
            numbers[rate] *= 0.5
        for name, w in parameters.items():
            g = grads[name]
            if weight_decay is not None and not solver.weight_decay_is_fused():
                g = g + weight_decay * w
            parameters[name] = FORMULAS[solver.name](w, g, states[name], numbers, t)
    return parameters


@pytest.mark.parametrize("weight_decay", [None, 0.1])
@pytest.mark.parametrize("name", sorted(S.__all__))
def test_agrees_with_the_formula_in_double_precision(name, weight_decay):
    with nn.context_scope(nn.Context(["reference:double"])):
        solver = getattr(S, name)()
    formula = expected(solver, weight_decay)
    parameters = train(solver, weight_decay, "float64")
    for key, variable in parameters.items():
        assert variable.d.dtype == np.float64
        np.testing.assert_allclose(variable.d, formula[key], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("options", range(16))
def test_options_of_ada_belief(options):
    names = ("amsgrad", "weight_decouple", "fixed_decay", "rectify")
    settings = {name: bool(options >> i & 1) for i, name in enumerate(names)}
    with nn.context_scope(nn.Context(["reference:double"])):
        solver = S.AdaBelief(alpha=0.1, beta1=0.5, beta2=0.9, eps=1e-2, wd=0.1, **settings)
    formula = expected(solver, None)
    for key, variable in train(solver, None, "float64").items():
        np.testing.assert_allclose(variable.d, formula[key], rtol=1e-12)


SIGNATURES = {
    "AMSBound": "(alpha=0.001, beta1=0.9, beta2=0.999, eps=1e-08, final_lr=0.1, gamma=0.001, bias_correction=False)",
    "AMSGRAD": "(alpha=0.001, beta1=0.9, beta2=0.999, eps=1e-08, bias_correction=False)",
    "AdaBelief": (
        "(alpha=0.001, beta1=0.9, beta2=0.999, eps=1e-08, wd=0.0, amsgrad=False, weight_decouple=False, "
        "fixed_decay=False, rectify=False)"
    ),
    "AdaBound": "(alpha=0.001, beta1=0.9, beta2=0.999, eps=1e-08, final_lr=0.1, gamma=0.001)",
    "Adadelta": "(lr=1.0, decay=0.95, eps=1e-06)",
    "Adafactor": "(lr=0.01, decay_exponent=0.8, clip=1.0, eps1=1e-30, eps2=0.001)",
    "Adagrad": "(lr=0.01, eps=1e-08)",
    "Adam": "(alpha=0.001, beta1=0.9, beta2=0.999, eps=1e-08)",
    "AdamW": "(alpha=0.001, beta1=0.9, beta2=0.999, eps=1e-08, wd=0.0001)",
    "Adamax": "(alpha=0.002, beta1=0.9, beta2=0.999, eps=1e-08)",
    "Lamb": "(eta=0.001, beta1=0.9, beta2=0.999, gamma_l=0.0, gamma_u=10.0, eps=1e-06, bias_correction=False)",
    "Lars": "(lr=0.001, momentum=0.9, coefficient=0.001, eps=1e-06)",
    "Lion": "(lr=0.0001, beta1=0.9, beta2=0.99)",
    "Momentum": "(lr=0.001, momentum=0.9)",
    "Muon": "(lr=0.001, momentum=0.95, beta1=0.9, beta2=0.95, eps=1e-08)",
    "NAdam": "(alpha=0.001, beta1=0.9, beta2=0.999, eps=1e-08)",
    "Nesterov": "(lr=0.001, momentum=0.9)",
    "RAdam": "(alpha=0.001, beta1=0.9, beta2=0.999, eps=1e-08)",
    "RMSprop": "(lr=0.001, decay=0.9, eps=1e-08)",
    "RMSpropGraves": "(lr=0.0001, decay=0.95, momentum=0.9, eps=0.0001)",
    "ScheduleFreeAdamW": "(alpha=0.0025, beta1=0.9, beta2=0.999, eps=1e-08)",
    "ScheduleFreeSgd": "(lr=1.0, momentum=0.9)",
    "Sgd": "(lr=0.001)",
    "SgdW": "(lr=0.001, momentum=0.9, wd=0.0001)",
}


@pytest.mark.parametrize("name", sorted(S.__all__))
def test_signature_and_doors(name):
    method = getattr(S, name)
    given = inspect.signature(method)
    bare = [p.replace(annotation=p.empty) for p in given.parameters.values()]
    plain = given.replace(parameters=bare, return_annotation=given.empty)
    assert str(plain) == SIGNATURES[name]
    assert getattr(nn_core.solver, name) is method
    assert method().name == name
    assert list(method().info) == list(given.parameters)


def test_lars_takes_small_norms_for_zero():
    def step(w, g, eps, decay=0.0):
        solver = S.Lars(lr=1.0, momentum=0.0, coefficient=0.5, eps=eps)
        variable = nn.Variable.from_numpy_array(np.array([w], np.float32), [g], need_grad=True)
        solver.set_parameters({"w": variable})
        if decay:
            solver.weight_decay(decay)
        solver.update()
        return w - float(variable.d[0])

    assert step(1.0, 2.0, 1e-6) == pytest.approx(0.5)
    assert step(1.0, 2.0, 1.5) == pytest.approx(2.0)  # the parameter counts as zero: a ratio of 1
    assert step(2.0, 1.0, 1.5) == pytest.approx(0.4)  # the divisor is raised
    assert step(2.0, 1.0, 1.5, decay=0.5) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["Lamb", "Lars"])
def test_zero_parameters_and_zero_gradients_give_no_nan(name):
    for w, g in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)):
        solver = getattr(S, name)()
        variable = nn.Variable.from_numpy_array(np.full(2, w, np.float32), np.full(2, g, np.float32), need_grad=True)
        solver.set_parameters({"w": variable})
        solver.update()
        assert np.isfinite(variable.d).all()


@pytest.mark.parametrize("name", sorted(S.__all__))
def test_rules_keep_to_the_array_contract(name):
    """On the strict namespace, which has nothing else: so they run on the arrays of any backend."""
    solver = getattr(S, name)()
    numbers = [*solver._numbers, 1.0]
    for shape in ((3,), (2, 3), (2, 3, 2), ()):
        rng = np.random.default_rng(0)
        kinds = [STATE_KINDS[kind](shape) for kind in kinds_of_states(solver)]
        arrays = [rng.normal(size=shape), rng.normal(size=shape), *[np.zeros(kind) for kind in kinds]]
        strict = [strict_namespace().zeros(array.shape, dtype=np.float64) for array in arrays]
        for target, array in zip(strict, arrays, strict=True):
            target[...] = strict_array(array.copy())
        for xp, (w, g, *states) in ((np, arrays), (strict_namespace(), strict)):
            solver.step(xp, w, g, states, numbers)
            solver.step(xp, w, g, states, [*numbers[:-1], 2.0])
        for ours, theirs in zip(strict, arrays, strict=True):
            np.testing.assert_array_equal(plain_array(ours), theirs)
