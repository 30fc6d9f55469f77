"""Descriptors of recurrent networks: what they depend on, and the memory that cuDNN asks for."""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from nn_core.ext import Call
from nn_ext_cuda.codegen.dtypes import ITEM_BYTES
from nn_ext_cuda.gemm.precision import is_tf32_allowed
from nn_ext_cudnn import handle, library
from nn_ext_cudnn.legacy import api, descriptors
from nn_ext_cudnn.legacy.descriptors import Descriptor
from nn_ext_cudnn.legacy.weights import Form, Piece, pieces

#: The cell of an Elman network by its nonlinearity.
_ELMAN: Final = {"tanh": api.Cell.TANH, "relu": api.Cell.RELU}
#: Number of matrices for the input.
_GATES: Final[Mapping[str, int]] = {"RNN": 1, "LSTM": 4, "GRU": 3}


@dataclass(frozen=True, slots=True)
class Question:
    """The properties of a call that descriptors of a network depend on."""

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
        kept_bytes: Size of the data that the forward pass hands to the backward pass.
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

    def n_kept(self, dtype: str) -> int:
        """Return number of elements of `dtype` that the forward pass hands to the backward pass."""
        return -(-self.kept_bytes // ITEM_BYTES[dtype])


def network_of(call: Call) -> Network:
    """Return the network of a call.

    Raises:
        NotSupportedError: when cuDNN does not run it.
    """
    return _network(library.library(), question_of(call))


def pieces_of(call: Call) -> list[Piece]:
    """Return the places where cuDNN wants the weights of a call."""
    return _pieces(library.library(), question_of(call))


def question_of(call: Call) -> Question:
    """Return the properties of a call that its descriptors depend on."""
    x, h = call.inputs[:2]
    assert x is not None
    assert h is not None
    names = [entry.name for entry in call.spec.inputs]
    nonlinearity: Any = call.args.get("nonlinearity")
    cell = _ELMAN[nonlinearity] if call.spec.name == "RNN" else api.Cell[call.spec.name]
    has_bias = call.inputs[names.index("bias")] is not None
    has_state_bias = has_bias and call.spec.name == "GRU"
    n_layers, n_directions, _, n_hidden = h.shape
    form = Form(n_layers, n_directions, _GATES[call.spec.name], x.shape[2], n_hidden, has_bias, has_state_bias)
    tf32 = call.dtype == "float32" and is_tf32_allowed()
    return Question(form, cell, call.dtype, x.shape[0], x.shape[1], tf32, call.device_id)


@lru_cache(maxsize=256)
def _network(source: object, question: Question) -> Network:
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
    found = _network(source, question)
    return pieces(question.form, found.network, found.weight_bytes, question.dtype)
