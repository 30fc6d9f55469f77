"""Specifications of the topic random.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

RAND = FunctionSpec(
    name="Rand", api="rand", topic="random", doc="Draw numbers that are uniform in [low, high).", inputs=(),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="low", type="float", default=0.0), ArgSpec(name="high", type="float", default=1.0),
        ArgSpec(name="shape", type="shape", default=()), ArgSpec(name="seed", type="int", default=-1),
    ),
    backward=BackwardSpec(none_because="there is no input"), tags=("seeded",),
)

RANDINT = FunctionSpec(
    name="Randint", api="randint", topic="random", doc="Draw integers that are uniform in [low, high).", inputs=(),
    outputs=(OutputSpec(name="y", dtype="index"),),
    args=(
        ArgSpec(name="low", type="int", default=0), ArgSpec(name="high", type="int", default=1),
        ArgSpec(name="shape", type="shape", default=()), ArgSpec(name="seed", type="int", default=-1),
    ),
    backward=BackwardSpec(none_because="there is no input"), tags=("seeded",),
)

RANDN = FunctionSpec(
    name="Randn", api="randn", topic="random", doc="Draw numbers from a normal distribution.", inputs=(),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="mu", type="float", default=0.0), ArgSpec(name="sigma", type="float", default=1.0),
        ArgSpec(name="shape", type="shape", default=()), ArgSpec(name="seed", type="int", default=-1),
    ),
    backward=BackwardSpec(none_because="there is no input"), tags=("seeded",),
)

RAND_BINOMIAL = FunctionSpec(
    name="RandBinomial", api="rand_binomial", topic="random", doc="Draw the number of successes in independent trials.",
    inputs=(), outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="n", type="int", default=1, minimum=1, maximum=2147483647),
        ArgSpec(name="p", type="float", default=0.5, minimum=0.0, maximum=1.0),
        ArgSpec(name="shape", type="shape", default=()), ArgSpec(name="seed", type="int", default=-1),
    ),
    backward=BackwardSpec(none_because="there is no input"), tags=("seeded",),
)

RAND_BETA = FunctionSpec(
    name="RandBeta", api="rand_beta", topic="random", doc="Draw numbers from a beta distribution.", inputs=(),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="alpha", type="float", default=0.5), ArgSpec(name="beta", type="float", default=0.5),
        ArgSpec(name="shape", type="shape", default=()), ArgSpec(name="seed", type="int", default=-1),
    ),
    backward=BackwardSpec(none_because="there is no input"), tags=("seeded",),
)

RAND_GAMMA = FunctionSpec(
    name="RandGamma", api="rand_gamma", topic="random", doc="Draw numbers from a gamma distribution.", inputs=(),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="k", type="float", default=0.5), ArgSpec(name="theta", type="float", default=1.0),
        ArgSpec(name="shape", type="shape", default=()), ArgSpec(name="seed", type="int", default=-1),
    ),
    backward=BackwardSpec(none_because="there is no input"), tags=("seeded",),
)

DROPOUT = FunctionSpec(
    name="Dropout", api="dropout", topic="random",
    doc="Set elements to zero at random and scale the others so that the mean stays the same.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"), OutputSpec(name="mask", aux=True)),
    args=(ArgSpec(name="p", type="float", default=0.5), ArgSpec(name="seed", type="int", default=-1)),
    backward=BackwardSpec(needs=("mask",)), tags=("seeded", "inplace_ok"),
)

DROPOUT_MASK = FunctionSpec(
    name="DropoutMask", api="dropout_mask", topic="random",
    doc="Make the factors by which dropout multiplies its elements, from the numbers that it has drawn.",
    inputs=(InputSpec(name="drawn", dtype="index"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="shape", type="shape"), ArgSpec(name="p", type="float", default=0.5)),
    backward=BackwardSpec(none_because="drawn is not a number to differentiate by"),
)

RANDOM_CHOICE = FunctionSpec(
    name="RandomChoice", api="random_choice", topic="random",
    doc="Draw elements of each row of an array with chances proportional to weights.",
    inputs=(InputSpec(name="x"), InputSpec(name="w")),
    outputs=(OutputSpec(name="y"), OutputSpec(name="places", dtype="index", aux=True)),
    args=(
        ArgSpec(name="shape", type="shape", default=()), ArgSpec(name="replace", type="bool", default=True),
        ArgSpec(name="seed", type="int", default=-1),
    ),
    backward=BackwardSpec(needs=("places",)), tags=("seeded",),
)

RANDOM_CROP = FunctionSpec(
    name="RandomCrop", api="random_crop", topic="random", doc="Cut a part out of each sample at a random place.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"), OutputSpec(name="source", dtype="index", aux=True)),
    args=(
        ArgSpec(name="shape", type="shape", default=None, per_spatial_axis=True),
        ArgSpec(name="base_axis", type="axis", default=1), ArgSpec(name="seed", type="int", default=-1),
    ),
    backward=BackwardSpec(needs=("source",)), tags=("seeded",),
)

RANDOM_FLIP = FunctionSpec(
    name="RandomFlip", api="random_flip", topic="random",
    doc="Reverse axes of each sample, each with a chance of one half.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"), OutputSpec(name="source", dtype="index", aux=True)),
    args=(
        ArgSpec(name="axes", type="axes", default_rule="last_axis_list"),
        ArgSpec(name="base_axis", type="axis", default=1), ArgSpec(name="seed", type="int", default=-1),
    ),
    backward=BackwardSpec(needs=("source",)), tags=("seeded",),
)

RANDOM_SHIFT = FunctionSpec(
    name="RandomShift", api="random_shift", topic="random",
    doc="Move each sample by a random number of elements along each axis.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"), OutputSpec(name="source", dtype="index", aux=True)),
    args=(
        ArgSpec(name="shifts", type="ints", default_rule="zeros_per_axis"),
        ArgSpec(name="border_mode", type="str", default="nearest", choices=("nearest", "reflect", "constant")),
        ArgSpec(name="constant_value", type="float", default=0.0),
        ArgSpec(name="base_axis", type="axis", default=1), ArgSpec(name="seed", type="int", default=-1),
    ),
    backward=BackwardSpec(needs=("source",)), tags=("seeded",),
)

RANDOM_ERASE = FunctionSpec(
    name="RandomErase", api="random_erase", topic="random", doc="Replace random rectangles of images by random values.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"), OutputSpec(name="kept", aux=True)),
    args=(
        ArgSpec(name="prob", type="float", default=0.5, minimum=0, maximum=1),
        ArgSpec(name="area_ratios", type="floats", default=(0.02, 0.4), minimum=0),
        ArgSpec(name="aspect_ratios", type="floats", default=(0.3, 3.3333), minimum=0),
        ArgSpec(name="replacements", type="floats", default=(0.0, 255.0)),
        ArgSpec(name="n", type="int", default=1, minimum=0, maximum=65536, shown_as_none=True),
        ArgSpec(name="share", type="bool", default=True), ArgSpec(name="inplace", type="bool", default=False),
        ArgSpec(name="base_axis", type="axis", default=1), ArgSpec(name="seed", type="int", default=-1),
        ArgSpec(name="channel_last", type="bool", default=False),
        ArgSpec(name="ste_fine_grained", type="bool", default=True),
    ),
    backward=BackwardSpec(needs=("kept",)), tags=("seeded",),
)

IMAGE_AUGMENTATION = FunctionSpec(
    name="ImageAugmentation", api="image_augmentation", topic="random",
    doc="Cut, scale, turn, stretch, distort and flip images at random, and vary their brightness, contrast and noise.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="shape", type="shape", default=None, per_spatial_axis=True),
        ArgSpec(name="pad", type="ints", default=(0, 0)), ArgSpec(name="min_scale", type="float", default=1.0),
        ArgSpec(name="max_scale", type="float", default=1.0),
        ArgSpec(name="angle", type="float", default=0.0, minimum=0),
        ArgSpec(name="aspect_ratio", type="float", default=1.0),
        ArgSpec(name="distortion", type="float", default=0.0, minimum=0),
        ArgSpec(name="flip_lr", type="bool", default=False), ArgSpec(name="flip_ud", type="bool", default=False),
        ArgSpec(name="brightness", type="float", default=0.0, minimum=0),
        ArgSpec(name="brightness_each", type="bool", default=False),
        ArgSpec(name="contrast", type="float", default=1.0, minimum=0),
        ArgSpec(name="contrast_center", type="float", default=0.0),
        ArgSpec(name="contrast_each", type="bool", default=False),
        ArgSpec(name="noise", type="float", default=0.0, minimum=0), ArgSpec(name="seed", type="int", default=-1),
    ),
    backward=BackwardSpec(none_because="images that are altered are data"), tags=("seeded",),
)

VAT_NOISE = FunctionSpec(
    name="VATNoise", api="vat_noise", topic="random",
    doc="Scale noise to a given length for virtual adversarial training, and keep the gradient that it receives.",
    inputs=(InputSpec(name="x"), InputSpec(name="w")), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="base_axis", type="axis", default=1), ArgSpec(name="eps", type="float", default=1.0, minimum=0)),
    tags=("keeps_gradient",),
)

SPECS: tuple[FunctionSpec, ...] = (
    RAND, RANDINT, RANDN, RAND_BINOMIAL, RAND_BETA, RAND_GAMMA, DROPOUT, DROPOUT_MASK, RANDOM_CHOICE, RANDOM_CROP,
    RANDOM_FLIP, RANDOM_SHIFT, RANDOM_ERASE, IMAGE_AUGMENTATION, VAT_NOISE,
)
