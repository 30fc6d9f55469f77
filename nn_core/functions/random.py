"""Functions of the topic random.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.

The types are in the stub beside this file. At run time a function takes any arguments, and refuses those that do not fit.
"""

from nn_core.engine.graph.apply import apply
from nn_core.functions.signatures import refuse, show_signatures
from nn_core.operators.spec.builtin.random import (
    DROPOUT,
    DROPOUT_MASK,
    IMAGE_AUGMENTATION,
    RAND,
    RAND_BETA,
    RAND_BINOMIAL,
    RAND_GAMMA,
    RANDINT,
    RANDN,
    RANDOM_CHOICE,
    RANDOM_CROP,
    RANDOM_ERASE,
    RANDOM_FLIP,
    RANDOM_SHIFT,
    SPECS,
    VAT_NOISE,
)


def rand(low=0.0, high=1.0, shape=(), seed=-1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Draw numbers that are uniform in [low, high).

    Args:
        low: Lower bound, included.
        high: Upper bound, not included except by rounding.
        shape: Shape of the array; 0-d by default.
        seed: Seed of the random numbers; -1 draws from the global generator.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Independent samples with a resolution of (high - low) * 2**-24. Shape shape.

    Example:
        F.rand(shape=(2, 3)).shape  # (2, 3)

    References:
        Salmon, Moraes, Dror and Shaw (2011), Parallel random numbers: as easy as 1, 2, 3 (the generator of all random
        functions).

    Spec: function_spec.yaml, entry Rand
    """
    if surplus or unknown:
        refuse(RAND, surplus, unknown)
    return apply(RAND, (), {"low": low, "high": high, "shape": shape, "seed": seed}, outputs)


def randint(low=0, high=1, shape=(), seed=-1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Draw integers that are uniform in [low, high).

    Args:
        low: Lower bound, included.
        high: Upper bound, not included; at most low + 2**32.
        shape: Shape of the array; 0-d by default.
        seed: Seed of the random numbers; -1 draws from the global generator.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Independent samples; chances are equal up to 2**-32. Shape shape.

    Notes:
        The result is int64, where NNabla has int32.

    Example:
        F.randint(0, 10, shape=(2, 3)).shape  # (2, 3)

    Spec: function_spec.yaml, entry Randint
    """
    if surplus or unknown:
        refuse(RANDINT, surplus, unknown)
    return apply(RANDINT, (), {"low": low, "high": high, "shape": shape, "seed": seed}, outputs)


def randn(mu=0.0, sigma=1.0, shape=(), seed=-1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Draw numbers from a normal distribution.

    Args:
        mu: Mean.
        sigma: Standard deviation.
        shape: Shape of the array; 0-d by default.
        seed: Seed of the random numbers; -1 draws from the global generator.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Independent samples, at most 5.77 sigma from mu. Shape shape.

    Example:
        F.randn(shape=(2, 3)).shape  # (2, 3)

    References:
        Box and Muller (1958), A note on the generation of random normal deviates.

    Spec: function_spec.yaml, entry Randn
    """
    if surplus or unknown:
        refuse(RANDN, surplus, unknown)
    return apply(RANDN, (), {"mu": mu, "sigma": sigma, "shape": shape, "seed": seed}, outputs)


def rand_binomial(n=1, p=0.5, shape=(), seed=-1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Draw the number of successes in independent trials.

    Args:
        n: Number of trials.
        p: Chance of a success in each.
        shape: Shape of the array; 0-d by default.
        seed: Seed of the random numbers; -1 draws from the global generator.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Independent samples, whole numbers in [0, n]. Shape shape.

    Notes:
        Time and memory grow with n, by one table for all samples.

    Example:
        F.rand_binomial(n=3, shape=(2, 3)).shape  # (2, 3)

    Spec: function_spec.yaml, entry RandBinomial
    """
    if surplus or unknown:
        refuse(RAND_BINOMIAL, surplus, unknown)
    return apply(RAND_BINOMIAL, (), {"n": n, "p": p, "shape": shape, "seed": seed}, outputs)


def rand_beta(alpha=0.5, beta=0.5, shape=(), seed=-1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Draw numbers from a beta distribution.

    density proportional to y**(alpha - 1) * (1 - y)**(beta - 1)

    Args:
        alpha: First shape parameter, positive.
        beta: Second shape parameter, positive.
        shape: Shape of the array; 0-d by default.
        seed: Seed of the random numbers; -1 draws from the global generator.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Independent samples in [0, 1]. Shape shape.

    Example:
        F.rand_beta(shape=(2, 3)).shape  # (2, 3)

    Spec: function_spec.yaml, entry RandBeta
    """
    if surplus or unknown:
        refuse(RAND_BETA, surplus, unknown)
    return apply(RAND_BETA, (), {"alpha": alpha, "beta": beta, "shape": shape, "seed": seed}, outputs)


def rand_gamma(k=0.5, theta=1.0, shape=(), seed=-1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Draw numbers from a gamma distribution.

    density proportional to y**(k - 1) * exp(-y / theta)

    Args:
        k: Shape parameter, positive.
        theta: Scale parameter, positive.
        shape: Shape of the array; 0-d by default.
        seed: Seed of the random numbers; -1 draws from the global generator.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Independent samples, with mean k * theta. Shape shape.

    Example:
        F.rand_gamma(shape=(2, 3)).shape  # (2, 3)

    References:
        Marsaglia and Tsang (2000), A simple method for generating gamma variables.

    Spec: function_spec.yaml, entry RandGamma
    """
    if surplus or unknown:
        refuse(RAND_GAMMA, surplus, unknown)
    return apply(RAND_GAMMA, (), {"k": k, "theta": theta, "shape": shape, "seed": seed}, outputs)


def dropout(x=None, p=0.5, seed=-1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Set elements to zero at random and scale the others so that the mean stays the same.

    y = x * mask, mask = 1 / (1 - p) if u >= p else 0, u uniform in [0, 1)

    Args:
        x: Array of any shape. Shape (D_1, ..., D_n).
        p: Chance of an element to be dropped, in [0, 1).
        seed: Seed of the random numbers; -1 draws from the global generator.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Array with dropped elements. Shape (D_1, ..., D_n).

    Notes:
        For training only; leave it out of the graph that predicts.

    Example:
        F.dropout(nn.Variable((8, 10)), 0.5).shape  # (8, 10)

    References:
        Srivastava et al. (2014), Dropout: a simple way to prevent neural networks from overfitting.

    Spec: function_spec.yaml, entry Dropout
    """
    if surplus or unknown:
        refuse(DROPOUT, surplus, unknown)
    return apply(DROPOUT, (x,), {"p": p, "seed": seed}, outputs)


def dropout_mask(drawn=None, shape=None, p=0.5, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Make the factors by which dropout multiplies its elements, from the numbers that it has drawn.

    y_i = 1 / (1 - p) if u_i >= p else 0, u_i uniform in [0, 1)

    Args:
        drawn: Seed and counter, an output of a function with dropout. Shape (2,).
        shape: Shape of the factors.
        p: Chance of an element to be dropped, in [0, 1).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: 0 or 1 / (1 - p). Shape shape.

    Example:
        F.dropout_mask(nn.NdArray.from_numpy_array([5, 0]), (2, 3), p=0.5).shape  # (2, 3)

    References:
        Srivastava et al. (2014), Dropout: a simple way to prevent neural networks from overfitting.

    Spec: function_spec.yaml, entry DropoutMask
    """
    if surplus or unknown:
        refuse(DROPOUT_MASK, surplus, unknown)
    return apply(DROPOUT_MASK, (drawn,), {"shape": shape, "p": p}, outputs)


def random_choice(x=None, w=None, shape=(), replace=True, seed=-1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Draw elements of each row of an array with chances proportional to weights.

    Args:
        x: Populations, one a row. Shape (N_1, ..., N_k, P).
        w: Weights of their elements, not negative; some of each row are positive. Shape (N_1, ..., N_k, P).
        shape: Shape (S_1, ..., S_m) of the samples of each row; one sample, of shape (1,), by default.
        replace: An element may be drawn more than once. Otherwise each row needs as many positive weights as there are
            samples.
        seed: Seed of the random numbers; -1 draws from the global generator.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Samples, in the order in which they were drawn. Shape (N_1, ..., N_k, S_1, ..., S_m).

    Notes:
        The gradient of each sample is added to the element that was drawn, and to its weight just so, as in NNabla (the
        second one is chosen, not derived). Weights are checked when the function runs.

    Example:
        w = nn.Variable.from_numpy_array([0.1, 0.2, 0.3, 0.2, 0.2])
        F.random_choice(F.arange(0, 5), w, shape=(100,)).shape  # (100,)

    References:
        Efraimidis and Spirakis (2006), Weighted random sampling with a reservoir (without replacement).

    Spec: function_spec.yaml, entry RandomChoice
    """
    if surplus or unknown:
        refuse(RANDOM_CHOICE, surplus, unknown)
    return apply(RANDOM_CHOICE, (x, w), {"shape": shape, "replace": replace, "seed": seed}, outputs)


def random_crop(x=None, shape=None, base_axis=1, seed=-1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Cut a part out of each sample at a random place.

    Args:
        x: Samples. Shape (N_1, ..., N_b, D_1, ..., D_k).
        shape: Lengths of the last axes of the result, at most those of x; those of x by default. One number is the
            length of every axis but the first two.
        base_axis: First axis of a sample.
        seed: Seed of the random numbers; -1 draws from the global generator.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: The parts. Shape (M_1, ..., M_b, L_1, ..., L_k).

    Notes:
        Where `shape` cuts axes before `base_axis` too, each sample of the result is a part of one that is drawn for it.
        The gradient is put back to where it was read.

    Example:
        F.random_crop(nn.Variable((8, 3, 64, 64)), (3, 48, 48)).shape  # (8, 3, 48, 48)

    Spec: function_spec.yaml, entry RandomCrop
    """
    if surplus or unknown:
        refuse(RANDOM_CROP, surplus, unknown)
    return apply(RANDOM_CROP, (x,), {"shape": shape, "base_axis": base_axis, "seed": seed}, outputs)


def random_flip(x=None, axes=None, base_axis=1, seed=-1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Reverse axes of each sample, each with a chance of one half.

    Args:
        x: Samples. Shape (N_1, ..., N_b, D_1, ..., D_k).
        axes: Axes of x that may be reversed; for those before `base_axis` each sample may be one from the other end.
            Default: last axis list.
        base_axis: First axis of a sample.
        seed: Seed of the random numbers; -1 draws from the global generator.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Samples, some of them reversed. Shape (N_1, ..., N_b, D_1, ..., D_k).

    Example:
        F.random_flip(nn.Variable((8, 3, 32, 32)), (2, 3))  # upside down, or left to right, or both, or neither

    Spec: function_spec.yaml, entry RandomFlip
    """
    if surplus or unknown:
        refuse(RANDOM_FLIP, surplus, unknown)
    return apply(RANDOM_FLIP, (x,), {"axes": axes, "base_axis": base_axis, "seed": seed}, outputs)


def random_shift(
    x=None,
    shifts=None,
    border_mode="nearest",
    constant_value=0.0,
    base_axis=1,
    seed=-1,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Move each sample by a random number of elements along each axis.

    Args:
        x: Samples. Shape (N_1, ..., N_b, D_1, ..., D_k).
        shifts: Farthest move along each axis in either direction. With fewer entries than axes they belong to the last
            axes. Along axes before `base_axis` each sample is one of its neighbours. Default: zeros per axis.
        border_mode: Fill the gap with the edge element, with the mirror image at the edge (the edge element is
            repeated), or with `constant_value`. One of 'nearest', 'reflect', 'constant'.
        constant_value: Fills the gap in the mode constant.
        base_axis: First axis of a sample.
        seed: Seed of the random numbers; -1 draws from the global generator.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Moved samples. Shape (N_1, ..., N_b, D_1, ..., D_k).

    Example:
        F.random_shift(nn.Variable((8, 3, 32, 32)), (3, 2))  # up to 3 pixels up or down and 2 to either side

    Spec: function_spec.yaml, entry RandomShift
    """
    if surplus or unknown:
        refuse(RANDOM_SHIFT, surplus, unknown)
    return apply(
        RANDOM_SHIFT,
        (x,),
        {
            "shifts": shifts,
            "border_mode": border_mode,
            "constant_value": constant_value,
            "base_axis": base_axis,
            "seed": seed,
        },
        outputs,
    )


def random_erase(
    x=None,
    prob=0.5,
    area_ratios=(0.02, 0.4),
    aspect_ratios=(0.3, 3.3333),
    replacements=(0.0, 255.0),
    n=None,
    share=True,
    inplace=False,
    base_axis=1,
    seed=-1,
    channel_last=False,
    ste_fine_grained=True,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Replace random rectangles of images by random values.

    height = sqrt(area * aspect), width = sqrt(area / aspect), at most those of the image; area = H * W *
    U(area_ratios), aspect = U(aspect_ratios); row = U(0, H - height), column = U(0, W - width)

    Args:
        x: Images. Shape (N_1, ..., N_b, C, H, W), or (N_1, ..., N_b, H, W, C).
        prob: Chance of each rectangle to be erased.
        area_ratios: Range of the area as a part of the image.
        aspect_ratios: Range of height by width.
        replacements: Range of the new values, drawn for each element.
        n: Number of rectangles. Default: 1.
        share: Use the same rectangles for all channels of an image.
        inplace: Kept for programs that pass it: the result is always a new array.
        base_axis: First axis of an image.
        seed: Seed of the random numbers; -1 draws from the global generator.
        channel_last: The channel is the last axis rather than the first one of an image.
        ste_fine_grained: No gradient flows where x was replaced; otherwise it flows everywhere.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Images with erased rectangles. Shape that of x.

    Notes:
        A pixel is erased if its centre is in a rectangle.

    Example:
        F.random_erase(nn.Variable((8, 3, 32, 32))).shape  # (8, 3, 32, 32)

    References:
        Zhong, Zheng, Kang, Li and Yang (2017), Random erasing data augmentation.

    Spec: function_spec.yaml, entry RandomErase
    """
    if surplus or unknown:
        refuse(RANDOM_ERASE, surplus, unknown)
    return apply(
        RANDOM_ERASE,
        (x,),
        {
            "prob": prob,
            "area_ratios": area_ratios,
            "aspect_ratios": aspect_ratios,
            "replacements": replacements,
            "n": n,
            "share": share,
            "inplace": inplace,
            "base_axis": base_axis,
            "seed": seed,
            "channel_last": channel_last,
            "ste_fine_grained": ste_fine_grained,
        },
        outputs,
    )


def image_augmentation(
    x=None,
    shape=None,
    pad=(0, 0),
    min_scale=1.0,
    max_scale=1.0,
    angle=0.0,
    aspect_ratio=1.0,
    distortion=0.0,
    flip_lr=False,
    flip_ud=False,
    brightness=0.0,
    brightness_each=False,
    contrast=1.0,
    contrast_center=0.0,
    contrast_each=False,
    noise=0.0,
    seed=-1,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Cut, scale, turn, stretch, distort and flip images at random, and vary their brightness, contrast and noise.

    For a pixel p of the result, counted from its centre, the source is c + offset + (1 + d |q|^2 / r^2) q, q =
    R(angle) (flip(p) / zoom); c is the centre of the image and r half of its diagonal

    Args:
        x: Images. Shape (N_1, ..., N_b, C, H, W).
        shape: Lengths of the last axes of the result; those of x by default. Only height and width may differ from x;
            one number is both of them.
        pad: Rows and columns by which the image counts as larger on each side when the place of the cut is drawn.
        min_scale: Smallest scale, positive; 0.8 makes what is seen smaller by a fifth.
        max_scale: Largest scale; its logarithm is uniform.
        angle: Largest turn in either direction in radians.
        aspect_ratio: Largest stretch of height against width in either direction; its logarithm is uniform.
        distortion: Largest d, the bending of straight lines outwards or inwards.
        flip_lr: Swap left and right with a chance of one half.
        flip_ud: Turn upside down with a chance of one half.
        brightness: A number from [-brightness, brightness) is added.
        brightness_each: Draw it for each channel.
        contrast: Differences from `contrast_center` are multiplied by a number from [1 / contrast, contrast], whose
            logarithm is uniform.
        contrast_center: Value that the contrast does not change.
        contrast_each: Draw the factor for each channel.
        noise: Standard deviation of normal noise that is added to each element.
        seed: Seed of the random numbers; -1 draws from the global generator.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Altered images. Shape (N_1, ..., N_b, C, H', W').

    Notes:
        The offset is uniform within the room that the result leaves in the padded image. Sources between pixels are
        interpolated bilinearly, those outside are moved to the edge. NNabla gives a gradient of zero.

    Example:
        F.image_augmentation(nn.Variable((8, 3, 40, 40)), (3, 32, 32), flip_lr=True, angle=0.26)

    Spec: function_spec.yaml, entry ImageAugmentation
    """
    if surplus or unknown:
        refuse(IMAGE_AUGMENTATION, surplus, unknown)
    return apply(
        IMAGE_AUGMENTATION,
        (x,),
        {
            "shape": shape,
            "pad": pad,
            "min_scale": min_scale,
            "max_scale": max_scale,
            "angle": angle,
            "aspect_ratio": aspect_ratio,
            "distortion": distortion,
            "flip_lr": flip_lr,
            "flip_ud": flip_ud,
            "brightness": brightness,
            "brightness_each": brightness_each,
            "contrast": contrast,
            "contrast_center": contrast_center,
            "contrast_each": contrast_each,
            "noise": noise,
            "seed": seed,
        },
        outputs,
    )


def vat_noise(x=None, w=None, base_axis=1, eps=1.0, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Scale noise to a given length for virtual adversarial training, and keep the gradient that it receives.

    y = eps * x / sqrt(sum(x**2) + 1e-8), summed over each sample

    Args:
        x: Noise: normal at first, then the kept gradient. Shape (N_1, ..., N_b, D_1, ..., D_m).
        w: Keeps the gradient; its values are not read. Shape (N_1, ..., N_b, D_1, ..., D_m).
        base_axis: First axis of a sample.
        eps: Length of the result (Euclidean norm of a sample).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Scaled noise. Shape (N_1, ..., N_b, D_1, ..., D_m).

    Notes:
        The backward pass writes the gradient of w, which is eps times that of y, over the values of w, as NNabla does:
        the next noise, x, is taken from there. The gradients of w and x themselves get nothing: this one is chosen, not
        derived.

    Example:
        F.vat_noise(nn.Variable((8, 4)), nn.Variable((8, 4))).shape  # (8, 4)

    References:
        Miyato et al. (2015), Distributional smoothing with virtual adversarial training.

    Spec: function_spec.yaml, entry VATNoise
    """
    if surplus or unknown:
        refuse(VAT_NOISE, surplus, unknown)
    return apply(VAT_NOISE, (x, w), {"base_axis": base_axis, "eps": eps}, outputs)


show_signatures(globals(), SPECS)
