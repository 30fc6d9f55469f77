"""Functions that draw random numbers: the generator bit by bit, moments under a fixed key, gradients."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.reference import philox
from nn_core.testing.operators import check_gradient, check_table, infer_shapes, run, run_gradient, spec_of
from tests.calls import n_calls

KEY = np.array([12345, 6], np.uint64)
#: Functions without inputs, with the distribution that they follow.
DISTRIBUTIONS: list[tuple[str, dict[str, Any], Any]] = [
    ("Rand", {"low": -1.0, "high": 3.0}, stats.uniform(-1, 4)),
    ("Randn", {"mu": 2.0, "sigma": 3.0}, stats.norm(2, 3)),
    ("RandGamma", {"k": 0.5, "theta": 2.0}, stats.gamma(0.5, scale=2)),
    ("RandGamma", {"k": 7.5, "theta": 0.5}, stats.gamma(7.5, scale=0.5)),
    ("RandGamma", {"k": 1.0}, stats.expon()),
    ("RandBeta", {}, stats.beta(0.5, 0.5)),
    ("RandBeta", {"alpha": 3.0, "beta": 1.5}, stats.beta(3, 1.5)),
    ("RandBinomial", {"n": 1, "p": 0.3}, stats.binom(1, 0.3)),
    ("RandBinomial", {"n": 1000, "p": 0.97}, stats.binom(1000, 0.97)),
    ("Randint", {"low": -3, "high": 7}, stats.randint(-3, 7)),
]


def draw(name: str, *inputs: Any, counter: int = 6, seed: int = 12345, **args: Any) -> tuple[Any, ...]:
    return run(name, *inputs, key=np.array([seed, counter], np.uint64), **args)


def test_every_function_of_the_topic_has_its_attachments() -> None:
    check_table("random")


# The generator


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ([0, 0, 0, 0], [0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_the_published_words(counter: list[int], key: list[int], words: list[int]) -> None:
    def as_arrays(values: list[int]) -> Any:
        return tuple(np.array([value], np.int64) for value in values)

    result = philox.philox4x32(np, as_arrays(counter), as_arrays(key))
    assert [int(word[0]) for word in result] == words
    assert result[0].dtype == np.int64


def test_bits_follow_the_layout_of_seed_counter_and_element() -> None:
    seed, counter, element, stream = 0x0123456789ABCDEF, 0xFEDCBA9876543210, 4 * 77 + 2, 5
    block = (stream << 40) // 4 + 77
    halves = [np.array([value & 0xFFFFFFFF, value >> 32], np.int64)[:, None] for value in (block, counter, seed)]
    expected = philox.philox4x32(np, (*halves[0], *halves[1]), tuple(halves[2]))[2]
    bits = philox.bits(np, np.array([seed, counter], np.uint64), element + 1, stream=stream)
    assert bits[-1] == expected[0]
    assert bits.dtype == np.int64


def test_bits_do_not_depend_on_how_many_are_drawn() -> None:
    many = philox.bits(np, KEY, 1001)
    for n in (0, 1, 3, 4, 6):
        np.testing.assert_array_equal(philox.bits(np, KEY, n), many[:n])
    np.testing.assert_array_equal(np.stack(philox.words_at(np, KEY, np.arange(250)), -1).reshape(-1), many[:1000])


def test_streams_and_counters_differ() -> None:
    rows = [philox.bits(np, KEY, 64), philox.bits(np, KEY, 64, stream=1)]
    rows += [philox.bits(np, np.array(key, np.uint64), 64) for key in ([12345, 7], [12346, 6], [12345, 6 + 2**32])]
    assert len(np.unique(np.concatenate(rows))) == 64 * len(rows)


def test_uniform_is_the_upper_24_bits_in_each_dtype() -> None:
    bits = philox.bits(np, KEY, 1000)
    for dtype in ("float32", "float64"):
        uniform = philox.uniform(np, KEY, 1000, dtype)
        assert uniform.dtype == dtype
        np.testing.assert_array_equal(uniform * 2**24, bits >> 8)
    assert (uniform >= 0).all() and (uniform < 1).all()


def test_normal_is_box_muller_on_pairs() -> None:
    lanes = (philox.bits(np, KEY, 8) >> 8) / 2**24
    radius, angle = np.sqrt(-2 * np.log(lanes[0::2] + 2.0**-24)), 2 * np.pi * lanes[1::2]
    expected = np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1).reshape(-1)
    np.testing.assert_allclose(philox.normal(np, KEY, 7), expected[:7], rtol=1e-12)
    assert philox.normal(np, KEY, 0).shape == (0,)


def test_below_scales_words() -> None:
    words = np.array([0, 2**31, 2**32 - 1], np.int64)
    assert philox.below(np, words, 10).tolist() == [0, 5, 9]
    assert philox.below(np, words, 2**32).tolist() == [0, 2**31, 2**32 - 1]


def test_a_million_words_take_as_many_calls_as_a_thousand() -> None:
    assert n_calls(philox.bits, np, KEY, 2**20) == n_calls(philox.bits, np, KEY, 2**10)


# Arrays of random numbers


@pytest.mark.parametrize(("name", "args", "distribution"), DISTRIBUTIONS)
def test_moments_and_distribution(name: str, args: dict[str, Any], distribution: Any) -> None:
    n = 40000
    y = draw(name, shape=(n // 4, 4), **args)[0].reshape(-1)
    mean, variance, kurtosis = [float(value) for value in distribution.stats("mvk")]
    assert abs(y.mean() - mean) < 4 * np.sqrt(variance / n)
    assert abs(y.var() - variance) < 4 * variance * np.sqrt((kurtosis + 2) / n)
    values = np.unique(y) if name in ("RandBinomial", "Randint") else np.quantile(y, np.linspace(0.01, 0.99, 99))
    empirical = np.searchsorted(np.sort(y), values, side="right") / n
    assert np.abs(empirical - distribution.cdf(values)).max() < 1.63 / np.sqrt(n)  # Kolmogorov-Smirnov at 1 %


@pytest.mark.parametrize(("name", "args", "_"), DISTRIBUTIONS)
def test_a_key_repeats_bit_by_bit_and_another_counter_differs(name: str, args: dict[str, Any], _: Any) -> None:
    first, again, other = [draw(name, shape=(50,), counter=counter, **args)[0] for counter in (6, 6, 7)]
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert draw(name, shape=(), **args)[0].shape == ()
    assert draw(name, shape=(0, 3), **args)[0].shape == (0, 3)
    settings = {**{arg.name: arg.default for arg in spec_of(name).args}, **args, "shape": (2, 3)}
    assert infer_shapes(spec_of(name), [], settings) == ((2, 3),)


def test_integers_stay_within_bounds_and_reach_them() -> None:
    y = draw("Randint", low=-2, high=3, shape=(1000,))[0]
    assert y.dtype == np.int64
    assert np.unique(y).tolist() == [-2, -1, 0, 1, 2]
    assert draw("Randint", low=0, high=2**32, shape=(1000,))[0].max() > 2**31


def test_binomial_edges() -> None:
    for p, successes in ((0.0, 0.0), (1.0, 5.0)):
        np.testing.assert_array_equal(draw("RandBinomial", n=5, p=p, shape=(9,))[0], successes)


def test_small_parameters_give_no_nan() -> None:
    y = draw("RandBeta", alpha=0.01, beta=0.01, shape=(2000,))[0]
    assert np.isfinite(y).all()
    assert abs(y.mean() - 0.5) < 0.05
    assert (draw("RandGamma", k=0.01, shape=(2000,))[0] >= 0).all()


# Dropping and choosing


def test_dropout_keeps_or_scales() -> None:
    x = np.random.default_rng(0).normal(size=(100, 100))
    y, mask = draw("Dropout", x, p=0.3)
    assert set(np.unique(mask)) == {0.0, 1 / 0.7}
    np.testing.assert_array_equal(y, x * mask)
    assert abs((mask == 0).mean() - 0.3) < 0.02
    np.testing.assert_array_equal(draw("Dropout", x, p=0.3)[1], mask)
    assert (draw("Dropout", x, p=0.3, counter=7)[1] != mask).any()
    np.testing.assert_array_equal(draw("Dropout", x, p=0.0)[0], x)
    check_gradient("Dropout", [x[:3, :4]], p=0.3)


def test_dropout_uses_one_uniform_number_an_element_in_every_dtype() -> None:
    is_kept = philox.uniform(np, KEY, 64) >= 0.5
    for dtype in ("float16", "float32", "float64"):
        y, mask = draw("Dropout", np.ones((4, 16), dtype))
        np.testing.assert_array_equal(y.reshape(-1), 2.0 * is_kept)
        assert y.dtype == mask.dtype == dtype
    assert draw("Dropout", np.zeros((0, 3)))[0].shape == (0, 3)
    assert draw("Dropout", np.array(1.0))[1].shape == ()


def test_random_choice_follows_the_weights() -> None:
    x, w = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]), np.array([[1.0, 0.0, 3.0], [2.0, 2.0, 0.0]])
    y, places = draw("RandomChoice", x, w, shape=(100, 50))
    assert y.shape == places.shape == (2, 100, 50)
    np.testing.assert_array_equal(y, np.take_along_axis(x, places.reshape(2, -1), 1).reshape(y.shape))
    assert set(np.unique(y)) == {1.0, 3.0, 10.0, 20.0}
    assert abs((y[0] == 3).mean() - 0.75) < 0.025
    assert abs((y[1] == 10).mean() - 0.5) < 0.03
    assert draw("RandomChoice", x, w)[0].shape == (2, 1)


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_random_choice_may_draw_nothing(shape: tuple[int, ...], replace: bool) -> None:
    y, places = draw("RandomChoice", np.zeros((3, 4)), np.ones((3, 4)), shape=shape, replace=replace)
    assert y.shape == places.shape == (3, *shape)


def test_random_choice_without_replacement_draws_each_once_heavy_ones_first() -> None:
    x, w = np.tile(np.arange(4.0), (4000, 1)), np.tile([1.0, 2.0, 0.0, 5.0], (4000, 1))
    y = draw("RandomChoice", x, w, shape=(3,), replace=False)[0]
    np.testing.assert_array_equal(np.sort(y, axis=1), np.tile([0.0, 1.0, 3.0], (4000, 1)))
    assert abs((y[:, 0] == 3).mean() - 5 / 8) < 0.03
    assert abs((y[:, :2] == [3, 1]).all(1).mean() - 5 / 8 * 2 / 3) < 0.03


def test_random_choice_gives_the_gradient_to_what_was_drawn() -> None:
    x, w = np.random.default_rng(1).normal(size=(2, 3)), np.ones((2, 3))
    check_gradient("RandomChoice", [x, w], wrt=[0], shape=(2, 2))
    dx, dw = run_gradient("RandomChoice", x, w, shape=(5,))
    np.testing.assert_array_equal(dx, dw)
    assert dx.sum() == 10


@pytest.mark.parametrize(
    ("w", "args", "text"),
    [
        ([1.0, -2.0], {}, "random_choice: w must not be negative, got a smallest value of -2.0"),
        ([1.0, np.inf], {}, "random_choice: w must be finite, got inf"),
        ([np.nan, 1.0], {}, "random_choice: w must be finite, got nan"),
        ([0.0, 0.0], {}, "random_choice: w must have 1 positive values a row, got 0"),
        ([1.0, 0.0], {"shape": (2,), "replace": False}, "random_choice: w must have 2 positive values a row, got 1"),
    ],
)
def test_random_choice_refuses_weights(w: list[float], args: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        draw("RandomChoice", np.zeros(2), np.array(w), **args)


# Altering samples

IMAGES = np.random.default_rng(2).normal(size=(150, 2, 4, 5))


def test_random_crop_cuts_each_sample_at_every_place() -> None:
    y, source = draw("RandomCrop", IMAGES, shape=(3, 4))
    assert y.shape == (150, 2, 3, 4)
    for sample, part, places in zip(IMAGES, y, source, strict=True):
        np.testing.assert_array_equal(part, sample[:, places[2] :, places[5] :][:, :3, :4])
    assert {(row[2], row[5]) for row in source} == {(i, j) for i in range(2) for j in range(2)}
    np.testing.assert_array_equal(draw("RandomCrop", IMAGES)[0], IMAGES)


def test_random_flip_reverses_the_given_axes_of_half_of_the_samples() -> None:
    y, _ = draw("RandomFlip", IMAGES, axes=(2, -1))
    kinds = [np.s_[:], np.s_[:, ::-1], np.s_[:, :, ::-1], np.s_[:, ::-1, ::-1]]
    counts = [sum(np.array_equal(a, b[kind]) for a, b in zip(y, IMAGES, strict=True)) for kind in kinds]
    assert sum(counts) == 150
    assert min(counts) >= 20
    assert {np.array_equal(a, b) for a, b in zip(draw("RandomFlip", IMAGES)[0], IMAGES, strict=True)} == {True, False}


@pytest.mark.parametrize(
    ("border_mode", "numpy_mode"), [("nearest", "edge"), ("reflect", "symmetric"), ("constant", "constant")]
)
def test_random_shift_moves_each_sample_within_the_limits(border_mode: str, numpy_mode: Any) -> None:
    y, _ = draw("RandomShift", IMAGES, shifts=(1, 2), border_mode=border_mode, constant_value=0.0)
    moves = set()
    for sample, moved in zip(IMAGES, y, strict=True):
        padded = np.pad(sample, ((0, 0), (1, 1), (2, 2)), mode=numpy_mode)
        places = [(i, j) for i in range(3) for j in range(5) if np.array_equal(padded[:, i : i + 4, j : j + 5], moved)]
        assert places
        moves.update(places)
    assert len(moves) == 15


def test_random_shift_fills_with_a_constant() -> None:
    y, source = draw("RandomShift", np.zeros((50, 3)), shifts=(2,), border_mode="constant", constant_value=9.0)
    np.testing.assert_array_equal(y == 9, source < 0)
    assert (y == 9).any()


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("RandomCrop", {"shape": (2, 2)}),
        ("RandomFlip", {"axes": (1, 2)}),
        ("RandomShift", {"shifts": (1, 3), "border_mode": "reflect"}),
        ("RandomShift", {"shifts": (1, 3), "border_mode": "constant", "constant_value": 2.0}),
        ("RandomShift", {"shifts": (2,), "base_axis": 2}),
        ("RandomCrop", {"shape": (2, 2), "base_axis": 0}),
        ("RandomCrop", {"shape": (2, 2, 3), "base_axis": 2}),
        ("RandomFlip", {"axes": (0, 1, 2), "base_axis": 2}),
        ("RandomShift", {"shifts": (1, 1, 2), "border_mode": "nearest", "base_axis": 1}),
        ("RandomShift", {"shifts": (1, 1, 2), "border_mode": "constant", "constant_value": 2.0, "base_axis": 2}),
    ],
)
def test_gradients_return_to_where_elements_were_read(name: str, args: dict[str, Any]) -> None:
    args = {"shape": (3, 2, 2), "base_axis": 0} if args.get("base_axis") == 0 else args
    check_gradient(name, [IMAGES[:3, 0, :3, :4]], **args)


def test_random_crop_cuts_axes_before_the_base_axis() -> None:
    x = np.arange(400 * 3 * 4).reshape(400, 3, 4)
    y, _ = draw("RandomCrop", x, shape=(398, 2, 2), base_axis=2)
    sample, row, column = y // 12, y // 4 % 3, y % 4
    np.testing.assert_array_equal(column, column[:, :, :1] + np.arange(2))  # each sample is one piece of a row
    np.testing.assert_array_equal(sample, sample[:, :, :1] + np.zeros(2, int))
    offsets = {(int(s), int(r), int(c)) for s, r, c in zip(
        (sample[..., 0] - np.arange(398)[:, None]).ravel(), (row[..., 0] - np.arange(2)).ravel(), column[..., 0].ravel()
    , strict=True)}  # fmt: skip
    assert offsets == {(s, r, c) for s in range(3) for r in range(2) for c in range(3)}


def test_random_flip_takes_samples_from_the_other_end() -> None:
    y, _ = draw("RandomFlip", np.arange(200), axes=(0,), base_axis=0)
    assert np.array_equal(y, np.arange(200)) or np.array_equal(y, np.arange(200)[::-1])
    x = np.arange(400).reshape(200, 2)
    y, _ = draw("RandomFlip", x, axes=(0,), base_axis=1)
    straight = (y == x).all(axis=1)
    assert ((y == x[::-1]).all(axis=1) | straight).all() and 70 < straight.sum() < 130


@pytest.mark.parametrize("border_mode", ["nearest", "reflect", "constant"])
def test_random_shift_takes_neighbouring_samples(border_mode: str) -> None:
    x = np.arange(1, 401).reshape(200, 2)
    args = {"shifts": (2, 0), "border_mode": border_mode, "base_axis": 1, "constant_value": -5.0}
    y, _ = draw("RandomShift", x, **args)
    padded = np.pad(x, ((2, 2), (0, 0)), {"nearest": "edge", "reflect": "symmetric", "constant": "constant"}[border_mode])
    if border_mode == "constant":
        padded[:2] = padded[-2:] = -5
    moves = [{k for k in range(5) if np.array_equal(y[i], padded[i + k])} for i in range(200)]
    assert all(moves) and set.union(*moves) == set(range(5))


@pytest.mark.parametrize("name", ["RandomCrop", "RandomFlip", "RandomShift"])
def test_altered_samples_repeat_with_the_key_and_may_be_empty(name: str) -> None:
    args = {"RandomCrop": {"shape": (2, 2)}, "RandomShift": {"shifts": (2,)}}.get(name, {})
    first, again, other = [draw(name, IMAGES, counter=counter, **args)[0] for counter in (1, 1, 2)]
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert draw(name, np.zeros((0, 3, 4)), **args)[0].shape[0] == 0


ERASE: dict[str, Any] = {"replacements": (5.0, 9.0), "prob": 1.0}


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("channel_last", [True, False])
def test_random_erase_replaces_one_rectangle(channel_last: bool, share: bool) -> None:
    x = np.zeros((20, 12, 10, 3) if channel_last else (20, 3, 12, 10))
    y, kept = draw("RandomErase", x, channel_last=channel_last, share=share, **ERASE)
    is_erased = np.broadcast_to(kept, y.shape) == 0
    np.testing.assert_array_equal(is_erased, y != 0)
    assert (y[is_erased] >= 5).all() and (y[is_erased] < 9).all()
    assert len(np.unique(y[is_erased])) > 0.9 * is_erased.sum()
    images = (np.moveaxis(is_erased, -1, 1) if channel_last else is_erased).reshape(-1, 12, 10)
    for image in images:
        np.testing.assert_array_equal(image, image.any(1)[:, None] & image.any(0))
    assert 0.02 * 0.5 < is_erased.mean() < 0.4
    assert np.array_equal(images[0], images[1]) == share


def test_random_erase_draws_the_area_in_its_range() -> None:
    y, kept = draw("RandomErase", np.zeros((200, 1, 64, 64)), area_ratios=(0.1, 0.1), aspect_ratios=(0.5, 2.0), **ERASE)
    assert abs((kept == 0).mean() - 0.1) < 0.003
    assert y.shape == kept.shape == (200, 1, 64, 64)


def test_random_erase_chance_number_and_gradient() -> None:
    x = np.random.default_rng(3).normal(size=(40, 2, 5, 5))
    kept = draw("RandomErase", x, prob=0.25)[1]
    assert 3 <= sum((image == 0).any() for image in kept) <= 17
    np.testing.assert_array_equal(draw("RandomErase", x, prob=0.0)[0], x)
    np.testing.assert_array_equal(draw("RandomErase", x, n=0, prob=1.0)[0], x)
    more = draw("RandomErase", x, n=4, **ERASE)[1]
    assert (more == 0).mean() > (draw("RandomErase", x, **ERASE)[1] == 0).mean()
    check_gradient("RandomErase", [x[:2]], **ERASE)
    check_gradient("RandomErase", [x[:2]], share=False, **ERASE)
    np.testing.assert_array_equal(run_gradient("RandomErase", x, ste_fine_grained=False, **ERASE)[0], np.ones_like(x))


def test_image_augmentation_without_settings_changes_nothing() -> None:
    np.testing.assert_array_equal(draw("ImageAugmentation", IMAGES)[0], IMAGES)
    np.testing.assert_array_equal(draw("ImageAugmentation", IMAGES[0])[0], IMAGES[0])
    assert draw("ImageAugmentation", IMAGES[:0])[0].shape == (0, 2, 4, 5)


def test_image_augmentation_cuts_between_pixels() -> None:
    ramp = np.broadcast_to(np.arange(8.0), (50, 1, 6, 8)) + 10 * np.arange(6.0)[:, None]
    y = draw("ImageAugmentation", ramp, shape=(1, 4, 5))[0]
    first = y[:, 0, 0, 0]
    np.testing.assert_allclose(y - y[:, :, :1, :1], np.broadcast_to(ramp[0, 0, :4, :5], y.shape), atol=1e-9)
    assert first.min() >= 0 and first.max() <= 23
    assert np.ptp(first % 10) > 2 and np.ptp(first) > 15


def test_image_augmentation_pads_with_the_edge() -> None:
    x = np.arange(1.0, 17).reshape(1, 1, 4, 4)
    y = draw("ImageAugmentation", x, shape=(1, 6, 6), pad=(1, 1))[0]
    np.testing.assert_allclose(y[0, 0], np.pad(x[0, 0], 1, mode="edge"))


def test_image_augmentation_flips_half_of_the_images() -> None:
    y = draw("ImageAugmentation", IMAGES, flip_lr=True, flip_ud=True)[0]
    kinds = [np.s_[:], np.s_[:, ::-1], np.s_[:, :, ::-1], np.s_[:, ::-1, ::-1]]
    counts = [sum(np.allclose(a, b[kind]) for a, b in zip(y, IMAGES, strict=True)) for kind in kinds]
    assert sum(counts) == 150 and min(counts) >= 20


def test_image_augmentation_scales_turns_stretches_and_distorts_about_the_centre() -> None:
    row, column = np.meshgrid(np.arange(9.0) - 4, np.arange(9.0) - 4, indexing="ij")
    x = np.stack([row, column])[None]

    def inner(**args: Any) -> np.ndarray:
        y = draw("ImageAugmentation", x, shape=(2, 3, 3), pad=(0, 0), **args)[0][0]
        return y - y[:, 1:2, 1:2]  # the place of the cut is random

    here = np.stack([row, column])[:, 3:6, 3:6]
    np.testing.assert_allclose(inner(min_scale=2.0, max_scale=2.0), here / 2, atol=1e-9)
    turned = inner(angle=0.5)
    np.testing.assert_allclose(np.hypot(*turned), np.hypot(*here), atol=1e-9)
    assert abs(turned[1, 0, 1]) > 1e-3
    stretched = inner(aspect_ratio=1.5)
    assert np.isclose(stretched[0, 2, 1] * stretched[1, 1, 2], 1)
    assert 1.5**-0.5 <= stretched[0, 2, 1] <= 1.5**0.5
    bent = inner(distortion=0.5)
    assert np.isclose(bent[0, 2, 1], bent[1, 1, 2])
    assert not np.isclose(bent[0, 2, 2], bent[0, 2, 1])


def test_image_augmentation_varies_brightness_contrast_and_noise() -> None:
    x = np.ones((400, 3, 2, 2))
    y = draw("ImageAugmentation", x, brightness=0.5)[0]
    assert np.ptp(y, axis=(1, 2, 3)).max() < 1e-12
    assert 0.5 <= y.min() < 0.52 and 1.48 < y.max() <= 1.5
    assert np.ptp(draw("ImageAugmentation", x, brightness=0.5, brightness_each=True)[0], axis=1).max() > 0.5
    y = draw("ImageAugmentation", x, contrast=2.0, contrast_center=0.5)[0]
    assert 0.75 <= y.min() < 0.76 and 1.47 < y.max() <= 1.5
    assert np.ptp(draw("ImageAugmentation", x, contrast=2.0, contrast_each=True)[0], axis=1).max() > 0.5
    y = draw("ImageAugmentation", x, noise=0.3)[0]
    assert abs(y.std() - 0.3) < 0.02


def test_vat_noise_scales_samples_and_keeps_the_gradient() -> None:
    x, w = np.array([[3.0, 4.0], [0.0, 0.0], [1e-4, 0.0]]), np.zeros((3, 2))
    y = run("VATNoise", x, w, eps=2.0)[0]
    np.testing.assert_allclose(y, [[1.2, 1.6], [0, 0], [2 / np.sqrt(2), 0]], rtol=1e-8)
    dx, dw = run_gradient("VATNoise", x, w, grads=[x], eps=2.0)
    assert dx is None
    np.testing.assert_array_equal(dw, 2 * x)


# Errors

ERASE_ARGS: dict[str, Any] = {arg.name: arg.default for arg in spec_of("RandomErase").args}
AUGMENT_ARGS: dict[str, Any] = {arg.name: arg.default for arg in spec_of("ImageAugmentation").args}
SHIFT_ARGS: dict[str, Any] = {"border_mode": "nearest", "constant_value": 0.0}
ERRORS: list[Any] = [
    ("Rand", [], {"low": 1.0, "high": 1.0, "shape": ()}, ArgumentError, "low must be below high, got 1.0 and 1.0"),
    ("Rand", [], {"low": 0.0, "high": 1.0, "shape": (-1,)}, ArgumentError, "shape must have no negative length"),
    (
        "Randint",
        [],
        {"low": 3, "high": 3, "shape": ()},
        ArgumentError,
        r"low must be below high by at most 2\*\*32, got 3 and 3",
    ),
    ("Randint", [], {"low": 0, "high": 2**32 + 1, "shape": ()}, ArgumentError, "low must be below high by at most"),
    (
        "RandBeta",
        [],
        {"alpha": 0.0, "beta": 1.0, "shape": ()},
        ArgumentError,
        "alpha and beta must be positive and finite, got 0.0 and 1.0",
    ),
    (
        "RandGamma",
        [],
        {"k": 1.0, "theta": -1.0, "shape": ()},
        ArgumentError,
        "k and theta must be positive and finite, got 1.0 and -1.0",
    ),
    ("RandBeta", [], {"alpha": np.inf, "beta": 1.0, "shape": ()}, ArgumentError, "positive and finite, got inf and 1.0"),
    ("RandBeta", [], {"alpha": 1.0, "beta": np.nan, "shape": ()}, ArgumentError, "positive and finite, got 1.0 and nan"),
    ("RandGamma", [], {"k": np.inf, "theta": 1.0, "shape": ()}, ArgumentError, "positive and finite, got inf and 1.0"),
    (
        "RandomShift",
        [(2, 3)],
        {"shifts": (2**62,), "border_mode": "nearest", "constant_value": 0.0, "base_axis": 1},
        ArgumentError,
        r"none negative, all below 2\*\*31, got \(4611686018427387904,\)",
    ),
    ("Dropout", [(2,)], {"p": 1.0}, ArgumentError, r"p must be in \[0, 1\), got 1.0"),
    ("Dropout", [(2,)], {"p": -0.1}, ArgumentError, r"p must be in \[0, 1\), got -0.1"),
    (
        "RandomChoice",
        [(2, 3), (3,)],
        {"shape": (), "replace": True},
        ShapeError,
        "x and w must have equal shapes .* got .2, 3. and .3,.",
    ),
    (
        "RandomChoice",
        [(3,), (3,)],
        {"shape": (2, 2), "replace": False},
        ArgumentError,
        "at most 3 elements without .* got .2, 2. .4.",
    ),
    ("RandomCrop", [(2, 3)], {"shape": (4,), "base_axis": 1}, ShapeError, "shape must fit into x, got .4,. and .2, 3."),
    ("RandomCrop", [(2, 3)], {"shape": (1, 2, 3), "base_axis": 1}, ShapeError, "shape must fit into x"),
    (
        "RandomShift",
        [(2, 3)],
        {"shifts": (1, 1, 1), "base_axis": 1, **SHIFT_ARGS},
        ArgumentError,
        "shifts must have at most one entry",
    ),
    (
        "RandomShift",
        [(2, 3)],
        {"shifts": (-1,), "base_axis": 1, **SHIFT_ARGS},
        ArgumentError,
        "none negative, all below .*, got .-1,.",
    ),
    (
        "RandomErase",
        [(2, 3, 4)],
        ERASE_ARGS,
        ShapeError,
        "x must have three axes from base_axis 1 on, got shape .2, 3, 4.",
    ),
    (
        "RandomErase",
        [(2, 3, 4, 4)],
        {**ERASE_ARGS, "area_ratios": (0.4, 0.2)},
        ArgumentError,
        "area_ratios must be positive .* got",
    ),
    (
        "RandomErase",
        [(2, 3, 4, 4)],
        {**ERASE_ARGS, "replacements": (0.0,)},
        ArgumentError,
        "replacements must be .low, high. with",
    ),
    ("ImageAugmentation", [(4, 4)], AUGMENT_ARGS, ShapeError, "x must have the axes channel, height and width"),
    (
        "ImageAugmentation",
        [(3, 4, 4)],
        {**AUGMENT_ARGS, "shape": (1, 4, 4)},
        ShapeError,
        "agree with x except along the last two axes",
    ),
    (
        "ImageAugmentation",
        [(3, 4, 4)],
        {**AUGMENT_ARGS, "pad": (1,)},
        ArgumentError,
        "pad must have two entries, none negative, got .1,.",
    ),
    (
        "ImageAugmentation",
        [(3, 4, 4)],
        {**AUGMENT_ARGS, "min_scale": 2.0},
        ArgumentError,
        "min_scale must be .* got 2.0 and 1.0",
    ),
    (
        "ImageAugmentation",
        [(3, 4, 4)],
        {**AUGMENT_ARGS, "contrast": 0.0},
        ArgumentError,
        "aspect_ratio and contrast must be positive",
    ),
    (
        "VATNoise",
        [(2, 3), (2,)],
        {"base_axis": 1, "eps": 1.0},
        ShapeError,
        "x and w must have equal shapes, got .2, 3. and .2,.",
    ),
]


@pytest.mark.parametrize(("name", "inputs", "args", "error", "text"), ERRORS)
def test_shape_rules_say_what_must_hold(
    name: str, inputs: list[Any], args: dict[str, Any], error: type[Exception], text: str
) -> None:
    seed = {"seed": -1} if spec_of(name).has("seeded") else {}
    with pytest.raises(error, match=text):
        infer_shapes(spec_of(name), inputs, {**seed, **args})
