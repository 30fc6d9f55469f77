"""See what a convolution computes, learn a filter from examples, and ask which pixels a network looks at.

    python examples/tutorials/filters_and_gradients.py --pictures pictures

A filter is a small image that is moved over a large one; its result is large where both look alike. Sobel's filter answers
to vertical edges. A convolution that only sees images and the edges of them learns the same nine numbers. The gradient of
a score with respect to the image is itself an image: it says which pixels would change the score most.
"""

import numpy as np
from pictures import plot_images
from tiny_digits import accuracy, load_digits
from tutorial import expect, start

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S

SOBEL = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]], np.float32)


def edges(images):
    """Return the answers of Sobel's filter to images (B, 1, H, W)."""
    return F.convolution(images, nn.Variable.from_numpy_array(SOBEL[None, None]), pad=(1, 1))


def minimize(loss, rate, n_steps):
    """Change the parameters of the present scope so that a loss becomes small."""
    solver = S.Adam(rate)
    solver.set_parameters(nn.get_parameters())
    for _ in range(n_steps):
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()


def learn_filter(images):
    """Return the filter (3, 3) of a convolution that was trained to find the edges."""
    x, t = nn.Variable(images.shape), nn.Variable(images.shape)
    x.d = images
    wanted = edges(x)
    wanted.forward()
    t.d = wanted.d
    with nn.parameter_scope("edges"):
        y = PF.convolution(x, 1, (3, 3), pad=(1, 1), with_bias=False)
        loss = F.mean(F.squared_error(y, t))
        minimize(loss, rate=0.05, n_steps=300)
        return nn.get_parameters()["conv/W"].d[0, 0].copy()


def network(x):
    """Return the scores of ten digits (B, 10) for images (B, 1, 8, 8)."""
    h = F.relu(PF.convolution(x, 16, (3, 3), pad=(1, 1), name="c1"))
    return PF.affine(F.max_pooling(h, (2, 2)), 10, name="scores")


def train(images, labels):
    """Train the network on all images at once."""
    x, t = nn.Variable(images.shape), nn.Variable(labels.shape)
    x.d, t.d = images, labels
    scores = network(x)
    loss = F.mean(F.softmax_cross_entropy(scores, t))
    minimize(loss, rate=0.01, n_steps=60)
    scores.forward(clear_buffer=True)
    return accuracy(scores.d, labels)


def saliency(images, labels):
    """Return the gradients (B, 1, 8, 8) of the scores of the labels with respect to the images."""
    x = nn.Variable.from_numpy_array(images, need_grad=True)
    chosen = F.sum(network(x) * F.one_hot(nn.Variable.from_numpy_array(labels), (10,)))
    x.grad.zero()
    chosen.forward()
    chosen.backward()
    return x.g.copy()


def main():
    """Learn Sobel's filter, train a classifier, and draw the pixels that it looks at."""
    pictures = start(__doc__)
    digits = load_digits()
    images, labels = digits.images[:400, None].astype(np.float32) / 16, digits.target[:400, None].astype(np.int32)
    x = nn.Variable.from_numpy_array(images)
    answers = edges(x)
    answers.forward()
    expect("difference of the learned filter", np.abs(learn_filter(images) - SOBEL).max(), high=0.05)
    expect("accuracy", train(images, labels), low=0.95)

    gradients = saliency(images[:16], labels[:16])
    ink = images[:16] > 0.25
    expect(
        "gradient at strokes, divided by that elsewhere", np.abs(gradients[ink]).mean() / np.abs(gradients[~ink]).mean(), low=1
    )
    # The gradient is the best linear guess: a small step along it raises the scores by its squared length.
    step = 1e-3 * gradients
    risen = saliency_sum(images[:16] + step, labels[:16]) - saliency_sum(images[:16], labels[:16])
    expect("rise of the scores, divided by the guess", risen / float((step * gradients).sum()), low=0.9, high=1.1)
    if pictures is not None:
        plot_images(images[:16], pictures / "digits.png", "Digits", "ink", "gray_r")
        plot_images(answers.d[:16], pictures / "edges.png", "Vertical edges", "answer of the filter", "RdBu")
        plot_images(gradients, pictures / "gradients.png", "Pixels that change the score", "gradient", "RdBu")


def saliency_sum(images, labels):
    """Return the sum of the scores of the labels."""
    scores = network(nn.Variable.from_numpy_array(images))
    scores.forward()
    return float(np.take_along_axis(scores.d, labels, axis=1).sum())


if __name__ == "__main__":
    main()
