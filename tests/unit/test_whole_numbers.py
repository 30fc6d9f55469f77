"""Whole numbers of other types in place of ints: lengths, counts, axes and indices, as division in Python 3 gives them."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.data.iterators import data_iterator_simple
from nn_core.engine.error_messages.whole import whole
from nn_core.errors import ArgumentError, NNCoreError, ShapeError
from nn_core.initializer import NormalInitializer
from nn_core.parameter import get_parameter_or_create

KINDS = {"float": float, "float32": np.float32, "0-d array": lambda n: np.array(float(n)), "int64": np.int64}


@pytest.fixture
def x():
    return nn.Variable.from_numpy_array(np.arange(512, dtype=np.float32).reshape(2, 4, 8, 8))


#: Calls with every integer made by `n`.
CALLS = {
    "Variable": lambda x, n: nn.Variable((n(4), n(2))),
    "Variable of one length": lambda x, n: nn.Variable(n(4)),
    "reset_shape": lambda x, n: x.reset_shape((n(4), n(8)), True) or x,
    "reshape": lambda x, n: F.reshape(x, (n(8), n(-1))),
    "reshape of a Variable": lambda x, n: x.reshape((n(8), n(-1))),
    "view": lambda x, n: x.data.view((n(8), n(-1))),
    "narrow": lambda x, n: x.data.narrow(n(1), n(1), n(2)),
    "pad": lambda x, n: F.pad(x, (n(1), n(2))),
    "slice": lambda x, n: F.slice(x, start=(n(0), n(1)), stop=(n(2), n(4)), step=(n(1), n(2))),
    "getitem of a slice": lambda x, n: x[:, n(0) : n(2)],
    "tile": lambda x, n: F.tile(x, (n(1), n(2), n(1), n(1))),
    "one_hot": lambda x, n: F.one_hot(F.constant(0, (2, 1)), (n(5),)),
    "sum": lambda x, n: F.sum(x, axis=n(1)),
    "mean": lambda x, n: F.mean(x, axis=[n(1), n(2)]),
    "expand_dims": lambda x, n: F.expand_dims(x, axis=n(1)),
    "softmax": lambda x, n: F.softmax(x, axis=n(1)),
    "concatenate": lambda x, n: F.concatenate(x, x, axis=n(1)),
    "split": lambda x, n: F.split(x, axis=n(1))[0],
    "average_pooling": lambda x, n: F.average_pooling(x, (n(2), n(2)), stride=(n(2), n(2)), pad=(n(1), n(1))),
    "max_pooling": lambda x, n: F.max_pooling(x, n(2)),
    "interpolate": lambda x, n: F.interpolate(x, output_size=(n(16), n(16)), mode="linear"),
    "convolution": lambda x, n: PF.convolution(
        x, n(8), (n(3), n(3)), pad=(n(1), n(1)), stride=(n(2), n(2)), dilation=(n(1), n(1)), group=n(2)
    ),
    "convolution with one length": lambda x, n: PF.convolution(x, n(8), n(3)),
    "deconvolution": lambda x, n: PF.deconvolution(x, n(8), (n(3), n(3)), pad=(n(1), n(1)), group=n(2)),
    "depthwise_convolution": lambda x, n: PF.depthwise_convolution(x, (n(3), n(3)), multiplier=n(2)),
    "affine": lambda x, n: PF.affine(x, (n(8), n(2)), base_axis=n(1)),
    "embed": lambda x, n: PF.embed(F.constant(0, (2,)), n(8), n(3)),
    "batch_normalization": lambda x, n: PF.batch_normalization(x, axes=[n(1)]),
    "group_normalization": lambda x, n: PF.group_normalization(x, n(2), channel_axis=n(1)),
    "initial values": lambda x, n: get_parameter_or_create("w", (n(3), n(2)), NormalInitializer()),
    "get_parameter_or_create": lambda x, n: get_parameter_or_create("w", (n(3), n(2))),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_whole_numbers_of_any_type_are_taken(call, kind, x):
    shape = CALLS[call](x, int).shape
    nn.clear_parameters()
    x.reset_shape((2, 4, 8, 8), True)
    assert CALLS[call](x, KINDS[kind]).shape == shape


@pytest.mark.parametrize("call", CALLS)
def test_fractions_are_refused_with_the_operator_to_use(call, x):
    with pytest.raises(NNCoreError, match=r"(?s)got .*hint: // divides without a fraction") as caught:
        CALLS[call](x, lambda n: n + 0.5)
    assert isinstance(caught.value, (ArgumentError, ShapeError))


def test_an_element_is_picked_by_a_whole_float(x):
    assert x[1.0].shape == (4, 8, 8)
    x[1.0, 0 : 4 / 2] = 7
    x.forward()
    assert (x.d == 7).sum() == 2 * 64 + 1
    array = nn.NdArray((4,))
    array[4 / 2] = 1
    array[np.array(3.0)] = 2
    assert array.data.tolist() == [0, 0, 1, 2]
    assert x[np.array(1.0)].shape == (4, 8, 8) and x[0, np.array(2.0)].shape == (8, 8)


@pytest.mark.parametrize("part", [1.5, np.float32(0.5), np.array(1.5)])
@pytest.mark.parametrize("key", [lambda part: part, lambda part: (0, part)])
def test_an_index_with_a_fraction_is_refused_with_the_operator_to_use(key, part, x):
    for holder in (x, x.data):
        with pytest.raises(IndexError, match=r"(?s)an index must be a whole number, got .*hint: // divides without"):
            holder[key(part)]
        with pytest.raises(ArgumentError, match=r"(?s)an index must be a whole number, got .*hint: // divides without"):
            holder[key(part)] = 1


def test_counts_may_be_whole_floats():
    with data_iterator_simple(lambda i: (i,), 8, 8 / 2, with_memory_cache=False) as batches:
        assert batches.batch_size == 4
    with pytest.raises(ArgumentError, match=r"(?s)batch_size must be a whole number of at least 1, got 2.5.*hint: //"):
        data_iterator_simple(lambda i: (i,), 8, 2.5, with_memory_cache=False)


@pytest.mark.parametrize("value", [2.5, np.float32(0.5), float("nan"), float("inf"), 1e30, "2", None, [2], np.ones(2), 2j])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(TypeError):
        whole(value)


def test_a_part_of_a_length_follows_new_shapes():
    x = nn.Variable.from_numpy_array(np.arange(32.0).reshape(4, 8))
    half, rows, last = x[:, 0 : x.shape[1] / 2], F.reshape(x, (x.shape[0] / 2, -1)), x[:, x.shape[1] / 2 - 1]
    x.reset_shape((6, 12), True)
    x.d = np.arange(72.0).reshape(6, 12)
    nn.forward_all([half, rows, last])
    assert (half.shape, rows.shape) == ((6, 6), (3, 24)) and last.d.tolist() == [5, 17, 29, 41, 53, 65]
    x.reset_shape((6, 11), True)
    with pytest.raises((ArgumentError, ShapeError), match="whole"):
        half.forward()
