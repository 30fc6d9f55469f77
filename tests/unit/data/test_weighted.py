"""Samples that are drawn with weights."""

import numpy as np
import pytest

import nn_core.parametric_functions as PF
from nn_core.data import ArrayDataSource, SimpleDataSource, WeightedDataSource, data_iterator
from nn_core.errors import ArgumentError
from nn_core.training import fit


def source(n: int = 8, **options: bool) -> ArrayDataSource:
    return ArrayDataSource({"t": np.arange(n)}, **options)


def drawn(weighted: WeightedDataSource) -> list[int]:
    return [int(weighted.next()[0]) for _ in range(weighted.size)]


def test_samples_come_as_often_as_their_weights_say() -> None:
    counts = np.bincount(drawn(WeightedDataSource(source(), [0, 1, 3, 0, 0, 0, 4, 0], size=8000)), minlength=8)
    expected = np.array([0, 1000, 3000, 0, 0, 0, 4000, 0])
    assert (counts[expected == 0] == 0).all()
    assert (abs(counts - expected) <= 5 * np.sqrt(expected)).all()  # five standard deviations


def test_each_epoch_is_drawn_anew_from_the_generator() -> None:
    one, same = (WeightedDataSource(source(), np.ones(8), size=20, rng=np.random.RandomState(4)) for _ in range(2))
    epochs = []
    for _ in range(2):
        epochs.append(drawn(one))
        assert epochs[-1] == drawn(same)
        one.reset()
        same.reset()
    assert epochs[0] != epochs[1]


def test_batches_and_single_samples_are_the_same() -> None:
    with data_iterator(WeightedDataSource(source(), np.arange(8), size=12), 4) as batches:
        in_batches = [batches.next()[0].tolist() for _ in range(3)]
    with data_iterator(WeightedDataSource(SimpleDataSource(lambda i: i, 8), np.arange(8), size=12), 4) as batches:
        assert [batches.next()[0].tolist() for _ in range(3)] == in_batches


def test_an_iterator_resumes_at_its_sample() -> None:
    def made() -> object:
        return data_iterator(WeightedDataSource(source(), np.arange(8), size=12), 4)

    with made() as batches:
        for _ in range(4):
            batches.next()
        state = batches.get_state()
        expected = [batches.next()[0].tolist() for _ in range(6)]
    with made() as batches:
        batches.set_state(state)
        assert [batches.next()[0].tolist() for _ in range(6)] == expected


def test_fit_takes_it() -> None:
    x = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
    t = (np.arange(40) < 4).astype(np.int64)
    data = WeightedDataSource(ArrayDataSource({"x": x, "t": t}), 1 / np.bincount(t)[t], size=80)
    result = fit(lambda x: PF.affine(x, 2), data, epochs=2, batch_size=8, progress=False)
    assert len(result.history) == 2


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        (np.ones(7), r"weights must have shape \(8,\), one for each sample, got \(7,\)"),
        (np.ones((8, 1)), r"got \(8, 1\)"),
        ([1] * 7 + [-1], "must be finite and at least 0, got -1"),
        ([1] * 7 + [np.nan], "got nan"),
        ([1] * 7 + [np.inf], "got inf"),
        (np.zeros(8), "a weight must be above 0, got zeros alone"),
        (["a"] * 8, "weights must be numbers"),
    ],
)
def test_wrong_weights_are_refused(weights: object, text: str) -> None:
    with pytest.raises(ArgumentError, match=f"^WeightedDataSource: .*{text}"):
        WeightedDataSource(source(), weights)


def test_wrong_sources_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^WeightedDataSource: data_source must be a data source, got"):
        WeightedDataSource(np.ones(8), np.ones(8))
    with pytest.raises(ArgumentError, match=r"must keep its order, got one that is shuffled"):
        WeightedDataSource(source(shuffle=True), np.ones(8))
    with pytest.raises(ArgumentError, match=r"the number of samples must be .* got 0"):
        WeightedDataSource(source(), np.ones(8), size=0)


def test_large_and_small_weights_have_a_sum() -> None:
    assert set(drawn(WeightedDataSource(source(), [1e308] * 8, size=200))) == set(range(8))
    assert set(drawn(WeightedDataSource(source(), [1e-320] * 8, size=200))) == set(range(8))
