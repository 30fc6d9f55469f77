"""Every way of running a graph, mixed at random, against the definition: a pass reads what the last passes wrote.

The model knows for each array what it must hold, computed by NumPy function by function. Reading an array whose memory
was handed on may be refused, but never gives other numbers.
"""

import contextlib
import os
from importlib.util import find_spec

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.errors import GraphError
from nn_core.settings import OPTIMIZATIONS, without

#: Steps of one run of the machine, and how many runs; NN_CORE_MACHINE_RUNS makes a long test of it.
STEPS = 50
RUNS = int(os.environ.get("NN_CORE_MACHINE_RUNS", "12"))
SEED = int(os.environ.get("NN_CORE_MACHINE_SEED", "0"))
#: A failure is printed at once in the long test: making it smaller takes minutes.
PHASES = (Phase.generate,) if os.environ.get("NOSHRINK") else (Phase.generate, Phase.shrink)
MAX_VARIABLES = 14
#: Large, because a channel of equal numbers would otherwise have a gradient that is all rounding.
EPS = 0.5
DTYPES = ("float32", "float64", "float16", "int64", "int32")

BACKENDS = ["cpu", "reference"] if find_spec("nn_ext_cpu") else ["reference"]


def _sigmoid(x):
    return 0.5 * (1 + np.tanh(x / 2))


def _product(x, w):
    return np.einsum("nc...,oc->no...", x, w.reshape(w.shape[:2])) if x.ndim == 4 else x @ w


def _others(x):
    """The axes that batch normalization averages over, and the shape of a number for each channel."""
    return tuple([axis for axis in range(x.ndim) if axis != 1]), (1, -1, *[1] * (x.ndim - 2))


def _statistics(x):
    others, _ = _others(x)
    return x.mean(others, keepdims=True), np.sqrt(x.var(others, keepdims=True) + EPS)


def _normalized(x, beta, gamma):
    (mean, scale), (_, wide) = _statistics(x), _others(x)
    return (x - mean) / scale * gamma.reshape(wide) + beta.reshape(wide)


def _normalization_gradients(g, x, beta, gamma, statistics):
    """By the statistics of the forward pass, which are not those of x where it has got other values since."""
    (mean, scale), (others, wide) = statistics, _others(x)
    standard = (x - mean) / scale
    through = g * gamma.reshape(wide)
    gx = through - through.mean(others, keepdims=True) - standard * (through * standard).mean(others, keepdims=True)
    sums = [part.sum(others).reshape(beta.shape) for part in (g, g * standard)]
    return [gx / scale, *sums]


class Square(nn.PythonFunction):
    """A function in Python, which plans call between kernels."""

    def min_outputs(self):
        return 1

    def setup_impl(self, inputs, outputs):
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs, outputs):
        outputs[0].d = inputs[0].d ** 2 / 4

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        if propagate_down[0]:
            inputs[0].g = outputs[0].g * inputs[0].d / 2 + (inputs[0].g if accum[0] else 0)


def _normalize(x, beta, gamma):
    shape = beta.shape
    mean, variance = nn.Variable(shape), nn.Variable.from_numpy_array(np.ones(shape, np.float32))
    return F.batch_normalization(x, beta, gamma, mean, variance, eps=EPS)


def _product_gradients(g, x, w):
    if x.ndim == 4:
        gx = np.einsum("no...,oc->nc...", g, w.reshape(w.shape[:2]))
        return gx, np.einsum("nohw,nchw->oc", g, x).reshape(w.shape)
    return g @ w.T, x.T @ g


#: name: number of inputs, call, values, gradients of the inputs by (gradient, inputs, output, what the forward pass kept)
OPERATIONS = {
    "tanh": (1, F.tanh, np.tanh, lambda g, xs, y: [g * (1 - y * y)]),
    "sigmoid": (1, F.sigmoid, _sigmoid, lambda g, xs, y: [g * y * (1 - y)]),
    "relu": (1, F.relu, lambda x: np.maximum(x, 0), lambda g, xs, y: [g * (y > 0)]),
    "sin": (1, F.sin, np.sin, lambda g, xs, y: [g * np.cos(xs[0])]),
    "add": (2, F.add2, np.add, lambda g, xs, y: [g, g]),
    "subtract": (2, F.sub2, np.subtract, lambda g, xs, y: [g, -g]),
    "multiply": (2, F.mul2, np.multiply, lambda g, xs, y: [g * xs[1], g * xs[0]]),
    "identity": (1, F.identity, lambda x: x.copy(), lambda g, xs, y: [g]),
    "flip": (1, lambda x: F.flip(x, axes=(1,)), lambda x: x[:, ::-1].copy(), lambda g, xs, y: [g[:, ::-1]]),
    "scale": (1, lambda x: F.mul_scalar(x, 0.5), lambda x: x * 0.5, lambda g, xs, y: [g * 0.5]),
    "view": (1, lambda x: F.reshape(x, (-1, *x.shape[1:])), lambda x: x, lambda g, xs, y: [g]),
    "reshape": (1, lambda x: F.reshape(x, (-1, *x.shape[1:]), inplace=False), lambda x: x.copy(), lambda g, xs, y: [g]),
    "python": (1, Square(), lambda x: x * x / 4, lambda g, xs, y: [g * xs[0] / 2]),
    "normalize": (1, _normalize, _normalized, lambda g, xs, y, kept: _normalization_gradients(g, *xs, kept)),
    "product": (1, None, _product, lambda g, xs, y: _product_gradients(g, *xs)),
}


class Store:
    """The expected values of an array; None: it was never computed."""

    def __init__(self, value=None):
        self.value = value
        self.gone = False  # may be refused


class Value:
    """A variable, with what its data and its gradient must hold."""

    def __init__(self, variable, store, gradient=None, operation=None, inputs=()):
        self.variable = variable
        self.store = store
        self.gradient = gradient if gradient is not None else Store(np.zeros(variable.shape))
        self.operation = operation
        self.inputs = inputs
        self.need_grad = None
        self.recompute = False
        self.persistent = False
        self.hidden_gone = False  # whether statistics of a normalization, which no variable shows, were given up
        self.stamp = None  # at which version it was computed
        self.kept = ()  # what the forward pass keeps for the gradient besides the values of variables

    def compute(self):
        """Return what the function gives for the values that its inputs hold now."""
        xs = [below.store.value for below in self.inputs]
        self.kept = (_statistics(xs[0]),) if self.operation == "normalize" else ()
        return OPERATIONS[self.operation][2](*xs)

    @property
    def needs(self):
        if self.need_grad is not None:
            return self.need_grad
        return any(value.needs for value in self.inputs)


def order_of(roots):
    order, seen = [], set()

    def visit(value):
        if id(value) not in seen:
            seen.add(id(value))
            for below in value.inputs:
                visit(below)
            if value.operation is not None:
                order.append(value)

    for root in roots:
        visit(root)
    return order


def leaves_of(order):
    return list({id(v): v for node in order for v in node.inputs if v.operation is None}.values())


def read_and_written(order):
    """Return whether an array is a leaf's and a function's at once: unlinked variables beside those they were unlinked
    from.
    """
    stores = {id(array) for leaf in leaves_of(order) for array in (leaf.store, leaf.gradient)}
    return any(id(value.gradient) in stores or (value.operation != "view" and id(value.store) in stores) for value in order)


class GraphMachine(RuleBasedStateMachine):
    """Builds one graph, and runs it in every way."""

    #: in all runs together
    n_steps = 0

    def __init__(self):
        super().__init__()
        self.values = []
        self.stack = contextlib.ExitStack()
        self.coarse = False  # whether an array of float16 was ever there
        self.version = 0  # counts changes of leaves and flags
        self.last = (frozenset(), "")  # the results and the kind of the last forward pass

    @initialize(images=st.booleans(), n=st.integers(0, 2**31 - 1))
    def start(self, images, n):
        self.rng = np.random.default_rng(n)
        self.shape = (2, 4, 3, 3) if images else (3, 4)
        self.weight_shape = (4, 4, 1, 1) if images else (4, 4)
        self.channels = (1, 4, 1, 1) if images else (1, 4)
        self.leaf("float32", True)
        self.apply("product", 0, 0, "float32", 0)
        self.apply("tanh", 1, 0, "float32", 0)
        self.apply("product", 2, 0, "float32", 0)

    def teardown(self):
        self.stack.close()

    # -- choosing --------------------------------------------------------------------------------------------------

    def numbers(self, shape, dtype="float64"):
        values = self.rng.integers(-12, 13, shape) / 8
        return np.rint(values).astype(dtype) if dtype.startswith("int") else values.astype(dtype)

    def pick(self, index, test=lambda value: True):
        """A variable that passes `test`, or None."""
        chosen = [value for value in self.values if test(value)]
        return chosen[index % len(chosen)] if chosen else None

    def pick_plain(self, index, test=lambda value: True):
        return self.pick(index, lambda value: value.variable.shape == self.shape and test(value))

    # -- building --------------------------------------------------------------------------------------------------

    def factor_of(self, name, index, dtype):
        """The further inputs of a function that has parameters: those of an earlier call, or new ones."""
        shapes = {"product": [self.weight_shape], "normalize": [self.channels, self.channels]}.get(name, [])
        found = [self.pick(index, lambda value, shape=shape: value.variable.shape == shape) for shape in shapes]
        return [
            known if known is not None and (index + place) % 3 else self.leaf_of(shape, dtype, True)
            for place, (known, shape) in enumerate(zip(found, shapes, strict=True))
        ]

    def call(self, name, inputs, backend):
        """The variable of a function of `inputs`."""
        function = OPERATIONS[name][1] or (F.convolution if len(self.shape) == 4 else F.affine)
        with nn.context_scope(nn.Context([f"{BACKENDS[backend % len(BACKENDS)]}:float", "reference:float"])):
            return function(*[value.variable for value in inputs])

    def leaf_of(self, shape, dtype, need_grad):
        variable = nn.Variable(shape, need_grad=need_grad)
        value = Value(variable, Store())
        value.need_grad = need_grad
        self.values.append(value)
        self.put(value, dtype)
        return value

    def put(self, value, dtype):
        self.coarse = self.coarse or dtype == "float16"
        numbers = self.numbers(value.variable.shape, dtype)
        value.variable.d = numbers
        value.store.value = numbers.astype(float)
        value.store.gone = False
        self.version += 1

    @precondition(lambda self: len(self.values) < MAX_VARIABLES)
    @rule(dtype=st.sampled_from(DTYPES), need_grad=st.booleans())
    def leaf(self, dtype, need_grad):
        self.leaf_of(self.shape, dtype, need_grad)

    @precondition(lambda self: len(self.values) < MAX_VARIABLES)
    @rule(
        name=st.sampled_from(sorted(OPERATIONS)),
        first=st.integers(0, 99),
        second=st.integers(0, 99),
        dtype=st.sampled_from(DTYPES[:2]),
        backend=st.integers(0, 1),
    )
    def apply(self, name, first, second, dtype, backend):
        inputs = [self.pick_plain(index) for index in (first, second)[: OPERATIONS[name][0]]]
        inputs += self.factor_of(name, second, dtype)
        variable = self.call(name, inputs, backend)
        store = inputs[0].store if name == "view" else Store()
        self.values.append(Value(variable, store, None, name, tuple(inputs)))

    # -- passes ----------------------------------------------------------------------------------------------------

    def hooks(self, with_hooks):
        return {"function_pre_hook": lambda f: None} if with_hooks else {}

    @rule(
        index=st.integers(0, 99),
        other=st.none() | st.integers(0, 99),
        policy=st.sampled_from(["keep", "lean", "lean", "clear"]),
        hooks=st.sampled_from([False, False, False, True]),
    )
    def forward(self, index, other, policy, hooks):
        roots = [self.pick(index, lambda value: value.operation is not None)]
        if other is not None:
            roots.append(self.pick(other, lambda value: value.operation is not None))
        if roots[0] is None:
            return
        self.run_forward(roots, policy, hooks)

    def run_forward(self, roots, policy, hooks):
        flags = {"clear_buffer": policy == "clear", "clear_no_need_grad": policy == "lean"}
        order = order_of(roots)
        if read_and_written(order):
            return
        refusable = any(leaf.store.gone for leaf in leaves_of(order))
        try:
            if len(roots) == 1:
                roots[0].variable.forward(**flags, **self.hooks(hooks))
            else:
                nn.forward_all([root.variable for root in roots], **flags, **self.hooks(hooks))
        except GraphError:
            assert refusable, "the forward pass must be possible"
            return
        policy = "keep" if hooks else policy
        survivors = {id(root.store) for root in roots} | {id(v.store) for v in order if v.persistent}
        leaves = {id(leaf.store) for leaf in leaves_of(order)}
        for value in order:
            if value.operation != "view" or value.store is not value.inputs[0].store:
                value.store.value = value.compute()
            value.stamp = self.version
            value.hidden_gone = policy == "clear"
            if id(value.store) not in leaves:
                value.store.gone = id(value.store) not in survivors and (policy != "keep" or value.recompute)
        for value in order:  # several variables of one array
            if value.recompute and id(value.store) not in survivors | leaves:
                value.store.gone = True
        self.last = ({id(root) for root in roots}, policy)

    def must_be_possible(self, root, order):
        if id(root) in self.last[0] and self.last[1] in ("keep", "lean"):
            return not self.is_stale(order)
        return not any(value.store.gone or value.hidden_gone for value in order) and not self.is_stale(order)

    def is_stale(self, order):
        return any(value.stamp != self.version for value in order)

    @rule(
        index=st.integers(0, 99),
        start=st.sampled_from(["one", "array", "own"]),
        clear=st.booleans(),
        hooks=st.sampled_from([False, False, False, True]),
    )
    def backward(self, index, start, clear, hooks):
        root = self.pick(index, lambda value: value.operation is not None)
        if root is None:
            return
        order = order_of([root])
        everything = [*order, *leaves_of(order)]
        if any(value.store.value is None for value in everything):
            return
        if self.is_stale(order) and any(value.recompute for value in order):
            return
        if read_and_written(order):
            return
        possible = self.must_be_possible(root, order) and not any(leaf.store.gone for leaf in leaves_of(order))
        if start == "own":
            numbers = self.numbers(root.variable.shape)
            root.variable.g = numbers
            root.gradient.value, root.gradient.gone = numbers, False
        else:
            numbers = self.numbers(root.variable.shape) if start == "array" else np.ones(root.variable.shape)
        argument = {"one": 1, "array": numbers, "own": None}[start]
        try:
            root.variable.backward(argument, clear_buffer=clear, **self.hooks(hooks))
        except GraphError:
            assert not possible, "the backward pass must be possible"
            return
        self.last = (frozenset(), "")
        self.propagate(root, order, numbers, clear and not hooks)

    def propagate(self, root, order, start, clear):
        if not root.needs:
            return
        gradients = {id(root): start}
        for value in reversed(order):
            if id(value) not in gradients or not any(below.needs for below in value.inputs):
                continue
            xs = [below.store.value for below in value.inputs]
            parts = OPERATIONS[value.operation][3](gradients[id(value)], xs, value.store.value, *value.kept)
            for below, part in zip(value.inputs, parts, strict=True):
                if below.needs:
                    gradients[id(below)] = gradients.get(id(below), 0) + part
        for value in [*order, *leaves_of(order)]:
            if value is root or id(value) not in gradients:
                continue
            if value.operation is None:
                before = 0 if value.gradient.gone else value.gradient.value
                value.gradient.value, value.gradient.gone = before + gradients[id(value)], False
            else:
                value.gradient.value = gradients[id(value)]
                value.gradient.gone = clear and not value.persistent
        if clear:
            kept = {id(root.store)} | {id(v.store) for v in order if v.persistent}
            kept |= {id(leaf.store) for leaf in leaves_of(order)}
            for value in order:
                value.store.gone = value.store.gone or id(value.store) not in kept
                value.hidden_gone = True

    # -- changing --------------------------------------------------------------------------------------------------

    @rule(index=st.integers(0, 99), dtype=st.sampled_from(DTYPES), how=st.sampled_from(["assign", "in place", "fill"]))
    def change_data(self, index, dtype, how):
        value = self.pick(index, lambda value: value.operation is None)
        if how == "assign":
            self.put(value, dtype)
        elif how == "fill":
            number = float(self.numbers(()))
            value.variable.d = number
            value.store.value, value.store.gone = np.full(value.variable.shape, number), False
        elif not value.store.gone:
            array = value.variable.d
            numbers = self.numbers(value.variable.shape, array.dtype.name)
            self.coarse = self.coarse or array.dtype == np.float16
            array[...] = numbers
            value.store.value = numbers.astype(float)
        self.version += 1

    @rule(index=st.integers(0, 99), how=st.sampled_from(["zero", "zero", "float32", "float64"]), every=st.booleans())
    def change_gradient(self, index, how, every):
        leaves = [value for value in self.values if value.operation is None]
        for value in leaves if every else [leaves[index % len(leaves)]]:
            if how == "zero":
                value.variable.grad.zero()
                value.gradient.value = np.zeros(value.variable.shape)
            else:
                value.gradient.value = self.numbers(value.variable.shape)
                value.variable.g = value.gradient.value.astype(how)
            value.gradient.gone = False

    @rule(index=st.integers(0, 99), what=st.sampled_from(["data", "grad"]), dtype=st.sampled_from(DTYPES[:2]))
    def replace_array(self, index, what, dtype):
        value = self.pick(index, lambda value: value.operation is None)
        if what == "data" and any(v.store is value.store and v.operation == "view" for v in self.values):
            return
        numbers = self.numbers(value.variable.shape, dtype)
        setattr(value.variable, what, nn.NdArray.from_numpy_array(numbers))
        name, store = "store" if what == "data" else "gradient", Store(numbers.astype(float))
        for other in self.values:
            if other.variable.storage is value.variable.storage:
                setattr(other, name, store)
        self.version += what == "data"

    @rule(first=st.integers(0, 99), second=st.integers(0, 99))
    def share_gradient(self, first, second):
        computed = {id(value.variable.storage) for value in self.values if value.operation is not None}
        one, other = (
            self.pick_plain(i, lambda v: v.operation is None and id(v.variable.storage) not in computed)
            for i in (first, second)
        )
        if one is not None and other is not None and one.variable.storage is not other.variable.storage:
            other.variable.grad = one.variable.grad
            for value in self.values:
                if value.variable.storage is other.variable.storage:
                    value.gradient = one.gradient

    @rule(index=st.integers(0, 99), flag=st.sampled_from(["need_grad", "persistent", "recompute"]), on=st.booleans())
    def change_flag(self, index, flag, on):
        value = self.pick(index)
        if flag == "recompute" and (value.operation is None or value.operation == "view"):
            return
        if flag == "need_grad" and value.operation is not None:
            on = None if on else False
        setattr(value.variable, flag, on)
        setattr(value, flag, on)
        self.version += 1

    @rule(names=st.sets(st.sampled_from(sorted(OPTIMIZATIONS)), max_size=3))
    def switch(self, names):
        self.stack.close()
        self.stack.enter_context(without(*names))

    @rule(index=st.integers(0, 99))
    def update(self, index):
        leaves = [v for v in self.values if v.operation is None and v.need_grad and not v.store.gone and not v.gradient.gone]
        storages = {id(value.variable.storage): value for value in leaves}
        gradients = [id(value.gradient) for value in storages.values()]
        stores = [id(value.store) for value in storages.values()]
        if not storages or len(set(gradients)) < len(gradients) or len(set(stores)) < len(stores):
            return
        solver = S.Sgd(0.25)
        solver.set_parameters({str(i): value.variable for i, value in enumerate(storages.values())})
        solver.update()
        for value in storages.values():
            value.store.value = value.store.value - 0.25 * value.gradient.value
        self.version += 1

    @precondition(lambda self: len(self.values) < MAX_VARIABLES)
    @rule(index=st.integers(0, 99), need_grad=st.booleans())
    def unlink(self, index, need_grad):
        value = self.pick(index)
        if value.store.value is None:
            return
        variable = value.variable.get_unlinked_variable(need_grad=need_grad)
        other = Value(variable, value.store, value.gradient)
        other.need_grad = need_grad
        self.values.append(other)

    @rule(index=st.integers(0, 99), need_grad=st.booleans())
    def cut(self, index, need_grad):
        value = self.pick(index, lambda value: value.operation is not None)
        if value is None or value.store.value is None:
            return
        value.variable.parent = None
        value.variable.need_grad = need_grad
        value.operation, value.inputs, value.need_grad = None, (), need_grad
        self.version += 1

    @rule(first=st.integers(0, 99), second=st.integers(0, 99))
    def rewire(self, first, second):
        target = self.pick_plain(first, lambda value: value.operation is None)
        source = self.pick_plain(second, lambda value: value.operation is not None and value.store.value is not None)
        if target is None or source is None or target.variable.storage is source.variable.storage:
            return
        if any(below.variable.storage is target.variable.storage for node in order_of([source]) for below in node.inputs):
            return
        target.variable.rewire_on(source.variable)
        for name in ("store", "gradient", "operation", "inputs", "kept"):
            setattr(target, name, getattr(source, name))
        target.need_grad = None
        source.operation, source.inputs = None, ()
        target.recompute, target.variable.recompute = False, False
        self.version += 1

    @rule(length=st.sampled_from([2, 3, 5, 8]), policy=st.sampled_from(["keep", "lean", "clear"]))
    def reset_shapes(self, length, policy):
        """Another batch size: all leaves change their shape, and the graph follows with the next forward pass."""
        computed = [value for value in self.values if value.operation is not None]
        storages = {id(value.variable.storage) for value in computed}
        leaves = [value for value in self.values if value.operation is None and value.variable.shape == self.shape]
        stores = {id(value.store) for value in computed if value.operation != "view"}
        if not computed or any(id(v.variable.storage) in storages or id(v.store) in stores for v in leaves):
            return  # the array of a leaf is also what a function gives
        if length == self.shape[0] or any(v.gradient is other.gradient for v in leaves for other in computed):
            return
        self.shape = (length, *self.shape[1:])
        fresh = {}  # leaves that were views of each other are not any more
        for value in leaves:
            value.store = fresh.setdefault(id(value.variable.storage), Store())
            value.variable.reset_shape(self.shape, True)
            value.variable.grad.zero()
            value.gradient.value, value.gradient.gone = np.zeros(self.shape), False
            self.put(value, "float32")
        for value in computed:
            value.gradient.value, value.gradient.gone = np.zeros(self.shape), True
            if value.operation == "view":
                value.store = value.inputs[0].store
        self.run_forward(computed, policy, False)

    @rule(
        calls=st.lists(
            st.tuples(st.sampled_from(sorted(set(OPERATIONS) - {"view"})), st.integers(0, 9), st.integers(0, 9)),
            min_size=1,
            max_size=5,
        ),
        backend=st.integers(0, 1),
        repeats=st.integers(1, 4),
        look=st.none() | st.integers(0, 9),
        clear=st.sampled_from([True, True, False]),
    )
    def train_dynamically(self, calls, backend, repeats, look, clear):
        """Build a graph that computes at once, several times, on leaves of the static graph; go back through each."""
        for _ in range(repeats):
            made = []
            with nn.auto_forward():
                for name, first, second in calls:
                    known = [*made, *[v for v in self.values if v.operation is None and self.is_usable(v)]]
                    inputs = (
                        [known[-1 - index % len(known)] for index in (first, second)[: OPERATIONS[name][0]]] if known else []
                    )
                    if not inputs:
                        return
                    inputs += self.factor_of(name, second, "float32")
                    if any(value.store.gone or value.store.value is None for value in inputs):
                        return
                    value = Value(self.call(name, inputs, backend), Store(), None, name, tuple(inputs))
                    value.store.value = value.compute()
                    made.append(value)
            if look is not None:
                self.check(made[look % len(made)], "d")
            root = made[-1]
            self.check(root, "d")
            root.variable.backward(clear_buffer=clear)
            self.propagate(root, order_of([root]), np.ones(root.variable.shape), clear)
            self.leaf_gradients_are_right()

    def is_usable(self, value):
        return value.variable.shape == self.shape and not value.store.gone and value.store.value is not None

    # -- looking ---------------------------------------------------------------------------------------------------

    @rule(index=st.integers(0, 99), what=st.sampled_from(["d", "data", "g"]))
    def read(self, index, what):
        self.check(self.pick(index), what)

    def check(self, value, what):
        if value.store.value is None:
            return
        store = value.gradient if what == "g" else value.store
        try:
            array = value.variable.data.get_data("r") if what == "data" else getattr(value.variable, what)
        except GraphError:
            assert store.gone, f"{value.operation}.{what} must be readable"
            return
        self.compare(array, store.value, f"{what} of {value.operation or 'a leaf'}")

    def compare(self, array, wanted, what):
        """Equal up to rounding: that of float16 where an array of that type was ever in the graph."""
        scale = max(1.0, float(np.abs(wanted).max()))
        if scale < 1e4:
            np.testing.assert_allclose(array, wanted, rtol=0, atol=(6e-3 if self.coarse else 2e-4) * scale, err_msg=what)

    @invariant()
    def leaf_gradients_are_right(self):
        GraphMachine.n_steps += 1
        for value in self.values:
            if value.operation is None and value.need_grad and not value.gradient.gone:
                self.compare(value.variable.grad.get_data("r"), value.gradient.value, "gradient of a leaf")


def test_every_mixture_of_passes_gives_what_the_definition_says():
    machine = settings(
        max_examples=RUNS,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        phases=PHASES,
    )
    run_state_machine_as_test(seeded(SEED)(GraphMachine), settings=machine)
    print(f"{GraphMachine.n_steps} steps")  # seen with pytest -s
