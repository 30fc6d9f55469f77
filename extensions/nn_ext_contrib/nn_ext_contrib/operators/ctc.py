"""Connectionist temporal classification: the forward-backward algorithm over all samples and labels at once.

T steps, B samples, K classes, L labels. The labels of a sample, with a blank before, between and after them, are its
S = 2 L + 1 positions. A path may stay at a position, move to the next one, or jump over a blank between two different labels.
Everything is computed with logarithms, relative to the best position of a step; one loop over steps serves both directions,
since going backwards is going forwards over reversed steps and positions.

Graves et al. (2006), Connectionist temporal classification, section 4.1.
"""

from typing import Any

from nn_core.ext import Array, GradientCall, Namespace, Shape, ShapeError, gradient, kernel, shape_rule
from nn_ext_contrib.operators.sequences import LOG_ZERO, check_labels, check_lengths, lengths_of, widen

_IMPOSSIBLE = 0.5 * LOG_ZERO
#: After so many steps the best score becomes 0 again: often enough for float32 to keep its digits.
_STEPS_A_LEVEL = 8


@shape_rule("contrib.CtcLoss")
def ctc_loss_shape(
    x: Shape, target: Shape, input_length: Shape | None, target_length: Shape | None, *, blank: int
) -> tuple[Shape, ...]:
    """One loss for each sample, and its slope for each score."""
    if len(x) != 3:
        raise ShapeError(f"x must have three axes (T, B, K), got {x}")
    if len(target) != 2 or target[0] != x[1]:
        raise ShapeError(f"target must have shape (B, L) with B = {x[1]} as in x, got {target}")
    if not 0 <= blank < x[2]:
        raise ShapeError(f"blank must be one of the {x[2]} classes, got {blank}")
    check_lengths(x[1], input_length=input_length, target_length=target_length)
    return (x[1],), x


@kernel("contrib.CtcLoss")
def ctc_loss(
    xp: Namespace, x: Array, target: Array, input_length: Array | None, target_length: Array | None, *, blank: int
) -> tuple[Array, Array]:
    """Loss and slope: softmax minus the share of the paths that emit the class at the step."""
    n_steps, n_samples, n_classes = x.shape
    n_labels = target.shape[1]
    steps = lengths_of(xp, "ctc_loss", "input_length", input_length, n_samples, n_steps, 0)
    labels = lengths_of(xp, "ctc_loss", "target_length", target_length, n_samples, n_labels, 0)
    target = xp.where(xp.arange(n_labels) < labels[:, None], target, blank)
    check_labels(xp, "ctc_loss", target, n_classes)
    if not n_steps or not n_samples:
        return xp.where(labels > 0, xp.inf, 0.0), xp.zeros_like(x)
    x = widen(xp, x)
    powers = xp.exp(x - xp.max(x, axis=2, keepdims=True))
    softmax = powers / xp.sum(powers, axis=2, keepdims=True)
    is_inside = xp.arange(n_steps)[:, None] < steps
    emissions = _emissions(xp, x, target, labels, blank)
    total, shares = _shares(xp, emissions, _jumps(xp, target, labels, blank), steps, labels)
    is_possible = total > _IMPOSSIBLE
    shares = xp.where((is_inside & is_possible)[:, :, None], shares, 0)
    slope = xp.where((is_inside & is_possible)[:, :, None], softmax, 0)
    slope[:, :, blank] -= xp.sum(shares[:, :, ::2], axis=2)
    slope = slope - _by_class(xp, shares[:, :, 1::2], target, n_classes)
    return xp.where(is_possible, -total, xp.inf), slope


@gradient("contrib.CtcLoss")
def ctc_loss_gradient(F: Any, g: GradientCall) -> tuple[Any, None, None, None]:
    """Return the slope of each sample times its gradient."""
    return F.reshape(g.grad, shape=(1, g.grad.shape[0], 1)) * g.slope, None, None, None


def _emissions(xp: Namespace, x: Array, target: Array, labels: Array, blank: int) -> Array:
    """Logarithms of the probabilities of what each position emits. Shape (T, B, S); beyond the last position zero."""
    highest = xp.max(x, axis=2, keepdims=True)
    log_sums = highest + xp.log(xp.sum(xp.exp(x - highest), axis=2, keepdims=True))
    n_samples, n_labels = target.shape
    emitted = xp.full((n_samples, 2 * n_labels + 1), blank, dtype=xp.int64)
    emitted[:, 1::2] = target
    chosen = x[:, xp.arange(n_samples)[:, None], emitted] - log_sums
    is_position = xp.arange(2 * n_labels + 1) <= 2 * labels[:, None]
    return xp.where(is_position, xp.maximum(chosen, LOG_ZERO), LOG_ZERO)


def _jumps(xp: Namespace, target: Array, labels: Array, blank: int) -> tuple[Array, Array]:
    """Zero where a position may be reached from two before it, else the logarithm of zero: forwards, and backwards."""
    n_samples, n_labels = target.shape
    may_jump = xp.zeros((n_samples, 2 * n_labels + 1), dtype=bool)
    may_jump[:, 3::2] = (target[:, 1:] != target[:, :-1]) & (target[:, 1:] != blank)
    may_leave = xp.zeros_like(may_jump)
    may_leave[:, :-2] = may_jump[:, 2:]
    backwards = xp.take_along_axis(may_leave, _reversed(xp, 2 * n_labels + 1, 2 * labels + 1), axis=1)
    return xp.where(may_jump, 0.0, LOG_ZERO), xp.where(backwards, 0.0, LOG_ZERO)


def _reversed(xp: Namespace, n_places: int, lengths: Array) -> Array:
    """Numbers of places from the last one of each sample to its first, then the places beyond. Shape (B, n_places)."""
    places = xp.arange(n_places)
    return xp.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)


def _shares(xp: Namespace, emissions: Array, jumps: tuple[Array, Array], steps: Array, labels: Array) -> tuple[Array, Array]:
    """Return the logarithm of the probability of the labels, and how much of it goes through each position at each step."""
    n_steps, n_samples, n_positions = emissions.shape
    samples = xp.arange(n_samples)[:, None]
    turned_steps = xp.permute_dims(_reversed(xp, n_steps, steps), (1, 0))[:, :, None]
    turned_places = _reversed(xp, n_positions, 2 * labels + 1)
    backwards = emissions[turned_steps, samples, turned_places]
    both = xp.concat((emissions, backwards), axis=1)
    scores, levels = _run(xp, both, xp.concat(jumps, axis=0).astype(both.dtype))
    ahead, behind = scores[:, :n_samples], scores[turned_steps, n_samples + samples, turned_places]
    joint = ahead + behind - emissions
    powers = xp.exp(joint - xp.max(joint, axis=2, keepdims=True))
    shares = powers / xp.sum(powers, axis=2, keepdims=True)
    last = xp.maximum(steps - 1, 0)
    ends = ahead[last, xp.arange(n_samples)]
    is_end = (xp.arange(n_positions) - 2 * labels[:, None] + 1) // 2 == 0
    ends = xp.where(is_end & (steps[:, None] > 0), ends, LOG_ZERO)
    highest = xp.max(ends, axis=1)
    total = highest + xp.log(xp.sum(xp.exp(ends - highest[:, None]), axis=1)) + levels[last, xp.arange(n_samples)]
    return xp.where((steps == 0) & (labels == 0), 0.0, total), shares


def _run(xp: Namespace, emissions: Array, jumps: Array) -> tuple[Array, Array]:
    """Logarithms of the probabilities of all beginnings of paths, (T, R, S), relative to a level, (T, R)."""
    n_steps, n_rows, n_positions = emissions.shape
    padded = xp.full((n_steps, n_rows, n_positions + 2), LOG_ZERO, dtype=emissions.dtype)
    levels = xp.zeros((n_steps, n_rows), dtype=xp.float64)
    padded[0, :, 2:4] = emissions[0, :, :2]
    for step in range(1, n_steps):
        before = padded[step - 1]
        stay, go, jump = before[:, 2:], before[:, 1:-1], before[:, :-2] + jumps
        best = xp.maximum(xp.maximum(stay, go), jump)
        scores = xp.exp(stay - best)
        scores += xp.exp(go - best)
        scores += xp.exp(jump - best)
        scores = xp.log(scores)
        scores += best
        scores += emissions[step]
        if step % _STEPS_A_LEVEL == 0:
            level = xp.max(scores, axis=1, keepdims=True)
            scores -= level
            levels[step] = level[:, 0]
        padded[step, :, 2:] = scores
    return padded[:, :, 2:], xp.cumsum(levels, axis=0)


def _by_class(xp: Namespace, shares: Array, target: Array, n_classes: int) -> Array:
    """Return the shares of the labels, (T, B, L), by their classes, (T, B, K); labels that repeat add up."""
    n_steps, n_samples, _ = shares.shape
    rows = xp.arange(n_steps * n_samples).reshape(n_steps, n_samples, 1) * n_classes
    total = xp.zeros(n_steps * n_samples * n_classes, dtype=shares.dtype)
    xp.add.at(total, (rows + target).reshape(-1), shares.reshape(-1))
    return total.reshape(n_steps, n_samples, n_classes)
