"""NdArray: dtype and memory of the values, laziness, views, exchange, in-place arithmetic, errors."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, DTypeError, ShapeError


def test_unwritten_values_are_zero_and_float32():
    array = nn.NdArray((2, 3))
    assert array.dtype == np.float32
    assert np.array_equal(array.data, np.zeros((2, 3)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "uint8", "bool"])
def test_assigned_values_keep_their_dtype(dtype):
    values = np.arange(6).reshape(2, 3).astype(dtype)
    array = nn.NdArray((2, 3))
    array.data = values
    assert array.data.dtype == values.dtype
    assert np.array_equal(array.data, values)


def test_data_is_a_reference():
    array = nn.NdArray.from_numpy_array(np.zeros((2, 2), np.float32))
    array.data[0, 1] = 5
    assert array.data[0, 1] == 5
    assert array.data is not None and np.shares_memory(array.data, array.data)


def test_assignment_copies():
    values = np.ones(3, np.float32)
    array = nn.NdArray.from_numpy_array(values)
    values[:] = 7
    assert np.array_equal(array.data, [1, 1, 1])


def test_assignment_of_another_dtype_is_seen_by_functions():
    array = nn.NdArray((3,))
    array.data = np.float32([1, 2, 3])
    assert np.array_equal((array + 1).data, [2, 3, 4])
    array.data = np.array([5, 6, 7])
    assert np.array_equal((array + 1).data, [6, 7, 8])


@pytest.mark.parametrize("fill", [0.0, 2.5])
def test_fill_is_lazy_and_seen(fill):
    array = nn.NdArray((4,))
    array.data = np.arange(4)
    array.fill(fill)
    assert array.zeroing == (fill == 0.0)
    assert np.array_equal((array * 2).data, [2 * fill] * 4)


def test_reading_ends_zeroing():
    array = nn.NdArray((2,))
    array.zero()
    array.data[0] = 3
    assert not array.zeroing
    assert np.array_equal(array.data, [3, 0])


def test_assigned_shape_must_fit():
    with pytest.raises(ShapeError, match=r"assigned values must have the array's shape, got \(4,\) for \(2, 3\)"):
        nn.NdArray((2, 3)).data = np.zeros(4)


def test_assigned_values_are_broadcast():
    array = nn.NdArray((2, 3))
    array.data = np.array([1.0, 2.0, 3.0])
    assert np.array_equal(array.data, [[1, 2, 3], [1, 2, 3]])


def test_objects_are_refused():
    with pytest.raises(DTypeError, match="must be real numbers or booleans, got dtype object"):
        nn.NdArray((2,)).data = np.array([object(), None])


@pytest.mark.parametrize("shape", [(-1,), (2, -3)])
def test_negative_lengths_are_refused(shape):
    with pytest.raises(ShapeError, match="every length must be at least 0"):
        nn.NdArray(shape)


def test_cast_converts_and_returns_a_reference():
    array = nn.NdArray.from_numpy_array(np.array([1.7, 2.2]))
    integers = array.cast(np.int32)
    assert integers.dtype == np.int32
    integers[0] = 9
    assert np.array_equal(array.data, [9, 2])


def test_get_data_modes():
    array = nn.NdArray.from_numpy_array(np.float32([1, 2]))
    with pytest.raises(ValueError, match="read-only"):
        array.get_data("r")[0] = 1
    array.get_data("w")[:] = 4
    assert np.array_equal(array.data, [4, 4])
    with pytest.raises(ArgumentError, match="mode must be 'r', 'w' or 'rw', got 'x'"):
        array.get_data("x")


def test_copy_from_keeps_dtype_and_needs_the_same_shape():
    source = nn.NdArray.from_numpy_array(np.arange(3))
    target = nn.NdArray((3,))
    target.copy_from(source)
    assert target.dtype == np.int64
    source.data[0] = 8
    assert target.data[0] == 0
    with pytest.raises(ShapeError, match="copy_from"):
        target.copy_from(nn.NdArray((4,)))


def test_view_and_narrow_share_memory():
    array = nn.NdArray.from_numpy_array(np.arange(6, dtype=np.float32))
    array.view((2, -1)).data[1, 2] = 50
    assert array.data[5] == 50
    part = array.view((2, 3)).narrow(1, 1, 2)
    part.data[...] = 7
    assert np.array_equal(array.data, [0, 7, 7, 3, 7, 7])
    assert np.array_equal((part + 1).data, [[8, 8], [8, 8]])


def test_narrow_refuses_what_lies_outside():
    with pytest.raises(ArgumentError, match="start and length must lie within axis 0"):
        nn.NdArray((3,)).narrow(0, 2, 2)


def test_view_needs_the_same_number_of_elements():
    with pytest.raises(ShapeError, match="the new shape must have 6 elements"):
        nn.NdArray((2, 3)).view((4,))


def test_in_place_arithmetic_keeps_the_object_and_its_memory():
    array = nn.NdArray.from_numpy_array(np.float32([1, 2, 4]))
    before, memory = array, array.data
    array += 1
    array *= 2
    array -= nn.NdArray.from_numpy_array(np.float32([1, 1, 1]))
    array /= 2
    assert array is before
    assert np.array_equal(memory, [1.5, 2.5, 4.5])


def test_dlpack_shares_memory_both_ways():
    values = np.arange(4, dtype=np.float32)
    array = nn.NdArray.from_dlpack(values)
    array.data[0] = 9
    assert values[0] == 9
    assert np.shares_memory(np.from_dlpack(array), array.data)


def test_array_protocol():
    array = nn.NdArray.from_numpy_array(np.float32([3, 1, 2]))
    assert np.sort(array).tolist() == [1, 2, 3]


def test_memory_is_aligned():
    assert nn.NdArray((5,)).data.ctypes.data % 64 == 0


def test_clear_gives_memory_back():
    array = nn.NdArray.from_numpy_array(np.float32([1, 2]))
    array.clear()
    assert array.clear_called
    assert np.array_equal(array.data, [0, 0])
    array.data = 1
    assert not array.clear_called


def test_bool_fill():
    array = nn.NdArray.from_numpy_array(np.float32([1, 2, 3]))
    array.bool_fill(nn.NdArray.from_numpy_array(np.array([1, 0, 1])), -1)
    assert array.data.tolist() == [-1, 2, -1]


def test_modification_count_grows_with_writes_only():
    array = nn.NdArray((2,))
    array.data = 1
    count = array.modification_count
    array.get_data("r")
    assert array.modification_count == count
    array.zero()
    assert array.modification_count == count + 1


def test_size_from_axis_and_strides():
    array = nn.NdArray((10, 9))
    assert [array.size_from_axis(axis) for axis in (-1, 0, 1, 2)] == [90, 90, 9, 1]
    assert array.strides == (9, 1)


def test_an_array_knows_whether_somebody_can_write_to_it():
    array = nn.NdArray.from_numpy_array(np.ones((4, 3), np.float32))
    synced = array.synced
    assert not synced.is_exported(synced.latest)
    part = array.data[1:][:, ::2]
    assert synced.is_exported(synced.latest)
    del part
    assert not synced.is_exported(synced.latest)
    array.get_data("r")
    assert not synced.is_exported(synced.latest)
    assert array.data_ptr(np.float32) == array.data.ctypes.data
    assert synced.is_exported(synced.latest)


def test_a_converted_copy_is_old_once_a_view_is_written_to_and_given_up():
    array = nn.NdArray.from_numpy_array(np.ones(3, np.float32))
    view = array.data
    assert array.get_data("r", "float64").tolist() == [1, 1, 1]
    view[...] = 2
    del view
    assert array.get_data("r", "float64").tolist() == [2, 2, 2]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bool", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_lent_arrays_look_like_the_values(shape, dtype):
    array = nn.NdArray(shape)
    array.data = np.ones(shape, dtype)
    assert (array.data.shape, array.data.dtype, array.data.flags.writeable) == (shape, np.dtype(dtype), True)
    assert array.data.flags.c_contiguous


def test_lengths_may_be_given_one_after_the_other():
    assert nn.NdArray(2, 3).shape == nn.NdArray((2, 3)).shape == (2, 3)
    assert nn.NdArray(2).shape == (2,)
    with pytest.raises(ShapeError, match=r"every length must be an int, got \(2, 2\.5\)"):
        nn.NdArray(2, 2.5)
    with pytest.raises(ShapeError, match="shape: must be an int or a sequence of ints, got None"):
        nn.NdArray(None)


def test_numbers_that_the_wanted_dtype_does_not_hold_become_infinite() -> None:
    array = nn.NdArray.from_numpy_array(np.array([1e308, -1e308, 1.0]))
    assert array.cast("float32").tolist() == [np.inf, -np.inf, 1.0]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (np.nan, "int64"),
        (np.inf, "int64"),
        (1e30, "int64"),
        (2.0**31, "int32"),
        (300.0, "uint8"),
        (-1.0, "uint8"),
        (-1.0, "uint64"),
        (70000.0, "int16"),
        (2**40, "int32"),
        (-1, "uint64"),
    ],
)
@pytest.mark.parametrize("filled", [False, True])
def test_numbers_that_whole_numbers_do_not_reach_are_refused(values: float, dtype: str, *, filled: bool) -> None:
    array = nn.NdArray((2,))
    if filled:
        array.fill(values)
    else:
        array.data = np.full(2, values)
    with pytest.raises(ArgumentError, match=f"numbers read as {dtype}.* must be finite and within its range"):
        array.cast(dtype)
    assert array.cast("float64").tolist() == pytest.approx([values, values], nan_ok=True)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "uint8"])
def test_whole_numbers_in_bfloat16(dtype: str) -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    array = nn.NdArray((3,))
    array.cast("bfloat16")[...] = np.array([0, 1.75, 250], bfloat16)
    assert array.cast(dtype).tolist() == [0, 1, 250]
    for wrong in (np.nan, -np.inf, 2.0**64):
        array.cast("bfloat16")[...] = np.array([0, wrong, 1], bfloat16)
        with pytest.raises(ArgumentError, match="must be finite and within its range"):
            array.cast(dtype)


def test_numbers_are_cut_to_the_ends_of_a_range_of_whole_numbers() -> None:
    array = nn.NdArray.from_numpy_array(np.array([-0.9, 255.9]))
    assert array.cast("uint8").tolist() == [0, 255]


def test_complex_numbers_are_refused_by_dlpack():
    with pytest.raises(DTypeError, match=r"from_dlpack: the numbers must be real, got complex128"):
        nn.NdArray.from_dlpack(np.array([1 + 2j]))


def test_copies_of_a_lent_array_are_made_anew():
    array = nn.NdArray.from_numpy_array(np.float32([1, 2]))
    lent = array.data
    with nn.context_scope(nn.Context(["reference:half"])):
        for number in (1, 5, 9):
            lent[0] = number
            assert array.get_data("r", "float64").tolist() == [number, 2]
            assert (array + 1).data.tolist() == [number + 1, 3]


@pytest.mark.parametrize("traced", [False, True])
def test_dynamic_graphs_read_what_was_written_to_a_lent_array(traced):
    x = nn.Variable.from_numpy_array(np.float32([1, 2]), need_grad=True)
    lent = x.d
    with nn.context_scope(nn.Context(["reference:half"])), nn.auto_forward():
        for number in (1, 5, 9, 7):
            lent[0] = number
            y = F.mul_scalar(F.add_scalar(x, 1), 1) if traced else F.add_scalar(x, 1)
            assert y.d.tolist() == [number + 1, 3]


@pytest.mark.parametrize("first", ["float16", "float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("number", [0.1, 2.0, 70000.0, -9.5])
def test_it_does_not_matter_who_reads_a_number_first(first: str, number: float) -> None:
    array = nn.NdArray((2,))
    array.fill(number)
    array.get_data("r", first)
    assert array.get_data("r", "float32").tolist() == [float(np.float32(number))] * 2


def test_reading_a_number_in_another_dtype_keeps_the_dtype() -> None:
    array = nn.NdArray.from_numpy_array(np.ones(2, np.float64))
    array.fill(0.1)
    assert array.get_data("r", np.float32).tolist() == [float(np.float32(0.1))] * 2
    assert array.dtype == np.float64
    assert array.data.tolist() == [0.1, 0.1]


@pytest.mark.parametrize(("dtype", "number"), [("bool", 2), ("uint8", -1), ("int8", 300), ("int32", 1e30), ("int64", np.nan)])
def test_numbers_that_a_dtype_does_not_hold_end_it(dtype: str, number: float) -> None:
    array = nn.NdArray.from_numpy_array(np.ones(2, dtype))
    array.fill(number)
    assert np.array_equal(array.data, np.full(2, number, np.float32), equal_nan=True)
