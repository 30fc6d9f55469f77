"""The numbers of a solver as attributes, and attributes that do not exist."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.solvers as S
from nn_core.errors import ArgumentError, NNCoreError, SignatureError, UnknownAttributeError
from nn_core.solver import Solver

METHODS = [getattr(S, name) for name in S.__all__]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_every_number_is_an_attribute_that_reads_and_assigns(method):
    solver = method()
    assert {name: getattr(solver, name) for name in method.hyper_names} == solver.info
    for name in method.hyper_names:
        if name in method.fixed_names:
            with pytest.raises(ArgumentError, match=f"{method.__name__}: {name} must be given to the constructor"):
                setattr(solver, name, True)
            continue
        new = True if isinstance(getattr(solver, name), bool) else 0.25
        setattr(solver, name, new)
        assert getattr(solver, name) == new == solver.info[name]
        with pytest.raises(ArgumentError, match=f"{method.__name__}: {name} must be a number, got 'fast'"):
            setattr(solver, name, "fast")
    assert solver.learning_rate() == 0.25


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_assigning_the_numbers_is_as_giving_them_to_the_constructor(method):
    rng = np.random.default_rng(3)
    numbers = {name: value for name, value in method().info.items() if name not in method.fixed_names}
    changed = {
        name: (not value if isinstance(value, bool) else 0.75 * value + 1e-4)
        for name, value in numbers.items()
        if not (method.keeps_initial_rate and name == method.hyper_names[0])
    }
    given, assigned = method(**changed), method()
    values = []
    for solver in (given, assigned):
        w = nn.Variable.from_numpy_array(np.float32([1, -2, 3]), need_grad=True)
        solver.set_parameters({"w": w})
        values.append(w)
    for name, value in changed.items():
        setattr(assigned, name, value)
    for _ in range(3):
        grads = np.float32(rng.normal(size=3))
        for solver, w in zip((given, assigned), values, strict=True):
            w.g = grads
            solver.update()
    np.testing.assert_array_equal(values[0].d, values[1].d)


def test_the_class_of_all_solvers_takes_no_numbers():
    with pytest.raises(SignatureError, match=r"^Solver: must be given no numbers; S\.Sgd .*got 1"):
        S.Solver(nn.Variable((2,)))


def test_the_learning_rate_by_its_two_names():
    solver = S.Sgd(1)
    solver.set_learning_rate(0.5)
    assert solver.lr == solver.learning_rate() == 0.5
    solver.lr = 0.25
    assert solver.learning_rate() == 0.25


def test_an_assigned_number_counts_in_the_middle_of_training():
    w = nn.Variable.from_numpy_array(np.float32([1.0]), need_grad=True)
    solver = S.Sgd(0.5)
    solver.set_parameters({"w": w})
    for rate, expected in ((0.5, 0.5), (0.25, 0.25), (0.125, 0.125)):
        solver.lr = rate
        w.g = 1.0
        solver.update()
        assert w.d.tolist() == [expected]


def test_assigning_the_decay_while_another_one_is_set_for_one_update():
    w = nn.Variable.from_numpy_array(np.float32([1.0]), need_grad=True)
    solver = S.SgdW(lr=1.0, momentum=0.0, wd=0.0)
    solver.set_parameters({"w": w})
    solver.weight_decay(0.5)
    solver.wd = 0.25
    w.g = 0.0
    assert w.g.tolist() == [0.0]  # a view: from now on the gradient counts as written
    solver.update()
    assert w.d.tolist() == [0.5]
    solver.update()
    assert w.d.tolist() == [0.375]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("lr", "hint: the learning rate is alpha, or set_learning_rate"),
        ("learning_rate", "hint: the learning rate is alpha, or set_learning_rate"),
        ("beta_1", "did you mean 'beta1'?"),
        ("epsilon", "an attribute must be one of alpha, beta1, beta2, eps, got 'epsilon'"),
        ("update", "an attribute must be one of"),
        ("momentum", "an attribute must be one of"),
    ],
)
def test_an_unknown_attribute_is_refused_with_the_one_that_may_be_meant(name, hint):
    solver = S.Adam()
    with pytest.raises(UnknownAttributeError, match="Adam: an attribute must be one of alpha, beta1") as caught:
        setattr(solver, name, 0.1)
    assert hint in str(caught.value)
    assert isinstance(caught.value, AttributeError) and isinstance(caught.value, NNCoreError)


def test_reading_an_unknown_attribute_is_refused_likewise():
    with pytest.raises(UnknownAttributeError, match="the learning rate is alpha"):
        _ = S.Adam().lr
    assert not hasattr(S.Adam(), "momentum")


@pytest.mark.parametrize("value", [None, "0.1", float("nan"), [1, 2]])
def test_the_constructor_and_the_setters_refuse_what_is_no_number(value):
    for call in (lambda: S.Sgd(value), lambda: S.Sgd().set_learning_rate(value), lambda: S.Sgd().weight_decay(value)):
        with pytest.raises(ArgumentError, match="must be a number, got"):
            call()


def test_a_solver_of_the_program_may_have_attributes_and_no_number_called_as_a_method():
    class Counting(Solver):
        hyper_names = ("rate",)

        def __init__(self):
            super().__init__(0.5)
            self.history = []

    solver = Counting()
    solver.note = "free"
    solver.rate = 0.25
    assert solver.learning_rate() == 0.25 and solver.history == []
    with pytest.raises(UnknownAttributeError, match="Counting: an attribute must be one of rate, got 'learning_rate'"):
        solver.learning_rate = 0.1
    with pytest.raises(UnknownAttributeError, match="the learning rate is rate"):
        solver.lr = 0.1
    with pytest.raises(ArgumentError, match="a number must not have the name of a method, got 'update'"):
        type("Wrong", (Solver,), {"hyper_names": ("update",)})


@pytest.mark.parametrize("make", [lambda: nn.Variable((2,)), lambda: nn.NdArray((2,))], ids=["Variable", "NdArray"])
def test_variables_and_arrays_take_no_unknown_attributes(make):
    for name in ("lr", "requires_grad", "datas"):
        with pytest.raises(AttributeError, match=name):
            setattr(make(), name, 1)
    free = type("Free", (type(make()),), {})((2,))
    free.label = "a subclass of the program may have its own"


@pytest.mark.parametrize("parameters", [{}, nn.Sequential(), iter(())], ids=["dictionary", "module", "generator"])
def test_parameters_for_the_rate_are_told_where_they_go(parameters: object) -> None:
    with pytest.raises(ArgumentError, match=r"^Adam: alpha must be a number, .*\n  hint: .* set_parameters\(\)"):
        S.Adam(parameters, 0.1)  # type: ignore[arg-type]
