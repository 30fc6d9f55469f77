"""Samples of functions that draw random numbers; each is run with the same key on every backend."""

from nn_core.errors import ArgumentError, ShapeError
from nn_core.testing.drawing import integers, normal, uniform
from nn_core.testing.samples.registry import Settings, convention, error, sample

convention("the gradient of a choice goes to the value and to its weight alike", "RandomChoice.w")
convention("the function exists to alter the gradient", "VATNoise")
convention("with ste_fine_grained=False the gradient passes straight through", "RandomErase")

_SETTINGS: dict[str, Settings] = {
    "Rand": {"low": -1.0, "high": 2.0},
    "Randint": {"low": -3, "high": 7},
    "Randn": {"mu": 1.0, "sigma": 2.0},
    "RandBinomial": {"n": 5, "p": 0.3},
    "RandBeta": {"alpha": 0.7, "beta": 2.0},
    "RandGamma": {"k": 1.7, "theta": 0.5},
}
for _name, _args in _SETTINGS.items():
    sample(_name, "matrix", shape=(3, 5), loose=8)
    sample(_name, "settings", shape=(37,), seed=3, loose=8, **_args)
    sample(_name, "scalar", loose=8)
    sample(_name, "empty", shape=(0, 2))
    error(_name, "shape", ArgumentError, "shape must have no", shape=(2, -1))
error("Rand", "range", ArgumentError, "low must be below high", low=1.0, high=0.0)
error("Randint", "range", ArgumentError, "low must be below high", low=1, high=1)
error("RandBinomial", "p", ArgumentError, "p must be at most 1", p=1.5)
error("RandBeta", "alpha", ArgumentError, "alpha and beta must be positive", alpha=0.0)
error("RandGamma", "k", ArgumentError, "k and theta must be positive", k=-1.0)

sample("Dropout", "matrix", normal(4, 5))
sample("Dropout", "settings", normal(37), p=0.2, seed=5)
sample("Dropout", "nothing", normal(3, 4), p=0.0)
sample("Dropout", "image", normal(2, 3, 4, 5), p=0.7)
sample("Dropout", "empty", normal(0, 3))
sample("DropoutMask", "matrix", integers(2, high=99), shape=(3, 5))
sample("DropoutMask", "settings", integers(2, high=99), shape=(37,), p=0.2)
sample("DropoutMask", "nothing", integers(2, high=99), shape=(3, 4), p=0.0)
sample("DropoutMask", "empty", integers(2, high=99), shape=(0, 2))
error("DropoutMask", "drawn", ShapeError, r"drawn must have the shape \(2,\), got \(3,\)", integers(3, high=9), shape=(2,))
error("DropoutMask", "p", ArgumentError, r"p must be in \[0, 1\)", integers(2, high=9), shape=(2,), p=-0.1)
error("Dropout", "p", ArgumentError, r"p must be in \[0, 1\)", normal(3), p=1.0)

_WEIGHTS = uniform(2, 5, low=0.1, high=1)
sample("RandomChoice", "one", normal(2, 5), _WEIGHTS)
sample("RandomChoice", "several", normal(2, 5), _WEIGHTS, shape=(2, 3), seed=3)
sample("RandomChoice", "distinct", normal(2, 5), _WEIGHTS, shape=(4,), replace=False)
error("RandomChoice", "shapes", ShapeError, "x and w must have equal shapes", normal(2, 5), uniform(2, 4))
error(
    "RandomChoice",
    "too_many",
    ArgumentError,
    "shape must have at most 5 elements",
    normal(2, 5),
    _WEIGHTS,
    shape=(6,),
    replace=False,
)
error("RandomChoice", "negative", ArgumentError, "w must not be negative", normal(2, 5), uniform(2, 5, low=-1, high=-0.5))

sample("RandomCrop", "image", normal(2, 3, 5, 6), shape=(3, 4), seed=3)
sample("RandomCrop", "base_axis", normal(2, 3, 5, 6), shape=(3, 4), base_axis=2)
sample("RandomCrop", "whole", normal(2, 3, 4))
sample("RandomCrop", "samples", normal(4, 3, 5), shape=(3, 2, 4), base_axis=2)
error("RandomCrop", "size", ShapeError, "shape must fit into x", normal(2, 3, 4), shape=(5,))

sample("RandomFlip", "last", normal(3, 4, 5))
sample("RandomFlip", "image", normal(3, 2, 4, 5), axes=(2, 3), base_axis=1, seed=3)
sample("RandomFlip", "samples", normal(3, 4, 5), axes=(0, 2), base_axis=2)
error("RandomFlip", "axes", ArgumentError, "axes must", normal(3, 4), axes=(2,))

for _mode in ("nearest", "reflect", "constant"):
    sample("RandomShift", _mode, normal(3, 2, 5, 6), shifts=(2, 1), border_mode=_mode, constant_value=1.5)
sample("RandomShift", "nothing", normal(3, 4))
sample("RandomShift", "settings", normal(2, 3, 5), shifts=(2,), base_axis=2, seed=3)
for _mode in ("nearest", "reflect", "constant"):
    sample("RandomShift", f"samples_{_mode}", normal(3, 4, 5), shifts=(1, 2, 1), border_mode=_mode, base_axis=2)
error("RandomShift", "axes", ArgumentError, "shifts must have at most one entry", normal(3, 4), shifts=(1, 1, 1))

sample("RandomErase", "often", normal(3, 2, 5, 6), prob=1.0, n=2, seed=3)
sample("RandomErase", "each_channel", normal(3, 2, 5, 6), prob=0.8, share=False, replacements=(-1.0, 1.0))
sample("RandomErase", "ranges", normal(3, 2, 8, 8), prob=1.0, area_ratios=(0.1, 0.3), aspect_ratios=(0.5, 2.0))
sample("RandomErase", "channel_last", normal(3, 5, 6, 2), prob=1.0, channel_last=True, base_axis=1)
sample("RandomErase", "straight_through", normal(3, 2, 5, 6), prob=1.0, ste_fine_grained=False, inplace=True)
error("RandomErase", "axes", ShapeError, "x must have three axes from base_axis", normal(3, 5, 6))
error("RandomErase", "areas", ArgumentError, "area_ratios must be positive", normal(3, 2, 5, 6), area_ratios=(0.4, 0.2))

_IMAGE = uniform(2, 3, 6, 7)
sample("ImageAugmentation", "same", _IMAGE)
sample("ImageAugmentation", "moved", _IMAGE, shape=(3, 5, 5), pad=(1, 2), flip_lr=True, flip_ud=True, seed=3)
sample(
    "ImageAugmentation",
    "turned",
    _IMAGE,
    angle=0.3,
    min_scale=0.8,
    max_scale=1.25,
    aspect_ratio=1.3,
    distortion=0.1,
    loose=16,
)
sample(
    "ImageAugmentation",
    "coloured",
    _IMAGE,
    brightness=0.2,
    brightness_each=True,
    contrast=1.5,
    contrast_center=0.5,
    contrast_each=True,
    loose=8,
)
sample("ImageAugmentation", "noisy", _IMAGE, noise=0.1, loose=8)
error("ImageAugmentation", "scale", ArgumentError, "min_scale must be positive", _IMAGE, min_scale=0.0)
error("ImageAugmentation", "axes", ShapeError, "x must have the axes channel, height and width", uniform(6, 7))

sample("VATNoise", "matrix", normal(3, 4), normal(3, 4))
sample("VATNoise", "settings", normal(2, 3, 4), normal(2, 3, 4), base_axis=2, eps=0.3)
error("VATNoise", "shapes", ShapeError, "x and w must have equal shapes", normal(3, 4), normal(3, 3))
