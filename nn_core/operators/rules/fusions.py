"""Chains of functions that passes without gradients run as one operator: a table, which plugins add to.

A row names an operator and the functions that it stands for. Names say what the operator takes from each of them; what names
cannot say is a condition of a link.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nn_core.engine.error_messages.refusal import fitted_constructor
from nn_core.operators.spec.model import ArgValue
from nn_core.typing import Shape


def same(*names: str) -> dict[str, str]:
    """Return a mapping of each name to itself: what an operator and a function of its chain call alike.

    Example:
        >>> same("pad", "stride")
        {'pad': 'pad', 'stride': 'stride'}
    """
    return {name: name for name in names}


@dataclass(frozen=True, slots=True)
class LinkCall:
    """A call that may join a chain, as conditions see it.

    Attributes:
        args: Its arguments.
        shapes: The shapes of its inputs by their names, None where one is not given.
        result: The shape of its result.
        fused: The arguments that the operator has from the calls before.

    Example:
        >>> from nn_core.ext import ChainLink, LinkCall
        >>> link = ChainLink("Tanh", requires=lambda call: len(call.result) == 2)
        >>> link.requires(LinkCall(args={}, shapes={"x": (8, 3)}, result=(8, 3), fused={}))
        True
    """

    args: Mapping[str, ArgValue]
    shapes: Mapping[str, Shape | None]
    result: Shape
    fused: Mapping[str, Any]


@fitted_constructor
@dataclass(frozen=True, slots=True)
class ChainLink:
    """A function of a chain, and what the operator takes from it.

    Attributes:
        function: Its name, such as "Add2".
        chain: Name of the input that reads the result of the link before; its first input where empty.
        inputs: Inputs of the operator by name, and which inputs of the function they are. An operator takes each once.
        args: Arguments of the operator by name, and which arguments of the function they are.
        computed: Arguments of the operator by name, and functions that work them out from the call.
        shaped: Inputs of the operator that have the elements of one of the function in another shape, and functions that give
            that shape.
        sets: Arguments of the operator that the function itself stands for: ``{"nonlinearity": "relu"}``. Two links that set
            an argument do not fit into one chain.
        optional: Whether chains may lack it.
        exact: Whether the operator rounds as the function does. One that does not is left alone before discontinuous
            functions, where a difference in the last digit would show.
        requires: What else must hold.

    Example:
        >>> from nn_core.ext import ChainLink
        >>> ChainLink("ReLU", sets={"nonlinearity": "relu"}, optional=True).function
        'ReLU'
    """

    function: str
    chain: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    args: Mapping[str, str] = field(default_factory=dict)
    sets: Mapping[str, ArgValue] = field(default_factory=dict)
    computed: Mapping[str, Callable[[LinkCall], ArgValue]] = field(default_factory=dict)
    shaped: Mapping[str, Callable[[LinkCall], Shape]] = field(default_factory=dict)
    optional: bool = False
    exact: bool = True
    requires: Callable[[LinkCall], bool] | None = None


@fitted_constructor
@dataclass(frozen=True, slots=True)
class Fusion:
    """A chain of functions, each of which reads the result of the one before, and the operator to run instead.

    Attributes:
        function: Name of the operator, whose first output is the result of the last function.
        links: The functions in order.
        sets: Arguments of the operator that hold where no link sets them.
        settings: Computes the arguments of the operator from those of the functions, for what names cannot say; None where
            the functions must not be run as one. The inputs of the operator then are those of the functions in order, without
            the results of the chain.

    Example:
        >>> from nn_core.ext import ChainLink, Fusion
        >>> Fusion("acme.ScaledTanh", (ChainLink("MulScalar", args={"scale": "val"}), ChainLink("Tanh"))).chain
        ('MulScalar', 'Tanh')
    """

    function: str
    links: Sequence[ChainLink]
    sets: Mapping[str, ArgValue] = field(default_factory=dict)
    settings: Callable[..., Mapping[str, Any] | None] | None = None

    @property
    def chain(self) -> tuple[str, ...]:
        """The names of the functions, each once."""
        return tuple(dict.fromkeys(link.function for link in self.links))

    def chains(self) -> Iterator[tuple[str, ...]]:
        """Yield the names of all chains of two functions or more, those with all optional links first."""
        choices = [(True, False) if link.optional else (True,) for link in self.links]
        for chosen in itertools.product(*choices):
            names = tuple([link.function for link, taken in zip(self.links, chosen, strict=True) if taken])
            if len(names) > 1:
                yield names


def _normalizes_channels(call: LinkCall) -> bool:
    """Return whether a normalization uses running statistics of the channels that a convolution makes."""
    channel = len(call.result) - 1 if call.fused["channel_last"] else call.fused["base_axis"]
    return not call.args["batch_stat"] and tuple(call.args["axes"]) == (channel,)  # type: ignore[arg-type]  # integers


def _adds_before_nonlinearity(call: LinkCall) -> bool:
    return call.fused["nonlinearity"] == "identity" and set(call.shapes.values()) == {call.result}


def _one_channel_a_group(call: LinkCall) -> Shape:
    """Return the shape of filters of single channels, as those of groups have it."""
    filters, *kernel = call.shapes["weight"] or ()
    return (filters, 1, *kernel)


def _channels(call: LinkCall) -> int:
    shape = call.shapes["x"]
    assert shape is not None
    return shape[int(call.args["base_axis"])]  # type: ignore[arg-type]  # an int by the specification


_NORMALIZATION: Final = same("beta", "gamma", "mean", "variance")

#: The functions that a convolution is joined with.
_AFTER_CONVOLUTION: Final = (
    ChainLink(
        "BatchNormalization",
        inputs=_NORMALIZATION,
        args=same("decay_rate", "eps"),
        optional=True,
        exact=False,
        requires=_normalizes_channels,
    ),
    ChainLink(
        "FusedBatchNormalization",
        inputs=_NORMALIZATION | same("z"),
        args=same("decay_rate", "eps", "nonlinearity"),
        optional=True,
        exact=False,
        requires=_normalizes_channels,
    ),
    ChainLink("Add2", "x0", inputs={"z": "x1"}, optional=True, requires=_adds_before_nonlinearity),
    ChainLink("Add2", "x1", inputs={"z": "x0"}, optional=True, requires=_adds_before_nonlinearity),
    ChainLink("ReLU", sets={"nonlinearity": "relu"}, optional=True),
)
_CONVOLUTIONS: Final = (
    ChainLink(
        "Convolution",
        inputs=same("x", "weight", "bias"),
        args=same("base_axis", "pad", "stride", "dilation", "group", "channel_last"),
    ),
    ChainLink(
        "DepthwiseConvolution",
        inputs=same("x", "weight", "bias"),
        args=same("base_axis", "pad", "stride", "dilation"),
        sets={"channel_last": False},
        computed={"group": _channels},
        shaped={"weight": _one_channel_a_group},
    ),
)

#: The fusions of the core. They run where the backend of the first function lists the operator in `inference_fusions`.
FUSIONS: Final = tuple(
    Fusion("FusedConvolution", (first, *_AFTER_CONVOLUTION), sets={"batch_stat": False, "nonlinearity": "identity"})
    for first in _CONVOLUTIONS
)
