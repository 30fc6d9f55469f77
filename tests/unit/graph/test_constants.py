"""The constants of a graph that equal the batch, as `nn.explain` lists them."""

import nn_core as nn
import nn_core.functions as F


def test_constants_that_equal_the_batch_are_listed():
    x = nn.Variable((4, 6))
    n = int(x.shape[0])
    y = F.sum(F.reshape(x, (n, -1, 3)) + F.constant(4, shape=(n, 1, 1))) / n
    (note,) = nn.explain(y).notes
    for text in ("reshape shape[0] = 4", "constant shape[0] = 4", "constant val = 4", "mul_scalar val = 1 / 4"):
        assert text in note
    assert "reshape shape[2]" not in note


def test_constants_beside_lengths_are_listed():
    x = nn.Variable((4, 6))
    y = F.reshape(F.broadcast(F.sum(x), (int(x.shape[0]), x.shape[1])), (x.shape[0] * 2, -1))
    (note,) = nn.explain(y).notes
    assert "broadcast shape[0] = 4" in note
    assert "reshape" not in note
    smallest = F.slice(x, stop=(min(x.shape[0], 5), min(x.shape[1], 4)))
    assert "slice stop[1] = 4" in nn.explain(smallest).notes[0]


def test_the_smaller_and_the_larger_length_follow_as_arithmetic():
    x = nn.Variable((4, 6))
    n, limit = x.shape[0], 8
    smaller, larger = (n + limit - abs(n - limit)) // 2, (n + limit + abs(n - limit)) // 2
    y, z = x[:smaller], F.broadcast(F.sum(x), (larger,))
    for rows in (3, 20, 8):
        x.reset_shape((rows, 6), True)
        assert y.shape == (min(rows, limit), 6)
        assert z.shape == (max(rows, limit),)


def test_lengths_that_follow_are_not_listed_as_constants():
    x = nn.Variable((4, 6))
    x.need_grad = False
    w = nn.Variable((6, 4), need_grad=True)
    y = F.sum(F.reshape(x @ w, (x.shape[0], 4))) / x.shape[0]
    text = str(nn.explain(F.sum(F.reshape(F.affine(x, w), (x.shape[0], -1))) / x.shape[0]))
    assert "constants" not in text
    (dw,) = nn.grad(y, w)
    assert "sum" not in str(nn.explain(dw))
