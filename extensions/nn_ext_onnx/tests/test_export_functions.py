"""Every function that can be exported gives the results of nn_core in onnxruntime; the others are refused by name."""

import pytest

from extensions.nn_ext_onnx.tests.exported import compare
from nn_core.ext import ArgumentError
from nn_ext_onnx.exporting.topics import converters
from tools.nnabla.nnabla_samples import SAMPLES

pytest.importorskip("onnxruntime", reason="the judge of exported models")

#: Functions that ONNX cannot express, and calls that it can express with other settings only.
REFUSED = {"rand_beta", "rand_gamma", "random_erase", "image_augmentation"}
SOMETIMES = {"inq_affine", "inq_convolution"}
#: From which operator set on; older ones are refused.
SINCE = {
    "deformable_convolution": 19,
    "warp_by_grid": 20,
    "fft": 17,
    "ifft": 17,
    "roi_align": 16,
    "max_pooling_backward": 16,
    "warp_by_flow": 16,
    "scatter_add": 16,
    "scatter_nd": 16,
}
#: Functions whose operators of newer operator sets onnxruntime lacks.
UNTIL = dict.fromkeys(
    ("rand", "rand_binomial", "randint", "randn", "random_choice", "random_crop", "random_flip", "random_shift", "roi_align"),
    21,
)
EXPORTED = sorted(set(SAMPLES) - REFUSED - SOMETIMES)


@pytest.mark.parametrize("api", EXPORTED)
def test_onnxruntime_computes_the_same(api):
    opset = (13, 17, 21, 24)[len(api) % 4]
    assert compare(api, 0, min(max(opset, SINCE.get(api, 13)), UNTIL.get(api, 24))) == []


@pytest.mark.slow
@pytest.mark.parametrize("opset", [13, 17, 21, 24])
@pytest.mark.parametrize("api", EXPORTED)
def test_onnxruntime_computes_the_same_in_every_operator_set(api, opset):
    for repetition in range(1, 6):
        assert compare(api, repetition, min(max(opset, SINCE.get(api, 13)), UNTIL.get(api, 24))) == []


@pytest.mark.parametrize("api", sorted(REFUSED))
def test_functions_that_cannot_be_exported_are_named(api):
    with pytest.raises(ArgumentError, match=r"function 0 of 1.*there is no way to write it"):
        compare(api, 0, 21)


@pytest.mark.parametrize("api", sorted(SOMETIMES))
def test_weights_that_change_with_each_pass_are_refused(api):
    with pytest.raises(ArgumentError, match="inq_iterations must be over"):
        for repetition in range(10):
            compare(api, repetition, 21)


@pytest.mark.parametrize("api", sorted(set(SINCE) - {"scatter_nd"}))
def test_older_operator_sets_are_refused(api):
    with pytest.raises(ArgumentError, match=f"needs opset {SINCE[api]}|needs opset"):
        compare(api, 0, SINCE[api] - 1 if api != "warp_by_grid" else 15)


def test_most_functions_can_be_exported():
    assert len(converters()) >= 190
