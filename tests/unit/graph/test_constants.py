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


def test_lengths_that_follow_are_not_listed_as_constants():
    x = nn.Variable((4, 6))
    x.need_grad = False
    w = nn.Variable((6, 4), need_grad=True)
    y = F.sum(F.reshape(x @ w, (x.shape[0], 4))) / x.shape[0]
    text = str(nn.explain(F.sum(F.reshape(F.affine(x, w), (x.shape[0], -1))) / x.shape[0]))
    assert "constants" not in text
    (dw,) = nn.grad(y, w)
    assert "sum" not in str(nn.explain(dw))
