"""Functions of the topic activation.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.

The types are in the stub beside this file. At run time a function takes any arguments, and refuses those that do not fit.
"""

from nn_core.engine.graph.apply import apply
from nn_core.functions.signatures import refuse, show_signatures
from nn_core.operators.spec.builtin.activation import (
    CELU,
    CRELU,
    ELU,
    GELU,
    HARD_SIGMOID,
    HARD_TANH,
    LEAKY_RELU,
    LOG_SIGMOID,
    LOG_SOFTMAX,
    MISH,
    PRELU,
    RELU,
    RELU6,
    SELU,
    SIGMOID,
    SINC,
    SOFTMAX,
    SOFTPLUS,
    SOFTSIGN,
    SPECS,
    SWISH,
    TANH,
    TANH_SHRINK,
)


def sigmoid(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Squash every element into (0, 1) with the logistic function.

    y = 1 / (1 + exp(-x))

    Args:
        x: Input. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Example:
        F.sigmoid(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.622, 0.378]

    Spec: function_spec.yaml, entry Sigmoid
    """
    if surplus or unknown:
        refuse(SIGMOID, surplus, unknown)
    return apply(SIGMOID, (x,), {}, outputs)


def swish(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Weight every element with its sigmoid.

    y = x / (1 + exp(-x))

    Args:
        x: Input. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Notes:
        Also known as SiLU. Minus infinity gives NaN.

    Example:
        F.swish(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.311, -0.189]

    References:
        P. Ramachandran, B. Zoph, Q. V. Le (2017), Searching for activation functions.

    Spec: function_spec.yaml, entry Swish
    """
    if surplus or unknown:
        refuse(SWISH, surplus, unknown)
    return apply(SWISH, (x,), {}, outputs)


def tanh(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Squash every element into (-1, 1) with the hyperbolic tangent.

    y = tanh x

    Args:
        x: Input. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Example:
        F.tanh(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.462, -0.462]

    Spec: function_spec.yaml, entry Tanh
    """
    if surplus or unknown:
        refuse(TANH, surplus, unknown)
    return apply(TANH, (x,), {}, outputs)


def relu(x=None, inplace=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Set negative elements to 0 (rectified linear unit).

    y = max(0, x)

    Args:
        x: Input. Shape any.
        inplace: Let the result be written over the input.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Notes:
        The gradient at 0 is 0. NaN stays NaN.

    Example:
        F.relu(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, 0]

    References:
        V. Nair, G. E. Hinton (2010), Rectified linear units improve restricted Boltzmann machines.

    Spec: function_spec.yaml, entry ReLU
    """
    if surplus or unknown:
        refuse(RELU, surplus, unknown)
    return apply(RELU, (x,), {"inplace": inplace}, outputs)


def leaky_relu(x=None, alpha=0.1, inplace=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Scale negative elements down.

    y = x (x > 0), alpha x (otherwise)

    Args:
        x: Input. Shape any.
        alpha: Slope for negative elements.
        inplace: Let the result be written over the input.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Notes:
        The gradient at 0 is alpha.

    Example:
        F.leaky_relu(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.05]

    References:
        A. L. Maas, A. Y. Hannun, A. Y. Ng (2013), Rectifier nonlinearities improve neural network acoustic models.

    Spec: function_spec.yaml, entry LeakyReLU
    """
    if surplus or unknown:
        refuse(LEAKY_RELU, surplus, unknown)
    return apply(LEAKY_RELU, (x,), {"alpha": alpha, "inplace": inplace}, outputs)


def softmax(x=None, axis=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Turn scores along an axis into probabilities.

    y_i = exp(x_i) / sum over j of exp(x_j)

    Args:
        x: Scores. Shape any with at least one axis.
        axis: Axis of the classes; default: the last.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Probabilities that sum to 1 along the axis. Shape of x.

    Notes:
        The maximum is subtracted first, so large scores do not overflow. Half precision is computed in float32.

    Example:
        F.softmax(nn.NdArray.from_numpy_array([0.0, 0.0]), axis=0)  # [0.5, 0.5]

    Spec: function_spec.yaml, entry Softmax
    """
    if surplus or unknown:
        refuse(SOFTMAX, surplus, unknown)
    return apply(SOFTMAX, (x,), {"axis": axis}, outputs)


def log_softmax(x=None, axis=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Turn scores along an axis into logarithms of probabilities.

    y_i = x_i - log(sum over j of exp(x_j))

    Args:
        x: Scores. Shape any with at least one axis.
        axis: Axis of the classes; default: the last.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Logarithms of the softmax, not positive. Shape of x.

    Notes:
        The maximum is subtracted first, so large scores do not overflow. Half precision is computed in float32.

    Example:
        F.log_softmax(nn.NdArray.from_numpy_array([0.0, 0.0]), axis=0)  # [-0.693, -0.693]

    Spec: function_spec.yaml, entry LogSoftmax
    """
    if surplus or unknown:
        refuse(LOG_SOFTMAX, surplus, unknown)
    return apply(LOG_SOFTMAX, (x,), {"axis": axis}, outputs)


def elu(x=None, alpha=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Bend negative elements towards -alpha (exponential linear unit).

    y = x (x > 0), alpha (exp(x) - 1) (otherwise)

    Args:
        x: Input. Shape any.
        alpha: Limit for large negative elements, as a positive number.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Notes:
        The gradient at 0 is 1.

    Example:
        F.elu(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.393]

    References:
        D.-A. Clevert, T. Unterthiner, S. Hochreiter (2016), Fast and accurate deep network learning by exponential
        linear units.

    Spec: function_spec.yaml, entry ELU
    """
    if surplus or unknown:
        refuse(ELU, surplus, unknown)
    return apply(ELU, (x,), {"alpha": alpha}, outputs)


def selu(x=None, scale=1.05070098735548, alpha=1.673263242354377, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Apply the exponential linear unit whose scale keeps mean 0 and variance 1 through layers.

    y = scale x (x > 0), scale alpha (exp(x) - 1) (otherwise)

    Args:
        x: Input. Shape any.
        scale: Factor of the result.
        alpha: Limit for large negative elements before scaling, as a positive number.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Notes:
        The gradient at 0 is scale alpha.

    Example:
        F.selu(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.525, -0.692]

    References:
        G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter (2017), Self-normalizing neural networks.

    Spec: function_spec.yaml, entry SELU
    """
    if surplus or unknown:
        refuse(SELU, surplus, unknown)
    return apply(SELU, (x,), {"scale": scale, "alpha": alpha}, outputs)


def crelu(x=None, axis=1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Rectify the input and its negative and join both along an axis.

    y = [max(0, x), max(0, -x)]

    Args:
        x: Input. Shape (N_1, ..., C, ..., N_k).
        axis: Axis along which the two halves are joined.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activations of x, then those of -x. Shape (N_1, ..., 2 C, ..., N_k).

    Notes:
        At 0 the gradient is that of the second half.

    Example:
        F.crelu(nn.NdArray.from_numpy_array([1.0, -2.0]), axis=0)  # [1, 0, 0, 2]

    References:
        W. Shang, K. Sohn, D. Almeida, H. Lee (2016), Understanding and improving convolutional neural networks via
        concatenated rectified linear units.

    Spec: function_spec.yaml, entry CReLU
    """
    if surplus or unknown:
        refuse(CRELU, surplus, unknown)
    return apply(CRELU, (x,), {"axis": axis}, outputs)


def celu(x=None, alpha=1.0, axis=1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Apply the exponential linear unit to the input and its negative and join both along an axis.

    y = [elu(x), elu(-x)]

    Args:
        x: Input. Shape (N_1, ..., C, ..., N_k).
        alpha: Limit for large negative elements, as a positive number.
        axis: Axis along which the two halves are joined.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activations of x, then those of -x. Shape (N_1, ..., 2 C, ..., N_k).

    Notes:
        This is the concatenated unit, not the continuously differentiable one that shares the abbreviation.

    Example:
        F.celu(nn.NdArray.from_numpy_array([1.0, -2.0]), axis=0)  # [1, -0.865, -0.632, 2]

    References:
        D.-A. Clevert, T. Unterthiner, S. Hochreiter (2016), Fast and accurate deep network learning by exponential
        linear units.

    Spec: function_spec.yaml, entry CELU
    """
    if surplus or unknown:
        refuse(CELU, surplus, unknown)
    return apply(CELU, (x,), {"alpha": alpha, "axis": axis}, outputs)


def prelu(x0=None, x1=None, base_axis=1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Scale negative elements by learned slopes.

    y = x0 (x0 >= 0), x1 x0 (otherwise)

    Args:
        x0: Input. Shape (N_1, ..., N_k, C, ...).
        x1: Slope for negative elements: one for all, or one per channel. Shape () or (1) or (C).
        base_axis: Axis of the channels.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x0.

    Notes:
        The gradient at 0 is 1.

    Example:
        F.prelu(nn.NdArray.from_numpy_array([[0.5, -2]]), nn.NdArray.from_numpy_array([0.25, 0.1]))  # [[0.5, -0.2]]

    References:
        K. He, X. Zhang, S. Ren, J. Sun (2015), Delving deep into rectifiers.

    Spec: function_spec.yaml, entry PReLU
    """
    if surplus or unknown:
        refuse(PRELU, surplus, unknown)
    return apply(PRELU, (x0, x1), {"base_axis": base_axis}, outputs)


def gelu(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Weight every element with the normal distribution function, in its tanh approximation.

    y = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))

    Args:
        x: Input. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Notes:
        Minus infinity gives NaN.

    Example:
        F.gelu(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.346, -0.154]

    References:
        D. Hendrycks, K. Gimpel (2016), Gaussian error linear units.

    Spec: function_spec.yaml, entry GELU
    """
    if surplus or unknown:
        refuse(GELU, surplus, unknown)
    return apply(GELU, (x,), {}, outputs)


def mish(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Weight every element with the hyperbolic tangent of its softplus.

    y = x tanh(log(1 + exp(x)))

    Args:
        x: Input. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Notes:
        Minus infinity gives NaN.

    Example:
        F.mish(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.375, -0.221]

    References:
        D. Misra (2019), Mish: a self regularized non-monotonic activation function.

    Spec: function_spec.yaml, entry Mish
    """
    if surplus or unknown:
        refuse(MISH, surplus, unknown)
    return apply(MISH, (x,), {}, outputs)


def relu6(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Limit every element to [0, 6].

    y = min(max(0, x), 6)

    Args:
        x: Input. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Notes:
        The gradient at 0 and 6 is 0.

    Example:
        F.relu6(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, 0]

    References:
        A. Krizhevsky (2010), Convolutional deep belief networks on CIFAR-10.

    Spec: function_spec.yaml, entry ReLU6
    """
    if surplus or unknown:
        refuse(RELU6, surplus, unknown)
    return apply(RELU6, (x,), {}, outputs)


def hard_sigmoid(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Approximate the sigmoid by three straight lines.

    y = min(max(0, 0.2 x + 0.5), 1)

    Args:
        x: Input. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Notes:
        The gradient at -2.5 and 2.5 is 0.2.

    Example:
        F.hard_sigmoid(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.6, 0.4]

    Spec: function_spec.yaml, entry HardSigmoid
    """
    if surplus or unknown:
        refuse(HARD_SIGMOID, surplus, unknown)
    return apply(HARD_SIGMOID, (x,), {}, outputs)


def hard_tanh(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Limit every element to [-1, 1].

    y = min(max(-1, x), 1)

    Args:
        x: Input. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Notes:
        The gradient at -1 and 1 is 1.

    Example:
        F.hard_tanh(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]

    Spec: function_spec.yaml, entry HardTanh
    """
    if surplus or unknown:
        refuse(HARD_TANH, surplus, unknown)
    return apply(HARD_TANH, (x,), {}, outputs)


def log_sigmoid(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the logarithm of the sigmoid without forming the sigmoid.

    y = -log(1 + exp(-x))

    Args:
        x: Input. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Notes:
        Large negative elements are passed through, never minus infinity.

    Example:
        F.log_sigmoid(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [-0.474, -0.974]

    Spec: function_spec.yaml, entry LogSigmoid
    """
    if surplus or unknown:
        refuse(LOG_SIGMOID, surplus, unknown)
    return apply(LOG_SIGMOID, (x,), {}, outputs)


def softplus(x=None, beta=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Rectify smoothly.

    y = log(1 + exp(beta x)) / beta

    Args:
        x: Input. Shape any.
        beta: Sharpness of the bend at 0; finite, and not 0.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Notes:
        Computed without overflow for large elements.

    Example:
        F.softplus(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.974, 0.474]

    Spec: function_spec.yaml, entry SoftPlus
    """
    if surplus or unknown:
        refuse(SOFTPLUS, surplus, unknown)
    return apply(SOFTPLUS, (x,), {"beta": beta}, outputs)


def softsign(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Squash every element into (-1, 1) with a rational function.

    y = x / (1 + |x|)

    Args:
        x: Input. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Notes:
        Infinities give NaN.

    Example:
        F.softsign(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.333, -0.333]

    Spec: function_spec.yaml, entry SoftSign
    """
    if surplus or unknown:
        refuse(SOFTSIGN, surplus, unknown)
    return apply(SOFTSIGN, (x,), {}, outputs)


def tanh_shrink(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Subtract its hyperbolic tangent from every element.

    y = x - tanh x

    Args:
        x: Input. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Example:
        F.tanh_shrink(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.038, -0.038]

    Spec: function_spec.yaml, entry TanhShrink
    """
    if surplus or unknown:
        refuse(TANH_SHRINK, surplus, unknown)
    return apply(TANH_SHRINK, (x,), {}, outputs)


def sinc(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Apply the unnormalised sinc function.

    y = sin(x) / x (x != 0), 1 (x = 0)

    Args:
        x: Input. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Activation. Shape of x.

    Notes:
        There is no factor pi as in numpy.sinc. Infinities give NaN.

    Example:
        F.sinc(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.959, 0.959]

    Spec: function_spec.yaml, entry Sinc
    """
    if surplus or unknown:
        refuse(SINC, surplus, unknown)
    return apply(SINC, (x,), {}, outputs)


show_signatures(globals(), SPECS)
