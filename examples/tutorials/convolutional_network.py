"""A small convolutional net in the manner of LeNet on handwritten digits, on any backend.

    python examples/tutorials/convolutional_network.py
    python examples/tutorials/convolutional_network.py -c cudnn

The backend is chosen before the graph is built; nothing else in the program depends on it.
"""

import numpy as np
from pictures import plot_images, plot_responses
from tiny_digits import accuracy, data_iterator_tiny_digits, load_digits
from tutorial import expect, start

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S


def cnn(x, test=False):
    """Scores and hidden layers: (B, 1, 8, 8) -> (B, 10), [(B, 4, 4, 4), (B, 8, 2, 2), (B, 32)].

    Batch normalization uses the statistics of the batch when it is trained, and running means when it is tested.
    """
    with nn.parameter_scope("cnn"):
        with nn.parameter_scope("conv1"):
            h = PF.convolution(x, 4, (3, 3), pad=(1, 1), stride=(2, 2))
            c1 = F.tanh(PF.batch_normalization(h, batch_stat=not test))
        with nn.parameter_scope("conv2"):
            h = PF.convolution(c1, 8, (3, 3), pad=(1, 1))
            c2 = F.average_pooling(F.tanh(PF.batch_normalization(h, batch_stat=not test)), (2, 2))
        with nn.parameter_scope("fc3"):
            fc3 = F.tanh(PF.affine(c2, 32))
        with nn.parameter_scope("classifier"):
            y = PF.affine(fc3, 10)
    return y, [c1, c2, fc3]


def train_cnn(data, steps=1000):
    """Train the parameters of `cnn` from scratch; returns the losses, and the variables of the graph."""
    x = nn.Variable((64, 1, 8, 8))
    t = nn.Variable((64, 1))
    y, layers = cnn(x)
    loss = F.mean(F.softmax_cross_entropy(y, t))
    solver = S.Sgd(lr=1e-1)
    solver.set_parameters(nn.get_parameters())
    losses = []
    for step in range(steps):
        x.d, t.d = data.next()
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.weight_decay(1e-5)
        solver.update()
        losses.append(float(loss.d))
        if step % 100 == 0:
            print(step, losses[-1])
    return losses, (x, y, layers)


def main():
    """Train the net, test it with running means, draw its answers."""
    pictures = start(__doc__)
    print("context:", nn.get_current_context())
    digits = load_digits()
    data = data_iterator_tiny_digits(digits, batch_size=64, shuffle=True, rng=np.random.RandomState(0))
    losses, (x, y, layers) = train_cnn(data)

    # A second graph shares the parameters of the first one, because it uses the same scopes.
    images = nn.Variable.from_numpy_array(digits.images[:, None])
    scores, _ = cnn(images, test=True)
    scores.forward(clear_buffer=True)

    if pictures is not None:
        plot_images(layers[0].d[0][:, None], pictures / "cnn_conv1.png", "first convolution: a map per channel", "activation")
        plot_images(layers[1].d[0][:, None], pictures / "cnn_conv2.png", "second convolution: a map per channel", "activation")
        plot_responses(x.d[0, 0], [("fully connected layer", layers[2].d[0].reshape(-1, 8))], y.d[0], pictures / "cnn.png")
    expect("mean loss of the last 100 steps", np.mean(losses[-100:]), high=0.25)
    expect("accuracy with running means", accuracy(scores.d, digits.target[:, None]), low=0.95)


if __name__ == "__main__":
    main()
