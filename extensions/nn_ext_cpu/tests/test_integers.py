"""Products of levels and their rounding, beside the reference to the last bit, on each instruction set and on two threads."""

from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.utils.profiler import Profiler
from nn_ext_cpu import _native

Rng = np.random.Generator
ArrayLike = np.ndarray[Any, Any]

BYTES = (np.uint8, np.int8)


def levels(rng: Rng, shape: tuple[int, ...], dtype: Any, extreme: bool = False) -> ArrayLike:
    """Draw any levels, or only the lowest and the highest one."""
    info = np.iinfo(dtype)
    if extreme:
        return rng.choice(np.array([info.min, info.max], dtype), shape)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def assert_equal(function: Any, *arrays: ArrayLike | None, settings: dict[str, Any] | None = None) -> None:
    """Run a function natively and on the reference, which no call may fall back to."""
    fallbacks, results = nn.fallback_report(), []
    for backend in ("cpu:float", "reference:float"):
        with nn.context_scope(nn.Context([backend])), np.errstate(all="ignore"):
            y = function(*(None if a is None else nn.Variable.from_numpy_array(a) for a in arrays), **settings or {})
            y.forward()
            results.append(y.data.numpy().copy())
        if backend == "cpu:float":
            assert nn.fallback_report() == fallbacks
    assert results[0].dtype == results[1].dtype
    np.testing.assert_array_equal(*results, err_msg=str([None if a is None else (a.shape, a.dtype) for a in arrays]))


def product_case(rng: Rng, longest: int) -> list[ArrayLike | None]:
    """Draw operands of a product: one matrix or a batch, zero points of all kinds."""
    m, n, k = (int(rng.integers(1, high)) for high in (40, 70, longest))
    batch = [(), (3,), (2, 2)][rng.integers(3)]
    a, b = (levels(rng, shape, BYTES[rng.integers(2)], bool(rng.integers(2))) for shape in ((*batch, m, k), (k, n)))
    if batch and rng.integers(2):
        b = levels(rng, (*batch, k, n), b.dtype)
    ones = (1,) * len(batch)
    zeros = [
        None if rng.integers(3) == 0 else levels(rng, shapes[rng.integers(2)], x.dtype)
        for x, shapes in ((a, [(*ones, 1, 1), (*ones, m, 1)]), (b, [(1,) * b.ndim, (*(1,) * (b.ndim - 1), n)]))
    ]
    bias = rng.integers(-(2**31), 2**31, n).astype(np.int32) if rng.integers(2) else None
    return [a, b, *zeros, bias]


@pytest.mark.usefixtures("isa")
def test_products_are_those_of_the_reference(rng: Rng) -> None:
    for _ in range(60):
        assert_equal(F.matmul_integer, *product_case(rng, 300))


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("dtypes", [(a, b) for a in BYTES for b in BYTES], ids=lambda pair: "_".join(d.__name__ for d in pair))
def test_long_sums_of_extreme_levels_are_exact(rng: Rng, dtypes: tuple[Any, Any]) -> None:
    ends = [np.iinfo(dtype) for dtype in dtypes]
    for k in (1, 1023, 1025, 70_000):
        for pick in ("max", "min"):
            a, b = (
                np.full(shape, getattr(end, pick), d) for shape, end, d in zip([(7, k), (k, 19)], ends, dtypes, strict=True)
            )
            assert_equal(F.matmul_integer, a, b, levels(rng, (7, 1), dtypes[0]), levels(rng, (1, 19), dtypes[1]))


def conv_case(rng: Rng) -> tuple[list[ArrayLike | None], dict[str, Any]]:
    """Draw operands and settings of a convolution in one to three dimensions."""
    n = int(rng.integers(1, 4))
    group, filters, channels = (int(rng.integers(1, high)) for high in (4, 9, 6))
    group = 1 if rng.integers(2) else group
    kernel, stride, dilation, pad = (
        [int(rng.integers(low, high)) for _ in range(n)] for low, high in ((1, 4), (1, 4), (1, 3), (0, 3))
    )
    sizes = [
        gap * (size - 1) + 1 + int(rng.integers(0, [40, 11, 5][n - 1])) for size, gap in zip(kernel, dilation, strict=True)
    ]
    dtype = BYTES[rng.integers(2)]
    x = levels(rng, (int(rng.integers(1, 3)), group * channels, *sizes), dtype, bool(rng.integers(2)))
    weight = levels(rng, (group * filters, channels, *kernel), BYTES[rng.integers(2)], bool(rng.integers(2)))
    x_zero = None if rng.integers(3) == 0 else levels(rng, (1,), dtype)
    w_zero = None if rng.integers(3) == 0 else levels(rng, ([1, group * filters][rng.integers(2)],), weight.dtype)
    bias = rng.integers(-(2**31), 2**31, group * filters).astype(np.int32) if rng.integers(2) else None
    return [x, weight, x_zero, w_zero, bias], {"pad": pad, "stride": stride, "dilation": dilation, "group": group}


@pytest.mark.usefixtures("isa")
def test_convolutions_are_those_of_the_reference(rng: Rng) -> None:
    for _ in range(60):
        arrays, settings = conv_case(rng)
        assert_equal(F.conv_integer, *arrays, settings=settings)


@pytest.mark.usefixtures("isa")
def test_depthwise_convolutions_are_those_of_the_reference(rng: Rng) -> None:
    for _ in range(60):
        n, channels, filters = (int(rng.integers(1, high)) for high in (3, 6, 3))
        kernel, stride, dilation, pad = (
            [int(rng.integers(low, high)) for _ in range(n)] for low, high in ((1, 6), (1, 5), (1, 4), (0, 5))
        )
        sizes = [gap * (size - 1) + 1 + int(rng.integers(0, 20)) for size, gap in zip(kernel, dilation, strict=True)]
        extreme = bool(rng.integers(2))
        x = levels(rng, (2, channels + 1, *sizes), BYTES[rng.integers(2)], extreme)
        weight = levels(rng, ((channels + 1) * filters, 1, *kernel), BYTES[rng.integers(2)], extreme)
        bias = rng.integers(-(2**31), 2**31, weight.shape[0]).astype(np.int32)
        zeros = levels(rng, (1,), x.dtype, extreme), levels(rng, weight.shape[:1], BYTES[rng.integers(2)], extreme)
        settings = {"pad": pad, "stride": stride, "dilation": dilation, "group": channels + 1}
        assert_equal(F.conv_integer, x, weight, *zeros, bias, settings=settings)


@pytest.mark.usefixtures("two_threads")
def test_two_threads_give_the_same(rng: Rng) -> None:
    for shape in ((1, 64, 56, 56), (1, 256, 7, 7), (3, 16, 20, 20)):
        x, weight = levels(rng, shape, np.uint8), levels(rng, (64, shape[1], 3, 3), np.int8)
        settings = {"pad": [1, 1], "stride": [1, 1], "dilation": [1, 1], "group": 1}
        assert_equal(F.conv_integer, x, weight, levels(rng, (1,), np.uint8), levels(rng, (64,), np.int8), settings=settings)
    for m, n, k in ((200, 64, 300), (3, 2000, 100), (128, 128, 1500)):
        a, b = levels(rng, (m, k), np.uint8), levels(rng, (k, n), np.int8)
        assert_equal(F.matmul_integer, a, b, levels(rng, (m, 1), np.uint8), levels(rng, (1, n), np.int8))


def test_weights_that_change_are_packed_again(rng: Rng) -> None:
    weight = levels(rng, (5, 3, 3, 3), np.int8)  # 135 bytes: the last ones are no whole word
    x = nn.Variable.from_numpy_array(levels(rng, (1, 3, 9, 9), np.uint8))
    w = nn.Variable.from_numpy_array(weight)
    with nn.context_scope(nn.Context(["cpu:float"])):
        y = F.conv_integer(x, w)
        for last in (0, 0, 0, 1, 1, 1):
            w.data.cast(np.int8)[-1, -1, -1, -1] = weight[-1, -1, -1, -1] = last
            y.forward()
            with nn.context_scope(nn.Context(["reference:float"])):
                expected = F.conv_integer(nn.Variable.from_numpy_array(x.data.numpy()), nn.Variable.from_numpy_array(weight))
                expected.forward()
            np.testing.assert_array_equal(y.data.numpy(), expected.data.numpy())


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_rounding_is_that_of_the_reference(rng: Rng, dtype: Any) -> None:
    special = np.array(
        [np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38, 1e-40, 0.5, 1.5, 2.5, -0.5, -1.5, 65535.5], np.float32
    )
    for shape in ((), (7,), (3, 4, 5, 6), (2, 33), (5, 1, 40)):
        x = (rng.normal(size=shape) * 2.0 ** rng.integers(-3, 16)).astype(np.float32)
        x = np.where(rng.random(shape) < 0.3, rng.choice(special, shape), np.round(x * 2) / 2).astype(np.float32)
        for axis in (None, *range(len(shape))):
            along = tuple(length if k == axis else 1 for k, length in enumerate(shape))
            scale = rng.choice(np.array([1, 0.5, 0.1, 3, 1e-30, 0, np.inf, np.nan], np.float32), along).astype(np.float32)
            zero = levels(rng, along if rng.integers(2) else (1,) * len(shape), dtype)
            assert_equal(F.quantize_integer, x, np.asarray(scale), np.asarray(zero))


def test_what_the_loops_do_not_take_is_refused(rng: Rng) -> None:
    a, b = levels(rng, (3, 4), np.int16), levels(rng, (4, 2), np.uint8)
    context = nn.Context(["cpu:float", "reference:float"])

    def refusal(y: nn.Variable) -> str:
        return str(nn.explain(y, context))

    variable = nn.Variable.from_numpy_array
    with nn.context_scope(context):
        assert "takes a of int8 or uint8, got int16" in refusal(F.matmul_integer(variable(a), variable(b)))
        x = variable(levels(rng, (1, 1, 3, 3), np.uint8))
        y = F.conv_integer(x, x, variable(np.zeros(1, np.int8)))
        assert "takes an x_zero_point of the dtype of x, uint8, got int8" in refusal(y)
        both = F.quantize_integer(
            variable(np.ones((2, 3), np.float32)), variable(np.ones((2, 3), np.float32)), variable(np.zeros((1, 1), np.int8))
        )
        assert "scales of one element or of one axis" in refusal(both)


def test_explain_names_the_implementation(rng: Rng) -> None:
    context = nn.Context(["cpu:float"])
    with nn.context_scope(context):
        y = F.matmul_integer(*(nn.Variable.from_numpy_array(levels(rng, (4, 4), np.uint8)) for _ in range(2)))
    assert nn.explain(y, context).implementation == f"integer product, {_native.isa()}"


def quantizer(rng: Rng, dtype: Any, n: int) -> list[ArrayLike]:
    """Draw a scale for all of n places or for each, and a zero point."""
    spread = 10.0 ** rng.uniform(0, 5)
    return [rng.uniform(0.5, 1.5, [1, n][rng.integers(2)]).astype(np.float32) * np.float32(spread), levels(rng, (1,), dtype)]


@pytest.mark.usefixtures("isa")
def test_products_to_levels_are_those_of_the_reference(rng: Rng) -> None:
    for _ in range(60):
        a, b, a_zero, b_zero, bias = product_case(rng, 1200)
        assert a is not None and b is not None
        assert_equal(F.qlinear_matmul, a, b, *quantizer(rng, a.dtype, b.shape[-1]), a_zero, b_zero, bias)


@pytest.mark.usefixtures("isa")
def test_convolutions_to_levels_are_those_of_the_reference(rng: Rng) -> None:
    for _ in range(60):
        (x, weight, x_zero, w_zero, bias), settings = conv_case(rng)
        assert x is not None and weight is not None
        arrays = [x, weight, *quantizer(rng, x.dtype, weight.shape[0]), x_zero, w_zero, bias]
        assert_equal(F.qlinear_conv, *arrays, settings=settings)


@pytest.mark.usefixtures("isa")
def test_depthwise_convolutions_to_levels_are_those_of_the_reference(rng: Rng) -> None:
    for stride, filters, side in ((1, 1, 9), (2, 1, 12), (2, 2, 33), (3, 1, 7)):
        x, weight = levels(rng, (2, 5, side, side + 3), np.uint8), levels(rng, (5 * filters, 1, 3, 3), np.int8)
        zeros = levels(rng, (1,), np.uint8), levels(rng, weight.shape[:1], np.int8)
        bias = rng.integers(-(2**31), 2**31, weight.shape[0]).astype(np.int32)
        settings = {"pad": [1, 1], "stride": [stride] * 2, "dilation": [1, 1], "group": 5}
        assert_equal(F.qlinear_conv, x, weight, *quantizer(rng, np.uint8, len(weight)), *zeros, bias, settings=settings)


#: Channels, filters, lines, columns, border: odd numbers, tiles that end within a panel, few and many.
WINOGRAD = [(16, 16, 8, 8, 1), (17, 25, 14, 13, 1), (24, 50, 7, 9, 0), (33, 16, 21, 5, 2), (64, 24, 28, 28, 1)]


def implementation_of(function: Any, arrays: list[ArrayLike | None], settings: dict[str, Any]) -> str:
    """Return what the profiler says that computes a function."""
    with nn.context_scope(nn.Context(["cpu:float"])):
        y = function(*(None if a is None else nn.Variable.from_numpy_array(a) for a in arrays), **settings)
        y.forward()
        with Profiler() as profiler:
            y.forward()
    return profiler.rows()[0].implementation


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("extreme", [False, True])
def test_convolutions_by_winograd_have_the_sums_of_the_reference(rng: Rng, extreme: bool) -> None:
    used = 0
    for (channels, filters, height, width, pad), dtypes in zip(
        WINOGRAD, [(a, b) for a in BYTES for b in BYTES] * 2, strict=False
    ):
        x = levels(rng, (2, channels, height, width), dtypes[0], extreme)
        weight = levels(rng, (filters, channels, 3, 3), dtypes[1], extreme)
        bias = rng.integers(-(2**31), 2**31, filters).astype(np.int32)
        zero = levels(rng, (1,), dtypes[0], extreme)
        settings = {"pad": [pad, pad], "stride": [1, 1], "dilation": [1, 1], "group": 1}
        assert_equal(F.conv_integer, x, weight, zero, None, bias, settings=settings)
        arrays = [x, weight, *quantizer(rng, dtypes[0], filters), zero, None, bias]
        assert_equal(F.qlinear_conv, *arrays, settings=settings)
        used += "Winograd" in implementation_of(F.qlinear_conv, arrays, settings)
    assert used >= 3


def test_the_farthest_sums_by_winograd_are_exact(rng: Rng) -> None:
    x, weight = np.full((1, 900, 9, 9), 255, np.uint8), np.full((16, 900, 3, 3), 255, np.uint8)
    settings = {"pad": [1, 1], "stride": [1, 1], "dilation": [1, 1], "group": 1}
    assert "Winograd" in implementation_of(F.conv_integer, [x, weight], settings)
    assert_equal(F.conv_integer, x, weight, settings=settings)
    assert_equal(F.conv_integer, 255 - x, weight, np.array([255], np.uint8), settings=settings)


@pytest.mark.usefixtures("two_threads")
def test_two_threads_give_the_same_levels(rng: Rng) -> None:
    for shape in ((1, 64, 56, 56), (1, 256, 7, 7), (3, 16, 20, 20)):
        x, weight = levels(rng, shape, np.uint8), levels(rng, (64, shape[1], 3, 3), np.int8)
        settings = {"pad": [1, 1], "stride": [1, 1], "dilation": [1, 1], "group": 1}
        assert_equal(F.qlinear_conv, x, weight, *quantizer(rng, np.uint8, 64), levels(rng, (1,), np.uint8), settings=settings)
    for m, n, k in ((200, 64, 300), (3, 2000, 100), (128, 128, 1500)):
        a, b = levels(rng, (m, k), np.uint8), levels(rng, (k, n), np.int8)
        assert_equal(F.qlinear_matmul, a, b, *quantizer(rng, np.uint8, n), levels(rng, (m, 1), np.uint8))
