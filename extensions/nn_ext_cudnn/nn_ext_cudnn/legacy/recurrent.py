"""Recurrent networks over sequences: all layers, directions and steps in one call.

The backward pass runs the network again: what cuDNN keeps of the forward pass has a size of its own, for which the function
has no place, and cuDNN changes it on the way back. cuDNN may add up in different orders when a process uses several
streams at once; the environment variable ``CUBLAS_WORKSPACE_CONFIG=:4096:8`` fixes the order.
"""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.copies import Copies
from nn_ext_cuda.describe import backward_arrays, backward_names, forward_arrays, forward_names
from nn_ext_cuda.dtypes import ITEM_BYTES
from nn_ext_cuda.precision import is_tf32_allowed
from nn_ext_cudnn import handle, library
from nn_ext_cudnn.errors import NotSupportedError
from nn_ext_cudnn.legacy import api, descriptors
from nn_ext_cudnn.legacy.descriptors import Descriptor
from nn_ext_cudnn.legacy.recipe import At, LibraryCall, Recipe
from nn_ext_cudnn.legacy.refusal import refuse_arrays
from nn_ext_cudnn.legacy.weights import Form, Piece, WeightCopy, covers, pieces

#: The cell of an Elman network by its nonlinearity.
_ELMAN: Final = {"tanh": api.Cell.TANH, "relu": api.Cell.RELU}
_WEIGHTS: Final = ("weight_l0", "weight", "bias")


@dataclass(frozen=True, slots=True)
class Question:
    """What descriptors of a network depend on."""

    form: Form
    cell: api.Cell
    dtype: str
    n_steps: int
    n_batch: int
    tf32: bool
    device_id: str


@dataclass(frozen=True, slots=True)
class Network:
    """Descriptors of a network, and bytes of memory that it needs.

    Attributes:
        network: The network.
        x: Its inputs.
        y: Its outputs.
        states: Its states.
        weight_bytes: Size of the weights.
        inference_bytes: Scratch memory of the forward pass for itself.
        training_bytes: Scratch memory of both passes together.
        kept_bytes: What the forward pass hands to the backward pass.
        dropout: A part of `network`.
    """

    network: Descriptor
    x: Descriptor
    y: Descriptor
    states: Descriptor
    weight_bytes: int
    inference_bytes: int
    training_bytes: int
    kept_bytes: int
    dropout: Descriptor


class Recurrent:
    """A recurrent network; which one, the function of the call says."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dropout between layers, and what cuDNN says it cannot do."""
        args = call.args
        if args["dropout"] and args["training"] and args["num_layers"] != 1:
            return Refusal("takes no dropout between layers: cuDNN draws random numbers of its own")
        refusal = refuse_arrays(call) or api.refuse_part("ops") or api.refuse_part("adv")
        if refusal is not None:
            return refusal
        try:
            _network(library.library(), _question(call))
        except NotSupportedError as error:
            return Refusal(str(error).partition("\n")[0])
        return None

    def forward(self, call: Call) -> Runner:
        """One call behind a copy of the weights."""
        work = _Work(call, forward_arrays(call), forward_names(call))
        work.pack()
        found = work.found
        work.forward(api.RNN_INFERENCE, found.inference_bytes, work.at("y"), work.at("h_n"), work.at("c_n"), None)
        return work.recipe()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """The forward pass, then one call for inputs and states and one for weights."""
        work = _Work(call, backward_arrays(call, wanted), backward_names(call))
        work.pack()
        found, y = work.found, work.scratch(call.outputs[0].shape, call.dtype)
        kept = work.scratch((found.kept_bytes,), "uint8")
        work.forward(api.RNN_TRAINING, found.training_bytes, y, None, None, kept)
        dx = work.at("dx") or work.scratch((*call.outputs[0].shape[:2], work.form.n_features), call.dtype)
        work.backward_data(y, dx, kept)
        if any(work.at(f"d{name}") is not None for name in _WEIGHTS):
            work.backward_weights(y, kept)
        return work.recipe()


class _Work:
    """Collects the parts of a recipe.

    Args:
        call: The call.
        arrays: Its arrays.
        names: Their names.
    """

    def __init__(self, call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> None:
        question = _question(call)
        self.form = question.form
        self.found = _network(library.library(), question)
        self.pieces = _pieces(library.library(), question)
        self._call = call
        self._arrays = list(arrays)
        self._names = {name: place for place, name in enumerate(names)}
        self._n_arrays = len(arrays)
        self._parts: list[Any] = []
        self._memory = self._space = At(-1)

    def at(self, name: str) -> At | None:
        """The array of that name; None where there is none."""
        place = self._names.get(name)
        return None if place is None or self._arrays[place] is None else At(place)

    def scratch(self, shape: Shape, dtype: str) -> At:
        """A new scratch array."""
        self._arrays.append(ArrayDesc(tuple(shape), dtype))
        return At(len(self._arrays) - 1)

    def pack(self) -> None:
        """Copy the weights to where cuDNN wants them."""
        self._space = self._weights()
        if not covers(self.pieces, self._n_weights):
            self._zero(self._space)
        self._copy("", self._space, unpack=False)

    def forward(
        self, mode: int, n_bytes: int, y: At | None, h_n: At | None, c_n: At | None, kept: At | None
    ) -> None:
        """Run the network."""
        found = self.found
        self._memory = self.scratch((n_bytes,), "uint8")
        self._call_library(
            "cudnnRNNForward",
            *(found.network, mode, None, found.x, self.at("x"), found.y, y, found.states, self.at("h"), h_n),
            *(self._cell_states, self.at("c"), c_n, found.weight_bytes, self._space, n_bytes, self._memory),
            *(found.kept_bytes if kept else 0, kept),
        )

    def backward_data(self, y: At, dx: At, kept: At) -> None:
        """Gradients of the inputs and of the states."""
        found = self.found
        self._call_library(
            "cudnnRNNBackwardData_v8",
            *(found.network, None, found.y, y, self.at("dy"), found.x, dx),
            *(found.states, self.at("h"), self.at("dh_n"), self.at("dh")),
            *(self._cell_states, self.at("c"), self.at("dc_n"), self.at("dc")),
            *(found.weight_bytes, self._space, found.training_bytes, self._memory, found.kept_bytes, kept),
        )

    def backward_weights(self, y: At, kept: At) -> None:
        """Gradients of the weights, which cuDNN adds to what is there."""
        found, gradients = self.found, self._weights()
        self._zero(gradients)
        self._call_library(
            "cudnnRNNBackwardWeights_v8",
            *(found.network, api.RNN_ADD_GRADIENTS, None, found.x, self.at("x"), found.states, self.at("h"), found.y, y),
            *(found.weight_bytes, gradients, found.training_bytes, self._memory, found.kept_bytes, kept),
        )
        self._copy("d", gradients, unpack=True)

    def recipe(self) -> Recipe:
        """All parts in order."""
        scratch = [(desc.shape, desc.dtype) for desc in self._arrays[self._n_arrays :] if desc is not None]
        parts = [part(len(self._arrays)) if callable(part) else part for part in self._parts]
        return Recipe(self._call.spec.api, parts, self._n_arrays, scratch)

    @property
    def _cell_states(self) -> Descriptor | None:
        return self.found.states if "c" in self._names else None

    @property
    def _n_weights(self) -> int:
        return -(-self.found.weight_bytes // ITEM_BYTES[self._call.dtype])

    def _weights(self) -> At:
        return self.scratch((self._n_weights,), self._call.dtype)

    def _call_library(self, name: str, *arguments: Any) -> None:
        self._parts.append(LibraryCall(getattr(api.adv(), name), arguments))

    def _zero(self, array: At) -> None:
        desc = self._arrays[array.place]

        def filled(n_arrays: int) -> Any:
            copies = Copies([desc if place == array.place else None for place in range(n_arrays)])
            copies.fill(array.place)
            return copies.program()

        self._parts.append(filled)

    def _copy(self, prefix: str, space: At, *, unpack: bool) -> None:
        given = [self._names[f"{prefix}{name}"] for name in _WEIGHTS]
        self._parts.append(WeightCopy(self.pieces, self._call.dtype, [*given, space.place], unpack=unpack))


def _question(call: Call) -> Question:
    x, h = call.inputs[:2]
    assert x is not None
    assert h is not None
    names = [entry.name for entry in call.spec.inputs]
    gates = {"RNN": 1, "LSTM": 4, "GRU": 3}[call.spec.name]
    nonlinearity: Any = call.args.get("nonlinearity")
    cell = _ELMAN[nonlinearity] if call.spec.name == "RNN" else api.Cell[call.spec.name]
    has_bias = call.inputs[names.index("bias")] is not None
    form = Form(h.shape[0], h.shape[1], gates, x.shape[2], h.shape[3], has_bias, has_bias and call.spec.name == "GRU")
    tf32 = call.dtype == "float32" and is_tf32_allowed()
    return Question(form, cell, call.dtype, x.shape[0], x.shape[1], tf32, call.device_id)


@lru_cache(maxsize=256)
def _network(source: object, question: Question) -> Network:
    """Descriptors of a network, and the memory that it needs.

    Raises:
        NotSupportedError: when cuDNN does not run it.
    """
    functions, pointer = api.adv(), handle.current().pointer
    form, dtype = question.form, question.dtype
    bias = api.Bias.NONE if not form.has_bias else api.Bias.BOTH if form.has_state_bias else api.Bias.INPUT
    short = ITEM_BYTES[dtype] == 2
    exact = dtype == "float32" and not question.tf32
    math = api.Math.TENSOR_OP if short else api.Math.FMA if exact else api.Math.DEFAULT
    dropout = descriptors.no_dropout(pointer)
    network = Descriptor(functions.cudnnCreateRNNDescriptor, functions.cudnnDestroyRNNDescriptor)
    functions.cudnnSetRNNDescriptor_v8(
        *(network, api.RNN_STANDARD, question.cell, bias, form.n_directions - 1, api.RNN_LINEAR_INPUT),
        *(api.DATA_TYPES[dtype], api.DATA_TYPES["float64" if dtype == "float64" else "float32"], math),
        *(form.n_features, form.n_hidden, form.n_hidden, form.n_layers, dropout, 0),
    )
    n_steps, n_batch = question.n_steps, question.n_batch
    x = descriptors.steps(dtype, n_steps, n_batch, form.n_features)
    y = descriptors.steps(dtype, n_steps, n_batch, form.n_directions * form.n_hidden)
    states = descriptors.tensor(dtype, (form.n_layers * form.n_directions, n_batch, form.n_hidden))
    weights = ctypes.c_size_t()
    functions.cudnnGetRNNWeightSpaceSize(pointer, network, ctypes.byref(weights))
    sizes = []
    for mode in (api.RNN_INFERENCE, api.RNN_TRAINING):
        work, kept = ctypes.c_size_t(), ctypes.c_size_t()
        functions.cudnnGetRNNTempSpaceSizes(pointer, network, mode, x, ctypes.byref(work), ctypes.byref(kept))
        sizes.append((work.value, kept.value))
    (inference, _), (training, kept_bytes) = sizes
    return Network(network, x, y, states, weights.value, inference, training, kept_bytes, dropout)


@lru_cache(maxsize=256)
def _pieces(source: object, question: Question) -> list[Piece]:
    """Where cuDNN wants the weights."""
    found = _network(source, question)
    return pieces(question.form, found.network, found.weight_bytes, question.dtype)


RECURRENT: Final[Mapping[str, Kernel]] = dict.fromkeys(("RNN", "LSTM", "GRU"), Recurrent())
