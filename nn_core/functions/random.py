"""Functions of the topic random.

Generated from function_spec.yaml by `python -m nn_core.spec`; edits are lost.
"""

# mypy: disable-error-code="no-any-return"
# The return type of apply() depends on the specification.

from collections.abc import Sequence

from nn_core.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand
from nn_core.graph.apply import apply
from nn_core.spec.builtin.random import (
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
    VAT_NOISE,
)
from nn_core.variable import Variable


def rand(
    low: float = 0.0,
    high: float = 1.0,
    shape: int | Sequence[int] = (),
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Variable:
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
    return apply(RAND, (), {"low": low, "high": high, "shape": shape, "seed": seed}, outputs)


def randint(
    low: int = 0,
    high: int = 1,
    shape: int | Sequence[int] = (),
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Variable:
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
    return apply(RANDINT, (), {"low": low, "high": high, "shape": shape, "seed": seed}, outputs)


def randn(
    mu: float = 0.0,
    sigma: float = 1.0,
    shape: int | Sequence[int] = (),
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Variable:
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
    return apply(RANDN, (), {"mu": mu, "sigma": sigma, "shape": shape, "seed": seed}, outputs)


def rand_binomial(
    n: int = 1,
    p: float = 0.5,
    shape: int | Sequence[int] = (),
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Variable:
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
    return apply(RAND_BINOMIAL, (), {"n": n, "p": p, "shape": shape, "seed": seed}, outputs)


def rand_beta(
    alpha: float = 0.5,
    beta: float = 0.5,
    shape: int | Sequence[int] = (),
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Variable:
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
    return apply(RAND_BETA, (), {"alpha": alpha, "beta": beta, "shape": shape, "seed": seed}, outputs)


def rand_gamma(
    k: float = 0.5,
    theta: float = 1.0,
    shape: int | Sequence[int] = (),
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Variable:
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
    return apply(RAND_GAMMA, (), {"k": k, "theta": theta, "shape": shape, "seed": seed}, outputs)


def dropout(
    x: Operand,
    p: float = 0.5,
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand:
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
    return apply(DROPOUT, (x,), {"p": p, "seed": seed}, outputs)


def dropout_mask(
    drawn: Operand,
    shape: int | Sequence[int],
    p: float = 0.5,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand:
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
    return apply(DROPOUT_MASK, (drawn,), {"shape": shape, "p": p}, outputs)


def random_choice(
    x: Operand,
    w: Operand,
    shape: int | Sequence[int] = (),
    replace: bool = True,
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand:
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
    return apply(RANDOM_CHOICE, (x, w), {"shape": shape, "replace": replace, "seed": seed}, outputs)


def random_crop(
    x: Operand,
    shape: Sequence[int] | None = None,
    base_axis: int = 1,
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand:
    """Cut a part out of each sample at a random place.

    Args:
        x: Samples. Shape (N_1, ..., N_b, D_1, ..., D_k).
        shape: Lengths of the last axes of the result, at most those of x; those of x by default.
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
    return apply(RANDOM_CROP, (x,), {"shape": shape, "base_axis": base_axis, "seed": seed}, outputs)


def random_flip(
    x: Operand,
    axes: int | Sequence[int] | None = None,
    base_axis: int = 1,
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand:
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
    return apply(RANDOM_FLIP, (x,), {"axes": axes, "base_axis": base_axis, "seed": seed}, outputs)


def random_shift(
    x: Operand,
    shifts: Sequence[int] | None = None,
    border_mode: str = "nearest",
    constant_value: float = 0.0,
    base_axis: int = 1,
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand:
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
    x: Operand,
    prob: float = 0.5,
    area_ratios: Sequence[float] = (0.02, 0.4),
    aspect_ratios: Sequence[float] = (0.3, 3.3333),
    replacements: Sequence[float] = (0.0, 255.0),
    n: int | None = None,
    share: bool = True,
    inplace: bool = False,
    base_axis: int = 1,
    seed: int = -1,
    channel_last: bool = False,
    ste_fine_grained: bool = True,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand:
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
    x: Operand,
    shape: Sequence[int] | None = None,
    pad: int | Sequence[int] = (0, 0),
    min_scale: float = 1.0,
    max_scale: float = 1.0,
    angle: float = 0.0,
    aspect_ratio: float = 1.0,
    distortion: float = 0.0,
    flip_lr: bool = False,
    flip_ud: bool = False,
    brightness: float = 0.0,
    brightness_each: bool = False,
    contrast: float = 1.0,
    contrast_center: float = 0.0,
    contrast_each: bool = False,
    noise: float = 0.0,
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand:
    """Cut, scale, turn, stretch, distort and flip images at random, and vary their brightness, contrast and noise.

    For a pixel p of the result, counted from its centre, the source is c + offset + (1 + d |q|^2 / r^2) q, q =
    R(angle) (flip(p) / zoom); c is the centre of the image and r half of its diagonal

    Args:
        x: Images. Shape (N_1, ..., N_b, C, H, W).
        shape: Lengths of the last axes of the result; those of x by default. Only height and width may differ from x.
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


def vat_noise(
    x: Operand,
    w: Operand,
    base_axis: int = 1,
    eps: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand:
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
        The gradient of w is eps times that of y, and x gets none: it is chosen, not derived. NNabla writes it over the
        values of w instead of into its gradient.

    Example:
        F.vat_noise(nn.Variable((8, 4)), nn.Variable((8, 4))).shape  # (8, 4)

    References:
        Miyato et al. (2015), Distributional smoothing with virtual adversarial training.

    Spec: function_spec.yaml, entry VATNoise
    """
    return apply(VAT_NOISE, (x, w), {"base_axis": base_axis, "eps": eps}, outputs)
