"""A multi-layer perceptron on handwritten digits: affine layers and tanh, as deep and wide as one likes.

    python examples/tutorials/multi_layer_perceptron.py --pictures .

The pictures show what the layers of the trained net answer to one image.
"""

import numpy as np
from pictures import plot_responses
from tiny_digits import accuracy, data_iterator_tiny_digits, load_digits
from tutorial import expect, start

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S


def mlp(x, hidden=(16, 32, 16)):
    """Scores and hidden layers: (B, 1, 8, 8) -> (B, 10), [(B, 16), (B, 32), (B, 16)]."""
    layers = []
    h = x
    # Scopes can be nested: the first weight is called mlp/affine1/affine/W.
    with nn.parameter_scope("mlp"):
        for i, size in enumerate(hidden):
            with nn.parameter_scope(f"affine{i + 1}"):
                h = F.tanh(PF.affine(h, size))
            layers.append(h)
        with nn.parameter_scope("classifier"):
            y = PF.affine(h, 10)
    return y, layers


def main():
    """Train the net, and draw what its layers answer to an image."""
    pictures = start(__doc__)
    data = data_iterator_tiny_digits(load_digits(), batch_size=64, shuffle=True, rng=np.random.RandomState(0))
    x = nn.Variable((64, 1, 8, 8))
    t = nn.Variable((64, 1))
    y, layers = mlp(x)
    loss = F.mean(F.softmax_cross_entropy(y, t))
    print("shapes:", x.shape, [h.shape for h in layers], y.shape)

    solver = S.Sgd(lr=1e-2)
    solver.set_parameters(nn.get_parameters())
    losses, accuracies = [], []
    for step in range(1000):
        x.d, t.d = data.next()
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
        answers = [(f"layer {i + 1}", h.d[0].reshape(-1, 8)) for i, h in enumerate(layers)]
        plot_responses(x.d[0, 0], answers, y.d[0], pictures / "mlp.png")
    expect("mean loss of the last 100 steps", np.mean(losses[-100:]), high=0.8)
    expect("mean accuracy of the last 100 steps", np.mean(accuracies[-100:]), low=0.8)


if __name__ == "__main__":
    main()
