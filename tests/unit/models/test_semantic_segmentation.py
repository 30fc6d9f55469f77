"""DeepLab v3+: its shapes and number of parameters; images for it, and pictures of categories."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, ShapeError
from nn_core.models.semantic_segmentation import DeepLabV3plus, ProcessImage
from nn_core.models.semantic_segmentation.image_preprocess import fitting_size, pad, preprocess_image_and_label
from nn_core.models.semantic_segmentation.utils import get_color, post_process_image, pre_process_image, save_image
from nn_core.utils.image_utils import imread

#: Of the published network with 21 categories, statistics of normalizations included.
N_NUMBERS = 41_258_213


@pytest.mark.parametrize(("output_stride", "size"), [(16, (65, 97)), pytest.param(8, (48, 33), marks=pytest.mark.slow)])
def test_the_network_has_its_parameters_keys_and_shapes(output_stride, size):
    model = DeepLabV3plus("voc", output_stride, weights=None)
    net = model(nn.Variable((2, 3, *size)), returns_net=True, training=True)
    fine = tuple(-(-length // 4) for length in size)
    assert {key: variable.shape for key, variable in net.variables.items() if key != "x"} == {
        "lastconv": (2, 256, *fine),
        "lastconv+relu": (2, 256, *fine),
        "segmentation": (2, 21, *size),
    }
    assert sum(w.size for w in nn.get_parameters(grad_only=False).values()) == N_NUMBERS
    assert (model.input_shape, len(model.category_names), model.category_names[15]) == ((3, 513, 513), 21, "person")


@pytest.mark.parametrize("output_stride", [16, 8])
def test_the_backbone_keeps_the_output_stride(output_stride):
    y = DeepLabV3plus(output_stride=output_stride, weights=None)(nn.Variable((1, 3, 129, 129)))
    shapes = []
    y.visit(lambda f: shapes.append(f.inputs[0].shape) if f.info.type_name == "GlobalAveragePooling" else None)
    assert shapes == [(1, 2048, 128 // output_stride + 1, 128 // output_stride + 1)]


@pytest.mark.slow
def test_a_step_of_training_changes_all_parameters(rng):
    model = DeepLabV3plus(weights=None)
    x = nn.Variable.from_numpy_array(rng.standard_normal((2, 3, 33, 33)).astype(np.float32))
    label = nn.Variable.from_numpy_array(rng.integers(0, 21, (2, 1, 33, 33)))
    loss = F.mean(F.softmax_cross_entropy(model(x, training=True), label, axis=1))
    loss.forward()
    loss.backward()
    assert np.isfinite(loss.d)
    without = [name for name, w in nn.get_parameters().items() if not w.g.any()]
    assert without == []
    assert not any(w.need_grad for w in DeepLabV3plus("voc-coco", weights=None)(x).parent.inputs)


def test_wrong_calls_are_refused():
    with pytest.raises(ArgumentError, match="DeepLabV3plus: dataset must be one of voc, voc-coco, got 'coco'"):
        DeepLabV3plus("coco")
    with pytest.raises(ArgumentError, match="output_stride must be one of 16, 8, got 32"):
        DeepLabV3plus("voc", 32)
    with pytest.raises(ArgumentError, match=r"use_up_to must be one of lastconv, lastconv\+relu, segmentation, got 'pool'"):
        DeepLabV3plus(weights=None)(use_up_to="pool")


def test_images_keep_their_proportions_in_the_upper_left_corner(rng):
    image = np.full((20, 30, 3), 255, np.uint8)
    made = pre_process_image(image, 64, 48)
    assert (made.shape, made.dtype) == ((1, 3, 64, 48), np.float32)
    assert (made[:, :, :32] == 1).all()
    assert (made[:, :, 32:] == 0).all()
    assert preprocess_image_and_label(image, 48, 64).shape == (64, 48, 3)
    same = rng.integers(0, 256, (9, 7, 3)).astype(np.uint8)
    np.testing.assert_allclose(preprocess_image_and_label(same, 7, 9), same / 127.5 - 1, atol=1e-6)
    assert fitting_size(np.zeros((1000, 1, 3)), 10, 10) == (10, 1)


@pytest.mark.parametrize("size", [(20, 30), (100, 40), (64, 48), (1, 9)])
def test_categories_find_back_to_the_image(size):
    image = np.zeros((*size, 3), np.uint8)
    height, width = fitting_size(image, 64, 48)
    labels = np.zeros((64, 48), np.uint8)
    labels[:height, width // 2 : width] = 7
    found = ProcessImage(image, 64, 48).post_process(labels)
    assert (found.shape, found.dtype) == (size, np.uint8)
    places = (np.arange(size[1]) + 0.5) * width / size[1]
    np.testing.assert_array_equal(found, np.broadcast_to(np.where(places >= width // 2, 7, 0), size))


def test_scores_are_categories_by_the_highest(rng):
    scores = rng.random((21, 8, 8))
    image = np.zeros((8, 8, 3), np.uint8)
    np.testing.assert_array_equal(post_process_image(scores, image, (8, 8)), scores.argmax(axis=0))
    with pytest.raises(ShapeError, match=r"output must have the shape \(8, 8\) or \(categories, .*\), got \(1, 21, 8, 8\)"):
        post_process_image(scores[None], image, (8, 8))


def test_pictures_have_the_colors_of_the_categories(tmp_path):
    label = np.arange(23).reshape(1, 23)
    save_image(str(tmp_path / "a.png"), label)
    np.testing.assert_array_equal(imread(str(tmp_path / "a.png"))[0], get_color())
    for colors in (np.full((30, 3), 0.2), np.full((30, 3), 51)):
        save_image(str(tmp_path / "b.png"), label, colors)
        assert (imread(str(tmp_path / "b.png")) == 51).all()
    with pytest.raises(ArgumentError, match="categories must be below the 2 of color_map, got 22"):
        save_image(str(tmp_path / "c.png"), label, [[0, 0, 0], [1, 1, 1]])
    with pytest.raises(ArgumentError, match=r"label must have the shape \(H, W\)"):
        save_image(str(tmp_path / "c.png"), label[None])
    assert not (tmp_path / "c.png").exists()


def test_a_picture_needs_a_result(tmp_path):
    process = ProcessImage(np.zeros((4, 6, 3), np.uint8), 8, 8)
    with pytest.raises(ArgumentError, match="post_process must be called before"):
        process.save_segmentation_image(str(tmp_path / "a.png"))
    process.post_process(np.full((8, 8), 2))
    process.save_segmentation_image(str(tmp_path / "a.png"))
    assert (imread(str(tmp_path / "a.png")) == [0, 128, 0]).all()


def test_images_of_other_shapes_are_refused():
    for shape in ((4, 6), (4, 6, 4), (0, 6, 3)):
        with pytest.raises(ShapeError, match=r"the image must have the shape \(H, W, 3\) with H and W above 0"):
            pre_process_image(np.zeros(shape, np.uint8), 8, 8)
    with pytest.raises(ArgumentError, match=r"desired_size must be at least that of the image, \(4, 6\), got \(3, 9\)"):
        pad(np.zeros((4, 6, 3)), (3, 9))
