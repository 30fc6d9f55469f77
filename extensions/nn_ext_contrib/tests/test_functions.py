"""Functions made of others against NumPy, and their gradients against central differences."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, ShapeError

C = F.contrib

RNG = np.random.default_rng


def softplus(x):
    return np.logaddexp(0, x)


# Activation and arithmetic.


@pytest.mark.parametrize(("shape", "axis", "expected"), [((2, 6), 1, (2, 3, 2)), ((2, 3, 6), -1, (2, 3, 3, 2))])
def test_maxout(check, shape, axis, expected):
    x = RNG(0).permutation(np.prod(shape)).reshape(shape) * 0.5
    check(lambda x: C.maxout(x, 2, axis), lambda x: x.reshape(expected).max(-1), x)


def test_logarithms(check):
    x = RNG(0).uniform(0.5, 4, (2, 3))
    check(C.log2, np.log2, x)
    check(C.log10, np.log10, x)


def test_linear_interpolation(check):
    arrays = RNG(0).normal(size=(3, 2, 3))
    check(C.linear_interpolate, lambda p, x, y: p * x + (1 - p) * y, *arrays)


@pytest.mark.parametrize("keepdims", [False, True])
def test_averages_with_weights(check, keepdims):
    x, w = RNG(0).normal(size=(2, 3, 2)), RNG(1).uniform(0.5, 2, 3)

    def expected(x, w):
        y = np.average(x, axis=1, weights=w)
        return y[:, None] if keepdims else y

    check(lambda x, w: C.average(x, axis=1, weights=w, keepdims=keepdims), expected, x, w)
    check(lambda x, w: C.average(x, weights=w), lambda x, w: np.average(x, weights=w), x, x**2 + 1)
    check(C.average, np.mean, x)


def test_squared_norms(check):
    check(C.batch_l2_norm_squared, lambda x: (x**2).sum((1, 2)), RNG(0).normal(size=(2, 3, 2)))


def test_bias_and_scale(check):
    x, y = RNG(0).normal(size=(2, 3, 2, 2)), RNG(1).normal(size=(3, 2))
    check(C.bias, lambda x, y: x + y[:, :, None], x, y)
    check(lambda x, y: C.scale(x, y, axis=2), lambda x, y: x * y, x, RNG(2).normal(size=(2, 2)))


def test_bilinear(check):
    rng = RNG(0)
    e1, e2, w = rng.normal(size=(2, 3)), rng.normal(size=(2, 2, 1)), rng.normal(size=(3, 2, 4))
    v1, v2, b = rng.normal(size=(3, 4)), rng.normal(size=(2, 4)), rng.normal(size=4)

    def product(e1, e2, w):
        return np.einsum("nj,nk,jkl->nl", e1, e2[:, :, 0], w)

    check(C.bilinear, product, e1, e2, w)
    check(C.bilinear, lambda *a: product(*a[:3]) + a[0] @ a[3] + a[1][:, :, 0] @ a[4] + a[5], e1, e2, w, v1, v2, b)


# Shapes.


def test_depth_becomes_space():
    x = nn.NdArray.from_numpy_array(np.arange(24, dtype=np.float32).reshape(1, 4, 2, 3))
    rows = [[0, 6, 1, 7, 2, 8], [12, 18, 13, 19, 14, 20], [3, 9, 4, 10, 5, 11], [15, 21, 16, 22, 17, 23]]
    assert C.depth2space(x, 2).data[0, 0].tolist() == rows


def test_depth_and_space_are_inverse(check):
    x = RNG(0).normal(size=(2, 8, 2, 3))

    def deep(x):
        y = np.zeros((2, 2, 4, 6))
        for c, h, w, i, j in np.ndindex(2, 2, 3, 2, 2):
            y[:, c, 2 * h + i, 2 * w + j] = x[:, (2 * i + j) * 2 + c, h, w]
        return y

    check(lambda x: C.depth2space(x, 2), deep, x)
    check(lambda x: C.space2depth(C.depth2space(x, 2), 2), lambda x: x, x)


@pytest.mark.parametrize("cover_all", [False, True])
def test_columns_of_windows(check, cover_all):
    def columns(x):
        height, width = (4, 3) if cover_all else (3, 3)
        padded = np.zeros((2, 2, 12, 12))
        padded[:, :, 1:6, 2:7] = x
        y = np.zeros((2, 12, height, width))
        for c, i, j, p, q in np.ndindex(2, 2, 3, height, width):
            y[:, (c * 2 + i) * 3 + j, p, q] = padded[:, c, p * 2 + i, q * 3 + j]
        return y

    check(lambda x: C.im2col(x, (2, 3), (2, 3), (1, 2), cover_all=cover_all), columns, RNG(0).normal(size=(2, 2, 5, 5)))


def test_columns_of_windows_with_gaps(check):
    x = RNG(0).normal(size=(1, 1, 5, 5))
    check(
        lambda x: C.im2col(x, 2, dilate=3),
        lambda x: np.stack([x[:, 0, :2, :2], x[:, 0, :2, 3:], x[:, 0, 3:, :2], x[:, 0, 3:, 3:]], axis=1),
        x,
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_permutations_and_their_inverse(check, axis):
    x, order = RNG(0).normal(size=(3, 3, 3)), np.array([2, 0, 1])
    check(lambda x, t: C.permutate(x, t, axis), lambda x, t: np.take(x, t, axis), x, order)
    check(lambda x, t: C.permutate(x, t, axis, inv=True), lambda x, t: np.take(x, np.argsort(t), axis), x, order)


def test_selected_items(check):
    check(C.select_item, lambda x, t: x[[0, 1, 2], t], RNG(0).normal(size=(3, 4)), np.array([3, 0, 3]))


def test_rearrangements(check):
    x, y = RNG(0).normal(size=(2, 3, 4)), RNG(1).normal(size=3)
    for axis, start in ((2, 0), (0, 3), (0, 2), (-1, 1), (1, -1)):
        check(lambda x, a=axis, s=start: C.rollaxis(x, a, s), lambda x, a=axis, s=start: np.rollaxis(x, a, s), x)
    check(lambda x: C.swapaxes(x, 0, -1), lambda x: np.swapaxes(x, 0, -1), x)
    for ours, theirs in ((C.hstack, np.hstack), (C.vstack, np.vstack), (C.dstack, np.dstack)):
        for array in (y, x[0], x):
            check(lambda a, b, f=ours: f(a, b), lambda a, b, f=theirs: f([a, b]), array, array * 2)


def test_splits(check):
    x = RNG(0).normal(size=(2, 6))
    check(lambda x: C.split_axis(x, 3, 1), lambda x: np.split(x, 3, 1), x)
    check(lambda x: C.split_axis(x, [1, 4], -1), lambda x: np.split(x, [1, 4], -1), x)


def test_sequences_become_steps_and_back(check):
    xs = [RNG(n).normal(size=(length, 2)) for n, length in enumerate((4, 2, 1))]

    def steps(*xs):
        return [np.stack([x[t] for x in xs if len(x) > t]) for t in range(4)]

    check(lambda *xs: C.transpose_sequence(xs), steps, *xs)
    check(lambda *xs: C.transpose_sequence(C.transpose_sequence(xs)), lambda *xs: list(xs), *xs)


# Losses.


def test_likelihoods(check):
    x, y, z = RNG(0).normal(size=(3, 2, 3))
    p = RNG(1).uniform(size=(2, 3))
    check(C.bernoulli_nll, lambda p, y: -(p * -softplus(-y) + (1 - p) * -softplus(y)), p, y)
    check(
        C.gaussian_nll,
        lambda x, m, v: -np.log(np.exp(-((x - m) ** 2) / (2 * np.exp(v))) / np.sqrt(2 * np.pi * np.exp(v))),
        x, y, z,
    )  # fmt: skip
    check(C.gaussian_kl_divergence, lambda m, v: 0.5 * (m**2 + np.exp(v) - v - 1), x, y)


def test_contrastive_loss(check):
    x0, x1, y = RNG(0).normal(size=(4, 3)), RNG(1).normal(size=(4, 3)), np.array([1, 0, 0, 1])
    x1[2] = x0[2] + 0.1

    def expected(x0, x1, y):
        d = np.linalg.norm(x0 - x1, axis=1)
        return 0.5 * np.where(y == 1, d**2, np.maximum(1.5 - d, 0) ** 2)

    check(lambda *a: C.contrastive(*a, margin=1.5), expected, x0, x1, y)


def test_contrastive_loss_has_no_gradient_where_features_are_equal():
    x = nn.Variable.from_numpy_array(np.ones((1, 2), np.float32), need_grad=True)
    x.g = 0
    loss = C.contrastive(x, nn.Variable.from_numpy_array(np.ones((1, 2))), nn.Variable.from_numpy_array(np.zeros(1)))
    loss.forward()
    loss.backward()
    assert loss.d.tolist() == [0.5] and x.g.tolist() == [[0.0, 0.0]]


def test_triplet_loss(check):
    def expected(a, p, n):
        return np.maximum(((a - p) ** 2).sum(1) - ((a - n) ** 2).sum(1) + 0.7, 0)

    check(lambda *a: C.triplet(*a, margin=0.7), expected, *RNG(0).normal(size=(3, 5, 2)))


@pytest.mark.parametrize(("norm", "power"), [("L1", 1), ("L2", 2)])
def test_hinge_loss(check, norm, power):
    def expected(x, t):
        sign = np.where(np.arange(3) == t[:, None], 1, -1)
        return np.maximum(1 - sign * x, 0) ** power

    check(lambda x, t: C.hinge(x, t, norm), expected, RNG(0).normal(size=(4, 3)) * 2, np.array([0, 2, 1, 1]))


def test_cross_covariance(check):
    y, z = RNG(0).normal(size=(5, 2)), RNG(1).normal(size=(5, 3))
    check(C.cross_covariance, lambda y, z: (y - y.mean(0)).T @ (z - z.mean(0)) / 5, y, z)


# Losses over vocabularies.


def test_negative_sampling(check):
    x, w, t, samples = (
        RNG(0).normal(size=(3, 2)),
        RNG(1).normal(size=(5, 2)),
        np.array([4, -1, 0]),
        np.array([[1, 1], [2, 3], [0, 2]]),
    )

    def expected(x, t, w, samples):
        loss = softplus(-(x * w[t]).sum(1)) + softplus(np.einsum("nd,nsd->ns", x, w[samples])).sum(1)
        return np.where(t < 0, 0, loss)

    check(C.negative_sampling, expected, x, t, w, samples)


def test_black_out(check):
    x, w, t, samples = (
        RNG(0).normal(size=(3, 2)),
        RNG(1).normal(size=(5, 2)),
        np.array([4, 1, 0]),
        np.array([[1, 1], [2, 3], [3, 2]]),
    )

    def expected(x, t, w, samples):
        powers = np.exp(np.einsum("nd,nsd->ns", x, w[np.concatenate([t[:, None], samples], axis=1)]))
        chances = powers / powers.sum(1, keepdims=True)
        return -np.log(chances[:, 0]) - np.log(1 - chances[:, 1:]).sum(1)

    check(C.black_out, expected, x, t, w, samples)


def test_black_out_keeps_its_digits_where_a_sample_is_nearly_certain():
    x, w = nn.NdArray.from_numpy_array(np.ones((1, 1))), nn.NdArray.from_numpy_array(np.array([[0.0], [30.0]]))
    t, samples = nn.NdArray.from_numpy_array(np.array([0])), nn.NdArray.from_numpy_array(np.array([[1]]))
    np.testing.assert_allclose(C.black_out(x, t, w, samples).data, [60.0], rtol=1e-6)


def test_hierarchical_softmax(check):
    tree = C.huffman_tree({0: 8, 1: 5, 2: 6, 3: 4})
    x, w, t = RNG(0).normal(size=(4, 2)), RNG(1).normal(size=(3, 2)), np.array([0, 1, 2, 3])
    paths = {3: [(0, -1), (1, -1)], 1: [(0, -1), (1, 1)], 2: [(0, 1), (2, -1)], 0: [(0, 1), (2, 1)]}

    def expected(x, t, w):
        return np.array([sum(softplus(-s * x[n] @ w[node]) for node, s in paths[label]) for n, label in enumerate(t)])

    check(lambda x, t, w: C.hierarchical_softmax(x, t, w, tree), expected, x, t, w)


def test_chances_of_all_words_of_a_tree_add_up_to_one():
    tree = ((0, (1, 2)), (3, 4))
    x = nn.NdArray.from_numpy_array(np.repeat(RNG(0).normal(size=(1, 3)), 5, axis=0))
    w, t = nn.NdArray.from_numpy_array(RNG(1).normal(size=(4, 3))), nn.NdArray.from_numpy_array(np.arange(5))
    np.testing.assert_allclose(np.exp(-C.hierarchical_softmax(x, t, w, tree).data).sum(), 1, rtol=1e-5)


def test_words_are_drawn_in_proportion_to_a_power_of_their_counts():
    nn.seed(3)
    words = C.sampled_words([0, 16, 1, 0, 81, 0], (4, 5000), power=0.5)
    words.forward()
    shares = np.bincount(words.d.reshape(-1).astype(int), minlength=6) / 20000
    np.testing.assert_allclose(shares, [0, 4 / 14, 1 / 14, 0, 9 / 14, 0], atol=0.015)
    assert shares[[0, 3, 5]].tolist() == [0, 0, 0]


# Images.


def test_spatial_pyramid_pooling(check):
    x = RNG(0).permutation(2 * 2 * 5 * 7).reshape(2, 2, 5, 7) * 0.5

    def bins(length, count):
        size = -(-length // count)
        first = -((count * size - length) // 2)
        return [slice(max(first + n * size, 0), first + (n + 1) * size) for n in range(count)]

    def expected(x):
        levels = [
            np.stack([x[:, :, r, c].max((2, 3)) for r in bins(5, n) for c in bins(7, n)], axis=2).reshape(2, -1)
            for n in (1, 2)
        ]
        return np.concatenate(levels, axis=1)[:, :, None, None]

    check(lambda x: C.spatial_pyramid_pooling_2d(x, 2), expected, x)


@pytest.mark.parametrize(("shape", "n"), [((2, 6, 2, 2), 5), ((2, 3), 4), ((1, 2, 3), 1)])
def test_local_response_normalization(check, shape, n):
    def expected(x):
        y = np.empty_like(x)
        for c in range(x.shape[1]):
            near = x[:, max(0, c - n // 2) : c + n // 2 + 1]
            y[:, c] = x[:, c] / (2 + 0.3 * (near**2).sum(1)) ** 0.75
        return y

    check(lambda x: C.local_response_normalization(x, n, alpha=0.3), expected, RNG(0).normal(size=shape))


def test_spatial_transformer(check):
    theta = np.array([[[0.7, 0.2, 0.1], [-0.3, 0.6, -0.2]]])

    def grid(theta):
        y, x = np.meshgrid(np.linspace(-1, 1, 3), np.linspace(-1, 1, 2), indexing="ij")
        return np.einsum("nij,jhw->nihw", theta, np.stack([x, y, np.ones_like(x)]))

    check(lambda theta: C.spatial_transformer_grid(theta, (3, 2)), grid, theta)
    image = RNG(0).normal(size=(1, 2, 4, 5))

    def sampled(image, points):
        padded = np.pad(image, ((0, 0), (0, 0), (3, 3), (3, 3)))
        y = np.zeros((1, 2, *points.shape[2:]))
        for h, w in np.ndindex(*points.shape[2:]):
            u, v = (points[0, 0, h, w] + 1) * 2 + 3, (points[0, 1, h, w] + 1) * 1.5 + 3
            left, top = int(np.floor(u)), int(np.floor(v))
            for i, j in np.ndindex(2, 2):
                share = abs(1 - i - (v - top)) * abs(1 - j - (u - left))
                y[:, :, h, w] += share * padded[:, :, top + i, left + j]
        return y

    check(C.spatial_transformer_sampler, sampled, image, RNG(1).uniform(-1.4, 1.4, (1, 2, 3, 3)))


# Randomness.


def test_gaussian_draws_have_mean_and_variance():
    nn.seed(1)
    mean = nn.Variable.from_numpy_array(np.full((20000,), 3.0, np.float32), need_grad=True)
    ln_var = nn.Variable.from_numpy_array(np.full((20000,), np.log(4.0), np.float32), need_grad=True)
    mean.g = ln_var.g = 0
    y = C.gaussian(mean, ln_var)
    y.forward()
    y.backward()
    np.testing.assert_allclose([y.d.mean(), y.d.std()], [3, 2], rtol=0.03)
    np.testing.assert_array_equal(mean.g, np.ones(20000))
    np.testing.assert_allclose(ln_var.g, (y.d - 3) / 2, atol=1e-5)


def test_dropconnect_with_a_mask_and_without(check):
    rng = RNG(0)
    x, w, b, mask = rng.normal(size=(3, 4)), rng.normal(size=(2, 4)), rng.normal(size=2), rng.integers(0, 2, (3, 2, 4))
    check(
        lambda x, w, b, m: C.simplified_dropconnect(x, w, b, 0.25, mask=m),
        lambda x, w, b, m: np.einsum("nij,ij,nj->ni", m, w, x) / 0.75 + b,
        x, w, b, mask,
    )  # fmt: skip
    check(lambda x, w, b: C.simplified_dropconnect(x, w, b, train=False), lambda x, w, b: x @ w.T + b, x, w, b)


def test_dropconnect_leaves_out_elements_of_each_sample_by_itself():
    nn.seed(2)
    x, w = nn.Variable.from_numpy_array(np.ones((400, 30))), nn.Variable.from_numpy_array(np.ones((5, 30)))
    y = C.simplified_dropconnect(x, w, ratio=0.4)
    y.forward()
    np.testing.assert_allclose(y.d.mean(), 30, rtol=0.02)
    np.testing.assert_allclose(y.d.std(), np.sqrt(30 * 0.4 / 0.6), rtol=0.1)
    assert abs(np.corrcoef(y.d[:, 0], y.d[:, 1])[0, 1]) < 0.2


# Measures.


def test_classification_summary():
    y = np.eye(4)[[0, 1, 1, 2, 2, 0]]
    t = np.array([0, 1, 2, 2, -1, 1])
    parts = C.classification_summary(*[nn.NdArray.from_numpy_array(a) for a in (y, t)], beta=2.0)
    precision, recall = np.array([0.5, 0.5, 1, np.nan]), np.array([1, 0.5, 0.5, np.nan])
    expected = [precision, recall, 5 * precision * recall / (4 * precision + recall), [1, 2, 2, 0]]
    for part, truth in zip(parts, expected, strict=True):
        np.testing.assert_allclose(part.data, truth, rtol=1e-6)


def test_classification_summary_of_images():
    y, t = RNG(0).normal(size=(2, 3, 4)), RNG(1).integers(0, 3, (2, 4))
    images = C.classification_summary(*[nn.NdArray.from_numpy_array(a) for a in (y, t)], label_num=2)
    flat = C.classification_summary(
        *[nn.NdArray.from_numpy_array(a) for a in (y.transpose(0, 2, 1).reshape(8, 3), t.reshape(8))], label_num=2
    )
    for one, other in zip(images, flat, strict=True):
        assert one.shape == (2,)
        np.testing.assert_array_equal(one.data, other.data)


def test_r2_score(check):
    pred, true = RNG(0).normal(size=(5, 3)), RNG(1).normal(size=(5, 3))
    true[:, 1] = 2

    def raw(pred, true):
        score = 1 - ((pred - true) ** 2).sum(0) / np.where(np.ptp(true, 0), ((true - true.mean(0)) ** 2).sum(0), np.nan)
        return np.nan_to_num(score)

    check(lambda *a: C.r2_score(*a, multioutput="raw_values"), raw, pred, true, gradient=False)
    check(C.r2_score, lambda *a: raw(*a).mean(), pred, true, gradient=False)


# Wrong calls.

V = nn.Variable


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: C.maxout(V((2, 5)), 2), ShapeError, "maxout: pool_size must divide the length 5 of axis 1, got 2"),
        (lambda: C.maxout(V((2, 5)), 5, 3), ArgumentError, r"maxout: axis must be in \[-2, 2\), got 3"),
        (lambda: C.depth2space(V((2, 6, 3, 3)), 2), ShapeError, "depth2space: r.2 must divide the 6 channels"),
        (lambda: C.space2depth(V((2, 6, 3, 3)), 2), ShapeError, "space2depth: r must divide height and width"),
        (lambda: C.space2depth(V((2, 6, 3)), 2), ShapeError, r"space2depth: x must have shape \(B, C, H r, W r\), got"),
        (lambda: C.im2col(V((1, 1, 2, 2)), 3), ShapeError, "im2col: x must be as large as a window of 3"),
        (lambda: C.im2col(V((1, 1, 2, 2)), (1, 2, 3)), ArgumentError, "im2col: ksize must be one number or two"),
        (lambda: C.permutate(V((3, 2)), V((2,))), ShapeError, r"permutate: indices must have shape \(3,\)"),
        (lambda: C.select_item(V((3, 2)), V((2,))), ShapeError, r"select_item: t must have shape \(3,\)"),
        (lambda: C.rollaxis(V((3, 2)), 2), ArgumentError, "rollaxis: axis and start must be axes"),
        (lambda: C.swapaxes(V((3, 2)), 0, 2), ArgumentError, r"swapaxes: axes must be in \[-2, 2\), got 2"),
        (lambda: C.split_axis(V((3, 4)), 3, 1), ShapeError, "split_axis: sections must divide the length 4 of axis 1"),
        (lambda: C.split_axis(V((3, 4)), [2, 2], 1), ArgumentError, "split_axis: cuts must ascend between 0 and 4"),
        (lambda: C.transpose_sequence([V((1,)), V((2,))]), ShapeError, "must be sorted by falling length, got lengths"),
        (lambda: C.average(V((3, 2)), 0, V((2,))), ShapeError, "average: weights must have the shape"),
        (lambda: C.bias(V((3, 2)), V((3,))), ShapeError, "bias: y must have the shape of x from axis 1 on"),
        (lambda: C.scale(V((3, 2)), V((3,)), 5), ArgumentError, r"scale: axis must be in \[0, 2\], got 5"),
        (lambda: C.bilinear(V((2, 3)), V((2, 4)), V((3, 5, 1))), ShapeError, "bilinear: e1 and e2 must have shapes"),
        (lambda: C.bilinear(V((2, 3)), V((2, 4)), V((3, 4, 1)), V((3, 1))), ArgumentError, "must be given all or none"),
        (lambda: C.gaussian_nll(V((2,)), V((3,)), V((2,))), ShapeError, "x and mean and ln_var must have the same shape"),
        (lambda: C.contrastive(V((2, 3)), V((2, 3)), V((2,)), 0.0), ArgumentError, "contrastive: margin must be above 0"),
        (lambda: C.contrastive(V((2, 3)), V((2, 3)), V((3,))), ShapeError, r"contrastive: y must have shape \(2,\)"),
        (lambda: C.triplet(V((2, 3)), V((2, 3)), V((2, 4))), ShapeError, "anchor and positive and negative must have"),
        (lambda: C.hinge(V((2, 3)), V((2,)), "L3"), ArgumentError, "hinge: norm must be 'L1' or 'L2', got 'L3'"),
        (lambda: C.hinge(V((2, 3)), V((3,))), ShapeError, r"hinge: t must have shape \(2,\)"),
        (lambda: C.cross_covariance(V((2, 3)), V((3, 3))), ShapeError, "cross_covariance: y and z must have as many rows"),
        (lambda: C.black_out(V((2, 3)), V((2,)), V((9, 4)), V((2, 5))), ShapeError, r"w must have shape \(V, 3\)"),
        (lambda: C.black_out(V((2, 3)), V((1,)), V((9, 3)), V((2, 5))), ShapeError, r"t must have shape \(2,\)"),
        (lambda: C.negative_sampling(V((2, 3)), V((2,)), V((9, 3)), V((5,))), ShapeError, r"samples must have shape \(2, S\)"),
        (lambda: C.sampled_words([0, 0], (2,)), ArgumentError, "counts must be numbers of words, not all zero"),
        (lambda: C.huffman_tree({}), ArgumentError, "counts must have a word, got none"),
        (lambda: C.hierarchical_softmax(V((2, 3)), V((2,)), V((2, 3)), (0, (1, 1))), ArgumentError, "must be nested pairs"),
        (lambda: C.hierarchical_softmax(V((2, 3)), V((2,)), V((1, 3)), 0), ArgumentError, "tree must have two words at least"),
        (lambda: C.hierarchical_softmax(V((2, 3)), V((2,)), V((2, 3)), (0, 1)), ShapeError, r"w must have shape \(1, 3\)"),
        (lambda: C.spatial_pyramid_pooling_2d(V((1, 1, 5, 5)), 0), ArgumentError, "pyramid_height must be at least 1, got 0"),
        (lambda: C.spatial_pyramid_pooling_2d(V((1, 1, 5, 5)), 4), ShapeError, "x must fill a grid of 4 by 4 bins"),
        (lambda: C.local_response_normalization(V((3,))), ShapeError, r"x must have shape \(N, C, ...\)"),
        (lambda: C.local_response_normalization(V((3, 2)), 0), ArgumentError, "n must be at least 1, got 0"),
        (lambda: C.spatial_transformer_grid(V((3, 2)), (2, 2)), ShapeError, r"theta must have shape \(N, 2, 3\)"),
        (lambda: C.spatial_transformer_sampler(V((2, 1, 4, 4)), V((2, 3, 4, 4))), ShapeError, r"grid must have shape \(2, 2"),
        (lambda: C.simplified_dropconnect(V((2, 3)), V((4, 3)), ratio=1.0), ArgumentError, r"ratio must be in \[0, 1\)"),
        (lambda: C.simplified_dropconnect(V((2, 3)), V((4, 2))), ShapeError, "x must have 2 features, got 3"),
        (lambda: C.simplified_dropconnect(V((2, 3)), V((4, 3)), mask=V((2, 3, 4))), ShapeError, r"mask must have shape \(2"),
        (lambda: C.classification_summary(V((2, 3)), V((3,))), ShapeError, "t must have the shape of y without classes"),
        (lambda: C.r2_score(V((2,)), V((2,)), "raw"), ArgumentError, "multioutput must be 'uniform_average' or 'raw_values'"),
    ],
)  # fmt: skip
def test_wrong_calls_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
