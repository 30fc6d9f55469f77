"""Run a program in a way, and compare every result with the truth."""

import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

import nn_core as nn
from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.arrays.leases import UNCOMPUTED
from nn_core.engine.graph.node import Storage, forward_order
from nn_core.errors import GraphError, NNCoreError
from nn_core.parametric_functions.scope import get_parameter_or_create
from nn_core.variable import Variable

from .namespace import fresh_namespace
from .noise import FEW, HALVES, agree, dtypes_of, is_floating, magnitude
from .oracle import MANY, Graph, Slack, Truth, truth_of
from .program import HALF_TYPES, Array, Leaf, Program, Step, compiled, initial_value, opening
from .ways import SOLVERS, TYPE_CONFIGS, Action, Way

#: An input of the program by number, or a parameter by name.
Key = int | str

SCALE: Final = 2.5
#: Steps of a solver with the same gradients: the second one reads the states of the first.
UPDATES: Final = 2
FORWARD: Final = {
    "keep": "v{0}.forward()",
    "train": "v{0}.forward(clear_no_need_grad=True)",
    "infer": "v{0}.forward(clear_buffer=True)",
    "hook": "v{0}.forward(function_post_hook=lambda f: None)",
    "hook_train": "v{0}.forward(clear_no_need_grad=True, function_pre_hook=lambda f: None)",
    "all": "nn.forward_all([{1}])",
    "all_train": "nn.forward_all([{1}], clear_no_need_grad=True)",
}
BACKWARD: Final = {
    "plain": "v{0}.backward()",
    "clear": "v{0}.backward(clear_buffer=True)",
    "hook": "v{0}.backward(function_post_hook=lambda f: None)",
    "scale": "v{0}.backward(2.5)",
}


_METHODS: Final = {
    **{kind: f"_{kind}" for kind in ("switch", "flag", "batch", "write", "forward", "build", "backward", "zero", "update")},
    "gradients": "_gradients",
    "data": "_data_",
    "read": "_read_all",
}


class Skip(Exception):  # noqa: N818
    """The way cannot be followed further, and nothing is wrong."""


class Difference(Exception):  # noqa: N818
    """A result that differs from the truth, or an exception that should not be."""

    def __init__(self, title: str, check: str = "") -> None:
        super().__init__(title)
        self.title = title
        self.check = check


@dataclass
class Counts:
    """The counts of a lane."""

    programs: int = 0
    runs: int = 0
    compared: int = 0
    rounding: int = 0
    undecided: int = 0


COUNTS: Final = Counts()


class Reference:
    """The graph of a program on which truth is computed, once for all ways."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.space = {**fresh_namespace(), **{name: nn.Context([f"reference:{name}"]) for name in HALF_TYPES}}
        nn.seed(program.seed)
        with nn.context_scope(nn.Context(["reference"])), nn.parameter_scope("truth", {}):
            for item in program.items:
                if isinstance(item, Leaf):
                    self.space[f"v{item.number}"] = Variable(item.shape, need_grad=item.need_grad)
                else:
                    for line in item.lines():
                        exec(compiled(line), self.space)
            self.parameters: dict[str, Variable] = dict(nn.get_parameters(grad_only=False))
        self.initial = {name: initial_value(program.seed, name, p) for name, p in self.parameters.items()}
        self.numbers = [n for item in program.items for n in item.outs]
        order = forward_order([self.variable(n) for n in self.numbers])
        self.seeded = [node for node in order if node.spec.has("seeded")]
        self.once = bool(self.seeded) or any(node.spec.updates for node in order)
        self._graphs: dict[tuple[int, ...], Graph] = {}
        self._truths: dict[Any, Truth] = {}
        self._of_batches: dict[int, Reference | None] = {}

    def of_batch(self, length: int) -> "Reference | None":
        """Return the graph for another batch size, built anew by the same lines; None where they do not fit it."""
        if length not in self._of_batches:
            self._of_batches[length] = self._built_anew(length)
        return self._of_batches[length]

    def _built_anew(self, length: int) -> "Reference | None":
        try:
            made = Reference(self.program.of_batch(length))
        except (NNCoreError, IndexError, TypeError, ValueError):
            return None  # a number in the program holds for one batch size only
        shapes = {name: parameter.shape for name, parameter in made.parameters.items()}
        return made if shapes == {name: parameter.shape for name, parameter in self.parameters.items()} else None

    def variable(self, number: int) -> Variable:
        """Return the variable of a value."""
        found: Variable = self.space[f"v{number}"]
        return found

    def storage(self, key: Key) -> Storage:
        """Return the storage that holds the value of an input, a parameter or a result."""
        return self.parameters[key].storage if isinstance(key, str) else self.variable(key).storage

    def graph(self, roots: tuple[int, ...]) -> Graph:
        """Return the functions that some values need."""
        if roots not in self._graphs:
            self._graphs[roots] = Graph([self.variable(n) for n in roots])
        return self._graphs[roots]

    def truth(
        self,
        roots: tuple[int, ...],
        state: dict[Key, Array],
        unlinked: dict[int, Array],
        runs: tuple[int, ...],
        dtype: str,
        start: float = 1.0,
    ) -> Truth:
        """Return values and gradients after a pass that computes `roots`; `runs` says how often seeded functions have run.

        `dtype` is that of the context of the run.
        """
        flags = tuple(leaf.number for leaf in self.program.leaves if self.variable(leaf.number).need_grad)
        known = {**state, **unlinked}
        key = (roots, flags, start, runs, dtype, tuple((k, v.shape, v.dtype.name, v.tobytes()) for k, v in known.items()))
        if key not in self._truths:
            leaves = {self.storage(k): _as_truth(v) for k, v in known.items()}
            halves = {self.storage(k): v.dtype.name for k, v in known.items() if v.dtype.name in HALVES}
            dtypes = dtypes_of(self.graph(roots).order, dtype, halves)
            root = self.variable(self.program.loss) if self.program.loss in roots else Variable((), need_grad=False)
            seeded = dict(zip(self.seeded, runs, strict=True))
            self._truths[key] = truth_of(self.graph(roots), root, leaves, start, seeded, dtypes)
        return self._truths[key]


def _equal(one: Array, other: Array) -> bool:
    """Return whether all numbers are the same, NaN among them."""
    return np.array_equal(one, other, equal_nan=is_floating(one) and is_floating(other))


def _as_truth(array: Array) -> Array:
    return array.astype(np.float64) if is_floating(array) else array


@dataclass
class Run:
    """One way of one program."""

    reference: Reference
    way: Way
    lines: list[str] = field(default_factory=list)
    data: dict[tuple[Key, int, str, tuple[int, ...]], Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.program = self.reference.program
        self._first = self.reference
        self._fits = True
        self.space = fresh_namespace()
        self.space["data"] = self._data
        self.state: dict[Key, Array] = {}
        self.leaves = {leaf.number: leaf for leaf in self.program.leaves}
        self.grads: dict[Key, tuple[Array, Slack]] = {}
        self.unlinked: dict[int, Array] = {}
        self.last: Truth | None = None
        self.after_complete = False
        self.set_flags: list[int] = []
        self.passed: list[int] = []
        self.readable: set[int] = set()
        self.backward_truth: Truth | None = None
        self.disturbed = False
        self.runs = [0] * len(self.reference.seeded)
        self.is_ambiguous = False

    def run(self) -> Difference | None:
        """Return the first difference, or None."""
        COUNTS.runs += 1
        nn.clear_parameters()
        with ExitStack() as stack:
            self.space["stack"] = stack
            stack.callback(nn.set_auto_forward, False)
            stack.callback(self._restore)
            try:
                self._start()
                for action in self.way.actions:
                    getattr(self, _METHODS[action.kind])(*action.values)
            except Difference as difference:
                return difference
            except Skip:
                return None
        return None

    # -- lines -----------------------------------------------------------------------------------------------------

    def execute(self, line: str, allowed: tuple[type[Exception], ...] = ()) -> None:
        """Run a line; exceptions that are not `allowed` are differences."""
        self.lines.append(line)
        try:
            exec(compiled(line), self.space)
        except allowed as error:
            raise Skip from error
        except Hang:
            raise
        except Exception as error:
            kind = type(error).__name__
            raise Difference(f"{line}: {kind}: {error}") from error

    def _data(self, key: Key, data_set: int, dtype: str, shape: tuple[int, ...]) -> Array:
        place = key, data_set, dtype, shape
        if place not in self.data:
            if isinstance(key, str):
                array = self.reference.initial[key]
            else:
                array = replace(self.leaves[key], shape=shape).values(self.program.seed, data_set)
            self.data[place] = array.astype(dtype_of(dtype)) if array.dtype.kind == "f" else array
        return self.data[place]

    def _restore(self) -> None:
        self._flag_again(self._first, {number: self.leaves[number].need_grad for number in self.set_flags})

    def _flag_again(self, reference: Reference, flags: Mapping[int, bool]) -> None:
        for number, value in flags.items():
            reference.variable(number).need_grad = value

    # -- actions ---------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        way = self.way
        for name in HALF_TYPES:
            if any(name in step.flags for step in self.program.steps):
                self.execute(f"{name} = get_extension_context({way.backend!r}, type_config={name!r})")
        context = f"get_extension_context({way.backend!r}, type_config={way.type_config!r})"
        self.execute(f"stack.enter_context(nn.context_scope({context}))")
        if way.without:
            self._switch(*way.without)
        self.space["parameter"] = get_parameter_or_create
        for name, parameter in self.reference.parameters.items():
            shape = parameter.shape
            self.state[name] = self._data(name, 0, "float32", shape)
            self.execute(f"parameter({name!r}, {shape}, data({name!r}, 0, 'float32', {shape}), {parameter.need_grad})")
        for leaf in self.program.leaves:
            if way.imperative and leaf.number not in way.variables:
                self.execute(f"v{leaf.number} = nn.NdArray({leaf.shape})")
            else:
                self.execute(f"v{leaf.number} = nn.Variable({leaf.shape}, need_grad={leaf.need_grad})")
        if way.mode == "dynamic" or (way.mode == "mixed" and (way.auto or self.reference.once)):
            self.execute("nn.set_auto_forward(True)")
        elif way.mode == "static":
            self._lines()
            self._zero()

    def _lines(self) -> None:
        for step in self.program.steps:
            for number in self._refused(step):
                self.execute(f"v{number}.forward()")
            for line in step.lines(imperative=self.way.imperative):
                self._built(line)

    def _built(self, line: str) -> None:
        try:
            self.execute(line)
        except Difference as difference:
            if self.way.mode != "mixed" or "must be computed before the call" not in difference.title:
                raise
            self.lines.pop()  # a call within the line gave a Variable to the next one
            scoped = line.removeprefix("with ")
            self.execute(f"with nn.auto_forward(), {scoped}" if scoped != line else f"{opening('nn.auto_forward()')}{line}")

    def _refused(self, step: Step) -> list[int]:
        """Return the inputs of a step that are refused beside NdArrays, since nobody has computed them."""
        values = {number: self.space[f"v{number}"] for number in step.inputs}
        if all(isinstance(value, Variable) for value in values.values()):
            return []
        return [n for n, value in values.items() if isinstance(value, Variable) and value.data.synced.lease is UNCOMPUTED]

    def _switch(self, *names: str) -> None:
        self.execute(f"stack.enter_context(without({', '.join(map(repr, names))}))")

    def _flag(self, number: int, name: str, value: bool) -> None:
        self.execute(f"v{number}.{name} = {value}")
        if name == "need_grad":
            self.set_flags.append(number)
            self._flag_again(self._first, {number: value})
            self._flag_again(self.reference, {number: value})

    def _batch(self, length: int) -> None:
        for number in self.program.batch & self.leaves.keys():
            shape = self.program.resized(self.leaves[number].shape, length)
            self.leaves[number] = replace(self.leaves[number], shape=shape)
            self.execute(f"v{number}.reset_shape({shape}, True)")
        self.last = None
        self.readable, self.passed, self.unlinked = set(), [], {}
        found = self._first if length == self._length else self._first.of_batch(length)
        self._fits = found is not None
        if found is not None:
            flags = {leaf.number: self._first.variable(leaf.number).need_grad for leaf in self.program.leaves}
            self._flag_again(found, flags)
            self.reference = found
            self._check_shapes()
        self._zero()

    def _check_shapes(self) -> None:
        """Compare the shapes of all results before anything is computed; nothing says those of what is unlinked."""
        if self.way.mode != "static" or self.program.unlinked:
            return
        for number in (n for step in self.program.steps for n in step.outs):
            exact = self.reference.variable(number).plain_shape
            self.execute(f"shape = v{number}.shape")
            self.lines.pop()
            if self.space["shape"] != exact:
                text = f"v{number} has shape {self.space['shape']} for {exact} before the pass"
                raise Difference(text, f"assert v{number}.shape == {exact}")

    @property
    def _length(self) -> int | None:
        leaves = (leaf for leaf in self.program.leaves if leaf.number in self.program.batch)
        return next((leaf.shape[self.program.axis] for leaf in leaves), None)

    def _data_(self, data_set: int, dtype: str) -> None:
        self.last = None
        for number, leaf in self.leaves.items():
            self.state[number] = self._data(number, data_set, dtype, leaf.shape)
            self.execute(f"{self._values(number)} = data({number}, {data_set}, {dtype!r}, {leaf.shape})")

    def _write(self, number: int, how: str, value: Any) -> None:
        """Write a leaf in another way than by an array; see `ways.WRITES`."""
        shape, before = self.leaves[number].shape, self.state[number]
        values = self._values(number)
        array = f"v{number}.data" if isinstance(self.space[f"v{number}"], Variable) else f"v{number}"
        if how == "in place":
            self.execute(f"{values}[...] = data({number}, {value}, 'float64', {shape})")
            self.state[number] = self._data(number, value, "float64", shape).astype(before.dtype)
        elif how == "cast":
            self.execute(f"{array}.cast({value!r})")
            self.state[number] = before.astype(dtype_of(value))
        elif how == "element":
            special, place = value[0], value[1] % max(before.size, 1)
            if before.size:
                self.execute(f"{values}.flat[{place}] = {special}")
                self.state[number] = before.copy()
                self.state[number].flat[place] = special
        else:
            calls = {"number": f"{values} = {value}", "fill": f"{array}.fill({value})"}
            self.execute(calls.get(how, f"{array}.zero()"))
            self.state[number] = np.full(shape, value, before.dtype)
        self.last = None

    def _forward(self, policy: str, target: int) -> None:
        complete, before, runs = target == self.program.loss, dict(self.state), self.runs
        for number in self.program.unlinked if complete or self.program.unlinked else ():
            self._pass("keep", (number,))
        roots = (*self.program.roots[:-1], target) if policy.startswith("all") else (target,)
        self._pass(policy, roots)
        if complete:
            self.after_complete = policy != "infer"
        else:
            self.after_complete = self.after_complete and policy in ("keep", "hook", "all")
            if runs != self.runs or any(not _equal(self.state[key], before[key]) for key in before):
                self.last = None  # what is kept is of different passes
            elif self.last is not None and self.values.differs_from(self.last):
                self.last = None  # statistics that it reads were rewritten by the last pass
            self.disturbed = True

    def _pass(self, policy: str, roots: tuple[int, ...]) -> None:
        line = FORWARD[policy].format(roots[-1], ", ".join(f"v{n}" for n in roots))
        truth = self._truth(roots)
        if truth is None:
            COUNTS.undecided += 1
            self.execute(line, allowed=(NNCoreError, IndexError))
            raise Skip
        self.execute(line)
        self.is_ambiguous = self.is_ambiguous or self._moves_unlinked(truth, roots)
        self.disturbed = False
        self._passed(truth, roots)
        if policy in ("keep", "hook", "all"):
            self.readable.update(self._kept(self.passed))
        if roots[-1] == self.program.loss:
            self.last, self.last_call = truth, self.call
        for number in roots:
            self._compare(f"v{number}.d", *truth.value(self.reference.storage(number)))
            if number in self.unlinked:  # later passes start from what was computed
                self.unlinked[number] = np.array(self._read(f"v{number}.d"))
                self.lines.pop()

    def _moves_unlinked(self, truth: Truth, roots: Sequence[int]) -> bool:
        """Return whether the pass has changed a value that others read unlinked, by a function that gives something else each
        time.

        They share its memory, so what they read depends on the order of functions, which may not be that of the truth.
        """
        others = {number: before for number, before in self.unlinked.items() if roots != (number,)}
        return any(
            not np.allclose(truth.values[storage], before, rtol=1e-3, atol=1e-3, equal_nan=True)
            for number, before in others.items()
            if (storage := self.reference.storage(number)) in truth.values
        )

    def _kept(self, numbers: Iterable[int]) -> set[int]:
        # a recomputed value that is a view of another one takes its memory along
        return set() if any("recompute" in step.flags for step in self.program.steps) else set(numbers)

    def _truth(self, roots: tuple[int, ...]) -> Truth | None:
        if not self._fits:
            return None
        self.call = roots, dict(self.state), dict(self.unlinked), tuple(self.runs), TYPE_CONFIGS[self.way.type_config]
        try:
            return self.reference.truth(*self.call)
        except NNCoreError:
            return None  # indices out of range, or a matrix that is not positive definite any more

    def _passed(self, truth: Truth, roots: Sequence[int]) -> None:
        """Note and check what the pass has changed."""
        order = self.reference.graph(tuple(roots)).order
        self.runs = [n + (node in order) for n, node in zip(self.runs, self.reference.seeded, strict=True)]
        for number in self.program.unlinked:
            storage = self.reference.storage(number)
            if storage in truth.values:
                self.unlinked[number] = truth.values[storage]
        for key, before in self.state.items():
            value, slack = truth.value(self.reference.storage(key))
            if value is not before and not _equal(value, before):
                self._compare(self._name(key), value, slack)
                self.state[key] = np.array(self._read(self._name(key)))
        self.readable = set(roots)
        self.passed = [n for n in self.reference.numbers if self.reference.storage(n) in truth.values]
        self.values = truth

    def _build(self) -> None:
        if not self._fits:
            COUNTS.undecided += 1
            raise Skip
        roots = tuple(n for step in self.program.steps for n in step.outs)
        fresh = (0,) * len(self.reference.seeded)  # of the new functions
        self.last_call = roots, dict(self.state), dict(self.unlinked), fresh, TYPE_CONFIGS[self.way.type_config]
        try:
            truth = self.reference.truth(*self.last_call)
        except NNCoreError as error:  # chances of NaN, say
            COUNTS.undecided += 1
            raise Skip from error
        self._lines()
        self.runs = [*fresh]
        self._passed(truth, roots)
        self.readable = self._kept(self.readable)
        self.last, self.after_complete, self.disturbed = truth, True, False
        if self.way.imperative:
            self._compute_graphs()
        else:
            for key in self._trained():
                self.grads.setdefault(key, (np.zeros(self.state[key].shape), Slack()))
        for number in self.program.roots:
            self._compare(f"v{number}.d", *truth.value(self.reference.storage(number)))

    def _compute_graphs(self) -> None:
        """Of mixed operands: what is of Variables alone was not computed yet."""
        for number in self.passed:
            variable = self.space[f"v{number}"]
            if isinstance(variable, Variable) and variable.parent is not None and not nn.get_auto_forward():
                self.execute(f"v{number}.forward()")

    def _values(self, number: int) -> str:
        """Return the expression by which the numbers of a value are read and set."""
        return f"v{number}.d" if isinstance(self.space[f"v{number}"], Variable) else f"v{number}.data"

    def _name(self, key: Key) -> str:
        if isinstance(key, int):
            return f"v{key}.d"
        return f"nn.get_parameters(grad_only=False)[{key!r}].d"

    def _trained(self) -> Iterator[Key]:
        for leaf in self.program.leaves:
            if self.reference.variable(leaf.number).need_grad:
                yield leaf.number
        for name, parameter in self.reference.parameters.items():
            if parameter.need_grad:
                yield name

    def _variable(self, key: Key) -> str:
        return f"v{key}" if isinstance(key, int) else f"nn.get_parameters(grad_only=False)[{key!r}]"

    def _zero(self) -> None:
        for key in [*(leaf.number for leaf in self.program.leaves), *self.reference.parameters]:
            leaf = self.leaves[key] if isinstance(key, int) else None
            if leaf is not None and not leaf.need_grad:
                continue
            self.execute(f"{self._variable(key)}.grad.zero()")
            shape = leaf.shape if leaf is not None else self.reference.parameters[str(key)].shape
            self.grads[key] = np.zeros(shape), Slack()

    def _backward(self, how: str) -> None:
        if self.last is None:
            raise Skip
        allowed = () if self.after_complete and not self.disturbed else (GraphError,)
        self.execute(BACKWARD[how].format(self.program.loss), allowed)
        truth = self.reference.truth(*self.last_call, SCALE) if how == "scale" else self.last
        self.backward_truth = None if how == "clear" else truth
        if how == "clear":
            self.after_complete = False
            self.readable &= {self.program.loss}
        for key in self._trained():
            gradient, tolerance = truth.grad(self.reference.storage(key))
            before, slack = self.grads.get(key, (np.zeros(gradient.shape), Slack()))
            total = before + gradient
            self.grads[key] = total, slack + tolerance + 1e-6 * magnitude(total)
            self._compare(f"{self._variable(key)}.g", *self.grads[key])

    def _gradients(self) -> None:
        """Compare the gradients of results within the graph, which a backward pass leaves there."""
        if self.backward_truth is None:
            return
        for step in self.program.steps:
            for number in step.outs:
                storage = self.reference.storage(number)
                if number != self.program.loss and storage in self.backward_truth.grads and self._is_active(number):
                    self._compare(f"v{number}.g", *self.backward_truth.grad(storage))

    def _is_active(self, number: int) -> bool:
        return self.reference.variable(number).need_grad

    def _read(self, what: str) -> Array:
        self.execute(f"result = {self._where(what)}.copy()")
        found: Array = self.space.pop("result")
        return found

    def _where(self, what: str) -> str:
        """Return the expression for a value, which is an NdArray in some modes."""
        return self._values(int(what[1:-2])) if what[0] == "v" and what.endswith(".d") else what

    def _read_all(self) -> None:
        for number in self.passed:
            try:
                self._compare(f"v{number}.d", *self.values.value(self.reference.storage(number)))
            except Difference as difference:
                if "GraphError" not in difference.title or number in self.readable:
                    raise
                self.lines.pop()

    def _update(self, name: str) -> None:
        trained = [key for key in self._trained() if key in self.grads and is_floating(self.state[key])]
        if not trained:
            return
        table = ", ".join(f"{str(key)!r}: {self._variable(key)}" for key in trained)
        self.execute(f"solver = {SOLVERS[name]}")
        self.execute(f"solver.set_parameters({{{table}}})")
        for _ in range(UPDATES):
            self.execute("solver.update()")
        for key in trained:
            gradient, slack = self.grads[key]
            expected, full = self._updated(self.state[key], gradient, slack)
            self._compare(self._name(key), expected, full)
            self.state[key] = self._read(self._name(key))
        self.after_complete = False
        self.last = None  # another backward pass would read the new parameters
        self.backward_truth = None

    def _updated(self, before: Array, gradient: Array, slack: Slack) -> tuple[Array, Slack]:
        """Return a parameter after the updates, and how far it may be from that when the gradient has a tolerance."""
        solver = self.space["solver"]

        def stepped(g: Array) -> Array:
            w = before.astype(np.float64)
            states = [np.zeros(w.shape) for _ in solver.state_names]
            with np.errstate(all="ignore"):
                for t in range(1, UPDATES + 1):
                    solver.step(np, w, g, states, [*(getattr(solver, n) for n in solver.hyper_names), t])
            return w

        expected = stepped(gradient)
        scale = max(magnitude(array.astype(np.float64)) for array in (before, expected))
        coarse = {"float16": 1e-3, "bfloat16": 8e-3}.get(before.dtype.name, 2e-6) * scale

        def reach(tolerance: float | Array) -> Array:
            unknown, special = ~np.isfinite(tolerance), ~np.isfinite(expected)
            allowed = np.where(unknown, 0.0, tolerance)
            with np.errstate(invalid="ignore"):
                found = coarse + sum(np.abs(stepped(gradient + sign * allowed) - expected) for sign in (1, -1))
            return np.where(unknown, np.inf, np.where(special, 0.0, found))

        return expected, Slack(coarse, lambda draws: reach(slack.full(draws)))

    def _compare(self, what: str, exact: Array, slack: Slack) -> None:
        COUNTS.compared += 1
        given = _as_truth(self._read(what))
        self.lines.pop()
        if np.isfinite(slack.least) and agree(given, exact, slack.least):
            return
        tolerance: float | Array = 0.0
        for draws in (FEW, MANY):
            tolerance = slack.full(draws)
            if np.all(np.equal(tolerance, np.inf)):
                COUNTS.rounding += 1
                return
            if agree(given, exact, tolerance):
                return
        if self.is_ambiguous:
            COUNTS.undecided += 1
            raise Skip
        if given.shape != exact.shape:
            raise Difference(f"{what} has shape {given.shape} for {exact.shape}", f"assert {what}.shape == {exact.shape}")
        with np.errstate(all="ignore"):
            most = float(np.max(np.abs(np.asarray(given, np.float64) - exact)))
        known = np.isfinite(tolerance)
        allowed = float(np.max(tolerance, initial=0.0, where=known))
        given_where = f"np.where({known.tolist()}, {self._where(what)}, 0)" if not known.all() else self._where(what)
        expected = np.where(known, exact, 0).tolist()
        check = f"np.testing.assert_allclose({given_where}, {expected!r}, rtol=0, atol={allowed:.3g})"
        raise Difference(f"{what} differs by {most:.3g} (allowed {allowed:.3g})", check)


class Hang(Exception):  # noqa: N818
    """A program took too long."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise `Hang` after some seconds of processor time, or ten times as many of any: others may slow the program down."""

    def stop(*_: object) -> None:
        raise Hang(f"longer than {seconds:g} s")

    numbers = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, 10 * seconds)}
    before = {number: signal.signal(number, stop) for number in numbers}
    for timer, most in numbers.values():
        signal.setitimer(timer, most)
    try:
        yield
    finally:
        for number, (timer, _) in numbers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def perform(reference: Reference, way: Way) -> "tuple[Run, Difference | None]":
    """Run a way; hangs are differences."""
    run = Run(reference, way)
    try:
        with limit(10):
            return run, run.run()
    except Hang as error:
        return run, Difference(f"{run.lines[-1]}: {error}")


__all__ = ["COUNTS", "Action", "Difference", "Reference", "Run", "perform"]
