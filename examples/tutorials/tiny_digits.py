"""Handwritten digits for the tutorials: 1797 images of 8 x 8 pixels from scikit-learn, in batches, and pictures."""

import numpy as np
from sklearn import datasets

from nn_core.utils.data_iterator import data_iterator_simple


def load_digits(n_class=10):
    """The images of the first `n_class` digits: ``.images`` (N, 8, 8) from 0 to 16 and ``.target`` (N,)."""
    return datasets.load_digits(n_class=n_class)


def data_iterator_tiny_digits(digits, batch_size=64, shuffle=False, rng=None):
    """An endless supply of batches: images (B, 1, 8, 8) and labels (B, 1).

    Args:
        digits: What `load_digits` returned.
        batch_size: B, the number of images in a batch.
        shuffle: Draw the images in a new random order in each epoch.
        rng: Random generator for the order.
    """

    def load(index):
        return digits.images[index][None].astype(np.float32), digits.target[[index]].astype(np.int32)

    return data_iterator_simple(load, len(digits.target), batch_size, shuffle=shuffle, rng=rng)


def accuracy(scores, labels):
    """Share of the rows of `scores` (B, K) whose largest element is at the label (B, 1)."""
    return float(np.mean(np.argmax(scores, axis=1) == labels[:, 0]))


def plot_stats(digits, path):
    """Draw how many images of each digit there are, and print their number and shape."""
    print(f"{len(digits.images)} images of shape {digits.images.shape[1:]}")
    figure, axis = new_figure(figsize=(6, 3))
    labels, counts = np.unique(digits.target, return_counts=True)
    axis.bar(labels, counts, tick_label=labels)
    axis.set(xlabel="digit", ylabel="images")
    figure.savefig(path)


def plot_images(images, path):
    """Draw images (B, 1, H, W), or the maps of one layer, side by side."""
    from nn_core.monitor import tile_images

    figure, axis = new_figure(figsize=(5, 5))
    axis.imshow(tile_images(np.asarray(images)), cmap="gray", interpolation="nearest")
    axis.axis("off")
    figure.savefig(path)


def plot_responses(rows, path):
    """Draw what the layers of a net answer to one image.

    Args:
        rows: Pairs of a title and the answer, an array of two axes.
        path: File to write.
    """
    figure, axes = new_figure(nrows=len(rows), figsize=(3, 1.2 * len(rows)), squeeze=False)
    for axis, (title, values) in zip(axes[:, 0], rows, strict=True):
        axis.imshow(values, cmap="gray", interpolation="nearest")
        axis.set_title(title, fontsize=8)
        axis.axis("off")
    figure.savefig(path)


def new_figure(**options):
    """A matplotlib figure and its axes that need no screen."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(layout="tight", **options)
