"""Losses over large vocabularies, which look at a few words only. N samples, D features, V words, S sampled words."""

import numpy as np

from nn_core.ext import ArgumentError, F, ShapeError, Variable
from nn_ext_contrib.functions.checks import require_ndim

#: A word by its number, or a pair of subtrees.
Tree = int | tuple["Tree", "Tree"]


def sampled_words(counts: "np.typing.ArrayLike", shape: tuple[int, ...], power: float = 1.0) -> Variable:
    """Draw words in proportion to a power of their counts.

    Args:
        counts: How often each word occurs. Shape (V).
        shape: How many words.
        power: Exponent of the counts; 0.75 for negative sampling.

    Returns:
        Numbers of words; other ones in each forward pass.

    Raises:
        ArgumentError: when counts are negative, or all zero.

    Example:
        >>> sampled_words([0, 7, 0], (2, 2)).shape
        (2, 2)
    """
    chances = np.asarray(counts, np.float64)
    if chances.ndim != 1 or (chances < 0).any() or not chances.any():
        raise ArgumentError(f"sampled_words: counts must be numbers of words, not all zero, got {counts!r}")
    chances = np.where(chances > 0, chances, 0) ** power * (chances > 0)
    edges = np.cumsum(chances / chances.sum())
    edges[chances.cumsum() == chances.sum()] = 2.0  # no number reaches the last word's edge, however it was rounded
    draws = F.rand(shape=(1, int(np.prod(shape))))
    return F.reshape(F.searchsorted(Variable.from_numpy_array(edges[None]), draws, right=True), tuple(shape))


def negative_sampling(x: Variable, t: Variable, w: Variable, samples: Variable) -> Variable:
    """Tell the true word from sampled ones: -log sigmoid(x w_t) - sum_s log sigmoid(-x w_s).

    Args:
        x: Features. Shape (N, D).
        t: True words; -1 for a sample that does not count. Shape (N).
        w: A row of weights for each word. Shape (V, D).
        samples: Other words, as `sampled_words(counts, (N, S), 0.75)` draws them. Shape (N, S).

    Returns:
        Shape (N). Chainer adds them up: `F.sum`.

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> x, w = nn.NdArray.from_numpy_array([[0.0]]), nn.NdArray.from_numpy_array([[1.0], [2.0]])
        >>> t, samples = nn.NdArray.from_numpy_array([0]), nn.NdArray.from_numpy_array([[1, 1]])
        >>> round(negative_sampling(x, t, w, samples).data.item(), 4)  # 3 log 2
        2.0794

    References:
        Mikolov et al. (2013), Distributed representations of words and phrases, equation 4.
    """
    _check("negative_sampling", x, t, w, samples)
    counts = F.greater_equal_scalar(t, 0.0)
    true, sampled = _scores(x, F.maximum_scalar(t, 0.0), w, samples)
    return counts * (F.softplus(-true) + F.sum(F.softplus(sampled), axis=1))


def black_out(x: Variable, t: Variable, w: Variable, samples: Variable) -> Variable:
    """Tell the true word from sampled ones by a softmax over them: -log p(t) - sum_s log(1 - p(s)).

    p(k) = exp(x w_k) / (exp(x w_t) + sum_s exp(x w_s))

    Args:
        x: Features. Shape (N, D).
        t: True words. Shape (N).
        w: A row of weights for each word. Shape (V, D).
        samples: Other words, as `sampled_words(counts, (N, S))` draws them. Shape (N, S).

    Returns:
        Shape (N). Chainer averages: `F.mean`.

    Raises:
        ShapeError: when the shapes do not fit.

    Example:
        >>> x, w = nn.NdArray.from_numpy_array([[0.0]]), nn.NdArray.from_numpy_array([[1.0], [2.0]])
        >>> t, samples = nn.NdArray.from_numpy_array([0]), nn.NdArray.from_numpy_array([[1]])
        >>> round(black_out(x, t, w, samples).data.item(), 4)  # 2 log 2
        1.3863

    References:
        Ji et al. (2016), BlackOut, equation 4, without the weights of the proposal distribution.
    """
    _check("black_out", x, t, w, samples)
    true, sampled = _scores(x, t, w, samples)
    scores = F.concatenate(F.reshape(true, (-1, 1)), sampled, axis=1)
    total = F.logsumexp(scores, axis=1)
    n_words = scores.shape[1]
    # log(1 - p(s)) from the sum over the other words: a difference of nearly equal numbers would lose its digits
    itself = F.constant(-1e30, (1, n_words - 1, 1)) * Variable.from_numpy_array(np.eye(n_words, dtype=np.float32)[None, 1:])
    others = F.logsumexp(F.reshape(scores, (-1, 1, n_words)) + itself, axis=2)
    return n_words * total - true - F.sum(others, axis=1)


def _check(function: str, x: Variable, t: Variable, w: Variable, samples: Variable) -> None:
    require_ndim(function, "x", x, 2, "(N, D)")
    if w.ndim != 2 or w.shape[1] != x.shape[1]:
        raise ShapeError(f"{function}: w must have shape (V, {x.shape[1]}), a row for each word, got {w.shape}")
    if t.shape != x.shape[:1]:
        raise ShapeError(f"{function}: t must have shape {x.shape[:1]}, got {t.shape}")
    if samples.ndim != 2 or samples.shape[0] != x.shape[0]:
        raise ShapeError(f"{function}: samples must have shape ({x.shape[0]}, S), got {samples.shape}")


def _scores(x: Variable, t: Variable, w: Variable, samples: Variable) -> tuple[Variable, Variable]:
    """Scores of the true words, (N), and of the sampled ones, (N, S)."""
    true = F.sum(x * F.embed(t, w), axis=1)
    sampled = F.batch_matmul(F.embed(samples, w), F.reshape(x, (*x.shape, 1)))
    return true, F.reshape(sampled, samples.shape)


def hierarchical_softmax(x: Variable, t: Variable, w: Variable, tree: Tree) -> Variable:
    """Take -log p(t), where a word is reached by decisions at the inner nodes of a binary tree.

    -log p(t) = sum over the nodes of the path of softplus(-s x w_node), s = -1 to go left, 1 to go right

    Args:
        x: Features. Shape (N, D).
        t: True words. Shape (N).
        w: A row of weights for each inner node, numbered from the root, a left subtree before the right one. Shape (V - 1, D).
        tree: Words as nested pairs: ((1, 2), 3). `huffman_tree` makes one from counts.

    Returns:
        Shape (N). Chainer adds them up: `F.sum`.

    Raises:
        ShapeError: when the shapes do not fit.
        ArgumentError: when the tree is malformed.

    Example:
        >>> x, w = nn.NdArray.from_numpy_array([[0.0]]), nn.NdArray.from_numpy_array([[1.0], [2.0]])
        >>> round(hierarchical_softmax(x, nn.NdArray.from_numpy_array([1]), w, ((1, 2), 0)).data.item(), 4)  # 2 log 2
        1.3863

    References:
        Morin and Bengio (2005), Hierarchical probabilistic neural network language model.
    """
    require_ndim("hierarchical_softmax", "x", x, 2, "(N, D)")
    paths = paths_of(tree)
    n_nodes = len(paths) - 1
    if w.shape != (n_nodes, x.shape[1]):
        raise ShapeError(
            f"hierarchical_softmax: w must have shape ({n_nodes}, {x.shape[1]}), a row for each inner node, got {w.shape}"
        )
    if t.shape != x.shape[:1]:
        raise ShapeError(f"hierarchical_softmax: t must have shape {x.shape[:1]}, got {t.shape}")
    depth = max(len(path) for path in paths.values())
    nodes, signs = np.zeros((max(paths) + 1, depth), np.int64), np.zeros((max(paths) + 1, depth), np.float32)
    for word, path in paths.items():
        nodes[word, : len(path)] = [node for node, _ in path]
        signs[word, : len(path)] = [sign for _, sign in path]
    rows = F.embed(F.gather(Variable.from_numpy_array(nodes), t, axis=0), w)
    sign = F.gather(Variable.from_numpy_array(signs), t, axis=0)
    scores = F.reshape(F.batch_matmul(rows, F.reshape(x, (*x.shape, 1))), sign.shape)
    return F.sum(F.softplus(-sign * scores) * sign**2, axis=1)


def huffman_tree(counts: dict[int, int]) -> Tree:
    """Make the tree in which frequent words have short paths: the two rarest subtrees are joined until one is left.

    Args:
        counts: How often each word occurs.

    Returns:
        The tree, for `hierarchical_softmax`; the rarer of two subtrees is on the left.

    Raises:
        ArgumentError: when there is no word.

    Example:
        >>> huffman_tree({0: 8, 1: 5, 2: 6, 3: 4})
        ((3, 1), (2, 0))
    """
    import heapq

    if not counts:
        raise ArgumentError("huffman_tree: counts must have a word, got none")
    heap: list[tuple[int, int, Tree]] = [(count, order, word) for order, (word, count) in enumerate(counts.items())]
    heapq.heapify(heap)
    while len(heap) > 1:
        (count, order, left), (other, _, right) = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (count + other, order, (left, right)))
    return heap[0][2]


def paths_of(tree: Tree) -> dict[int, list[tuple[int, float]]]:
    """For each word the inner nodes from the root on, each with -1 for left or 1 for right."""
    paths: dict[int, list[tuple[int, float]]] = {}
    waiting: list[tuple[Tree, list[tuple[int, float]]]] = [(tree, [])]
    n_nodes = 0
    while waiting:
        subtree, path = waiting.pop()
        if isinstance(subtree, tuple) and len(subtree) == 2:
            node, n_nodes = n_nodes, n_nodes + 1
            waiting += [(subtree[1], [*path, (node, 1.0)]), (subtree[0], [*path, (node, -1.0)])]
        elif isinstance(subtree, int) and subtree >= 0 and subtree not in paths:
            paths[subtree] = path
        else:
            raise ArgumentError(f"hierarchical_softmax: tree must be nested pairs of different words, got {subtree!r}")
    if len(paths) < 2:
        raise ArgumentError(f"hierarchical_softmax: tree must have two words at least, got {tree!r}")
    return paths
