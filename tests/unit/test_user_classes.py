"""Classes of programs that derive from ours in NNabla's manner: made in ``__new__``, wrapping others, with attributes."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.initializer as I
import nn_core.parameter
import nn_core.solvers as S
from nn_core.communicator import Communicator
from nn_core.core.module import Module
from nn_core.errors import ArgumentError, ShapeError, SignatureError, UnknownAttributeError
from nn_core.experimental.graph_converters import FunctionModifier, GraphConverter, IdentityModifier
from nn_core.monitor import Monitor, MonitorSeries
from nn_core.settings import set_nnabla_program
from nn_core.solver import Solver
from nn_core.solvers.numbers import Number
from nn_core.utils.data_iterator import DataIterator, data_iterator
from nn_core.utils.data_source import DataSource, DataSourceWithMemoryCache, SlicedDataSource
from nn_core.utils.learning_rate_scheduler import BaseLearningRateScheduler, CosineScheduler


class Named(nn.Variable):
    """Made as NNabla's users do; ``__init__`` gets the same arguments and must leave the values alone."""

    def __new__(cls, shape, need_grad=False, tag=""):
        made = super().__new__(cls, shape, need_grad)
        made.d, made.tag = 3, tag
        return made


class Initialized(nn.Variable):
    def __init__(self, n):
        super().__init__((n, 2), need_grad=True)
        self.n = n


class Both(nn.Variable):
    def __new__(cls, *shape):
        return super().__new__(cls, shape, True)

    def __init__(self, *shape):
        super().__init__()
        self.n = len(shape)


class Square(nn.NdArray):
    def __new__(cls, n):
        made = super().__new__(cls, (n, n))
        made.data = 2
        return made


@pytest.mark.parametrize(
    ("made", "shape"), [(Named((2, 3), True, tag="t"), (2, 3)), (Initialized(4), (4, 2)), (Both(2, 1), (2, 1))]
)
def test_subclasses_of_variable_take_part_in_graphs(made, shape):
    assert made.shape == shape and made.need_grad
    made.d = 3
    loss = F.sum(made * made)
    made.grad.zero()
    loss.forward()
    loss.backward()
    np.testing.assert_array_equal(made.g, np.full(shape, 6))
    assert type(copy.deepcopy(made)) is type(made)


def test_what_new_has_written_survives():
    named = Named((2, 3), tag="t")
    assert (named.tag, named.d.sum(), named.need_grad) == ("t", 18, False)
    assert pickle.loads(pickle.dumps(named)).tag == "t"
    assert Square(2).data.tolist() == [[2, 2], [2, 2]]
    assert Both(2, 1).n == 2


def test_new_alone_makes_a_complete_variable():
    made = nn.Variable.__new__(nn.Variable, (2, 3), True)
    assert (made.shape, made.need_grad, made.d.sum()) == ((2, 3), True, 0)
    assert nn.NdArray.__new__(nn.NdArray, (2,)).shape == (2,)


class Labelled(Named):
    """A subclass of a subclass, with ``__init__`` beside the ``__new__`` that constructs."""

    def __init__(self, shape, **rest):
        self.label = shape


def test_one_protocol_makes_both_kinds_of_values_and_their_subclasses():
    assert str(inspect.signature(nn.NdArray)).startswith("(shape: collections.abc.Iterable[int] | int = (), *lengths")
    assert list(inspect.signature(nn.Variable).parameters) == ["shape", "need_grad", "name"]
    assert list(inspect.signature(Initialized).parameters) == ["n"]
    labelled = Labelled((2, 3), tag="t")
    assert (labelled.label, labelled.tag, labelled.d.sum()) == ((2, 3), "t", 18)
    with pytest.raises(ArgumentError, match="Variable: need_grad must be True, False or None, got 5"):
        type("Wrong", (nn.Variable,), {"__init__": lambda self: nn.Variable.__init__(self, (2,), 5)})()
    with pytest.raises(SignatureError, match="NdArray: got an unexpected keyword argument 'x'"):
        type("Wrong", (nn.NdArray,), {"__init__": lambda self: nn.NdArray.__init__(self, (2,), x=1)})()


def test_wrong_arguments_of_new_are_refused_by_name():
    with pytest.raises(ArgumentError, match="Variable: need_grad must be True, False or None, got 5"):
        nn.Variable.__new__(nn.Variable, (2,), 5)
    with pytest.raises(SignatureError, match="Variable: got an unexpected keyword argument 'x'"):
        nn.Variable((2,), x=1)
    with pytest.raises(SignatureError, match="NdArray: got an unexpected keyword argument 'x'"):
        nn.NdArray((2,), x=1)
    with pytest.raises(ShapeError, match="every length must be an int"):
        nn.NdArray((2, "a"))


class Forwarding(Solver):
    """A solver around another one, which is there only after the constructor of the base class."""

    def __init__(self, solver):
        super().__init__()
        self._solver = solver
        self.alpha = self.lr = 0.5
        self.update = solver.update

    @property
    def name(self):
        return self._solver.name

    def set_parameters(self, *args, **kwargs):
        self._solver.set_parameters(*args, **kwargs)

    def zero_grad(self):
        self._solver.zero_grad()


class Late(Solver):
    """A solver around another one that the base class does not initialize."""

    def __init__(self, solver):
        self._solver = solver

    def __getattr__(self, name):
        return getattr(self._solver, name)


def test_a_solver_may_wrap_another_one():
    w = nn.Variable.from_numpy_array([4.0], need_grad=True)
    wrapped = Forwarding(S.Sgd(0.5))
    wrapped.set_parameters({"w": w})
    loss = F.sum(w)
    loss.forward()
    wrapped.zero_grad()
    loss.backward()
    wrapped.update()
    assert (w.d.tolist(), wrapped.name, wrapped.alpha, wrapped.lr) == ([3.5], "Sgd", 0.5, 0.5)
    assert Late(S.Adam(0.25)).alpha == 0.25


def test_a_missing_solver_is_an_error_and_no_recursion():
    with pytest.raises(UnknownAttributeError, match="Forwarding: has no attribute 'name'"):
        Forwarding.__new__(Forwarding).name  # noqa: B018


def test_typing_errors_in_numbers_are_still_refused():
    class Doubled(S.Sgd):
        pass

    solver = Doubled(0.5)
    solver.note = 1
    with pytest.raises(UnknownAttributeError, match="the learning rate is lr"):
        solver.alpha = 0.1
    with pytest.raises(UnknownAttributeError):
        S.Sgd().update = None


class Digits(DataSource):
    def __init__(self, shuffle=False, rng=None):
        super().__init__(shuffle=shuffle)
        self._size, self._variables = 4, ("x",)
        self.rng = np.random.RandomState(313) if rng is None else rng
        self.reset()

    def reset(self):
        self._indexes = self.rng.permutation(self._size) if self._shuffle else np.arange(self._size)
        super().reset()

    def _get_data(self, position):
        return (self._indexes[position],)


def test_a_data_source_may_set_its_generator():
    rng = np.random.RandomState(7)
    source = Digits(shuffle=True, rng=rng)
    assert source.rng is rng
    expected = np.random.RandomState(7).permutation(4).tolist()
    with data_iterator(source, 4, rng=rng, with_memory_cache=False) as batches:
        assert sorted(batches.next()[0].tolist()) == sorted(expected)
    source.shuffle = False
    assert source.shuffle is False
    with pytest.raises(ArgumentError, match="Digits: shuffle: must be True or False"):
        source.shuffle = "no"


class Counting(nn.PythonFunction):
    def __init__(self, ctx=None):
        super().__init__(ctx)


class Half(Module):
    def call(self, x):
        return F.mul_scalar(x, 0.5)


#: Classes in the manner of programs; every attribute that is no setting with a check of its own may be assigned.
KINDS = {
    "DataSource": Digits,
    "SlicedDataSource": lambda: type("Part", (SlicedDataSource,), {})(Digits(), False, None, 0, 2),
    "DataSourceWithMemoryCache": lambda: type("Cached", (DataSourceWithMemoryCache,), {})(Digits()),
    "DataIterator": lambda: type("Batches", (DataIterator,), {})(Digits(), 2, use_thread=False),
    "Solver": type("Plain", (Solver,), {}),
    "Adam": type("OwnAdam", (S.Adam,), {}),
    "BaseInitializer": type("Own", (I.BaseInitializer,), {}),
    "NormalInitializer": type("Normal", (I.NormalInitializer,), {}),
    "BaseLearningRateScheduler": type("Rate", (BaseLearningRateScheduler,), {}),
    "CosineScheduler": lambda: type("Wave", (CosineScheduler,), {})(0.1, 10),
    "PythonFunction": Counting,
    "Module": Half,
    "Variable": lambda: Named((2, 3)),
    "NdArray": lambda: Square(2),
    "FunctionModifier": type("Modifier", (FunctionModifier,), {}),
    "IdentityModifier": type("Same", (IdentityModifier,), {}),
    "GraphConverter": lambda: type("Converter", (GraphConverter,), {})([]),
    "Communicator": lambda: type("Comm", (Communicator,), {})(nn.get_current_context()),
    "Monitor": lambda: type("Log", (Monitor,), {})("log"),
    "MonitorSeries": lambda: type("Series", (MonitorSeries,), {})("a", Monitor("log"), verbose=False),
}
FREE = ("alpha", "lr", "learning_rate", "update", "model", "counter", "params", "states", "rank_of_mine", "foo")
#: Names that are computed in some class, and may be replaced by a value.
COMPUTED = {"DataSource": ("rng",), "Solver": ("info", "name"), "Adam": ("info",)}


@pytest.mark.parametrize("kind", KINDS)
def test_programs_may_assign_attributes(kind, tmp_path, monkeypatch, mode):
    monkeypatch.chdir(tmp_path)
    cls, value = type(KINDS[kind]()), object()
    settings = {name for name in dir(cls) if isinstance(getattr(cls, name), (property, Number))}
    names = {name for name in dir(KINDS[kind]()) if not name.startswith("_")} - settings
    for name in {*names, *(set(FREE) - settings), *COMPUTED.get(kind, ())}:
        made = KINDS[kind]()
        setattr(made, name, value)
        assert getattr(made, name) is value, name


@pytest.fixture
def mode():
    set_nnabla_program(True)
    yield
    set_nnabla_program(False)


def test_an_attribute_that_a_rule_lacks_is_refused_unless_a_program_runs_unchanged(mode, caplog):
    class Own(S.Adam):
        pass

    with caplog.at_level("WARNING"):
        for _ in range(2):
            Own().lr = 0.5
    text = "Own: an attribute must be one of alpha, beta1, beta2, eps, got 'lr', which is no number of the rule"
    assert [record.message for record in caplog.records] == [text]
    with pytest.raises(UnknownAttributeError, match="the learning rate is alpha"):
        S.Adam().lr = 0.5  # a class of nn_core: NNabla refuses it as well
    set_nnabla_program(False)
    with pytest.raises(UnknownAttributeError, match="the learning rate is alpha"):
        Own().lr = 0.5


def test_what_a_module_computes_cannot_be_assigned(mode, caplog):
    class Part(Half):
        def __init__(self):
            self.name = "mine"

    class Whole(Half):
        def __init__(self):
            self.part = Part()

    with caplog.at_level("WARNING"):
        assert Whole().part.name == "part"  # as in NNabla, which never reads the value
    assert [record.message for record in caplog.records] == [
        "Part: name is computed and cannot be assigned, got 'mine', which has no effect"
    ]
    set_nnabla_program(False)
    with pytest.raises(UnknownAttributeError, match=r"(?s)Part: name is computed.*hint: give the attribute another name"):
        Part()
    own = type("Own", (Half,), {"name": "class attribute"})()
    own.name = "mine"
    assert own.name == "mine"


def test_variables_of_modules_are_live():
    assert nn.context.current_ctx == nn.get_current_context()
    with nn.context_scope(nn.Context(["reference:half"])):
        assert nn.context.current_ctx.backend == ["reference:half"]
    root = nn.parameter.root_scope
    assert nn.parameter.current_scope is root and nn.parameter.current_no_grad is False
    with nn.parameter_scope("a"), nn.no_grad():
        assert nn.parameter.current_scope is root["a"] and nn.parameter.current_no_grad is True
    own = {}
    with nn.parameter_scope("a", own):
        assert nn.parameter.root_scope is own
    for module in (nn.parameter, nn.context):
        with pytest.raises(UnknownAttributeError, match="has no attribute 'current_acme'"):
            module.current_acme  # noqa: B018
