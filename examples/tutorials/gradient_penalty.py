"""Use gradients inside a loss: train a net whose gradients are kept short.

    python examples/tutorials/gradient_penalty.py

nn.grad() returns gradients as variables of the graph. A loss that contains them is differentiated like any other, and
backward() then needs second derivatives, which follow from the same rules.
"""

import numpy as np
from tiny_digits import data_iterator_tiny_digits, load_digits
from tutorial import expect, start

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S

BATCH_SIZE = 16


def network(x):
    """Scores: (B, 1, 8, 8) -> (B, 10)."""
    h = F.max_pooling(F.relu(PF.convolution(x, 8, (3, 3), pad=(1, 1), name="conv1")), (2, 2))
    h = F.max_pooling(F.relu(PF.convolution(h, 16, (3, 3), pad=(1, 1), name="conv2")), (2, 2))
    return PF.affine(h, 10, name="pred")


def losses(x, t, target=0.0):
    """Return the cross entropy of scores and labels, and how far the norms of its gradients are from `target`."""
    loss = F.mean(F.softmax_cross_entropy(network(x), t))
    gradients = nn.grad([loss], nn.get_parameters().values())
    # The small number keeps the derivative of the square root finite.
    penalty = F.add_n(*[(F.sum(g**2) + 1e-12) ** 0.5 - target for g in gradients])
    return loss, penalty


def check_gradient(total, parameter, step=1e-2):
    """Compare backward() of `total` in a random direction with a difference of two losses; returns the error."""
    total.forward()
    for other in nn.get_parameters().values():
        other.grad.zero()
    total.backward()
    direction = np.sign(np.random.randn(*parameter.shape)).astype(np.float32)
    slope = float(np.sum(parameter.g * direction))
    values = parameter.d.copy()
    ends = []
    for sign in (1, -1):
        parameter.d = values + sign * step * direction
        total.forward()
        ends.append(float(total.d))
    parameter.d = values
    difference = (ends[0] - ends[1]) / (2 * step)
    print(f"slope by backward(): {slope:.5f}, by a difference: {difference:.5f}")
    return abs(slope - difference) / abs(difference)


def train(weight, n_steps=200):
    """Train with the penalty times `weight`; returns the last losses and penalties, averaged."""
    nn.seed(0)
    nn.clear_parameters()
    data = data_iterator_tiny_digits(load_digits(), batch_size=BATCH_SIZE, shuffle=True, rng=np.random.RandomState(0))
    x = nn.Variable((BATCH_SIZE, 1, 8, 8))
    t = nn.Variable((BATCH_SIZE, 1))
    loss, penalty = losses(x, t)
    loss.persistent = penalty.persistent = True
    total = loss + weight * penalty
    solver = S.Adam(alpha=3e-3)
    solver.set_parameters(nn.get_parameters())
    history = []
    for _ in range(n_steps):
        images, t.d = data.next()
        x.d = images / 16
        total.forward(clear_no_need_grad=True)
        solver.zero_grad()
        total.backward(clear_buffer=True)
        solver.update()
        history.append((float(loss.d), float(penalty.d)))
    return np.mean(history[-20:], axis=0)


def main():
    """Check the second derivative, then train with and without the penalty."""
    start(__doc__)
    x = nn.Variable.from_numpy_array(np.random.rand(BATCH_SIZE, 1, 8, 8).astype(np.float32))
    t = nn.Variable.from_numpy_array(np.random.randint(0, 10, (BATCH_SIZE, 1)))
    loss, penalty = losses(x, t)
    error = check_gradient(loss + penalty, nn.get_parameters()["pred/affine/W"])

    free_loss, free_penalty = train(weight=0.0)
    loss, penalty = train(weight=0.1)
    print(f"without penalty: loss {free_loss:.4f}, sum of the gradients' norms {free_penalty:.4f}")
    print(f"with penalty:    loss {loss:.4f}, sum of the gradients' norms {penalty:.4f}")
    expect("relative error of the slope", error, high=0.02)
    expect("loss with the penalty", loss, high=1.0)
    expect("gradients' norms with the penalty, relative to those without", penalty / free_penalty, high=0.8)


if __name__ == "__main__":
    main()
