"""Functions of the topic quantization.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.

The types are in the stub beside this file. At run time a function takes any arguments, and refuses those that do not fit.
"""

from nn_core.engine.graph.apply import apply
from nn_core.functions.signatures import refuse, show_signatures
from nn_core.operators.spec.builtin.quantization import (
    BINARY_CONNECT_AFFINE,
    BINARY_CONNECT_CONVOLUTION,
    BINARY_SIGMOID,
    BINARY_TANH,
    BINARY_WEIGHT_AFFINE,
    BINARY_WEIGHT_CONVOLUTION,
    CONV_INTEGER,
    DEQUANTIZE_LINEAR,
    FIXED_POINT_QUANTIZE,
    INQ_AFFINE,
    INQ_CONVOLUTION,
    MATMUL_INTEGER,
    MIN_MAX_QUANTIZE,
    POW2_QUANTIZE,
    PRUNE,
    QLINEAR_CONV,
    QLINEAR_MATMUL,
    QUANTIZE_INTEGER,
    QUANTIZE_LINEAR,
    SPECS,
)


def binary_sigmoid(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Map positive elements to 1 and all others to 0, with a gradient that lets the input be trained.

    y = [x > 0]

    Args:
        x: Input. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1. Shape that of x.

    Notes:
        The gradient is that of the hard sigmoid, 1/2 within (-1, 1) and 0 elsewhere.

    Example:
        F.binary_sigmoid(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, 0]

    References:
        M. Courbariaux, I. Hubara, D. Soudry, R. El-Yaniv, Y. Bengio, Binarized neural networks, 2016.

    Spec: function_spec.yaml, entry BinarySigmoid
    """
    if surplus or unknown:
        refuse(BINARY_SIGMOID, surplus, unknown)
    return apply(BINARY_SIGMOID, (x,), {}, outputs)


def binary_tanh(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Map positive elements to 1 and all others to -1, with a gradient that lets the input be trained.

    y = 2 [x > 0] - 1

    Args:
        x: Input. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: -1 or 1. Shape that of x.

    Notes:
        The gradient is that of the hard tanh, 1 within (-1, 1) and 0 elsewhere.

    Example:
        F.binary_tanh(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [1, -1]

    References:
        M. Courbariaux, I. Hubara, D. Soudry, R. El-Yaniv, Y. Bengio, Binarized neural networks, 2016.

    Spec: function_spec.yaml, entry BinaryTanh
    """
    if surplus or unknown:
        refuse(BINARY_TANH, surplus, unknown)
    return apply(BINARY_TANH, (x,), {}, outputs)


def binary_connect_affine(
    x=None,
    weight=None,
    binary_weight=None,
    bias=None,
    base_axis=1,
    quantize_zero_to=1.0,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Apply an affine layer whose weights are the signs of trained weights.

    y = x sign(w) + b

    Args:
        x: Input, flattened from base_axis on. Shape (N_1, ..., N_k, D_1, ..., D_m).
        weight: Trained weight. Shape (D, K_1, ..., K_l).
        binary_weight: Receives the signs in each forward pass; its values are not read. Shape (D, K_1, ..., K_l).
        bias: Bias. Shape (K_1, ..., K_l). Optional.
        base_axis: First axis of x that is flattened.
        quantize_zero_to: Sign of a weight of zero.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output. Shape (N_1, ..., N_k, K_1, ..., K_l).

    Notes:
        The gradient of the signs is passed on to the weight as it is. To share weights between layers, share `weight`;
        `binary_weight` fits to it only after a forward pass.

    Example:
        F.binary_connect_affine(nn.Variable((8, 4)), nn.Variable((4, 3)), nn.Variable((4, 3))).shape  # (8, 3)

    References:
        M. Courbariaux, Y. Bengio, J.-P. David, BinaryConnect: Training deep neural networks with binary weights during
        propagations, 2015.

    Spec: function_spec.yaml, entry BinaryConnectAffine
    """
    if surplus or unknown:
        refuse(BINARY_CONNECT_AFFINE, surplus, unknown)
    return apply(
        BINARY_CONNECT_AFFINE,
        (x, weight, binary_weight, bias),
        {"base_axis": base_axis, "quantize_zero_to": quantize_zero_to},
        outputs,
    )


def binary_connect_convolution(
    x=None,
    weight=None,
    binary_weight=None,
    bias=None,
    base_axis=1,
    pad=None,
    stride=None,
    dilation=None,
    group=1,
    quantize_zero_to=1.0,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Convolve with filters that are the signs of trained filters.

    y = convolution(x, sign(w), b)

    Args:
        x: Input; N stands for the axes before `base_axis`. Shape (N, C, L_1, ..., L_n).
        weight: Trained filters. Shape (K, C / group, R_1, ..., R_n).
        binary_weight: Receives the signs in each forward pass; its values are not read. Shape (K, C / group, R_1, ...,
            R_n).
        bias: Bias of each output channel. Shape (K). Optional.
        base_axis: Axis of the channels; the axes before it are the batch.
        pad: Width of the zero border on each spatial axis; 0 by default.
        stride: Distance between neighbouring places of the kernel on each spatial axis; 1 by default.
        dilation: Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.
        group: Number of groups: C / group input channels feed K / group output channels each.
        quantize_zero_to: Sign of a weight of zero.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output, of the lengths that convolution gives. Shape (N, K, O_1, ..., O_n).

    Notes:
        The gradient of the signs is passed on to the weight as it is. To share weights between layers, share `weight`;
        `binary_weight` fits to it only after a forward pass.

    Example:
        F.binary_connect_convolution(nn.Variable((8, 3, 8, 8)), nn.Variable((4, 3, 3, 3)), nn.Variable((4, 3, 3, 3))).shape  # (8, 4, 6, 6)

    References:
        M. Courbariaux, Y. Bengio, J.-P. David, BinaryConnect: Training deep neural networks with binary weights during
        propagations, 2015.

    Spec: function_spec.yaml, entry BinaryConnectConvolution
    """
    if surplus or unknown:
        refuse(BINARY_CONNECT_CONVOLUTION, surplus, unknown)
    return apply(
        BINARY_CONNECT_CONVOLUTION,
        (x, weight, binary_weight, bias),
        {
            "base_axis": base_axis,
            "pad": pad,
            "stride": stride,
            "dilation": dilation,
            "group": group,
            "quantize_zero_to": quantize_zero_to,
        },
        outputs,
    )


def binary_weight_affine(
    x=None,
    weight=None,
    binary_weight=None,
    alpha=None,
    bias=None,
    base_axis=1,
    quantize_zero_to=1.0,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Apply an affine layer whose weights are the signs of trained weights, scaled by their mean magnitude.

    y_j = alpha_j sum_i x_i sign(w_ij) + b_j, alpha_j = mean_i |w_ij|

    Args:
        x: Input, flattened from base_axis on. Shape (N_1, ..., N_k, D_1, ..., D_m).
        weight: Trained weight. Shape (D, K_1, ..., K_l).
        binary_weight: Receives the signs in each forward pass; its values are not read. Shape (D, K_1, ..., K_l).
        alpha: Receives the scale of each output in each forward pass; its values are not read. Shape K elements.
        bias: Bias. Shape (K_1, ..., K_l). Optional.
        base_axis: First axis of x that is flattened.
        quantize_zero_to: Sign of a weight of zero.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output. Shape (N_1, ..., N_k, K_1, ..., K_l).

    Notes:
        The gradient of the scaled signs is passed on to the weight as it is. `binary_weight` and `alpha` fit to the
        weight only after a forward pass.

    Example:
        F.binary_weight_affine(nn.Variable((8, 4)), nn.Variable((4, 3)), nn.Variable((4, 3)), nn.Variable((3,))).shape  # (8, 3)

    References:
        M. Rastegari, V. Ordonez, J. Redmon, A. Farhadi, XNOR-Net: ImageNet classification using binary convolutional
        neural networks, 2016.

    Spec: function_spec.yaml, entry BinaryWeightAffine
    """
    if surplus or unknown:
        refuse(BINARY_WEIGHT_AFFINE, surplus, unknown)
    return apply(
        BINARY_WEIGHT_AFFINE,
        (x, weight, binary_weight, alpha, bias),
        {"base_axis": base_axis, "quantize_zero_to": quantize_zero_to},
        outputs,
    )


def binary_weight_convolution(
    x=None,
    weight=None,
    binary_weight=None,
    alpha=None,
    bias=None,
    base_axis=1,
    pad=None,
    stride=None,
    dilation=None,
    group=1,
    quantize_zero_to=1.0,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Convolve with the signs of trained filters, scaled by the mean magnitude of each filter.

    y = convolution(x, alpha_k sign(w_k), b), alpha_k = mean |w_k|

    Args:
        x: Input; N stands for the axes before `base_axis`. Shape (N, C, L_1, ..., L_n).
        weight: Trained filters. Shape (K, C / group, R_1, ..., R_n).
        binary_weight: Receives the signs in each forward pass; its values are not read. Shape (K, C / group, R_1, ...,
            R_n).
        alpha: Receives the scale of each filter in each forward pass; its values are not read. Shape K elements.
        bias: Bias of each output channel. Shape (K). Optional.
        base_axis: Axis of the channels; the axes before it are the batch.
        pad: Width of the zero border on each spatial axis; 0 by default.
        stride: Distance between neighbouring places of the kernel on each spatial axis; 1 by default.
        dilation: Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.
        group: Number of groups: C / group input channels feed K / group output channels each.
        quantize_zero_to: Sign of a weight of zero.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output, of the lengths that convolution gives. Shape (N, K, O_1, ..., O_n).

    Notes:
        The gradient of the scaled signs is passed on to the weight as it is. `binary_weight` and `alpha` fit to the
        weight only after a forward pass.

    Example:
        F.binary_weight_convolution(nn.Variable((8, 3, 8, 8)), nn.Variable((4, 3, 3, 3)), nn.Variable((4, 3, 3, 3)), nn.Variable((4,))).shape  # (8, 4, 6, 6)

    References:
        M. Rastegari, V. Ordonez, J. Redmon, A. Farhadi, XNOR-Net: ImageNet classification using binary convolutional
        neural networks, 2016.

    Spec: function_spec.yaml, entry BinaryWeightConvolution
    """
    if surplus or unknown:
        refuse(BINARY_WEIGHT_CONVOLUTION, surplus, unknown)
    return apply(
        BINARY_WEIGHT_CONVOLUTION,
        (x, weight, binary_weight, alpha, bias),
        {
            "base_axis": base_axis,
            "pad": pad,
            "stride": stride,
            "dilation": dilation,
            "group": group,
            "quantize_zero_to": quantize_zero_to,
        },
        outputs,
    )


def inq_affine(
    x=None,
    weight=None,
    indicator_fixedweights=None,
    bias=None,
    base_axis=1,
    num_bits=4,
    inq_iterations=(),
    selection_algorithm="largest_abs",
    seed=-1,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Apply an affine layer whose weights are fixed to powers of two, step by step while the others are trained.

    y = x w' + b, with w'_i = 2^k sign(w_i) or 0 where w_i is fixed and w_i elsewhere

    Args:
        x: Input, flattened from base_axis on. Shape (N_1, ..., N_k, D_1, ..., D_m).
        weight: Weight; its fixed elements are rewritten with their levels. Shape (D, K_1, ..., K_l).
        indicator_fixedweights: 1 where the weight is fixed. Elsewhere 0, or minus the number of forward passes done
            while inq_iterations is not over. Shape (D, K_1, ..., K_l).
        bias: Bias. Shape (K_1, ..., K_l). Optional.
        base_axis: First axis of x that is flattened.
        num_bits: Bits of a fixed weight: one for the sign, one for zero, the others for the 2^(num_bits - 2) exponents.
        inq_iterations: After how many forward passes half of the learnable weights (one at least) become fixed; at the
            last number all of them do.
        selection_algorithm: The learnable weights to fix first. One of 'largest_abs', 'random'.
        seed: Seed of the random selection; -1 takes it from the generator of the framework.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output. Shape (N_1, ..., N_k, K_1, ..., K_l).

    Notes:
        The largest exponent is floor(log2(4 max|w| / 3)); a weight takes the exponent floor(log2(4 |w| / 3)) within the
        available ones, or zero below half of the smallest level. Fixed weights get no gradient, and are rounded again
        in every pass, so that a solver cannot move them by small steps. The number of passes is part of the indicator,
        so that training continues where it stopped after parameters are saved and loaded.

    Example:
        F.inq_affine(nn.Variable((8, 4)), nn.Variable((4, 3)), nn.Variable((4, 3))).shape  # (8, 3)

    References:
        A. Zhou, A. Yao, Y. Guo, L. Xu, Y. Chen, Incremental network quantization: Towards lossless CNNs with
        low-precision weights, 2017.

    Spec: function_spec.yaml, entry INQAffine
    """
    if surplus or unknown:
        refuse(INQ_AFFINE, surplus, unknown)
    return apply(
        INQ_AFFINE,
        (x, weight, indicator_fixedweights, bias),
        {
            "base_axis": base_axis,
            "num_bits": num_bits,
            "inq_iterations": inq_iterations,
            "selection_algorithm": selection_algorithm,
            "seed": seed,
        },
        outputs,
    )


def inq_convolution(
    x=None,
    weight=None,
    indicator_fixedweights=None,
    bias=None,
    base_axis=1,
    pad=None,
    stride=None,
    dilation=None,
    group=1,
    num_bits=4,
    inq_iterations=(),
    selection_algorithm="largest_abs",
    seed=-1,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Convolve with filters that are fixed to powers of two, step by step while the others are trained.

    y = convolution(x, w', b), with w'_i = 2^k sign(w_i) or 0 where w_i is fixed and w_i elsewhere

    Args:
        x: Input; N stands for the axes before `base_axis`. Shape (N, C, L_1, ..., L_n).
        weight: Filters; their fixed elements are rewritten with their levels. Shape (K, C / group, R_1, ..., R_n).
        indicator_fixedweights: 1 where the weight is fixed. Elsewhere 0, or minus the number of forward passes done
            while inq_iterations is not over. Shape (K, C / group, R_1, ..., R_n).
        bias: Bias of each output channel. Shape (K). Optional.
        base_axis: Axis of the channels; the axes before it are the batch.
        pad: Width of the zero border on each spatial axis; 0 by default.
        stride: Distance between neighbouring places of the kernel on each spatial axis; 1 by default.
        dilation: Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.
        group: Number of groups: C / group input channels feed K / group output channels each.
        num_bits: Bits of a fixed weight: one for the sign, one for zero, the others for the 2^(num_bits - 2) exponents.
        inq_iterations: After how many forward passes half of the learnable weights (one at least) become fixed; at the
            last number all of them do.
        selection_algorithm: The learnable weights to fix first. One of 'largest_abs', 'random'.
        seed: Seed of the random selection; -1 takes it from the generator of the framework.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output, of the lengths that convolution gives. Shape (N, K, O_1, ..., O_n).

    Notes:
        Weights are fixed and rounded as in inq_affine.

    Example:
        F.inq_convolution(nn.Variable((8, 3, 8, 8)), nn.Variable((4, 3, 3, 3)), nn.Variable((4, 3, 3, 3))).shape  # (8, 4, 6, 6)

    References:
        A. Zhou, A. Yao, Y. Guo, L. Xu, Y. Chen, Incremental network quantization: Towards lossless CNNs with
        low-precision weights, 2017.

    Spec: function_spec.yaml, entry INQConvolution
    """
    if surplus or unknown:
        refuse(INQ_CONVOLUTION, surplus, unknown)
    return apply(
        INQ_CONVOLUTION,
        (x, weight, indicator_fixedweights, bias),
        {
            "base_axis": base_axis,
            "pad": pad,
            "stride": stride,
            "dilation": dilation,
            "group": group,
            "num_bits": num_bits,
            "inq_iterations": inq_iterations,
            "selection_algorithm": selection_algorithm,
            "seed": seed,
        },
        outputs,
    )


def fixed_point_quantize(
    x=None,
    sign=True,
    n=8,
    delta=0.0625,
    ste_fine_grained=True,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Round to the levels of a fixed-point number.

    y = clip(sign(x) floor(|x| / delta + 1/2) delta, min, max)

    Args:
        x: Input. Shape any.
        sign: Levels are signed: one bit is the sign, max = (2^(n-1) - 1) delta and min = -max. Otherwise max = (2^n -
            1) delta and min = 0.
        n: Number of bits.
        delta: Distance of two levels, positive and finite.
        ste_fine_grained: The gradient is 0 outside of [min, max]; otherwise it passes everywhere.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Levels, in floating point. Shape that of x.

    Notes:
        The gradient is that of clip(x, min, max), or of the identity without ste_fine_grained.

    Example:
        F.fixed_point_quantize(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]

    References:
        Y. Bengio, N. Leonard, A. Courville, Estimating or propagating gradients through stochastic neurons for
        conditional computation, 2013 (straight-through estimator).

    Spec: function_spec.yaml, entry FixedPointQuantize
    """
    if surplus or unknown:
        refuse(FIXED_POINT_QUANTIZE, surplus, unknown)
    return apply(
        FIXED_POINT_QUANTIZE,
        (x,),
        {"sign": sign, "n": n, "delta": delta, "ste_fine_grained": ste_fine_grained},
        outputs,
    )


def pow2_quantize(
    x=None,
    sign=True,
    with_zero=True,
    n=8,
    m=1,
    ste_fine_grained=True,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Round to powers of two.

    y = sign(x) clip(2^round(log2 |x|), min, max), max = 2^m, min = 2^(m - (2^b - 1))

    Args:
        x: Input. Shape any.
        sign: Levels are signed, which takes a bit; otherwise negative elements go to the lowest level.
        with_zero: Zero is a level, which takes a bit: what is below min / sqrt(2) becomes 0. Otherwise it becomes min
            with the sign of x.
        n: Number of bits; b of them are left for the exponent.
        m: Exponent of the largest level.
        ste_fine_grained: The gradient is 0 where x rounds to more than max and, without sign, where x is negative;
            otherwise it passes everywhere.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Levels, in floating point. Shape that of x.

    Notes:
        Rounding the logarithm puts the threshold between two levels at their geometric mean.

    Example:
        F.pow2_quantize(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]

    References:
        D. Miyashita, E. H. Lee, B. Murmann, Convolutional neural networks using logarithmic data representation, 2016.

    Spec: function_spec.yaml, entry Pow2Quantize
    """
    if surplus or unknown:
        refuse(POW2_QUANTIZE, surplus, unknown)
    return apply(
        POW2_QUANTIZE,
        (x,),
        {"sign": sign, "with_zero": with_zero, "n": n, "m": m, "ste_fine_grained": ste_fine_grained},
        outputs,
    )


def min_max_quantize(
    x=None,
    qr_min=None,
    qr_max=None,
    ql_min=None,
    ql_max=None,
    decay=0.999,
    x_min_max=False,
    ema=False,
    ste_fine_grained=True,
    eps=0.01,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Round to evenly spaced levels between a minimum and a maximum that may follow the data.

    y = round((clip(x, m, M) - m) / s) s + m, s = (qr_max - qr_min) / (ql_max - ql_min)

    Args:
        x: Input. Shape (D_1, ..., D_n).
        qr_min: Lower end of the range of values; each E is D or 1. Rewritten in each forward pass. Shape (E_1, ...,
            E_n).
        qr_max: Upper end of the range of values; rewritten in each forward pass, at least qr_min + eps. Shape (E_1,
            ..., E_n).
        ql_min: Lowest level, typically 0. Shape (E_1, ..., E_n).
        ql_max: Highest level, typically 255. Shape (E_1, ..., E_n).
        decay: Weight of the old range in the moving average.
        x_min_max: The range is that of x in this pass, taken over the axes where E is 1.
        ema: With x_min_max, the range is a moving average. Alone, the range is used as it is and gets no gradient.
        ste_fine_grained: The gradient of x is 0 outside of [m, M]; otherwise it passes everywhere.
        eps: Smallest width of the range.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Levels, as values of the range. Shape (D_1, ..., D_n).

    Notes:
        With neither x_min_max nor ema the range is trained: qr_min gets the gradients of what is below m, qr_max of
        what is above M.

    Example:
        F.min_max_quantize(nn.Variable((8, 4)), nn.Variable((1, 1)), nn.Variable((1, 1)), nn.Variable((1, 1)), nn.Variable((1, 1))).shape  # (8, 4)

    References:
        B. Jacob et al., Quantization and training of neural networks for efficient integer-arithmetic-only inference,
        2018, section 3.

    Spec: function_spec.yaml, entry MinMaxQuantize
    """
    if surplus or unknown:
        refuse(MIN_MAX_QUANTIZE, surplus, unknown)
    return apply(
        MIN_MAX_QUANTIZE,
        (x, qr_min, qr_max, ql_min, ql_max),
        {"decay": decay, "x_min_max": x_min_max, "ema": ema, "ste_fine_grained": ste_fine_grained, "eps": eps},
        outputs,
    )


def prune(x=None, rate=0.9, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Set the elements of smallest magnitude to zero.

    y = x [|x| >= t], t = sort(|x|)[floor((size - 1) rate)]

    Args:
        x: Input. Shape any.
        rate: Fraction of elements to set to zero; at 1 all of them are.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Elements that are left, zeros elsewhere. Shape that of x.

    Notes:
        The gradient passes straight through, also to what was pruned.

    Example:
        F.prune(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5, -0.5]

    References:
        S. Han, J. Pool, J. Tran, W. Dally, Learning both weights and connections for efficient neural networks, 2015.

    Spec: function_spec.yaml, entry Prune
    """
    if surplus or unknown:
        refuse(PRUNE, surplus, unknown)
    return apply(PRUNE, (x,), {"rate": rate}, outputs)


def quantize_linear(
    x=None,
    scale=None,
    zero_point=None,
    round_mode="HALF_AWAY_FROM_ZERO",
    narrow_range=False,
    dtype=1,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Quantize to 8-bit integers with a scale and a zero point.

    y = saturate(round(x / scale) + zero_point)

    Args:
        x: Input. Shape (D_1, ..., D_n).
        scale: Distance of two levels, positive; each E is D or 1. Shape (E_1, ..., E_n).
        zero_point: Level of the value 0; each E is D or 1. Rewritten in each forward pass with its rounded and
            saturated value. Shape (E_1, ..., E_n).
        round_mode: How halves are rounded. One of 'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'.
        narrow_range: Leave the lowest level out, so that the range of signed levels is symmetric.
        dtype: 1 for int8, levels from -128 to 127; 2 for uint8, levels from 0 to 255.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Levels, stored as floating-point numbers. Shape (D_1, ..., D_n).

    Notes:
        The gradient is that of x / scale + zero_point, straight through rounding and saturation.

    Example:
        scale, zero_point = nn.NdArray.from_numpy_array([0.5]), nn.NdArray.from_numpy_array([10])
        F.quantize_linear(nn.NdArray.from_numpy_array([0, 1, -2]), scale, zero_point)  # [10, 12, 6]

    References:
        ONNX Operators, QuantizeLinear.

    Spec: function_spec.yaml, entry QuantizeLinear
    """
    if surplus or unknown:
        refuse(QUANTIZE_LINEAR, surplus, unknown)
    return apply(
        QUANTIZE_LINEAR,
        (x, scale, zero_point),
        {"round_mode": round_mode, "narrow_range": narrow_range, "dtype": dtype},
        outputs,
    )


def dequantize_linear(x=None, scale=None, zero_point=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Turn levels of quantize_linear back into values.

    y = (x - zero_point) scale

    Args:
        x: Levels. Shape (D_1, ..., D_n).
        scale: Distance of two levels, positive; each E is D or 1. Shape (E_1, ..., E_n).
        zero_point: Level of the value 0; each E is D or 1. Shape (E_1, ..., E_n).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Values. Shape (D_1, ..., D_n).

    Example:
        scale, zero_point = nn.NdArray.from_numpy_array([0.5]), nn.NdArray.from_numpy_array([10])
        F.dequantize_linear(nn.NdArray.from_numpy_array([10, 12, 6]), scale, zero_point)  # [0, 1, -2]

    References:
        ONNX Operators, DequantizeLinear.

    Spec: function_spec.yaml, entry DequantizeLinear
    """
    if surplus or unknown:
        refuse(DEQUANTIZE_LINEAR, surplus, unknown)
    return apply(DEQUANTIZE_LINEAR, (x, scale, zero_point), {}, outputs)


def quantize_integer(x=None, scale=None, zero_point=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Quantize to integers of the dtype of the zero point.

    y = saturate(round(x / scale) + zero_point)

    Args:
        x: Input. Shape (D_1, ..., D_n).
        scale: Distance of two levels, positive; each E is D or 1. Shape (E_1, ..., E_n).
        zero_point: Level of the value 0, of dtype int8, uint8, int16 or uint16; each E is D or 1. Shape (E_1, ...,
            E_n).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Levels, integers of the dtype of the zero point. Shape (D_1, ..., D_n).

    Notes:
        Halves are rounded to the even neighbour. Levels are limited to the range of the dtype; NaN becomes the zero
        point. Raises DTypeError for a zero point of another dtype. `quantize_linear` stores its levels as
        floating-point numbers and has a gradient.

    Example:
        scale, zero_point = nn.NdArray.from_numpy_array([0.5]), nn.NdArray.from_numpy_array(np.array([10], np.uint8))
        F.quantize_integer(nn.NdArray.from_numpy_array([0, 1, -9]), scale, zero_point)  # [10, 12, 0]

    References:
        ONNX Operators, QuantizeLinear.

    Spec: function_spec.yaml, entry QuantizeInteger
    """
    if surplus or unknown:
        refuse(QUANTIZE_INTEGER, surplus, unknown)
    return apply(QUANTIZE_INTEGER, (x, scale, zero_point), {}, outputs)


def matmul_integer(
    a=None,
    b=None,
    a_zero_point=None,
    b_zero_point=None,
    bias=None,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Multiply matrices of integers, less their zero points, and add up exactly.

    y = (a - a_zero_point) (b - b_zero_point) + bias

    Args:
        a: Levels; the leading axes are broadcast against those of b. Shape (..., M, K).
        b: Levels. Shape (..., K, N).
        a_zero_point: Levels with as many axes as a, which are broadcast over it; 0 by default. Shape (..., M or 1, 1).
            Optional.
        b_zero_point: Levels with as many axes as b, which are broadcast over it; 0 by default. Shape (..., 1, N or 1).
            Optional.
        bias: Integers that are added to the sums. Shape (N). Optional.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Sums of products. Shape (..., M, N).

    Notes:
        All inputs but the bias hold int8, uint8, int16 or uint16, which may differ; DTypeError otherwise. Sums are
        exact; those outside of the range of int32 wrap around.

    Example:
        a, b = (nn.NdArray.from_numpy_array(np.array(values, np.int8)) for values in ([[1, 2]], [[3], [4]]))
        F.matmul_integer(a, b)  # [[11]]

    References:
        ONNX Operators, MatMulInteger.

    Spec: function_spec.yaml, entry MatMulInteger
    """
    if surplus or unknown:
        refuse(MATMUL_INTEGER, surplus, unknown)
    return apply(MATMUL_INTEGER, (a, b, a_zero_point, b_zero_point, bias), {}, outputs)


def conv_integer(
    x=None,
    weight=None,
    x_zero_point=None,
    weight_zero_point=None,
    bias=None,
    base_axis=1,
    pad=None,
    stride=None,
    dilation=None,
    group=1,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Convolve integers, less their zero points, and add up exactly.

    y = convolution(x - x_zero_point, weight - weight_zero_point) + bias

    Args:
        x: Levels; N stands for the axes before `base_axis`. Shape (N, C, L_1, ..., L_n).
        weight: Filters of levels. Shape (K, C / group, R_1, ..., R_n).
        x_zero_point: Level of the value 0 in x, which the border holds too; 0 by default. Shape one element. Optional.
        weight_zero_point: Level of the value 0 in all filters, or in each; 0 by default. Shape one element, or (K).
            Optional.
        bias: Integers that are added to the sums of each output channel. Shape (K). Optional.
        base_axis: Axis of the channels; the axes before it are the batch.
        pad: Width of the border on each spatial axis; 0 by default.
        stride: Distance between neighbouring places of the kernel on each spatial axis; 1 by default.
        dilation: Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.
        group: Number of groups: C / group input channels feed K / group output channels each.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Sums of products, of the lengths that convolution gives. Shape (N, K, O_1, ..., O_n).

    Notes:
        All inputs but the bias hold int8, uint8, int16 or uint16, which may differ; DTypeError otherwise. Sums are
        exact; those outside of the range of int32 wrap around.

    Example:
        x, weight = (nn.NdArray.from_numpy_array(np.ones(shape, np.uint8)) for shape in ((1, 1, 3, 3), (1, 1, 2, 2)))
        F.conv_integer(x, weight).numpy().tolist()  # [[[[4, 4], [4, 4]]]]

    References:
        ONNX Operators, ConvInteger.

    Spec: function_spec.yaml, entry ConvInteger
    """
    if surplus or unknown:
        refuse(CONV_INTEGER, surplus, unknown)
    return apply(
        CONV_INTEGER,
        (x, weight, x_zero_point, weight_zero_point, bias),
        {"base_axis": base_axis, "pad": pad, "stride": stride, "dilation": dilation, "group": group},
        outputs,
    )


def qlinear_matmul(
    a=None,
    b=None,
    scale=None,
    zero_point=None,
    a_zero_point=None,
    b_zero_point=None,
    bias=None,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Multiply matrices of integers, and quantize the sums to integers of the dtype of the first matrix.

    y = saturate(round(((a - a_zero_point) (b - b_zero_point) + bias) / scale) + zero_point)

    Args:
        a: Levels; the leading axes are broadcast against those of b. Shape (..., M, K).
        b: Levels. Shape (..., K, N).
        scale: Distance of two levels of y in sums of products: the scale of y over the product of those of a and of b.
            Shape one element, or (N).
        zero_point: Level of the value 0 in y, of the dtype of a. Shape one element.
        a_zero_point: Levels with as many axes as a, which are broadcast over it; 0 by default. Shape (..., M or 1, 1).
            Optional.
        b_zero_point: Levels with as many axes as b, which are broadcast over it; 0 by default. Shape (..., 1, N or 1).
            Optional.
        bias: Integers that are added to the sums. Shape (N). Optional.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Levels of the dtype of a. Shape (..., M, N).

    Notes:
        The result of `quantize_integer(matmul_integer(a, b, a_zero_point, b_zero_point, bias), scale, zero_point)` to
        the last bit, without sums in memory. DTypeError for other levels than int8, uint8, int16 and uint16, and for a
        zero_point that has not the dtype of a.

    Example:
        a, b = (nn.NdArray.from_numpy_array(np.array(values, np.int8)) for values in ([[1, 2]], [[3], [4]]))
        scale, zero_point = nn.NdArray.from_numpy_array([2.0]), nn.NdArray.from_numpy_array(np.array([5], np.int8))
        F.qlinear_matmul(a, b, scale, zero_point)  # [[11]]: 11 / 2 is rounded to 6

    References:
        ONNX Operators, QLinearMatMul.

    Spec: function_spec.yaml, entry QLinearMatMul
    """
    if surplus or unknown:
        refuse(QLINEAR_MATMUL, surplus, unknown)
    return apply(QLINEAR_MATMUL, (a, b, scale, zero_point, a_zero_point, b_zero_point, bias), {}, outputs)


def qlinear_conv(
    x=None,
    weight=None,
    scale=None,
    zero_point=None,
    x_zero_point=None,
    weight_zero_point=None,
    bias=None,
    base_axis=1,
    pad=None,
    stride=None,
    dilation=None,
    group=1,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Convolve integers, and quantize the sums to integers of the dtype of the images.

    y = saturate(round((convolution(x - x_zero_point, weight - weight_zero_point) + bias) / scale) + zero_point)

    Args:
        x: Levels; N stands for the axes before `base_axis`. Shape (N, C, L_1, ..., L_n).
        weight: Filters of levels. Shape (K, C / group, R_1, ..., R_n).
        scale: Distance of two levels of y in sums of products: the scale of y over the product of those of x and of the
            weight. Shape one element, or (K).
        zero_point: Level of the value 0 in y, of the dtype of x. Shape one element.
        x_zero_point: Level of the value 0 in x, which the border holds too; 0 by default. Shape one element. Optional.
        weight_zero_point: Level of the value 0 in all filters, or in each; 0 by default. Shape one element, or (K).
            Optional.
        bias: Integers that are added to the sums of each output channel. Shape (K). Optional.
        base_axis: Axis of the channels; the axes before it are the batch.
        pad: Width of the border on each spatial axis; 0 by default.
        stride: Distance between neighbouring places of the kernel on each spatial axis; 1 by default.
        dilation: Distance between neighbouring elements of the kernel on each spatial axis; 1 by default.
        group: Number of groups: C / group input channels feed K / group output channels each.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Levels of the dtype of x, of the lengths that convolution gives. Shape (N, K, O_1, ..., O_n).

    Notes:
        The result of `quantize_integer` applied to that of `conv_integer`, to the last bit, without sums in memory.
        DTypeError for other levels than int8, uint8, int16 and uint16, and for a zero_point that has not the dtype of
        x.

    Example:
        x, weight = (nn.NdArray.from_numpy_array(np.ones(shape, np.uint8)) for shape in ((1, 1, 3, 3), (1, 1, 2, 2)))
        scale, zero_point = nn.NdArray.from_numpy_array([2.0]), nn.NdArray.from_numpy_array(np.array([5], np.uint8))
        F.qlinear_conv(x, weight, scale, zero_point).numpy().tolist()  # [[[[7, 7], [7, 7]]]]

    References:
        ONNX Operators, QLinearConv.

    Spec: function_spec.yaml, entry QLinearConv
    """
    if surplus or unknown:
        refuse(QLINEAR_CONV, surplus, unknown)
    return apply(
        QLINEAR_CONV,
        (x, weight, scale, zero_point, x_zero_point, weight_zero_point, bias),
        {"base_axis": base_axis, "pad": pad, "stride": stride, "dilation": dilation, "group": group},
        outputs,
    )


show_signatures(globals(), SPECS)
