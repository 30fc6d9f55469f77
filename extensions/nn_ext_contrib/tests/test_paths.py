"""CTC and CRF against sums and maxima over all paths, one by one."""

from itertools import groupby, pairwise, product

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

C = F.contrib


def variable(values, need_grad=False):
    v = nn.Variable.from_numpy_array(np.asarray(values), need_grad=need_grad)
    if need_grad:
        v.g = 0
    return v


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def spelled(path, blank):
    return [label for label, _ in groupby(path) if label != blank]


def ctc_by_paths(x, target, blank):
    """Loss of one sample and its derivative by x: softmax less the share of the paths that emit a class at a step."""
    chances = softmax(x)
    total, shares = 0.0, np.zeros_like(x)
    for path in product(range(x.shape[1]), repeat=x.shape[0]):
        if spelled(path, blank) == list(target):
            chance = np.prod(chances[range(len(path)), path])
            total += chance
            shares[range(len(path)), path] += chance
    return (-np.log(total), chances - shares / total) if total else (np.inf, np.zeros_like(x))


@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("target", [[], [1], [1, 1], [1, 3], [3, 1, 3], [1, 1, 1], [3, 3, 1, 1]])
def test_ctc_is_the_sum_over_all_paths(target, blank):
    x = np.random.default_rng(len(target)).normal(size=(5, 2, 4)) * 2
    steps = [5, 3]
    padded = np.array([[*target, -7, 99]] * 2)
    with nn.context_scope(nn.Context(["reference:double"])):
        vx = variable(x, need_grad=True)
        y = C.ctc_loss(vx, variable(padded), variable(steps), variable([len(target)] * 2), blank=blank)
        y.forward()
        y.backward(np.array([1.0, 2.0]))
    for n, (length, weight) in enumerate(zip(steps, (1, 2), strict=True)):
        loss, slope = ctc_by_paths(x[:length, n], target, blank)
        np.testing.assert_allclose(y.d[n], loss, rtol=1e-12)
        np.testing.assert_allclose(vx.g[:length, n], weight * slope, atol=1e-12)
        assert not vx.g[length:, n].any()


@pytest.mark.parametrize("backend", ["reference:double", "reference:float", "cpu:float"])
def test_ctc_agrees_with_pytorch(backend):
    torch = pytest.importorskip("torch", reason="torch is not installed: the loss is compared with it where it is")
    rng = np.random.default_rng(8)
    x, target = rng.normal(size=(40, 4, 9)) * 2, rng.integers(1, 9, (4, 12))
    steps, labels = np.array([40, 25, 31, 26]), np.array([12, 5, 0, 10])
    theirs = torch.tensor(x, requires_grad=True)
    lengths = torch.tensor(steps), torch.tensor(labels)
    loss = torch.nn.functional.ctc_loss(theirs.log_softmax(2), torch.tensor(target), *lengths, reduction="none")
    loss.sum().backward()
    with nn.context_scope(nn.Context([backend])):
        ours = variable(x, need_grad=True)
        y = C.ctc_loss(ours, *map(variable, (target, steps, labels)))
        y.forward()
        y.backward()
    np.testing.assert_allclose(y.d, loss.detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(ours.g, theirs.grad.numpy(), atol=1e-12 if backend.endswith("double") else 2e-6)


def test_ctc_does_not_read_beyond_a_sequence():
    x = np.random.default_rng(1).normal(size=(4, 1, 3)).astype(np.float32)
    alone = C.ctc_loss(variable(x[:2]), variable([[1]]))
    x[2:] = np.nan
    padded = C.ctc_loss(variable(x), variable([[1, 2]]), variable([2]), variable([1]))
    nn.forward_all([alone, padded])
    np.testing.assert_array_equal(alone.d, padded.d)


def test_ctc_keeps_its_accuracy_over_a_thousand_steps():
    x = np.random.default_rng(2).normal(size=(1000, 1, 5)) * 3
    target = np.random.default_rng(3).integers(1, 5, (1, 300))
    found = []
    for dtype in ("float", "double"):
        with nn.context_scope(nn.Context([f"reference:{dtype}"])):
            vx = variable(x, need_grad=True)
            y = C.ctc_loss(vx, variable(target))
            y.forward()
            y.backward()
            found.append((y.d.copy(), vx.g.copy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=2e-4)


def path_score(cost, x, path):
    return x[range(len(path)), path].sum() + sum(cost[a, b] for a, b in pairwise(path))


@pytest.mark.parametrize("lengths", [None, [1, 4, 2]])
def test_crf_sums_and_maximizes_over_all_paths(lengths):
    rng = np.random.default_rng(4)
    cost, x, target = rng.normal(size=(3, 3)), rng.normal(size=(4, 3, 3)) * 2, rng.integers(0, 3, (4, 3))
    with nn.context_scope(nn.Context(["reference:double"])):
        vcost, vx = variable(cost, need_grad=True), variable(x, need_grad=True)
        given = None if lengths is None else variable(lengths)
        y = C.crf1d(vcost, vx, variable(target), given)
        score, best = C.argmax_crf1d(vcost, vx, given)
        nn.forward_all([y, score, best])
        y.backward(np.array([1.0, 2.0, 3.0]))
    dcost, dx = np.zeros_like(cost), np.zeros_like(x)
    for n, length in enumerate(lengths or [4] * 3):
        paths = list(product(range(3), repeat=length))
        scores = np.array([path_score(cost, x[:length, n], path) for path in paths])
        truth = path_score(cost, x[:length, n], tuple(target[:length, n]))
        np.testing.assert_allclose(y.d[n], np.log(np.exp(scores).sum()) - truth, rtol=1e-12)
        np.testing.assert_allclose(score.d[n], scores.max(), rtol=1e-12)
        assert best.d[:length, n].tolist() == list(paths[scores.argmax()]) and (best.d[length:, n] == -1).all()
        for path, chance in [*zip(paths, softmax(scores), strict=True), (tuple(target[:length, n]), -1.0)]:
            dx[range(length), n, path] += (n + 1) * chance
            for a, b in pairwise(path):
                dcost[a, b] += (n + 1) * chance
    np.testing.assert_allclose(vx.g, dx, atol=1e-12)
    np.testing.assert_allclose(vcost.g, dcost, atol=1e-12)
