"""Values of other libraries: tensors of graphs, bfloat16, columns, DLPack, and what is refused."""

from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.parametric_functions as PF
from nn_core.data import ArrayDataSource
from nn_core.errors import ArgumentError, DTypeError, NNCoreError
from nn_core.training import fit


class Tensor:
    """A stand-in for a tensor of PyTorch, which refuses what that refuses."""

    def __init__(self, values: Any, dtype: str = "torch.float32", requires_grad: bool = False, device: str = "cpu") -> None:
        self.values, self.dtype, self.requires_grad, self.device = np.asarray(values, np.float32), dtype, requires_grad, device
        self.shape, self.ndim = self.values.shape, self.values.ndim

    def detach(self) -> "Tensor":
        return Tensor(self.values, self.dtype, device=self.device)

    def float(self) -> "Tensor":
        return Tensor(self.values, requires_grad=self.requires_grad, device=self.device)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self.device != "cpu":
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()")
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.values


class Column:
    """A stand-in for a column of pandas with missing values, which NumPy reads as objects."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return np.array(self.values, object)

    def to_numpy(self, dtype: Any = None, na_value: Any = None) -> np.ndarray[Any, Any]:
        return np.array([na_value if value is None else value for value in self.values], dtype)


class Labelled(Column):
    """A stand-in for a column of pandas that was shuffled: `[]` reads by label, `iloc` by position."""

    def __init__(self, values: list[Any], labels: list[int]) -> None:
        super().__init__(values)
        self.iloc, self.shape = values, (len(values),)
        self._labels = labels

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, label: int) -> Any:
        return self.values[self._labels.index(label)]


VALUES = [[1.5, 2.0], [3.0, -4.0]]
TAKEN: Mapping[str, Any] = {
    "a tensor of a graph": Tensor(VALUES, requires_grad=True),
    "bfloat16": Tensor(VALUES, "torch.bfloat16"),
    "bfloat16 of a graph": Tensor(VALUES, "torch.bfloat16", requires_grad=True),
    "a table": VALUES,
}


@pytest.mark.parametrize("kind", TAKEN)
def test_values_are_taken(kind: str) -> None:
    x = nn.Variable((2, 2))
    x.d = TAKEN[kind]
    assert x.d.tolist() == nn.Variable.from_numpy_array(TAKEN[kind]).d.tolist() == VALUES
    assert nn.NdArray.from_numpy_array(TAKEN[kind]).data.tolist() == VALUES


def test_missing_values_of_columns_are_nan() -> None:
    x = nn.Variable((3,))
    x.d = Column([1, None, 3])
    np.testing.assert_array_equal(x.d, [1, np.nan, 3])
    arrow = pytest.importorskip("pyarrow")
    x.d = arrow.chunked_array([[1.0], [None, 3.0]])
    np.testing.assert_array_equal(x.d, [1, np.nan, 3])


def samples(**arrays: Any) -> list[Any]:
    source = ArrayDataSource(arrays)
    return [np.asarray(source.next()[0]).tolist() for _ in range(source.size)]


def test_rows_of_columns_are_taken_by_position() -> None:
    assert samples(x=Labelled([5, None, 7], [2, 0, 1]))[::2] == [5.0, 7.0]
    shuffled = Labelled([0, None, 2], [2, 0, 1])
    trained = fit(lambda x: PF.affine(x, 1), (np.ones((3, 2)), shuffled), task="regression", epochs=1, progress=False)
    assert np.isnan(trained.history[0]["loss"])  # of the missing target


def test_rows_of_arrow_and_not_its_columns_are_samples() -> None:
    arrow = pytest.importorskip("pyarrow")
    columns = {"a": [1.0, 2.0, 3.0], "b": [4, 5, 6]}
    assert samples(x=arrow.table(columns)) == samples(x=arrow.record_batch(columns)) == [[1, 4], [2, 5], [3, 6]]
    assert samples(x=arrow.array([1, 2])) == samples(x=arrow.chunked_array([[1], [2]])) == [1, 2]
    x = nn.Variable.from_numpy_array(arrow.array([True, None, False]))
    np.testing.assert_array_equal(x.d, [1, np.nan, 0])


@pytest.mark.parametrize("values", [["1", "2"], [1, date(2026, 1, 1)], [1, "a"], [np.ones(2), np.ones(3)]])
def test_columns_of_something_else_say_how_to_encode_them(values: list[Any]) -> None:
    """Refuse also what a library would turn into numbers, such as dates into microseconds."""
    column = Labelled(values, [0, 1])
    with pytest.raises(DTypeError, match=r"^from_numpy_array: .*\n  hint: codes in place of texts and categories"):
        nn.Variable.from_numpy_array(column)
    with pytest.raises(ArgumentError, match=r"^fit: inputs of train .* got Labelled of shape \(2,\)\n  hint: codes in place"):
        fit(lambda x: x, (column, np.zeros(2)), epochs=1, progress=False)
    if all(isinstance(value, str) for value in values):
        with pytest.raises(ArgumentError, match=r"^fit: targets of train .*\n  hint: .*classes"):
            fit(lambda x: x, (np.zeros((2, 2)), column), epochs=1, progress=False)


def test_memory_is_shared_by_dlpack() -> None:
    values = np.ones((2, 3), np.float32)
    array, x = nn.from_dlpack(values), nn.Variable.from_dlpack(values, need_grad=True)
    values[0, 0] = 7
    assert isinstance(array, nn.NdArray) and array.data[0, 0] == x.d[0, 0] == 7
    assert x.need_grad and x.shape == (2, 3)
    with pytest.raises(ArgumentError, match=r"^NdArray.from_dlpack: a tensor must not require .*\n  hint: .*detach"):
        nn.Variable.from_dlpack(Tensor(VALUES, requires_grad=True))


def test_variables_are_iterated_over_like_arrays() -> None:
    x = nn.Variable.from_numpy_array(VALUES)
    first, second = x
    nn.forward_all([first, second])
    assert [first.d.tolist(), second.d.tolist()] == VALUES


REFUSED: Mapping[str, tuple[Any, type[NNCoreError], str]] = {
    "nothing": (None, ArgumentError, "values must be an array or a number, got None"),
    "text": ("1", ArgumentError, "values must be an array or a number, got '1'"),
    "rows of two lengths": ([[1, 2], [3]], ArgumentError, r"values must form an array, got \[\[1, 2\], \[3\]\]"),
    "objects": (np.array([[None] * 2] * 2), DTypeError, "values must be real numbers or booleans, got dtype object"),
    "a tensor on a device": (Tensor(VALUES, device="cuda"), ArgumentError, r"values must form an array, .*Tensor.cpu\(\)"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_names_the_variable(kind: str) -> None:
    value, error, text = REFUSED[kind]
    x = nn.Variable((2, 2))
    with pytest.raises(error, match=f"^NdArray: {text}"):
        x.d = value
    x.name = "images"
    with pytest.raises(error, match=f"^variable 'images': NdArray: {text}"):
        x.d = value
    with pytest.raises(error, match=f"^variable 'images': NdArray: {text}"):
        x.g = value


@pytest.mark.parametrize("kind", [{"requires_grad": True}, {"dtype": "torch.bfloat16"}])
def test_training_takes_tensors(kind: Any) -> None:
    x, t = Tensor(np.ones((8, 3)), **kind), np.zeros(8, np.int64)
    train = nn.Sequential(nn.layers.Linear(2))
    result = fit(train, (x, t), 0.25, epochs=1, progress=False)
    assert result.predict(x).shape == nn.predict(train, x).shape == (8, 2)
    assert result.evaluate((x, t))["accuracy"] >= 0
    batches = [(Tensor(np.ones((4, 3)), **kind), t[:4])] * 2
    assert len(fit(nn.Sequential(nn.layers.Linear(2)), batches, epochs=1, progress=False).history) == 1


def test_training_refuses_tensors_of_devices() -> None:
    x, t = Tensor(np.ones((8, 3)), device="cuda:0"), np.zeros(8, np.int64)
    with pytest.raises(ArgumentError, match=r"^fit: inputs of train must be one array of numbers, got Tensor"):
        fit(nn.Sequential(nn.layers.Linear(2)), (x, t), epochs=1, progress=False)
