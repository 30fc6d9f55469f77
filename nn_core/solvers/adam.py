"""Adam and its relatives: they keep moving means of the gradient and of its square."""

import math
from collections.abc import Sequence

from nn_core.engine.error_messages.refusal import checked_flag
from nn_core.solvers.base import Solver
from nn_core.typing import Array, Namespace


class Adam(Solver, closed=True):
    """Scale the moving mean of the gradient by the root of the moving mean of its square.

    ``m <- beta1 * m + (1 - beta1) * g``, ``v <- beta2 * v + (1 - beta2) * g**2``,
    ``w <- w - alpha * sqrt(1 - beta2**t) / (1 - beta1**t) * m / (sqrt(v) + eps)``.

    Args:
        alpha: Step size.
        beta1: Part of the mean of gradients that is kept.
        beta2: Part of the mean of squares that is kept.
        eps: Keeps the divisor from zero.

    Notes:
        Hyper-parameters of an update kernel: alpha, beta1, beta2, eps, t. States: mean (m), var (v).

    References:
        Kingma and Ba (2015), Adam: a method for stochastic optimization, the efficient form of section 2.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.Adam(alpha=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.9]
    """

    alpha: float
    beta1: float
    beta2: float
    eps: float

    hyper_names = ("alpha", "beta1", "beta2", "eps")
    state_names = ("mean", "var")

    def __init__(self, alpha: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08) -> None:
        super().__init__(alpha, beta1, beta2, eps)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and both means in place."""
        m, v = states
        alpha, beta1, beta2, eps, t = hyper
        move_means(m, v, g, beta1, beta2)
        w -= _corrected(alpha, beta1, beta2, t) * m / (xp.sqrt(v) + eps)


class AdamW(Solver, closed=True):
    """Adam with decoupled weight decay: as Adam, and ``w <- w - alpha / alpha0 * wd * w``.

    The decay follows the schedule ``alpha / alpha0`` of the step size, where ``alpha0`` is the one given
    here or, if that is 0, the first other one, and uses the parameters from before the step.

    Args:
        alpha: Step size.
        beta1: Part of the mean of gradients that is kept.
        beta2: Part of the mean of squares that is kept.
        eps: Keeps the divisor from zero.
        wd: Weight decay; ``weight_decay(rate)`` replaces it for the next update.

    Notes:
        Hyper-parameters of an update kernel: alpha, beta1, beta2, eps, wd, initial alpha, t. States: mean, var.

    References:
        Loshchilov and Hutter (2019), Decoupled weight decay regularization, algorithm 2.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.AdamW(alpha=0.1, wd=0.01)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.86]
    """

    alpha: float
    beta1: float
    beta2: float
    eps: float
    wd: float

    hyper_names = ("alpha", "beta1", "beta2", "eps", "wd")
    state_names = ("mean", "var")
    decay_name = "wd"
    keeps_initial_rate = True

    def __init__(
        self, alpha: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08, wd: float = 0.0001
    ) -> None:
        super().__init__(alpha, beta1, beta2, eps, wd)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and both means in place."""
        m, v = states
        alpha, beta1, beta2, eps, wd, initial_alpha, t = hyper
        move_means(m, v, g, beta1, beta2)
        w -= _corrected(alpha, beta1, beta2, t) * m / (xp.sqrt(v) + eps) + (alpha / initial_alpha * wd) * w


class Adamax(Solver, closed=True):
    """Adam with the largest past gradient in place of the root of the mean square.

    ``m <- beta1 * m + (1 - beta1) * g``, ``u <- max(beta2 * u, |g|)``,
    ``w <- w - alpha / (1 - beta1**t) * m / (u + eps)``.

    Args:
        alpha: Step size.
        beta1: Part of the mean of gradients that is kept.
        beta2: Factor by which the largest gradient fades.
        eps: Keeps the divisor from zero.

    Notes:
        Hyper-parameters of an update kernel: alpha, beta1, beta2, eps, t. States: m, u.

    References:
        Kingma and Ba (2015), Adam: a method for stochastic optimization, section 7.1.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.Adamax(alpha=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.9]
    """

    alpha: float
    beta1: float
    beta2: float
    eps: float

    hyper_names = ("alpha", "beta1", "beta2", "eps")
    state_names = ("m", "u")

    def __init__(self, alpha: float = 0.002, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08) -> None:
        super().__init__(alpha, beta1, beta2, eps)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w`, the mean and the maximum in place."""
        m, u = states
        alpha, beta1, beta2, eps, t = hyper
        m[...] = beta1 * m + (1 - beta1) * g
        u[...] = xp.maximum(beta2 * u, xp.abs(g))
        w -= alpha / (1 - beta1**t) * m / (u + eps)


class AMSGRAD(Solver, closed=True):
    """Adam with the largest mean square so far as divisor, so that step sizes never grow.

    ``v_max <- max(v_max, v)``, ``w <- w - alpha * m / (sqrt(v_max) + eps)``.

    Args:
        alpha: Step size.
        beta1: Part of the mean of gradients that is kept.
        beta2: Part of the mean of squares that is kept.
        eps: Keeps the divisor from zero.
        bias_correction: Scale the step size as Adam does.

    Notes:
        Hyper-parameters of an update kernel: alpha, beta1, beta2, eps, bias_correction (0 or 1), t.
        States: m, v, v_hat.

    References:
        Reddi, Kale and Kumar (2018), On the convergence of Adam and beyond, algorithm 2.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.AMSGRAD(alpha=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.684]
    """

    alpha: float
    beta1: float
    beta2: float
    eps: float
    bias_correction: bool

    hyper_names = ("alpha", "beta1", "beta2", "eps", "bias_correction")
    state_names = ("m", "v", "v_hat")

    def __init__(
        self,
        alpha: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        bias_correction: bool = False,
    ) -> None:
        super().__init__(alpha, beta1, beta2, eps, bias_correction)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w`, both means and the maximum in place."""
        m, v, v_hat = states
        alpha, beta1, beta2, eps, bias_correction, t = hyper
        move_means(m, v, g, beta1, beta2)
        v_hat[...] = xp.maximum(v_hat, v)
        rate = _corrected(alpha, beta1, beta2, t) if bias_correction else alpha
        w -= rate * m / (xp.sqrt(v_hat) + eps)


class AdaBound(Solver, closed=True):
    """Adam whose step sizes, one for each element, are clipped to bounds that close in on a final learning rate.

    ``rate = clip(alpha_t / (sqrt(v) + eps), final * (1 - 1 / (gamma * t + 1)), final * (1 + 1 / (gamma * t)))``,
    ``w <- w - rate * m``, where ``alpha_t`` is Adam's corrected step size and ``final`` is `final_lr`,
    scaled by the schedule of alpha.

    Args:
        alpha: Step size.
        beta1: Part of the mean of gradients that is kept.
        beta2: Part of the mean of squares that is kept.
        eps: Keeps the divisor from zero.
        final_lr: The learning rate in the limit.
        gamma: How fast the bounds close in; greater than 0.

    Notes:
        Hyper-parameters of an update kernel: alpha, beta1, beta2, eps, final_lr, gamma, initial alpha, t.
        States: mean, var.

    References:
        Luo, Xiong, Liu and Sun (2019), Adaptive gradient methods with dynamic bound of learning rate.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.AdaBound(alpha=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.9]
    """

    alpha: float
    beta1: float
    beta2: float
    eps: float
    final_lr: float
    gamma: float

    hyper_names = ("alpha", "beta1", "beta2", "eps", "final_lr", "gamma")
    state_names = ("mean", "var")
    keeps_initial_rate = True

    def __init__(
        self,
        alpha: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        final_lr: float = 0.1,
        gamma: float = 0.001,
    ) -> None:
        super().__init__(alpha, beta1, beta2, eps, final_lr, gamma)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and both means in place."""
        m, v = states
        alpha, beta1, beta2, eps, final_lr, gamma, initial_alpha, t = hyper
        move_means(m, v, g, beta1, beta2)
        low, high = _bounds(final_lr * alpha / initial_alpha, gamma, t)
        w -= xp.clip(_corrected(alpha, beta1, beta2, t) / (xp.sqrt(v) + eps), low, high) * m


class AMSBound(Solver, closed=True):
    """AdaBound with the largest mean square so far, as AMSGRAD has it.

    Args:
        alpha: Step size.
        beta1: Part of the mean of gradients that is kept.
        beta2: Part of the mean of squares that is kept.
        eps: Keeps the divisor from zero.
        final_lr: The learning rate in the limit.
        gamma: How fast the bounds close in; greater than 0.
        bias_correction: Scale the step size as Adam does.

    Notes:
        Hyper-parameters of an update kernel: alpha, beta1, beta2, eps, final_lr, gamma, bias_correction (0 or 1),
        initial alpha, t. States: m, v, v_hat.

    References:
        Luo, Xiong, Liu and Sun (2019), Adaptive gradient methods with dynamic bound of learning rate.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.AMSBound(alpha=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.684]
    """

    alpha: float
    beta1: float
    beta2: float
    eps: float
    final_lr: float
    gamma: float
    bias_correction: bool

    hyper_names = ("alpha", "beta1", "beta2", "eps", "final_lr", "gamma", "bias_correction")
    state_names = ("m", "v", "v_hat")
    keeps_initial_rate = True

    def __init__(
        self,
        alpha: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        final_lr: float = 0.1,
        gamma: float = 0.001,
        bias_correction: bool = False,
    ) -> None:
        super().__init__(alpha, beta1, beta2, eps, final_lr, gamma, bias_correction)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w`, both means and the maximum in place."""
        m, v, v_hat = states
        alpha, beta1, beta2, eps, final_lr, gamma, bias_correction, initial_alpha, t = hyper
        move_means(m, v, g, beta1, beta2)
        v_hat[...] = xp.maximum(v_hat, v)
        rate = _corrected(alpha, beta1, beta2, t) if bias_correction else alpha
        low, high = _bounds(final_lr * alpha / initial_alpha, gamma, t)
        w -= xp.clip(rate / (xp.sqrt(v_hat) + eps), low, high) * m


class AdaBelief(Solver, closed=True):
    """Adam that divides by how far gradients are from their moving mean, its belief in them.

    ``m <- beta1 * m + (1 - beta1) * g``,
    ``s <- beta2 * s + (1 - beta2) * (g - m)**2 + eps``,
    ``w <- w - alpha / (1 - beta1**t) * m / (sqrt(s / (1 - beta2**t)) + eps)``.

    Args:
        alpha: Step size.
        beta1: Part of the mean of gradients that is kept.
        beta2: Part of the mean of squares that is kept.
        eps: Added to the mean of squares at each step, and to the divisor.
        wd: Decoupled weight decay, applied before the step if `weight_decouple`; ``weight_decay(rate)`` then replaces
            it for the next update.
        amsgrad: Divide by the largest mean of squares so far; eps is then added to the maximum.
        weight_decouple: Use `wd`. If not, `wd` has no effect and ``weight_decay(rate)`` changes the gradients.
        fixed_decay: Decay by `wd` alone; otherwise by alpha times `wd`.
        rectify: Scale the step as RAdam does, and use alpha m without a divisor while the variance is unknown.

    Notes:
        Hyper-parameters of an update kernel: alpha, beta1, beta2, eps, wd, amsgrad, weight_decouple, fixed_decay,
        rectify (each 0 or 1), t. States: mean, var, and s_max if `amsgrad`.

    References:
        Zhuang et al. (2020), AdaBelief optimizer: adapting stepsizes by the belief in observed gradients;
        Liu et al. (2020), On the variance of the adaptive learning rate and beyond, algorithm 2 (rectification).

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.AdaBelief(alpha=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.889]
    """

    alpha: float
    beta1: float
    beta2: float
    eps: float
    wd: float
    amsgrad: bool
    weight_decouple: bool
    fixed_decay: bool
    rectify: bool

    hyper_names = (
        "alpha",
        "beta1",
        "beta2",
        "eps",
        "wd",
        "amsgrad",
        "weight_decouple",
        "fixed_decay",
        "rectify",
    )
    fixed_names = ("amsgrad", "weight_decouple")

    def __init__(
        self,
        alpha: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        wd: float = 0.0,
        amsgrad: bool = False,
        weight_decouple: bool = False,
        fixed_decay: bool = False,
        rectify: bool = False,
    ) -> None:
        amsgrad = checked_flag("AdaBelief: amsgrad", amsgrad)
        weight_decouple = checked_flag("AdaBelief: weight_decouple", weight_decouple)
        self.state_names = ("mean", "var", "s_max") if amsgrad else ("mean", "var")
        self.decay_name = "wd" if weight_decouple else None
        super().__init__(alpha, beta1, beta2, eps, wd, amsgrad, weight_decouple, fixed_decay, rectify)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and the means in place."""
        m, s, *rest = states
        alpha, beta1, beta2, eps, wd, amsgrad, weight_decouple, fixed_decay, rectify, t = hyper
        if weight_decouple:
            w -= (wd if fixed_decay else alpha * wd) * w
        m[...] = beta1 * m + (1 - beta1) * g
        s[...] = beta2 * s + (1 - beta2) * (g - m) ** 2 + (0.0 if amsgrad else eps)
        if amsgrad:
            (s_max,) = rest
            s_max[...] = xp.maximum(s_max, s) + eps
            s = s_max
        factor = rectification(beta2, t) if rectify else 1.0
        if factor is None:
            w -= alpha * m
        else:
            w -= (alpha * factor / (1 - beta1**t)) * m / (xp.sqrt(s / (1 - beta2**t)) + eps)


def move_means(m: Array, v: Array, g: Array, beta1: float, beta2: float) -> None:
    """Move the mean of gradients and that of squares, in place."""
    m[...] = beta1 * m + (1 - beta1) * g
    v[...] = beta2 * v + (1 - beta2) * g * g


def _corrected(alpha: float, beta1: float, beta2: float, t: float) -> float:
    """Step size that makes up for means that started at zero."""
    return alpha * math.sqrt(1 - beta2**t) / (1 - beta1**t)


def _bounds(final_lr: float, gamma: float, t: float) -> tuple[float, float]:
    return final_lr * (1 - 1 / (gamma * t + 1)), final_lr * (1 + 1 / (gamma * t))


def rectification(beta2: float, t: float) -> float | None:
    """Return RAdam's factor for the variance of the adaptive step size; None while the variance is not known yet."""
    limit = 2 / (1 - beta2) - 1
    length = limit - 2 * t * beta2**t / (1 - beta2**t)
    if length <= 4:
        return None
    return math.sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length))
