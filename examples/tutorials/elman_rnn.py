"""A recurrent net of Elman's kind that reads an image as a sequence of four quarters.

    python examples/tutorials/elman_rnn.py

    h_t = tanh(x_t W_x + h_(t-1) W_h + b)

Unrolled over time the net is an ordinary graph. Its steps share parameters because they use the same scopes.
"""

import numpy as np
from pictures import plot_responses
from tiny_digits import accuracy, data_iterator_tiny_digits, load_digits
from tutorial import expect, start

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S


def rnn(xs, h0, hidden=32):
    """Scores and states: T inputs (B, 1, 4, 4) and the first state (B, H) -> (B, 10), T states (B, H)."""
    states = []
    h = h0
    with nn.parameter_scope("rnn"):
        for x in xs:
            with nn.parameter_scope("x2h"):
                x2h = PF.affine(x, hidden, with_bias=False)
            with nn.parameter_scope("h2h"):
                h2h = PF.affine(h, hidden)
            h = F.tanh(x2h + h2h)
            states.append(h)
        with nn.parameter_scope("classifier"):
            y = PF.affine(h, 10)
    return y, states


def quarters(images):
    """Return the four quarters (B, 1, 4, 4) of images (B, 1, 8, 8)."""
    return [images[..., rows, columns] for rows in (np.s_[:4], np.s_[4:]) for columns in (np.s_[:4], np.s_[4:])]


def main():
    """Train the net through time."""
    pictures = start(__doc__)
    data = data_iterator_tiny_digits(load_digits(), batch_size=64, shuffle=True, rng=np.random.RandomState(0))
    xs = [nn.Variable((64, 1, 4, 4)) for _ in range(4)]
    h0 = nn.Variable((64, 32))
    t = nn.Variable((64, 1))
    y, states = rnn(xs, h0)
    loss = F.mean(F.softmax_cross_entropy(y, t))
    print("parameters:", {name: parameter.shape for name, parameter in nn.get_parameters().items()})

    solver = S.Sgd(lr=1e-1)
    solver.set_parameters(nn.get_parameters())
    h0.d = 0
    losses, accuracies = [], []
    for step in range(1000):
        images, t.d = data.next()
        for x, quarter in zip(xs, quarters(images), strict=True):
            x.d = quarter
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.weight_decay(1e-5)
        solver.update()
        losses.append(float(loss.d))
        accuracies.append(accuracy(y.d, t.d))
        if step % 100 == 0:
            print(step, losses[-1])

    if pictures is not None:
        answers = [(f"state {i + 1}", h.d[0].reshape(-1, 8)) for i, h in enumerate(states)]
        plot_responses(images[0, 0], answers, y.d[0], pictures / "rnn.png")
    expect("mean loss of the last 100 steps", np.mean(losses[-100:]), high=0.4)
    expect("mean accuracy of the last 100 steps", np.mean(accuracies[-100:]), low=0.88)


if __name__ == "__main__":
    main()
