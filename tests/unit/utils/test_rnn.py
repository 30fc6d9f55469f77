"""Sequences are padded and packed, and come back."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, ShapeError
from nn_core.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence


def sequences(*lengths):
    return [
        nn.Variable.from_numpy_array(100.0 * n + np.arange(2.0 * length).reshape(length, 2), need_grad=True)
        for n, length in enumerate(lengths)
    ]


@pytest.mark.parametrize("batch_first", [False, True])
def test_padding_fills_up_to_the_longest(batch_first):
    given = sequences(3, 1, 2)
    padded = pad_sequence(given, batch_first, padding_value=-1)
    padded.forward()
    rows = padded.d if batch_first else padded.d.swapaxes(0, 1)
    assert rows.shape == (3, 3, 2)
    for row, sequence in zip(rows, given, strict=True):
        assert np.array_equal(row[: len(sequence.d)], sequence.d)
        assert (row[len(sequence.d) :] == -1).all()


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("lengths", [(3, 2, 1), (1, 3, 2), (2, 2), (4,)])
def test_what_was_packed_comes_back(lengths, batch_first):
    given = sequences(*lengths)
    packed = pack_sequence(given, batch_first, enforce_sorted=False)
    assert packed.data.shape == (sum(lengths), 2)
    assert packed.batch_sizes.d.tolist() == [sum(n > step for n in lengths) for step in range(max(lengths))]
    padded, counts = pad_packed_sequence(packed, batch_first=True, padding_value=9, total_length=5)
    nn.forward_all([padded, counts])
    assert counts.d.tolist() == list(lengths)
    for row, sequence in zip(padded.d, given, strict=True):
        assert np.array_equal(row[: len(sequence.d)], sequence.d)
        assert (row[len(sequence.d) :] == 9).all()


def test_gradients_go_through_packing():
    given = sequences(1, 3)
    for sequence in given:
        sequence.grad.zero()
    loss = F.sum(pack_sequence(given, enforce_sorted=False).data ** 2)
    loss.forward()
    loss.backward()
    for sequence in given:
        assert np.allclose(sequence.g, 2 * sequence.d)


def test_packing_leaves_out_the_padding():
    padded = nn.Variable.from_numpy_array(np.arange(6.0).reshape(3, 2))
    packed = pack_padded_sequence(padded, nn.Variable.from_numpy_array(np.array([3, 1])))
    packed.data.forward()
    assert packed.data.d.tolist() == [0, 1, 2, 4]
    assert packed.sorted_indices is None


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pack_sequence(sequences(1, 2)), ArgumentError, "lengths must not increase, got \\[1, 2\\]"),
        (lambda: pad_sequence([]), ArgumentError, "at least one sequence"),
        (lambda: pad_sequence([nn.Variable((2, 3)), nn.Variable((2, 4))]), ShapeError, "elements of one shape"),
        (lambda: pad_packed_sequence(PackedSequence()), ArgumentError, "must hold data"),
        (lambda: pack_padded_sequence(nn.Variable((3, 2)), nn.Variable((3,))), ShapeError, "one number for each sequence"),
    ],
)
def test_wrong_sequences_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("enforce_sorted", [False, True])
@pytest.mark.parametrize("lengths", [[2, 4], [2, -1]])
def test_lengths_outside_of_the_steps_are_refused(lengths, enforce_sorted):
    padded, counts = nn.Variable((3, 2, 1)), nn.Variable.from_numpy_array(np.array(lengths))
    with pytest.raises(ArgumentError, match="lengths must be from 0 to the 3 steps, not all 0"):
        pack_padded_sequence(padded, counts, enforce_sorted=enforce_sorted)
    with pytest.raises(ArgumentError, match=r"lengths must (be from 1 to the 3 steps|not increase)"):
        F.pack_padded_sequence(padded, counts)[0].forward()


def test_nothing_but_sequences_without_elements_is_refused():
    with pytest.raises(ArgumentError, match=r"from 0 to the 3 steps, not all 0, got \[0, 0\]"):
        pack_padded_sequence(nn.Variable((3, 2, 1)), nn.Variable.from_numpy_array(np.zeros(2, np.int64)))


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("lengths", [[3, 1, 0, 0], [0, 2, 0, 3], [3, 0]])
def test_sequences_without_elements_come_back(lengths, batch_first):
    arrays = [np.arange(2.0 * length).reshape(length, 2) + 1 for length in lengths]
    padded = np.zeros((len(lengths), 3, 2))
    for row, array in zip(padded, arrays, strict=True):
        row[: len(array)] = array
    padded = padded if batch_first else padded.swapaxes(0, 1)
    counts = nn.Variable.from_numpy_array(np.array(lengths))
    packed = pack_padded_sequence(nn.Variable.from_numpy_array(padded), counts, batch_first, enforce_sorted=False)
    packed.data.forward()
    assert sorted(packed.data.d[:, 0]) == sorted(np.concatenate(arrays)[:, 0])
    again, found = pad_packed_sequence(packed, batch_first)
    nn.forward_all([again, found])
    assert found.d.tolist() == lengths
    np.testing.assert_array_equal(again.d, padded[:, : max(lengths)] if batch_first else padded[: max(lengths)])
