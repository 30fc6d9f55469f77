"""Losses with parameters of their own. N samples, D features, V words, K labels."""

import numpy as np

from nn_core.ext import F, Variable, initializer, parametric_function_api
from nn_ext_contrib.functions.checks import require_ndim
from nn_ext_contrib.functions.sampling import Tree, paths_of
from nn_ext_contrib.layers.parameters import ZEROS, Initializer, trained, weight

_WORDS = [("W", "A row for each word.", "(V, D)", True)]
_COST = [("cost", "Score of going from a label (row) to a label (column).", "(K, K)", True)]


@parametric_function_api("crf1d", _COST)
def crf1d(
    x: Variable,
    target: Variable,
    length: Variable | None = None,
    cost_init: Initializer | None = None,
    fix_parameters: bool = False,
) -> Variable:
    """Take the negative log-likelihood of labels of sequences, with trained scores of transitions; see `F.contrib.crf1d`.

    Args:
        x: Scores of the labels. Shape (T, B, K).
        target: Label of each step. Shape (T, B).
        length: Number of steps of each sequence; T if not given. Shape (B).
        cost_init: Initial scores of transitions. Default: zeros.

    Returns:
        Shape (B).

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> x, target = nn.Variable((5, 2, 3)), nn.Variable((5, 2))
        >>> crf1d(x, target, name="tags").shape, PF.contrib.argmax_crf1d(x, name="tags")[1].shape
        ((2,), (5, 2))
    """
    return F.contrib.crf1d(_cost(x, cost_init, fix_parameters), x, target, length)


@parametric_function_api("crf1d", _COST)
def argmax_crf1d(
    x: Variable, length: Variable | None = None, cost_init: Initializer | None = None, fix_parameters: bool = False
) -> tuple[Variable, Variable]:
    """Find the best labels of sequences, with the scores that `crf1d` of the same name trains; see `F.contrib.argmax_crf1d`.

    Args:
        x: Scores of the labels. Shape (T, B, K).
        length: Number of steps of each sequence; T if not given. Shape (B).
        cost_init: Initial scores of transitions. Default: zeros.

    Returns:
        Score of the best path, shape (B), and its labels, shape (T, B), -1 after the end.

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> score, path = argmax_crf1d(nn.Variable((5, 2, 3)), name="tags")
        >>> score.shape, path.shape
        ((2,), (5, 2))
    """
    score, path = F.contrib.argmax_crf1d(_cost(x, cost_init, fix_parameters), x, length)
    return score, path


def _cost(x: Variable, cost_init: Initializer | None, fix_parameters: bool) -> Variable:
    require_ndim("crf1d", "x", x, 3, "(T, B, K)")
    return trained("cost", (x.shape[2], x.shape[2]), cost_init, ZEROS, fix_parameters)


@parametric_function_api("negative_sampling", _WORDS)
def negative_sampling(
    x: Variable,
    t: Variable,
    counts: "np.typing.ArrayLike",
    sample_size: int,
    power: float = 0.75,
    w_init: Initializer | None = None,
    fix_parameters: bool = False,
) -> Variable:
    """Tell true words from words that are drawn by their counts; see `F.contrib.negative_sampling`.

    Args:
        x: Features. Shape (N, D).
        t: True words; -1 for a sample that does not count. Shape (N).
        counts: How often each word occurs. Shape (V).
        sample_size: Number of words that are drawn for each sample, others in each forward pass.
        power: Exponent of the counts.
        w_init: Initial weight. Default: zeros.

    Returns:
        Shape (N).

    Raises:
        ShapeError: when the shapes do not fit.
        ArgumentError: when the counts are negative, or all zero.

    Example:
        >>> negative_sampling(nn.Variable((8, 3)), nn.Variable((8,)), [5, 2, 9, 1], sample_size=2).shape
        (8,)
    """
    require_ndim("negative_sampling", "x", x, 2, "(N, D)")
    samples = F.contrib.sampled_words(counts, (x.shape[0], sample_size), power)
    w = trained("W", (np.size(counts), x.shape[1]), w_init, ZEROS, fix_parameters)
    return F.contrib.negative_sampling(x, t, w, samples)


@parametric_function_api("black_out", _WORDS)
def black_out(
    x: Variable,
    t: Variable,
    counts: "np.typing.ArrayLike",
    sample_size: int,
    w_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: initializer.Rng | None = None,
) -> Variable:
    """Tell true words from words that are drawn by their counts, by a softmax over them; see `F.contrib.black_out`.

    Args:
        x: Features. Shape (N, D).
        t: True words. Shape (N).
        counts: How often each word occurs. Shape (V).
        sample_size: Number of words that are drawn for each sample, others in each forward pass.

    Returns:
        Shape (N).

    Raises:
        ShapeError: when the shapes do not fit.
        ArgumentError: when the counts are negative, or all zero.

    Example:
        >>> black_out(nn.Variable((8, 3)), nn.Variable((8,)), [5, 2, 9, 1], sample_size=2).shape
        (8,)
    """
    require_ndim("black_out", "x", x, 2, "(N, D)")
    samples = F.contrib.sampled_words(counts, (x.shape[0], sample_size))
    n_words, n_features = np.size(counts), x.shape[1]
    w = weight("W", (n_words, n_features), (n_features, n_words), w_init, rng, fix_parameters)
    return F.contrib.black_out(x, t, w, samples)


@parametric_function_api("hierarchical_softmax", [("W", "A row for each inner node.", "(V - 1, D)", True)])
def hierarchical_softmax(
    x: Variable,
    t: Variable,
    tree: Tree,
    w_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: initializer.Rng | None = None,
) -> Variable:
    """Take -log p(t) by decisions at the inner nodes of a binary tree; see `F.contrib.hierarchical_softmax`.

    Args:
        x: Features. Shape (N, D).
        t: True words. Shape (N).
        tree: Words as nested pairs: ((1, 2), 3). `F.contrib.huffman_tree` makes one from counts.
        w_init: Initial weight. Default: uniform in (-1, 1).

    Returns:
        Shape (N).

    Raises:
        ShapeError: when the shapes do not fit.
        ArgumentError: when the tree is malformed.

    Example:
        >>> hierarchical_softmax(nn.Variable((8, 3)), nn.Variable((8,)), ((0, 1), (2, 3))).shape
        (8,)
    """
    require_ndim("hierarchical_softmax", "x", x, 2, "(N, D)")
    shape = (len(paths_of(tree)) - 1, x.shape[1])
    w = trained("W", shape, w_init, initializer.UniformInitializer((-1, 1), rng), fix_parameters)
    return F.contrib.hierarchical_softmax(x, t, w, tree)
