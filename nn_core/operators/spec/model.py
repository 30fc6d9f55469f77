"""Function specifications as frozen dataclasses.

``function_spec.yaml`` (and the YAML of plugins) is read into these by ``spec.load``; the generated modules of
``spec.builtin`` carry them as data, so that nothing reads YAML when a program runs. No array lives here.

Fields of the kind `PROSE` describe the function to readers. The built-in specifications leave them empty, because the
docstrings of ``nn_core.functions`` say the same; ``spec.load`` reads them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

#: Values that an argument may have, once it is resolved: plain, immutable, hashable.
ArgValue = None | bool | int | float | str | tuple[int, ...] | tuple[float, ...]


class Required:
    """The type of ``REQUIRED``, the mark of an argument without a default."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = Required()

#: dtype kinds of inputs and outputs. "float": the floating dtype of the context; "parameter" and "statistic": the same, or
#: what the backend keeps parameters, and sums and statistics, in while it computes in a short dtype; "index": int64; "int32":
#: sums of products of integers; "same": as given; "exact": as given where all inputs of this kind are integers, else the same
#: as "float".
DTYPE_KINDS: Final = ("float", "parameter", "statistic", "index", "int32", "same", "exact")
#: The kinds of numbers that are whole, whatever a context computes in, and their dtypes.
WHOLE_DTYPES: Final[Mapping[str, str]] = {"index": "int64", "int32": "int32"}
#: The dtypes of integers; booleans count as such.
INTEGERS: Final = frozenset({"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"})

#: Types of arguments. "axis" and "axes" are checked against the rank of the first input and made non-negative.
ARG_TYPES: Final = ("bool", "int", "float", "str", "ints", "floats", "shape", "axis", "axes")

#: The subjects that functions are sorted by; each has one file of this name in every room.
TOPICS: Final = (
    "activation",
    "arithmetic",
    "reduction",
    "linear",
    "convolution",
    "pooling",
    "normalization",
    "loss",
    "shape",
    "indexing",
    "random",
    "recurrent",
    "attention",
    "image",
    "quantization",
)

#: Tags and what each one means; no other tag is accepted.
TAGS: Final[Mapping[str, str]] = {
    "pointwise": "each output element depends on the input elements at the same place only",
    "composite": "written in terms of other functions; has no kernel",
    "deterministic": "the same inputs give the same bits (the default; listed for documentation)",
    "seeded": "draws random numbers; kernels get an extra input `key`",
    "inplace_ok": "the kernel may write its first output over its first input",
    "view": "the output is the input's memory in another shape; has no kernel",
    "sink": "with one_input_grad=False the gradients of the inputs are those that the caller has set",
    "discontinuous": "a small change of an input can change the result by a jump: nothing that rounds is put before it",
    "selecting": "each element of the output is an element of an input, or a constant",
    "recomputable": "the results do not depend on what `updates` rewrites, and can be computed again",
    "keeps_gradient": "backward() writes the gradient of the last input over its values, and hands no gradient on",
    "numeric_mask": "a graph whose input `mask` holds booleans, which would be added as 1 and 0, is refused",
    "passes_gradient": "the gradient of an input is that of the output, summed over the axes that were broadcast",
    "copied_index": "`y.d` of the output `index` is a copy, since programs collect the choices that they have made",
    "dynamic_shape": "the shape of the output is known only after it has run",
}


#: Metadata of the fields that only documentation reads.
PROSE: Final[Mapping[Any, Any]] = MappingProxyType({"prose": True})


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One input array of a function; `since` is empty where the function has had it from the beginning."""

    name: str
    doc: str = field(default="", metadata=PROSE)
    shape: str = field(default="", metadata=PROSE)
    dtype: str = "float"
    optional: bool = False
    variadic: bool = False
    parameter: bool = False
    since: str = ""


#: Required arguments, and default rules of arguments, that have one number for each spatial axis.
PER_SPATIAL_AXIS: Final = frozenset({"kernel", "output_size"})
SPATIAL_RULES: Final = frozenset({"spatial_zeros", "spatial_ones", "kernel", "kernel_zeros"})


@dataclass(frozen=True, slots=True)
class ArgSpec:
    """One setting of a function; `default_rule` names a rule of ``rules/defaults.py`` that computes the default.

    `shown_as_none`: the public signature has ``None``, which stands for `default`.
    `per_spatial_axis`: one integer stands for the lengths of all spatial axes.
    `since`: the version that added it; empty where the function has had it from the beginning.
    """

    name: str
    type: str
    doc: str = field(default="", metadata=PROSE)
    default: ArgValue | Required = REQUIRED
    default_rule: str | None = None
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    keyword_only: bool = False
    shown_as_none: bool = False
    per_spatial_axis: bool = False
    since: str = ""

    @property
    def required(self) -> bool:
        """True when the caller has to give the argument."""
        return isinstance(self.default, Required) and self.default_rule is None

    @property
    def has_equal_numbers(self) -> bool:
        """True when the default is a sequence of one number, repeated: the argument has a fixed number of entries."""
        return isinstance(self.default, tuple) and len(set(self.default)) == 1

    @property
    def takes_one_number(self) -> bool:
        """True when one integer stands for a sequence: of one axis or length, or of equal numbers per spatial axis."""
        if self.type == "ints":
            return self.default_rule in SPATIAL_RULES or self.name in PER_SPATIAL_AXIS or self.has_equal_numbers
        is_shape = self.type == "shape" and (self.default is not None or self.per_spatial_axis)  # None: that of the input
        return self.type == "axes" or is_shape


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """One output array.

    An `aux` output is kept for the gradient and is not returned to the caller. An `optional` one is made only where the
    arguments ask for it. What a `private` aux output holds is up to the kernel, and nobody else reads it.
    """

    name: str
    doc: str = field(default="", metadata=PROSE)
    shape: str = field(default="", metadata=PROSE)
    dtype: str = "float"
    optional: bool = False
    variadic: bool = False
    aux: bool = False
    private: bool = False


@dataclass(frozen=True, slots=True)
class BackwardSpec:
    """The values that the gradient rule reads (`needs`: names of inputs and outputs), or the reason why there is none.

    Attributes:
        needs_if_negative: Names of arguments, with what the rule reads instead of `needs` where one of them is negative.
    """

    needs: tuple[str, ...] = ()
    none_because: str | None = None
    needs_if_negative: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class FunctionSpec:
    """Everything that is said about one function without numbers and without a device.

    Compared by identity: there is one object for each function, and caches look it up on every call. Those of our own
    functions have no `PROSE`.

    Example:
        >>> from nn_core.ext import function_spec
        >>> spec = function_spec("MaxPooling")
        >>> spec.topic, [arg.name for arg in spec.args], spec.backward.needs
        ('pooling', ['kernel', 'stride', 'ignore_border', 'pad', 'channel_last'], ('x',))
    """

    name: str
    api: str
    topic: str
    doc: str
    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    args: tuple[ArgSpec, ...] = ()
    shape: str = "rule"
    backward: BackwardSpec = field(default_factory=BackwardSpec)
    tags: tuple[str, ...] = ()
    updates: tuple[str, ...] = ()
    domain: tuple[float, float] | None = None
    formula: str = field(default="", metadata=PROSE)
    notes: str = field(default="", metadata=PROSE)
    references: str = field(default="", metadata=PROSE)
    example: str = field(default="", metadata=PROSE)
    since: str = "0.1"

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def later(self) -> tuple[ArgSpec | InputSpec, ...]:
        """The arguments and inputs that were added after the function."""
        entries: tuple[ArgSpec | InputSpec, ...] = (*self.args, *self.inputs)
        return tuple([entry for entry in entries if entry.since])

    @property
    def variadic(self) -> bool:
        """True when the last input stands for any number of arrays."""
        return bool(self.inputs) and self.inputs[-1].variadic

    @property
    def visible_outputs(self) -> tuple[OutputSpec, ...]:
        """The outputs that the caller gets."""
        return tuple(o for o in self.outputs if not o.aux)

    @property
    def differentiable(self) -> bool:
        """True when a gradient rule must exist."""
        return self.backward.none_because is None

    def needed(self, args: Mapping[str, ArgValue]) -> tuple[str, ...]:
        """Names of the inputs and outputs whose values the gradient of a call with `args` reads."""
        for name, needs in self.backward.needs_if_negative:
            if args[name] < 0:  # type: ignore[operator]  # a number, as the loader has made sure
                return needs
        return self.backward.needs

    def has(self, tag: str) -> bool:
        """Return whether the function carries `tag`."""
        return tag in self.tags

    def arg(self, name: str) -> ArgSpec:
        """Return the argument called `name` (KeyError when there is none)."""
        for arg in self.args:
            if arg.name == name:
                return arg
        raise KeyError(name)
