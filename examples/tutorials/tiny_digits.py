"""Handwritten digits for the tutorials: 1797 images of 8 x 8 pixels from scikit-learn, in batches."""

import numpy as np
from sklearn import datasets

from nn_core.data import data_iterator_simple


def load_digits(n_class=10):
    """Return the images of the first `n_class` digits: ``.images`` (N, 8, 8) from 0 to 16 and ``.target`` (N,)."""
    return datasets.load_digits(n_class=n_class)


def data_iterator_tiny_digits(digits, batch_size=64, shuffle=False, rng=None):
    """Return an endless supply of batches: images (B, 1, 8, 8) and labels (B, 1).

    Args:
        digits: The result of `load_digits`.
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
