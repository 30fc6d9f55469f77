"""Functions of the topic normalization.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.

The types are in the stub beside this file. At run time a function takes any arguments, and refuses those that do not fit.
"""

from nn_core.engine.graph.apply import apply
from nn_core.functions.signatures import refuse, show_signatures
from nn_core.operators.spec.builtin.normalization import (
    BATCH_NORMALIZATION,
    FUSED_BATCH_NORMALIZATION,
    GROUP_NORMALIZATION,
    INSTANCE_NORMALIZATION,
    LAYER_NORMALIZATION,
    MEAN_SUBTRACTION,
    NORM_NORMALIZATION,
    SPECS,
    SPECTRAL_NORM,
    SYNC_BATCH_NORMALIZATION,
    TENSOR_NORMALIZATION,
    WEIGHT_NORMALIZATION,
    WEIGHT_STANDARDIZATION,
)


def batch_normalization(
    x=None,
    beta=None,
    gamma=None,
    mean=None,
    variance=None,
    axes=(1,),
    decay_rate=0.9,
    eps=1e-05,
    batch_stat=True,
    no_scale=False,
    no_bias=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Standardize each channel over the batch, then scale and shift it.

    y = gamma (x - mean) / sqrt(variance + eps) + beta

    Args:
        x: Input; the C_i are its axes named by `axes`. Shape (N_1, ..., C_i, ..., N_n).
        beta: Shift; none if not given. Shape (1, ..., C_i, ..., 1). Optional.
        gamma: Scale; 1 if not given. Shape (1, ..., C_i, ..., 1). Optional.
        mean: Running mean: rewritten if `batch_stat`, else used. Shape (1, ..., C_i, ..., 1). Optional.
        variance: Running variance: rewritten if `batch_stat`, else used. Shape (1, ..., C_i, ..., 1). Optional.
        axes: Axes that are kept, such as the channels; statistics are taken over all others.
        decay_rate: How much of the running statistics a step keeps.
        eps: Added to the variance.
        batch_stat: Standardize by the statistics of this batch (training), not by the running ones.
        no_scale: States that gamma is not given.
        no_bias: States that beta is not given.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output. Shape (N_1, ..., C_i, ..., N_n).

    Notes:
        With M elements a channel the running variance takes in the unbiased variance, M / (M - 1) of the biased one
        that x is divided by; with a single element it takes in 0 (NNabla: NaN). An empty batch leaves the running
        statistics alone. Without `batch_stat` gradients flow to mean and variance (NNabla: zero).

    Example:
        F.batch_normalization(nn.Variable((8, 3, 4, 4)), *[nn.Variable((1, 3, 1, 1)) for _ in range(4)]).shape  # (8, 3, 4, 4)

    References:
        Ioffe and Szegedy (2015), Batch normalization, algorithms 1 and 2.

    Spec: function_spec.yaml, entry BatchNormalization
    """
    if surplus or unknown:
        refuse(BATCH_NORMALIZATION, surplus, unknown)
    return apply(
        BATCH_NORMALIZATION,
        (x, beta, gamma, mean, variance),
        {
            "axes": axes,
            "decay_rate": decay_rate,
            "eps": eps,
            "batch_stat": batch_stat,
            "no_scale": no_scale,
            "no_bias": no_bias,
        },
        outputs,
    )


def fused_batch_normalization(
    x=None,
    beta=None,
    gamma=None,
    mean=None,
    variance=None,
    z=None,
    axes=(1,),
    decay_rate=0.9,
    eps=1e-05,
    batch_stat=True,
    nonlinearity="relu",
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Batch normalization, an optional addition, and a ReLU in one function.

    y = max(gamma (x - mean) / sqrt(variance + eps) + beta + z, 0)

    Args:
        x: Input; the C_i are its axes named by `axes`. Shape (N_1, ..., C_i, ..., N_n).
        beta: Shift. Shape (1, ..., C_i, ..., 1).
        gamma: Scale. Shape (1, ..., C_i, ..., 1).
        mean: Running mean: rewritten if `batch_stat`, else used. Shape (1, ..., C_i, ..., 1).
        variance: Running variance: rewritten if `batch_stat`, else used. Shape (1, ..., C_i, ..., 1).
        z: Added before the nonlinearity, such as the shortcut of a residual block. Shape (N_1, ..., C_i, ..., N_n).
            Optional.
        axes: Axes that are kept; statistics are taken over all others.
        decay_rate: How much of the running statistics a step keeps.
        eps: Added to the variance.
        batch_stat: Standardize by the statistics of this batch (training), not by the running ones.
        nonlinearity: What is applied last. One of 'relu'.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output. Shape (N_1, ..., C_i, ..., N_n).

    Notes:
        The statistics behave as those of `batch_normalization`. Where the sum is exactly 0 the gradient is 0.

    Example:
        F.fused_batch_normalization(nn.Variable((8, 3, 4, 4)), *[nn.Variable((1, 3, 1, 1)) for _ in range(4)]).shape  # (8, 3, 4, 4)

    References:
        Ioffe and Szegedy (2015), Batch normalization, algorithms 1 and 2.

    Spec: function_spec.yaml, entry FusedBatchNormalization
    """
    if surplus or unknown:
        refuse(FUSED_BATCH_NORMALIZATION, surplus, unknown)
    return apply(
        FUSED_BATCH_NORMALIZATION,
        (x, beta, gamma, mean, variance, z),
        {"axes": axes, "decay_rate": decay_rate, "eps": eps, "batch_stat": batch_stat, "nonlinearity": nonlinearity},
        outputs,
    )


def sync_batch_normalization(
    x=None,
    beta=None,
    gamma=None,
    mean=None,
    variance=None,
    group="world",
    axes=(1,),
    decay_rate=0.9,
    eps=1e-05,
    batch_stat=True,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Batch normalization over the batches of all processes of a group; this operator is the share of one process.

    y = gamma (x - mean) / sqrt(variance + eps) + beta

    Args:
        x: Input; the C_i are its axes named by `axes`. Shape (N_1, ..., C_i, ..., N_n).
        beta: Shift. Shape (1, ..., C_i, ..., 1).
        gamma: Scale. Shape (1, ..., C_i, ..., 1).
        mean: Running mean: rewritten if `batch_stat`, else used. Shape (1, ..., C_i, ..., 1).
        variance: Running variance: rewritten if `batch_stat`, else used. Shape (1, ..., C_i, ..., 1).
        group: Processes that share statistics. One of 'world'.
        axes: Axes that are kept; statistics are taken over all others.
        decay_rate: How much of the running statistics a step keeps.
        eps: Added to the variance.
        batch_stat: Standardize by the statistics of this batch (training), not by the running ones.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output. Shape (N_1, ..., C_i, ..., N_n).

    Notes:
        With a group of one process it is `batch_normalization`. Statistics cross processes in the function that users
        call, which holds the communicator.

    Example:
        beta, gamma, mean, variance = (nn.Variable((1, 3, 1, 1)) for _ in range(4))
        F.sync_batch_normalization(nn.Variable((8, 3, 4, 4)), beta, gamma, mean, variance, comm=None).shape  # (8, 3, 4, 4)

    References:
        Ioffe and Szegedy (2015), Batch normalization, algorithms 1 and 2.

    Spec: function_spec.yaml, entry SyncBatchNormalization
    """
    if surplus or unknown:
        refuse(SYNC_BATCH_NORMALIZATION, surplus, unknown)
    return apply(
        SYNC_BATCH_NORMALIZATION,
        (x, beta, gamma, mean, variance),
        {"group": group, "axes": axes, "decay_rate": decay_rate, "eps": eps, "batch_stat": batch_stat},
        outputs,
    )


def layer_normalization(
    x=None,
    beta=None,
    gamma=None,
    batch_axis=(0,),
    eps=1e-05,
    no_scale=False,
    no_bias=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Standardize each sample over all its elements, then scale and shift each element.

    y = gamma (x - mean) / sqrt(variance + eps) + beta

    Args:
        x: Input; N stands for the axes named by `batch_axis`. Shape (N, D_1, ..., D_n).
        beta: Shift; none if not given. Shape (1, D_1, ..., D_n). Optional.
        gamma: Scale; 1 if not given. Shape (1, D_1, ..., D_n). Optional.
        batch_axis: Axes that are kept; statistics are taken over all others.
        eps: Added to the variance.
        no_scale: States that gamma is not given.
        no_bias: States that beta is not given.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output. Shape (N, D_1, ..., D_n).

    Example:
        F.layer_normalization(nn.NdArray.from_numpy_array([[1, 2, 3]]), None, None)  # [[-1.2247, 0, 1.2247]]

    References:
        Ba, Kiros and Hinton (2016), Layer normalization, section 3.

    Spec: function_spec.yaml, entry LayerNormalization
    """
    if surplus or unknown:
        refuse(LAYER_NORMALIZATION, surplus, unknown)
    return apply(
        LAYER_NORMALIZATION,
        (x, beta, gamma),
        {"batch_axis": batch_axis, "eps": eps, "no_scale": no_scale, "no_bias": no_bias},
        outputs,
    )


def instance_normalization(
    x=None,
    beta=None,
    gamma=None,
    channel_axis=1,
    batch_axis=(0,),
    eps=1e-05,
    no_scale=False,
    no_bias=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Standardize each channel of each sample, then scale and shift each channel.

    y = gamma (x - mean) / sqrt(variance + eps) + beta

    Args:
        x: Input; N stands for the axes named by `batch_axis`, C is the axis `channel_axis`. Shape (N, C, D_1, ...,
            D_n).
        beta: Shift; none if not given. (N, C, 1, ..., 1) shifts each sample by its own values. Shape (1, C, 1, ..., 1).
            Optional.
        gamma: Scale; 1 if not given. (N, C, 1, ..., 1) scales each sample by its own values. Shape (1, C, 1, ..., 1).
            Optional.
        channel_axis: Axis of the channels.
        batch_axis: Axes of the samples.
        eps: Added to the variance.
        no_scale: States that gamma is not given.
        no_bias: States that beta is not given.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output. Shape (N, C, D_1, ..., D_n).

    Example:
        F.instance_normalization(nn.NdArray.from_numpy_array([[[1, 3], [0, 5]]]), None, None)  # [[[-1, 1], [-1, 1]]]

    References:
        Ulyanov, Vedaldi and Lempitsky (2016), Instance normalization: the missing ingredient for fast stylization,
        section 2.

    Spec: function_spec.yaml, entry InstanceNormalization
    """
    if surplus or unknown:
        refuse(INSTANCE_NORMALIZATION, surplus, unknown)
    return apply(
        INSTANCE_NORMALIZATION,
        (x, beta, gamma),
        {"channel_axis": channel_axis, "batch_axis": batch_axis, "eps": eps, "no_scale": no_scale, "no_bias": no_bias},
        outputs,
    )


def group_normalization(
    x=None,
    beta=None,
    gamma=None,
    num_groups=1,
    channel_axis=1,
    batch_axis=(0,),
    eps=1e-05,
    no_scale=False,
    no_bias=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Standardize each group of channels of each sample, then scale and shift each channel.

    y = gamma (x - mean) / sqrt(variance + eps) + beta

    Args:
        x: Input; N stands for the axes named by `batch_axis`, C is the axis `channel_axis`. Shape (N, C, D_1, ...,
            D_n).
        beta: Shift; none if not given. Shape (1, C, 1, ..., 1). Optional.
        gamma: Scale; 1 if not given. Shape (1, C, 1, ..., 1). Optional.
        num_groups: Number G of groups; C is a multiple of it.
        channel_axis: Axis of the channels.
        batch_axis: Axes of the samples.
        eps: Added to the variance.
        no_scale: States that gamma is not given.
        no_bias: States that beta is not given.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output. Shape (N, C, D_1, ..., D_n).

    Example:
        F.group_normalization(nn.Variable((8, 6, 4, 4)), None, None, num_groups=3).shape  # (8, 6, 4, 4)

    References:
        Wu and He (2018), Group normalization, section 3.1.

    Spec: function_spec.yaml, entry GroupNormalization
    """
    if surplus or unknown:
        refuse(GROUP_NORMALIZATION, surplus, unknown)
    return apply(
        GROUP_NORMALIZATION,
        (x, beta, gamma),
        {
            "num_groups": num_groups,
            "channel_axis": channel_axis,
            "batch_axis": batch_axis,
            "eps": eps,
            "no_scale": no_scale,
            "no_bias": no_bias,
        },
        outputs,
    )


def tensor_normalization(
    x=None,
    beta=None,
    gamma=None,
    axes=(1,),
    eps=1e-05,
    no_scale=False,
    no_bias=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Standardize over all axes but some, then scale and shift; what the normalizations of samples have in common.

    y = gamma (x - mean) / sqrt(variance + eps) + beta

    Args:
        x: Input; the C_i are its axes named by `axes`. Shape (N_1, ..., C_i, ..., N_n).
        beta: Shift; none if not given. Shape (1, ..., C_i, ..., 1). Optional.
        gamma: Scale; 1 if not given. Shape (1, ..., C_i, ..., 1). Optional.
        axes: Axes that are kept; statistics are taken over all others.
        eps: Added to the variance.
        no_scale: States that gamma is not given.
        no_bias: States that beta is not given.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output. Shape (N_1, ..., C_i, ..., N_n).

    Example:
        F.tensor_normalization(nn.Variable((8, 3, 4, 4)), axes=(1,)).shape  # (8, 3, 4, 4)

    Spec: function_spec.yaml, entry TensorNormalization
    """
    if surplus or unknown:
        refuse(TENSOR_NORMALIZATION, surplus, unknown)
    return apply(
        TENSOR_NORMALIZATION,
        (x, beta, gamma),
        {"axes": axes, "eps": eps, "no_scale": no_scale, "no_bias": no_bias},
        outputs,
    )


def weight_standardization(w=None, channel_axis=0, eps=1e-05, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Standardize the weights of each output channel.

    y = (w - mean) / sqrt(variance + eps)

    Args:
        w: Weight; C is the axis `channel_axis`. Shape (C, D_1, ..., D_n).
        channel_axis: Axis of the output channels.
        eps: Added to the variance.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Standardized weight. Shape (C, D_1, ..., D_n).

    Example:
        F.weight_standardization(nn.Variable((16, 3, 3, 3))).shape  # (16, 3, 3, 3)

    References:
        Qiao et al. (2019), Micro-batch training with batch-channel normalization and weight standardization, section 3.

    Spec: function_spec.yaml, entry WeightStandardization
    """
    if surplus or unknown:
        refuse(WEIGHT_STANDARDIZATION, surplus, unknown)
    return apply(WEIGHT_STANDARDIZATION, (w,), {"channel_axis": channel_axis, "eps": eps}, outputs)


def norm_normalization(x=None, p=None, axes=None, eps=1e-12, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Divide by the p-norm over some axes.

    y = x / (sum of |x|^p over the axes + eps)^(1/p)

    Args:
        x: Input. Shape (D_1, ..., D_n).
        p: Order of the norm; finite. Default: 2.0.
        axes: Axes that the norm is taken over; all by default.
        eps: Added to the sum, so that zeros stay zeros.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output, of norm 1 over the axes. Shape (D_1, ..., D_n).

    Notes:
        The subgradient of |x| at 0 is 0. NNabla takes `eps` and does not use it.

    Example:
        F.norm_normalization(nn.NdArray.from_numpy_array([3.0, 4.0]))  # [0.6, 0.8]

    Spec: function_spec.yaml, entry NormNormalization
    """
    if surplus or unknown:
        refuse(NORM_NORMALIZATION, surplus, unknown)
    return apply(NORM_NORMALIZATION, (x,), {"p": p, "axes": axes, "eps": eps}, outputs)


def weight_normalization(w=None, g=None, dim=0, eps=1e-12, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Give each slice of a weight the length that a parameter says.

    w_wn = g w / sqrt(sum of w^2 over all axes but dim + eps)

    Args:
        w: Weight, which gives the directions; C is the axis `dim`. Shape (D_1, ..., C, ..., D_n).
        g: Lengths. Shape (C).
        dim: Axis whose slices are scaled, such as the output channels.
        eps: Added to the sum of squares.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        w_wn: Scaled weight. Shape (D_1, ..., C, ..., D_n).

    Example:
        F.weight_normalization(nn.Variable((16, 3, 3, 3)), nn.Variable((16,))).shape  # (16, 3, 3, 3)

    References:
        Salimans and Kingma (2016), Weight normalization, eq. 2 and 3.

    Spec: function_spec.yaml, entry WeightNormalization
    """
    if surplus or unknown:
        refuse(WEIGHT_NORMALIZATION, surplus, unknown)
    return apply(WEIGHT_NORMALIZATION, (w, g), {"dim": dim, "eps": eps}, outputs)


def spectral_norm(
    w=None,
    u=None,
    dim=0,
    itr=1,
    eps=1e-12,
    test=False,
    output_u=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Divide a weight by its largest singular value, approached by power iteration.

    w_sn = w / (u^T W v), where W is w as a matrix with a row for each place on `dim`

    Args:
        w: Weight; C is the axis `dim`. Shape (D_1, ..., C, ..., D_n).
        u: Approximate left singular vector, rewritten unless `test`. Shape (C).
        dim: Axis that becomes the rows of the matrix.
        itr: Number of iterations in each run.
        eps: Added to squared lengths of vectors before they are divided by.
        test: Leave u as it is.
        output_u: Kept in files for the function that users call, which then returns `before` too; the operator ignores
            it.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        w_sn: Weight with a largest singular value of about 1. Shape (D_1, ..., C, ..., D_n).

    Notes:
        The gradient treats the singular vectors as constants, which is exact once the iteration has converged; a second
        derivative leaves out how they turn.

    Example:
        F.spectral_norm(nn.NdArray.from_numpy_array([0.5, -0.5]), nn.NdArray.from_numpy_array([2.0, 4.0]))  # [0.707, -0.707]

    References:
        Miyato et al. (2018), Spectral normalization for generative adversarial networks, section 2 and algorithm 1.

    Spec: function_spec.yaml, entry SpectralNorm
    """
    if surplus or unknown:
        refuse(SPECTRAL_NORM, surplus, unknown)
    return apply(
        SPECTRAL_NORM,
        (w, u),
        {"dim": dim, "itr": itr, "eps": eps, "test": test, "output_u": output_u},
        outputs,
    )


def mean_subtraction(
    x=None,
    rmean=None,
    t=None,
    base_axis=1,
    update_running_mean=True,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Subtract the mean of all samples seen so far.

    y = x - rmean, after rmean += (mean of x over the batch - rmean) / (t + 1) and t += 1

    Args:
        x: Input. Shape (N_1, ..., N_k, D_1, ..., D_m).
        rmean: Running mean, rewritten if `update_running_mean`. Shape (D_1, ..., D_m).
        t: Number of batches seen, rewritten if `update_running_mean`. Shape (1).
        base_axis: First axis that belongs to a sample; the axes before it are the batch.
        update_running_mean: Take this batch into the running mean.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output. Shape (N_1, ..., N_k, D_1, ..., D_m).

    Notes:
        An empty batch changes nothing. The gradient is exact: dy minus its mean over the batch times rate, and rmean
        gets its share; NNabla multiplies dy by 1 - rate / N instead and gives rmean none.

    Example:
        F.mean_subtraction(nn.Variable((8, 3)), nn.Variable((3,)), nn.Variable((1,))).shape  # (8, 3)

    Spec: function_spec.yaml, entry MeanSubtraction
    """
    if surplus or unknown:
        refuse(MEAN_SUBTRACTION, surplus, unknown)
    return apply(
        MEAN_SUBTRACTION,
        (x, rmean, t),
        {"base_axis": base_axis, "update_running_mean": update_running_mean},
        outputs,
    )


show_signatures(globals(), SPECS)
