"""Linear-chain conditional random fields: likelihood by the forward-backward algorithm, best path by Viterbi's.

T steps, B sequences, K labels. cost[s, t] is the score of going from label s to t, x[t, b, k] that of label k at step t; both
are added up, so higher is better. Sequences are padded after their length.

Lafferty, McCallum and Pereira (2001), Conditional random fields; Viterbi (1967).
"""

from typing import Any

from nn_core.ext import Array, GradientCall, Namespace, Shape, ShapeError, gradient, kernel, shape_rule
from nn_ext_contrib.operators.sequences import check_labels, check_lengths, lengths_of, widen


def _check(cost: Shape, x: Shape, length: Shape | None) -> None:
    if len(x) != 3 or not x[0]:
        raise ShapeError(f"x must have shape (T, B, K) with a step at least, got {x}")
    if cost != (x[2], x[2]):
        raise ShapeError(f"cost must have shape ({x[2]}, {x[2]}), a score for each pair of labels, got {cost}")
    check_lengths(x[1], length=length)


@shape_rule("contrib.Crf1d")
def crf1d_shape(cost: Shape, x: Shape, target: Shape, length: Shape | None) -> tuple[Shape, ...]:
    """One loss for each sequence, its slope for each score, and for each pair of labels."""
    _check(cost, x, length)
    if target != x[:2]:
        raise ShapeError(f"target must have shape {x[:2]}, one label for each step, got {target}")
    return (x[1],), x, (x[1], *cost)


@kernel("contrib.Crf1d")
def crf1d(xp: Namespace, cost: Array, x: Array, target: Array, length: Array | None) -> tuple[Array, Array, Array]:
    """Loss; expected less given use of each label at each step, and of each pair of neighbouring labels."""
    n_steps, n_sequences, n_labels = x.shape
    length = lengths_of(xp, "crf1d", "length", length, n_sequences, n_steps, 1)
    is_inside = xp.arange(n_steps)[:, None] < length
    target = xp.where(is_inside, target, 0)
    check_labels(xp, "crf1d", target, n_labels)
    x, cost = xp.where(is_inside[:, :, None], widen(xp, x), 0), widen(xp, cost)
    steps, sequences = xp.arange(n_steps)[:, None], xp.arange(n_sequences)
    turned = xp.where(is_inside, length - 1 - steps, steps)
    both = xp.stack((x, x[turned, sequences]), axis=1)
    scores, levels = _run(xp, both, xp.stack((cost, cost.T)))
    ahead, behind = scores[:, 0], scores[:, 1][turned, sequences]
    last = length - 1
    log_total = xp.log(xp.sum(xp.exp(ahead[last, sequences]), axis=1)) + levels[last, 0, sequences]
    given = xp.sum(xp.where(is_inside, x[steps, sequences, target], 0), axis=0)
    is_followed = is_inside[1:]
    given = given + xp.sum(xp.where(is_followed, cost[target[:-1], target[1:]], 0), axis=0)
    labels = xp.arange(n_labels)
    slope = _normalized(xp, ahead + behind - x, (2,)) - (target[:, :, None] == labels)
    pairs = xp.zeros((n_sequences, n_labels, n_labels), dtype=x.dtype)
    for step in range(n_steps - 1):
        joint = ahead[step][:, :, None] + cost + behind[step + 1][:, None, :]
        used = (target[step][:, None] == labels)[:, :, None] & (target[step + 1][:, None] == labels)[:, None, :]
        pairs = pairs + xp.where(is_followed[step][:, None, None], _normalized(xp, joint, (1, 2)) - used, 0)
    return log_total - given, xp.where(is_inside[:, :, None], slope, 0), pairs


@gradient("contrib.Crf1d")
def crf1d_gradient(F: Any, g: GradientCall) -> tuple[Any, Any, None, None]:
    """Return the slopes of each sequence times its gradient."""
    n_sequences = g.grad.shape[0]
    cost = F.sum(F.reshape(g.grad, shape=(n_sequences, 1, 1)) * g.pairs, axes=(0,)) if g.wants("cost") else None
    x = F.reshape(g.grad, shape=(1, n_sequences, 1)) * g.slope if g.wants("x") else None
    return cost, x, None, None


def _run(xp: Namespace, x: Array, costs: Array) -> tuple[Array, Array]:
    """Logarithms of the sums over all beginnings, (T, 2, B, K), relative to the best label of a step, (T, 2, B)."""
    scores = x[0]
    level = xp.max(scores, axis=2, keepdims=True)
    all_scores, levels = [scores - level], [level]
    for emission in x[1:]:
        ways = all_scores[-1][:, :, :, None] + costs[:, None]
        best = xp.max(ways, axis=2)
        scores = best + xp.log(xp.sum(xp.exp(ways - best[:, :, None]), axis=2)) + emission
        level = xp.max(scores, axis=2, keepdims=True)
        all_scores.append(scores - level)
        levels.append(level)
    return xp.stack(all_scores), xp.cumsum(xp.stack(levels)[:, :, :, 0].astype(xp.float64), axis=0)


def _normalized(xp: Namespace, scores: Array, axes: tuple[int, ...]) -> Array:
    powers = xp.exp(scores - xp.max(scores, axis=axes, keepdims=True))
    return powers / xp.sum(powers, axis=axes, keepdims=True)


@shape_rule("contrib.ArgmaxCrf1d")
def argmax_crf1d_shape(cost: Shape, x: Shape, length: Shape | None) -> tuple[Shape, ...]:
    """Return a score and a path for each sequence."""
    _check(cost, x, length)
    return (x[1],), x[:2]


@kernel("contrib.ArgmaxCrf1d")
def argmax_crf1d(xp: Namespace, cost: Array, x: Array, length: Array | None) -> tuple[Array, Array]:
    """Viterbi's algorithm; of equal paths the one with the lowest labels, the last step first."""
    n_steps, n_sequences, _ = x.shape
    length = lengths_of(xp, "argmax_crf1d", "length", length, n_sequences, n_steps, 1)
    x, cost = widen(xp, x), widen(xp, cost)
    best, origins = x[0], []
    for step in range(1, n_steps):
        ways = best[:, :, None] + cost
        is_inside = (step < length)[:, None]
        origins.append(xp.where(is_inside, xp.argmax(ways, axis=1), xp.arange(x.shape[2])))
        best = xp.where(is_inside, xp.max(ways, axis=1) + x[step], best)
    path = [xp.argmax(best, axis=1)]
    for origin in reversed(origins):
        path.append(xp.take_along_axis(origin, path[-1][:, None], axis=1)[:, 0])
    is_inside = xp.arange(n_steps)[:, None] < length
    return xp.max(best, axis=1), xp.where(is_inside, xp.stack(path[::-1]), -1)
