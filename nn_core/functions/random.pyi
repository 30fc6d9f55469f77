# Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
from collections.abc import Sequence

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand
from nn_core.variable import Variable

def rand(
    low: float = 0.0,
    high: float = 1.0,
    shape: int | Sequence[int] = (),
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Variable: ...
def randint(
    low: int = 0,
    high: int = 1,
    shape: int | Sequence[int] = (),
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Variable: ...
def randn(
    mu: float = 0.0,
    sigma: float = 1.0,
    shape: int | Sequence[int] = (),
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Variable: ...
def rand_binomial(
    n: int = 1,
    p: float = 0.5,
    shape: int | Sequence[int] = (),
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Variable: ...
def rand_beta(
    alpha: float = 0.5,
    beta: float = 0.5,
    shape: int | Sequence[int] = (),
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Variable: ...
def rand_gamma(
    k: float = 0.5,
    theta: float = 1.0,
    shape: int | Sequence[int] = (),
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Variable: ...
def dropout(
    x: Operand,
    p: float = 0.5,
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def dropout_mask(
    drawn: Operand,
    shape: int | Sequence[int],
    p: float = 0.5,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def random_choice(
    x: Operand,
    w: Operand,
    shape: int | Sequence[int] = (),
    replace: bool = True,
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def random_crop(
    x: Operand,
    shape: int | Sequence[int] | None = None,
    base_axis: int = 1,
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def random_flip(
    x: Operand,
    axes: int | Sequence[int] | None = None,
    base_axis: int = 1,
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def random_shift(
    x: Operand,
    shifts: Sequence[int] | None = None,
    border_mode: str = "nearest",
    constant_value: float = 0.0,
    base_axis: int = 1,
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
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
) -> Operand: ...
def image_augmentation(
    x: Operand,
    shape: int | Sequence[int] | None = None,
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
) -> Operand: ...
def vat_noise(
    x: Operand,
    w: Operand,
    base_axis: int = 1,
    eps: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
