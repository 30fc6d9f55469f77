"""Operators that sample images or scatter elements, beside onnxruntime."""

import numpy as np
import pytest
from onnx import parser

import nn_core.functions as F
from extensions.nn_ext_onnx.tests.test_fused import drawn
from nn_core.ext import ArgumentError
from nn_ext_onnx import load
from nn_ext_onnx.backend import prepare
from nn_ext_onnx.exporting.verification import run_model

#: By name: operator set, inputs, constants and the node. Dimensions of results are left open.
CASES = {
    **{
        f"grid_sample_{mode}_{padding}": (
            20, "float[2, 3, 9, 11] x, float[2, 5, 6, 2] g", "",
            f'y = GridSample<mode="{mode}", padding_mode="{padding}", align_corners={int(padding == "border")}>(x, g)',
        )
        for mode in ("nearest", "cubic") for padding in ("zeros", "border", "reflection")
    },
    **{
        f"resize_{mode}_{coordinates}": (
            19, "float[2, 3, 9, 11] x", "float[4] s = {1.0, 1.0, 0.55, 1.4}",
            (f'y = Resize<mode="{mode}", coordinate_transformation_mode="{coordinates}", antialias={antialias}, '
            f"exclude_outside={exclude}>(x, , s)"),
        )
        for mode, antialias, exclude in (("linear", 1, 0), ("cubic", 1, 0), ("cubic", 0, 1))
        for coordinates in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel")
    },
    **{
        f"resize_{policy}": (
            19, "float[2, 3, 9, 11] x", "int64[2] s = {7, 8}",
            f'y = Resize<mode="linear", keep_aspect_ratio_policy="{policy}", axes=[2, 3]>(x, , , s)',
        )
        for policy in ("not_larger", "not_smaller")
    },
    **{
        f"roi_align_{mode}": (
            16, "float[2, 3, 9, 11] x, float[4, 4] r", "int64[4] i = {0, 1, 1, 0}",
            (f'y = RoiAlign<coordinate_transformation_mode="output_half_pixel", mode="{mode}", output_height=3, '
            "output_width=2, sampling_ratio=1, spatial_scale=0.7>(x, r, i)"),
        )
        for mode in ("avg", "max")
    },
    **{
        f"scatter_{reduction}": (
            18, "float[4, 3] x, float[2, 3] u", "int64[2, 3] i = {0, -1, 2, 0, 3, 2}",
            f'y = ScatterElements<reduction="{reduction}">(x, i, u)',
        )
        for reduction in ("max", "min", "mul")
    },
    "tf_idf": (
        9, "int64[6] n", "",
        ('y = TfIdfVectorizer<mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=1, ngram_counts=[0, 2], '
        "ngram_indexes=[0, 1, 2], pool_int64s=[2, 3, 2, 1]>(n)"),
    ),
}  # fmt: skip


def model(case):
    opset, inputs, constants, node = CASES[case]
    held = f"<{constants}>" if constants else ""
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => (float[] y) {held} {{ {node} }}')


def given(made):
    """Return numbers for the inputs of a model: points of a grid reach over its border, integers are few."""
    found = {}
    for entry in made.graph.input:
        shape = [axis.dim_value for axis in entry.type.tensor_type.shape.dim]
        found[entry.name] = np.array([1, 2, 3, 2, 1, 2]) if entry.name == "n" else drawn(*shape)
    return found


@pytest.mark.parametrize("case", sorted(CASES))
def test_results_are_those_of_onnxruntime(case):
    made = model(case)
    feeds = given(made)
    (found,), (wanted,) = prepare(made).run(feeds), run_model(made, feeds)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("order", [0, 1])
def test_indices_of_maxima_are_those_of_onnxruntime(order):
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 12]> g (float[2, 3, 9, 8] x) => (float[] y, int64[] i) { y, i = MaxPool<'
        f"kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], dilations=[1, 2], storage_order={order}>(x) }}"
    )
    feeds = {"x": drawn(2, 3, 9, 8)}
    for found, wanted in zip(prepare(made).run(feeds), run_model(made, feeds), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_corners_of_a_rounded_length_have_two_meanings():
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 19]> g (float[1, 1, 5] x) => (float[] y) <float[3] s = {1.0, 1.0, 0.7}> '
        '{ y = Resize<mode="linear", coordinate_transformation_mode="align_corners">(x, , s) }'
    )
    with pytest.raises(ArgumentError, match="the definition and onnxruntime have other results"):
        load(made)


def test_gradients_are_refused_where_the_host_chooses_elements():
    network = load(model("scatter_max"))
    network.inputs["x"].need_grad = True
    loss = F.sum(network.outputs["y"])
    loss.forward()
    with pytest.raises(ArgumentError, match="got ScatterElements of ONNX, which is computed on the host"):
        loss.backward()


def written(start, **attributes):
    mode = f'mode="{attributes.get("mode", "linear")}", axis=1'
    made = parser.parse_model(
        '<ir_version: 11, opset_import: ["": 24]> g (float[2, 4, 3] x, float[2, 2, 3] u, int64[2] i) => (float[] y) '
        f"{{ y = TensorScatter<{mode}>(x, u, i) }}"
    )
    return prepare(made).run({"x": np.zeros((2, 4, 3)), "u": drawn(2, 2, 3), "i": np.array(start)})[0]


def test_rows_of_a_cache_are_written_from_an_index_of_each_sample_on():
    rows = drawn(2, 2, 3)
    y = written([2, 3], mode="circular")
    np.testing.assert_array_equal(y[0, 2:], rows[0])
    np.testing.assert_array_equal(y[1, [3, 0]], rows[1])
    assert not y[0, :2].any() and not y[1, 1:3].any()


def test_rows_beyond_a_cache_are_refused():
    with pytest.raises(ArgumentError, match=r"must leave room for 2 of 4 rows, got \[0, 3\]"):
        written([0, 3])
