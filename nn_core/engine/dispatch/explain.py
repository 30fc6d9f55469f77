"""Explain the choice of ``resolve``: which backend would run a function, and why others refused."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Final, Protocol

from nn_core.context import Context, checked_context, get_current_context
from nn_core.engine.dispatch.blame import PluginCall
from nn_core.engine.dispatch.exception_text import reason_of
from nn_core.engine.dispatch.given_dtypes import given_dtypes
from nn_core.engine.dispatch.plugin_manager import PLUGINS, REFERENCE
from nn_core.engine.dispatch.resolve import Candidate, Dtypes, candidates, dtypes_of, refusal_of
from nn_core.engine.error_messages.refusal import door
from nn_core.engine.error_messages.synonyms import suggestion
from nn_core.engine.runtime.html import table
from nn_core.errors import ArgumentError, NNCoreError, escaped
from nn_core.operators.spec.builtin import SPECS
from nn_core.operators.spec.model import ArgValue, FunctionSpec, InputSpec, OutputSpec
from nn_core.typing import ArrayDesc, Call, Shape, extra, is_slow

#: The entry of functions without a kernel: composites, views, and functions written in Python.
ENGINE: Final = "no kernel needed"


class HasShape(Protocol):
    """An input or an output of a function in a graph."""

    @property
    def shape(self) -> Shape:
        """Lengths of the axes."""
        ...


class HasData(Protocol):
    """The storage of an output, which holds its values."""

    @property
    def data(self) -> HasShape:
        """The array."""
        ...


class FunctionInGraph(Protocol):
    """The part of a graph function that `explain` reads."""

    @property
    def spec(self) -> FunctionSpec:
        """The specification of the function."""
        ...

    @property
    def args(self) -> Mapping[str, ArgValue]:
        """Its settings."""
        ...

    @property
    def inputs(self) -> Sequence[HasShape | None]:
        """Its inputs, None where not given."""
        ...

    @property
    def storages(self) -> Sequence[HasData]:
        """Its outputs, aux outputs included."""
        ...


class HasProducer(Protocol):
    """A variable."""

    @property
    def producer(self) -> object:
        """The function that computes it, or None."""
        ...

    @property
    def shape(self) -> Shape:
        """Lengths of the axes; who asks for them brings the settings of the function up to date."""
        ...


#: Called with a variable; return what there is to say about its graph, of which this package knows nothing.
NOTES_ON_GRAPHS: Final[list[Callable[[object], Sequence[str]]]] = []


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one candidate: empty where it would run the function, else the reason why not."""

    entry: str
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Every candidate for a function in the order in which they are asked; prints as a table.

    Attributes:
        function: Name of the function.
        context: The context that was asked about.
        answers: One for each candidate.
        winner: Entry of the candidate that runs the function; None when nobody does.
        by_name: Whether no call was given to ask about: then a candidate without a reason has a kernel, which may still
            refuse a call, and `winner` is the first that has one.
        implementation: What the winner computes the call with, where its backend has a choice and says so, such as the name of
            a primitive of its library; images lie in memory as the kernel wants them.
        notes: Experience of backends with the function in this process, such as why no CUDA graph holds it. Of a variable
            also the constants in its graph that equal the length of the first axis of an input.
    """

    function: str
    context: Context
    answers: tuple[Answer, ...]
    winner: str | None
    notes: tuple[str, ...] = ()
    by_name: bool = False
    implementation: str = ""

    def __str__(self) -> str:
        width = max((len(answer.entry) for answer in self.answers), default=0)
        lines = [f"{self.function} in {self.context}"]
        for mark, entry, answer, by in self._rows():
            lines.append(f"{mark:<2} {entry:<{width}}  {answer}{by and f', by {by}'}")
        return "\n".join([*lines, *self._remarks()])

    def _repr_html_(self) -> str:
        below = "".join(f"<div>{escape(remark)}</div>" for remark in self._remarks())
        return table(("", "backend", "answer", "by"), self._rows(), f"{self.function} in {self.context}") + below

    def _rows(self) -> list[tuple[str, str, str, str]]:
        """Return of each candidate: a mark of the winner, entry, answer, and what it computes with where that is known."""
        positive = "has a kernel, which may refuse a call" if self.by_name else "can run it"
        return [
            ("->", one.entry, one.reason or positive, self.implementation)
            if one.entry == self.winner
            else ("", one.entry, one.reason or positive, "")
            for one in self.answers
        ]

    def _remarks(self) -> list[str]:
        return [*([] if self.winner else ["no backend runs it"]), *self.notes]


@door
def explain(variable_or_name: HasProducer | str, ctx: Context | None = None) -> Explanation:
    """Tell which backend runs a function in a context, and what each candidate says.

    Given a variable, the function that computes it is asked about with its shapes and settings, as ``forward()`` would. A
    note lists the constants in the graph of the variable that equal the length of the first axis of an input: they stay when
    the input gets another batch, which a length that was read from a shape does not.
    Given a name, such as "Convolution" or "convolution", the answer tells who has a kernel; it may still refuse a call.

    Args:
        variable_or_name: A variable that a function computes, or the name of a function.
        ctx: The context; the current one if not given.

    Raises:
        ArgumentError: when no function has the name, or no function computes the variable.

    Example:
        >>> nn.explain("tanh", nn.Context(["reference:float"])).winner
        'reference:float'
    """
    ctx = get_current_context() if ctx is None else checked_context("explain", ctx)
    if isinstance(variable_or_name, str):
        spec = PLUGINS.function_named(variable_or_name) or PLUGINS.function_of_api(variable_or_name)
        if spec is None:
            names = {api for spec in SPECS for api in (spec.api, spec.name)} | set(PLUGINS.names_of("functions"))
            hint = suggestion(variable_or_name, names)
            raise ArgumentError(f"explain: the name of a function must be given, got {variable_or_name!r}{hint}")
        return _explanation(spec, ctx, None)
    # not by class: dispatch is below the graph, and must not know its variables
    function = getattr(variable_or_name, "producer", None)
    if function is None:
        raise ArgumentError(f"explain: a variable must be computed by a function, got the leaf {variable_or_name!r}")
    _ = variable_or_name.shape
    explanation = _explanation(function.spec, ctx, function)
    notes = [note for notes_on in NOTES_ON_GRAPHS for note in notes_on(variable_or_name)]
    return replace(explanation, notes=(*explanation.notes, *notes)) if notes else explanation


def explain_call(function: FunctionInGraph, ctx: Context) -> Explanation:
    """Return the answer of each candidate to one call, in a graph or not."""
    return _explanation(function.spec, ctx, function)


def _explanation(spec: FunctionSpec, context: Context, function: FunctionInGraph | None) -> Explanation:
    answers: list[Answer] = []
    notes: dict[str, None] = {}
    # these are put together of other functions, or move no values
    if spec.has("composite") or spec.has("view") or getattr(function, "python", None) is not None:
        return Explanation(spec.name, context, (Answer(ENGINE, ""),), ENGINE)
    implementation: str | None = None
    try:
        for candidate in candidates(spec, context, PLUGINS):
            answers.append(Answer(candidate.entry, _reason(candidate, context, function)))
            notes |= dict.fromkeys(_notes(candidate, spec))
            if implementation is None and not answers[-1].reason:
                implementation = _implementation(candidate, context, function)
                notes |= dict.fromkeys(_warnings(candidate, implementation))
    except NNCoreError as error:  # no backend of the list can be used, and the answers say why
        answers.append(Answer(REFERENCE, str(error).partition("\n")[0]))
    notes |= dict.fromkeys(fusions_with(spec))
    winner = next((answer.entry for answer in answers if not answer.reason), None)
    return Explanation(spec.name, context, tuple(answers), winner, tuple(notes), function is None, implementation or "")


def _implementation(candidate: Candidate, context: Context, function: FunctionInGraph | None) -> str:
    """Return the name of what a candidate computes the call with, as far as its backend says; nothing is computed."""
    if candidate.kernel is None or function is None:
        return ""
    call = _call(function, dtypes_of(candidate.backend, candidate.dtype), context.device_id)
    layout = extra(candidate.kernel, "layout")
    try:
        if layout is not None and layout(call) in ("channels_last", "first"):
            call = replace(call, inputs=_images(call.inputs), outputs=_images(call.outputs))  # type: ignore[arg-type]
        return str(extra(candidate.kernel.forward(call), "implementation"))
    except Exception:  # a plugin may raise anything; whoever runs the function is told
        return ""


def _warnings(candidate: Candidate, implementation: str) -> Iterator[str]:
    if is_slow(implementation):
        yield f"{candidate.entry} runs this call by {implementation}, which its library has for tests: it is slow"


def _images(descs: Sequence[ArrayDesc | None]) -> tuple[ArrayDesc | None, ...]:
    """Return the descriptions with the first one channels-last in memory, if it is an image."""
    first = descs[0] if descs else None
    if first is None or not 3 <= len(first.shape) <= 5:
        return tuple(descs)
    item = {"float32": 4, "float64": 8}.get(first.dtype, 2)
    order = (0, *range(2, len(first.shape)), 1)
    strides = {axis: item * math.prod(first.shape[later] for later in order[k + 1 :]) for k, axis in enumerate(order)}
    return (ArrayDesc(first.shape, first.dtype, tuple(strides[axis] for axis in range(len(order)))), *descs[1:])


def fusions_with(spec: FunctionSpec) -> Iterator[str]:
    """Yield a sentence about each fusion of a plugin that may run something else instead of the function."""
    for offer in PLUGINS.offered("passes", unlisted=False):
        if offer.role == "fusion":
            try:
                fusion = PLUGINS.offers.load(offer)()
                chain, function = tuple(fusion.chain), fusion.function
            except Exception:  # a plugin may raise anything, and passes warn of it
                continue
            if spec.name in chain:
                yield f"in passes without gradients, {offer.label} runs {function} in place of {', '.join(chain)}"


def _notes(candidate: Candidate, spec: FunctionSpec) -> Sequence[str]:
    give = extra(candidate.backend, "notes")
    if give is None or candidate.backend is None:
        return []
    name = candidate.backend.name
    try:
        with PluginCall(name.partition(".")[0], f"notes() of backend {name!r}"):
            return [escaped(str(note)) for note in give(spec.api)]
    except Exception as error:  # likewise
        return [f"notes() of backend {name!r} raises {reason_of(error)}"]


def _reason(candidate: Candidate, context: Context, function: FunctionInGraph | None) -> str:
    if candidate.kernel is None or function is None:
        return candidate.reason
    dtypes = dtypes_of(candidate.backend, candidate.dtype)
    try:
        refusal = refusal_of(candidate, _call(function, dtypes, context.device_id), context.device_id)
        return escaped(refusal.reason) if refusal else ""
    except Exception as error:  # a plugin may raise anything, and who asks what would run wants to know
        return f"refuse() raises {reason_of(error)}"


def _call(function: FunctionInGraph, dtypes: Dtypes, device_id: str) -> Call:
    spec, dtype, kinds = function.spec, dtypes.floating, dtypes.by_kind()
    entries = [_entry(spec.inputs, position) for position in range(len(function.inputs))]
    given = given_dtypes(entries, [None if value is None else _held(value, dtype) for value in function.inputs])
    inputs = tuple(
        None if value is None else ArrayDesc(value.shape, kinds.get(entry.dtype) or own or dtype)
        for entry, value, own in zip(entries, function.inputs, given or (None,) * len(entries), strict=True)
    )
    held = next((own for own in given if own is not None), dtype)
    outputs = tuple(
        ArrayDesc(storage.data.shape, kinds.get(_entry(spec.outputs, position).dtype, held))
        for position, storage in enumerate(function.storages)
    )
    return Call(spec, function.args, inputs, outputs, dtype, device_id)


def _held(value: HasShape, otherwise: str) -> str:
    """Return the dtype of a variable's values; of one that is not computed yet, `otherwise`."""
    synced = getattr(getattr(value, "data", None), "synced", None)
    return otherwise if synced is None or synced.latest is None else str(synced.dtype)


def _entry(entries: Sequence[InputSpec] | Sequence[OutputSpec], position: int) -> InputSpec | OutputSpec:
    return entries[min(position, len(entries) - 1)]
