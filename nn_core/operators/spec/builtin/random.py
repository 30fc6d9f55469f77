"""Specifications of the topic random.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

RAND = FunctionSpec(
    name="Rand",
    api="rand",
    topic="random",
    doc="Draw numbers that are uniform in [low, high).",
    inputs=(),
    outputs=(
        OutputSpec(
            name="y",
            doc="Independent samples with a resolution of (high - low) * 2**-24.",
            shape="shape",
        ),
    ),
    args=(
        ArgSpec(name="low", type="float", doc="Lower bound, included.", default=0.0),
        ArgSpec(name="high", type="float", doc="Upper bound, not included except by rounding.", default=1.0),
        ArgSpec(name="shape", type="shape", doc="Shape of the array; 0-d by default.", default=()),
        ArgSpec(
            name="seed",
            type="int",
            doc="Seed of the random numbers; -1 draws from the global generator.",
            default=-1,
        ),
    ),
    backward=BackwardSpec(none_because="there is no input"),
    tags=("seeded",),
    references=(
        "Salmon, Moraes, Dror and Shaw (2011), Parallel random numbers: as easy as 1, 2, 3 (the "
        "generator of all random functions)."
    ),
    example="F.rand(shape=(2, 3)).shape  # (2, 3)",
)

RANDINT = FunctionSpec(
    name="Randint",
    api="randint",
    topic="random",
    doc="Draw integers that are uniform in [low, high).",
    inputs=(),
    outputs=(
        OutputSpec(
            name="y",
            doc="Independent samples; chances are equal up to 2**-32.",
            shape="shape",
            dtype="index",
        ),
    ),
    args=(
        ArgSpec(name="low", type="int", doc="Lower bound, included.", default=0),
        ArgSpec(name="high", type="int", doc="Upper bound, not included; at most low + 2**32.", default=1),
        ArgSpec(name="shape", type="shape", doc="Shape of the array; 0-d by default.", default=()),
        ArgSpec(
            name="seed",
            type="int",
            doc="Seed of the random numbers; -1 draws from the global generator.",
            default=-1,
        ),
    ),
    backward=BackwardSpec(none_because="there is no input"),
    tags=("seeded",),
    notes="The result is int64, where NNabla has int32.",
    example="F.randint(0, 10, shape=(2, 3)).shape  # (2, 3)",
)

RANDN = FunctionSpec(
    name="Randn",
    api="randn",
    topic="random",
    doc="Draw numbers from a normal distribution.",
    inputs=(),
    outputs=(OutputSpec(name="y", doc="Independent samples, at most 5.77 sigma from mu.", shape="shape"),),
    args=(
        ArgSpec(name="mu", type="float", doc="Mean.", default=0.0),
        ArgSpec(name="sigma", type="float", doc="Standard deviation.", default=1.0),
        ArgSpec(name="shape", type="shape", doc="Shape of the array; 0-d by default.", default=()),
        ArgSpec(
            name="seed",
            type="int",
            doc="Seed of the random numbers; -1 draws from the global generator.",
            default=-1,
        ),
    ),
    backward=BackwardSpec(none_because="there is no input"),
    tags=("seeded",),
    references="Box and Muller (1958), A note on the generation of random normal deviates.",
    example="F.randn(shape=(2, 3)).shape  # (2, 3)",
)

RAND_BINOMIAL = FunctionSpec(
    name="RandBinomial",
    api="rand_binomial",
    topic="random",
    doc="Draw the number of successes in independent trials.",
    inputs=(),
    outputs=(OutputSpec(name="y", doc="Independent samples, whole numbers in [0, n].", shape="shape"),),
    args=(
        ArgSpec(name="n", type="int", doc="Number of trials.", default=1, minimum=1, maximum=2147483647),
        ArgSpec(
            name="p",
            type="float",
            doc="Chance of a success in each.",
            default=0.5,
            minimum=0.0,
            maximum=1.0,
        ),
        ArgSpec(name="shape", type="shape", doc="Shape of the array; 0-d by default.", default=()),
        ArgSpec(
            name="seed",
            type="int",
            doc="Seed of the random numbers; -1 draws from the global generator.",
            default=-1,
        ),
    ),
    backward=BackwardSpec(none_because="there is no input"),
    tags=("seeded",),
    notes="Time and memory grow with n, by one table for all samples.",
    example="F.rand_binomial(n=3, shape=(2, 3)).shape  # (2, 3)",
)

RAND_BETA = FunctionSpec(
    name="RandBeta",
    api="rand_beta",
    topic="random",
    doc="Draw numbers from a beta distribution.",
    inputs=(),
    outputs=(OutputSpec(name="y", doc="Independent samples in [0, 1].", shape="shape"),),
    args=(
        ArgSpec(name="alpha", type="float", doc="First shape parameter, positive.", default=0.5),
        ArgSpec(name="beta", type="float", doc="Second shape parameter, positive.", default=0.5),
        ArgSpec(name="shape", type="shape", doc="Shape of the array; 0-d by default.", default=()),
        ArgSpec(
            name="seed",
            type="int",
            doc="Seed of the random numbers; -1 draws from the global generator.",
            default=-1,
        ),
    ),
    backward=BackwardSpec(none_because="there is no input"),
    tags=("seeded",),
    formula="density proportional to y**(alpha - 1) * (1 - y)**(beta - 1)",
    example="F.rand_beta(shape=(2, 3)).shape  # (2, 3)",
)

RAND_GAMMA = FunctionSpec(
    name="RandGamma",
    api="rand_gamma",
    topic="random",
    doc="Draw numbers from a gamma distribution.",
    inputs=(),
    outputs=(OutputSpec(name="y", doc="Independent samples, with mean k * theta.", shape="shape"),),
    args=(
        ArgSpec(name="k", type="float", doc="Shape parameter, positive.", default=0.5),
        ArgSpec(name="theta", type="float", doc="Scale parameter, positive.", default=1.0),
        ArgSpec(name="shape", type="shape", doc="Shape of the array; 0-d by default.", default=()),
        ArgSpec(
            name="seed",
            type="int",
            doc="Seed of the random numbers; -1 draws from the global generator.",
            default=-1,
        ),
    ),
    backward=BackwardSpec(none_because="there is no input"),
    tags=("seeded",),
    formula="density proportional to y**(k - 1) * exp(-y / theta)",
    references="Marsaglia and Tsang (2000), A simple method for generating gamma variables.",
    example="F.rand_gamma(shape=(2, 3)).shape  # (2, 3)",
)

DROPOUT = FunctionSpec(
    name="Dropout",
    api="dropout",
    topic="random",
    doc="Set elements to zero at random and scale the others so that the mean stays the same.",
    inputs=(InputSpec(name="x", doc="Array of any shape.", shape="(D_1, ..., D_n)"),),
    outputs=(
        OutputSpec(name="y", doc="Array with dropped elements.", shape="(D_1, ..., D_n)"),
        OutputSpec(name="mask", doc="0 or 1 / (1 - p).", shape="(D_1, ..., D_n)", aux=True),
    ),
    args=(
        ArgSpec(name="p", type="float", doc="Chance of an element to be dropped, in [0, 1).", default=0.5),
        ArgSpec(
            name="seed",
            type="int",
            doc="Seed of the random numbers; -1 draws from the global generator.",
            default=-1,
        ),
    ),
    backward=BackwardSpec(needs=("mask",)),
    tags=("seeded", "inplace_ok"),
    formula="y = x * mask, mask = 1 / (1 - p) if u >= p else 0, u uniform in [0, 1)",
    notes="For training only; leave it out of the graph that predicts.",
    references="Srivastava et al. (2014), Dropout: a simple way to prevent neural networks from overfitting.",
    example="F.dropout(nn.Variable((8, 10)), 0.5).shape  # (8, 10)",
)

DROPOUT_MASK = FunctionSpec(
    name="DropoutMask",
    api="dropout_mask",
    topic="random",
    doc="Make the factors by which dropout multiplies its elements, from the numbers that it has drawn.",
    inputs=(
        InputSpec(
            name="drawn",
            doc="Seed and counter, an output of a function with dropout.",
            shape="(2,)",
            dtype="index",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="0 or 1 / (1 - p).", shape="shape"),),
    args=(
        ArgSpec(name="shape", type="shape", doc="Shape of the factors."),
        ArgSpec(name="p", type="float", doc="Chance of an element to be dropped, in [0, 1).", default=0.5),
    ),
    backward=BackwardSpec(none_because="drawn is not a number to differentiate by"),
    formula="y_i = 1 / (1 - p) if u_i >= p else 0, u_i uniform in [0, 1)",
    references="Srivastava et al. (2014), Dropout: a simple way to prevent neural networks from overfitting.",
    example="F.dropout_mask(nn.NdArray.from_numpy_array([5, 0]), (2, 3), p=0.5).shape  # (2, 3)",
)

RANDOM_CHOICE = FunctionSpec(
    name="RandomChoice",
    api="random_choice",
    topic="random",
    doc="Draw elements of each row of an array with chances proportional to weights.",
    inputs=(
        InputSpec(name="x", doc="Populations, one a row.", shape="(N_1, ..., N_k, P)"),
        InputSpec(
            name="w",
            doc="Weights of their elements, not negative; some of each row are positive.",
            shape="(N_1, ..., N_k, P)",
        ),
    ),
    outputs=(
        OutputSpec(
            name="y",
            doc="Samples, in the order in which they were drawn.",
            shape="(N_1, ..., N_k, S_1, ..., S_m)",
        ),
        OutputSpec(
            name="places",
            doc="The place of each in its row.",
            shape="(N_1, ..., N_k, S_1, ..., S_m)",
            dtype="index",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(
            name="shape",
            type="shape",
            doc="Shape (S_1, ..., S_m) of the samples of each row; one sample, of shape (1,), by default.",
            default=(),
        ),
        ArgSpec(
            name="replace",
            type="bool",
            doc=(
                "An element may be drawn more than once. Otherwise each row needs as many positive "
                "weights as there are samples."
            ),
            default=True,
        ),
        ArgSpec(
            name="seed",
            type="int",
            doc="Seed of the random numbers; -1 draws from the global generator.",
            default=-1,
        ),
    ),
    backward=BackwardSpec(needs=("places",)),
    tags=("seeded",),
    notes=(
        "The gradient of each sample is added to the element that was drawn, and to its weight just so, as "
        "in NNabla (the second one is chosen, not derived). Weights are checked when the function runs."
    ),
    references="Efraimidis and Spirakis (2006), Weighted random sampling with a reservoir (without replacement).",
    example=(
        "w = nn.Variable.from_numpy_array([0.1, 0.2, 0.3, 0.2, 0.2])\nF.random_choice(F.arange(0, 5), w, "
        "shape=(100,)).shape  # (100,)"
    ),
)

RANDOM_CROP = FunctionSpec(
    name="RandomCrop",
    api="random_crop",
    topic="random",
    doc="Cut a part out of each sample at a random place.",
    inputs=(InputSpec(name="x", doc="Samples.", shape="(N_1, ..., N_b, D_1, ..., D_k)"),),
    outputs=(
        OutputSpec(name="y", doc="The parts.", shape="(M_1, ..., M_b, L_1, ..., L_k)"),
        OutputSpec(
            name="source",
            doc=(
                "Where each sample was read along each axis, one axis after the other; before "
                "that the number of the sample that was read, where samples are exchanged."
            ),
            shape="(M_1, ..., M_b, L_1 + ... + L_k)",
            dtype="index",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(
            name="shape",
            type="shape",
            doc=(
                "Lengths of the last axes of the result, at most those of x; those of x by default. "
                "One number is the length of every axis but the first two."
            ),
            default=None,
            per_spatial_axis=True,
        ),
        ArgSpec(name="base_axis", type="axis", doc="First axis of a sample.", default=1),
        ArgSpec(
            name="seed",
            type="int",
            doc="Seed of the random numbers; -1 draws from the global generator.",
            default=-1,
        ),
    ),
    backward=BackwardSpec(needs=("source",)),
    tags=("seeded",),
    notes=(
        "Where `shape` cuts axes before `base_axis` too, each sample of the result is a part of one that "
        "is drawn for it. The gradient is put back to where it was read."
    ),
    example="F.random_crop(nn.Variable((8, 3, 64, 64)), (3, 48, 48)).shape  # (8, 3, 48, 48)",
)

RANDOM_FLIP = FunctionSpec(
    name="RandomFlip",
    api="random_flip",
    topic="random",
    doc="Reverse axes of each sample, each with a chance of one half.",
    inputs=(InputSpec(name="x", doc="Samples.", shape="(N_1, ..., N_b, D_1, ..., D_k)"),),
    outputs=(
        OutputSpec(name="y", doc="Samples, some of them reversed.", shape="(N_1, ..., N_b, D_1, ..., D_k)"),
        OutputSpec(
            name="source",
            doc="As in `random_crop`.",
            shape="(N_1, ..., N_b, D_1 + ... + D_k)",
            dtype="index",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(
            name="axes",
            type="axes",
            doc=(
                "Axes of x that may be reversed; for those before `base_axis` each sample may be one "
                "from the other end."
            ),
            default_rule="last_axis_list",
        ),
        ArgSpec(name="base_axis", type="axis", doc="First axis of a sample.", default=1),
        ArgSpec(
            name="seed",
            type="int",
            doc="Seed of the random numbers; -1 draws from the global generator.",
            default=-1,
        ),
    ),
    backward=BackwardSpec(needs=("source",)),
    tags=("seeded",),
    example="F.random_flip(nn.Variable((8, 3, 32, 32)), (2, 3))  # upside down, or left to right, or both, or neither",
)

RANDOM_SHIFT = FunctionSpec(
    name="RandomShift",
    api="random_shift",
    topic="random",
    doc="Move each sample by a random number of elements along each axis.",
    inputs=(InputSpec(name="x", doc="Samples.", shape="(N_1, ..., N_b, D_1, ..., D_k)"),),
    outputs=(
        OutputSpec(name="y", doc="Moved samples.", shape="(N_1, ..., N_b, D_1, ..., D_k)"),
        OutputSpec(
            name="source",
            doc="As in `random_crop`; -1 for the constant.",
            shape="(N_1, ..., N_b, D_1 + ... + D_k)",
            dtype="index",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(
            name="shifts",
            type="ints",
            doc=(
                "Farthest move along each axis in either direction. With fewer entries than axes "
                "they belong to the last axes. Along axes before `base_axis` each sample is one of "
                "its neighbours."
            ),
            default_rule="zeros_per_axis",
        ),
        ArgSpec(
            name="border_mode",
            type="str",
            doc=(
                "Fill the gap with the edge element, with the mirror image at the edge (the edge "
                "element is repeated), or with `constant_value`."
            ),
            default="nearest",
            choices=("nearest", "reflect", "constant"),
        ),
        ArgSpec(name="constant_value", type="float", doc="Fills the gap in the mode constant.", default=0.0),
        ArgSpec(name="base_axis", type="axis", doc="First axis of a sample.", default=1),
        ArgSpec(
            name="seed",
            type="int",
            doc="Seed of the random numbers; -1 draws from the global generator.",
            default=-1,
        ),
    ),
    backward=BackwardSpec(needs=("source",)),
    tags=("seeded",),
    example="F.random_shift(nn.Variable((8, 3, 32, 32)), (3, 2))  # up to 3 pixels up or down and 2 to either side",
)

RANDOM_ERASE = FunctionSpec(
    name="RandomErase",
    api="random_erase",
    topic="random",
    doc="Replace random rectangles of images by random values.",
    inputs=(InputSpec(name="x", doc="Images.", shape="(N_1, ..., N_b, C, H, W), or (N_1, ..., N_b, H, W, C)"),),
    outputs=(
        OutputSpec(name="y", doc="Images with erased rectangles.", shape="that of x"),
        OutputSpec(
            name="kept",
            doc="1 where x was kept, 0 where it was replaced.",
            shape="that of x, with one channel if `share`",
            aux=True,
        ),
    ),
    args=(
        ArgSpec(
            name="prob",
            type="float",
            doc="Chance of each rectangle to be erased.",
            default=0.5,
            minimum=0,
            maximum=1,
        ),
        ArgSpec(
            name="area_ratios",
            type="floats",
            doc="Range of the area as a part of the image.",
            default=(0.02, 0.4),
            minimum=0,
        ),
        ArgSpec(
            name="aspect_ratios",
            type="floats",
            doc="Range of height by width.",
            default=(0.3, 3.3333),
            minimum=0,
        ),
        ArgSpec(
            name="replacements",
            type="floats",
            doc="Range of the new values, drawn for each element.",
            default=(0.0, 255.0),
        ),
        ArgSpec(
            name="n",
            type="int",
            doc="Number of rectangles.",
            default=1,
            minimum=0,
            maximum=65536,
            shown_as_none=True,
        ),
        ArgSpec(
            name="share",
            type="bool",
            doc="Use the same rectangles for all channels of an image.",
            default=True,
        ),
        ArgSpec(
            name="inplace",
            type="bool",
            doc="Kept for programs that pass it: the result is always a new array.",
            default=False,
        ),
        ArgSpec(name="base_axis", type="axis", doc="First axis of an image.", default=1),
        ArgSpec(
            name="seed",
            type="int",
            doc="Seed of the random numbers; -1 draws from the global generator.",
            default=-1,
        ),
        ArgSpec(
            name="channel_last",
            type="bool",
            doc="The channel is the last axis rather than the first one of an image.",
            default=False,
        ),
        ArgSpec(
            name="ste_fine_grained",
            type="bool",
            doc="No gradient flows where x was replaced; otherwise it flows everywhere.",
            default=True,
        ),
    ),
    backward=BackwardSpec(needs=("kept",)),
    tags=("seeded",),
    formula=(
        "height = sqrt(area * aspect), width = sqrt(area / aspect), at most those of the image; area = H "
        "* W * U(area_ratios), aspect = U(aspect_ratios); row = U(0, H - height), column = U(0, W - "
        "width)"
    ),
    notes="A pixel is erased if its centre is in a rectangle.",
    references="Zhong, Zheng, Kang, Li and Yang (2017), Random erasing data augmentation.",
    example="F.random_erase(nn.Variable((8, 3, 32, 32))).shape  # (8, 3, 32, 32)",
)

IMAGE_AUGMENTATION = FunctionSpec(
    name="ImageAugmentation",
    api="image_augmentation",
    topic="random",
    doc="Cut, scale, turn, stretch, distort and flip images at random, and vary their brightness, contrast and noise.",
    inputs=(InputSpec(name="x", doc="Images.", shape="(N_1, ..., N_b, C, H, W)"),),
    outputs=(OutputSpec(name="y", doc="Altered images.", shape="(N_1, ..., N_b, C, H', W')"),),
    args=(
        ArgSpec(
            name="shape",
            type="shape",
            doc=(
                "Lengths of the last axes of the result; those of x by default. Only height and "
                "width may differ from x; one number is both of them."
            ),
            default=None,
            per_spatial_axis=True,
        ),
        ArgSpec(
            name="pad",
            type="ints",
            doc=(
                "Rows and columns by which the image counts as larger on each side when the place of "
                "the cut is drawn."
            ),
            default=(0, 0),
        ),
        ArgSpec(
            name="min_scale",
            type="float",
            doc="Smallest scale, positive; 0.8 makes what is seen smaller by a fifth.",
            default=1.0,
        ),
        ArgSpec(name="max_scale", type="float", doc="Largest scale; its logarithm is uniform.", default=1.0),
        ArgSpec(
            name="angle",
            type="float",
            doc="Largest turn in either direction in radians.",
            default=0.0,
            minimum=0,
        ),
        ArgSpec(
            name="aspect_ratio",
            type="float",
            doc="Largest stretch of height against width in either direction; its logarithm is uniform.",
            default=1.0,
        ),
        ArgSpec(
            name="distortion",
            type="float",
            doc="Largest d, the bending of straight lines outwards or inwards.",
            default=0.0,
            minimum=0,
        ),
        ArgSpec(
            name="flip_lr",
            type="bool",
            doc="Swap left and right with a chance of one half.",
            default=False,
        ),
        ArgSpec(name="flip_ud", type="bool", doc="Turn upside down with a chance of one half.", default=False),
        ArgSpec(
            name="brightness",
            type="float",
            doc="A number from [-brightness, brightness) is added.",
            default=0.0,
            minimum=0,
        ),
        ArgSpec(name="brightness_each", type="bool", doc="Draw it for each channel.", default=False),
        ArgSpec(
            name="contrast",
            type="float",
            doc=(
                "Differences from `contrast_center` are multiplied by a number from [1 / contrast, "
                "contrast], whose logarithm is uniform."
            ),
            default=1.0,
            minimum=0,
        ),
        ArgSpec(
            name="contrast_center",
            type="float",
            doc="Value that the contrast does not change.",
            default=0.0,
        ),
        ArgSpec(name="contrast_each", type="bool", doc="Draw the factor for each channel.", default=False),
        ArgSpec(
            name="noise",
            type="float",
            doc="Standard deviation of normal noise that is added to each element.",
            default=0.0,
            minimum=0,
        ),
        ArgSpec(
            name="seed",
            type="int",
            doc="Seed of the random numbers; -1 draws from the global generator.",
            default=-1,
        ),
    ),
    backward=BackwardSpec(none_because="images that are altered are data"),
    tags=("seeded",),
    formula=(
        "For a pixel p of the result, counted from its centre, the source is c + offset + (1 + d |q|^2 / "
        "r^2) q, q = R(angle) (flip(p) / zoom); c is the centre of the image and r half of its diagonal"
    ),
    notes=(
        "The offset is uniform within the room that the result leaves in the padded image. Sources between "
        "pixels are interpolated bilinearly, those outside are moved to the edge. NNabla gives a gradient "
        "of zero."
    ),
    example="F.image_augmentation(nn.Variable((8, 3, 40, 40)), (3, 32, 32), flip_lr=True, angle=0.26)",
)

VAT_NOISE = FunctionSpec(
    name="VATNoise",
    api="vat_noise",
    topic="random",
    doc="Scale noise to a given length for virtual adversarial training, and keep the gradient that it receives.",
    inputs=(
        InputSpec(
            name="x",
            doc="Noise: normal at first, then the kept gradient.",
            shape="(N_1, ..., N_b, D_1, ..., D_m)",
        ),
        InputSpec(
            name="w",
            doc="Keeps the gradient; its values are not read.",
            shape="(N_1, ..., N_b, D_1, ..., D_m)",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Scaled noise.", shape="(N_1, ..., N_b, D_1, ..., D_m)"),),
    args=(
        ArgSpec(name="base_axis", type="axis", doc="First axis of a sample.", default=1),
        ArgSpec(
            name="eps",
            type="float",
            doc="Length of the result (Euclidean norm of a sample).",
            default=1.0,
            minimum=0,
        ),
    ),
    tags=("keeps_gradient",),
    formula="y = eps * x / sqrt(sum(x**2) + 1e-8), summed over each sample",
    notes=(
        "The backward pass writes the gradient of y over the values of w, as NNabla does: the next noise, "
        "x, is taken from there. The gradient of w is eps times that of y, and x gets none: it is chosen, "
        "not derived."
    ),
    references="Miyato et al. (2015), Distributional smoothing with virtual adversarial training.",
    example="F.vat_noise(nn.Variable((8, 4)), nn.Variable((8, 4))).shape  # (8, 4)",
)

SPECS: tuple[FunctionSpec, ...] = (
    RAND,
    RANDINT,
    RANDN,
    RAND_BINOMIAL,
    RAND_BETA,
    RAND_GAMMA,
    DROPOUT,
    DROPOUT_MASK,
    RANDOM_CHOICE,
    RANDOM_CROP,
    RANDOM_FLIP,
    RANDOM_SHIFT,
    RANDOM_ERASE,
    IMAGE_AUGMENTATION,
    VAT_NOISE,
)
