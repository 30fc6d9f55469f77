"""YOLO v2: boxes from the last maps, images with borders, drawn boxes."""

import numpy as np
import pytest

import nn_core as nn
from nn_core.errors import ArgumentError, MissingFileError, ShapeError
from nn_core.models.object_detection import LetterBoxTransform, YoloV2, draw_bounding_boxes, letterbox
from nn_core.models.object_detection.yolov2 import _boxes


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


NETWORKS = [("voc", 20, 50_655_389), pytest.param("coco", 80, 50_962_889, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("dataset", "n_categories", "n_numbers"), NETWORKS)
def test_the_network_has_its_parameters_keys_and_shapes(dataset, n_categories, n_numbers):
    model = YoloV2(dataset, weights=None)
    net = model(nn.Variable((2, 3, 64, 96)), returns_net=True, training=True)
    shapes = {key: variable.shape for key, variable in net.variables.items() if key != "x"}
    assert shapes == {
        "lastconv": (2, 1024, 2, 3),
        "convdetect": (2, 5 * (5 + n_categories), 2, 3),
        "detection": (2, 30, 5 + n_categories),
    }
    assert sum(w.size for w in nn.get_parameters().values()) == n_numbers
    assert model.input_shape == (3, *model.get_nnp_input_size())


def test_boxes_are_in_parts_of_the_image(rng):
    anchors = ((1.0, 2.0), (3.0, 0.5))
    h = rng.standard_normal((2, 2 * 8, 2, 3)).astype(np.float32)  # 2 anchors, 3 categories
    y = _boxes(nn.Variable.from_numpy_array(h), anchors)
    y.forward()
    for n, row, column, anchor in np.ndindex(2, 2, 3, 2):
        v = h[n, 8 * anchor : 8 * anchor + 8, row, column]
        scores = np.exp(v[5:]) / np.exp(v[5:]).sum()
        expected = [(column + _sigmoid(v[0])) / 3, (row + _sigmoid(v[1])) / 2]
        expected += [anchors[anchor][0] * np.exp(v[2]) / 3, anchors[anchor][1] * np.exp(v[3]) / 2, _sigmoid(v[4]), *scores]
        np.testing.assert_allclose(y.d[n, (row * 3 + column) * 2 + anchor], expected, rtol=1e-4, atol=1e-6)


def test_a_letterbox_keeps_proportions_and_boxes_find_back(rng):
    image = rng.integers(0, 256, (20, 40, 3)).astype(np.uint8)
    boxed, width, height = letterbox(image, 64, 96)
    assert (boxed.shape, width, height) == ((64, 96, 3), 96, 48)
    assert (boxed[:8] == 127).all()
    assert (boxed[56:] == 127).all()
    assert not (boxed[8:56] == 127).all()
    transform = LetterBoxTransform(image, 64, 96)
    np.testing.assert_array_equal(transform.image, boxed)
    inside = np.array([[0.5, 8 / 64, 0.25, 24 / 64, 0.9]])  # centre at the upper edge, half of the height
    np.testing.assert_allclose(transform.inverse_coordinate_transform(inside), [[0.5, 0, 0.25, 0.5, 0.9]], atol=1e-7)
    with pytest.raises(ShapeError, match=r"letterbox: the image must have the shape \(H, W, 3\), got \(20, 40\)"):
        letterbox(image[..., 0], 64, 96)


def test_boxes_above_the_threshold_are_drawn():
    image = np.zeros((40, 60, 3), np.uint8)
    boxes = np.array([[0.5, 0.5, 0.5, 0.5, 1, 0.9, 0.1], [0.2, 0.2, 0.1, 0.1, 1, 0.4, 0.3]])
    drawn = draw_bounding_boxes(image, boxes, ["cat", "dog"], colors=[(255, 0, 0), (0, 255, 0)])
    assert drawn[30, 30].tolist() == [255, 0, 0]
    assert not drawn[..., 1:].any(where=(drawn[..., :1] == 0))
    assert not image.any()
    assert draw_bounding_boxes(image, boxes, ["cat", "dog"]).any()
    with pytest.raises(ShapeError, match=r"bboxes must have the shape \(N, 6\), got \(2, 7\)"):
        draw_bounding_boxes(image, boxes, ["cat"])
    with pytest.raises(ArgumentError, match="colors must be as many as names, 2, got 1"):
        draw_bounding_boxes(image, boxes, ["cat", "dog"], colors=[(1, 2, 3)])


def test_wrong_calls_are_refused(monkeypatch, tmp_path):
    model = YoloV2(weights=None)
    with pytest.raises(ArgumentError, match=r"lengths divisible by 32, got \(64, 100\)"):
        model(nn.Variable((1, 3, 64, 100)))
    with pytest.raises(ArgumentError, match="use_up_to must be one of lastconv, convdetect, detection, got 'pool'"):
        model(use_up_to="pool")
    with pytest.raises(ArgumentError, match="YoloV2: dataset must be one of voc, coco, got 'voc2012'"):
        YoloV2("voc2012")
    monkeypatch.setattr("nn_core.models.base.get_model_home", lambda: str(tmp_path))
    with pytest.raises(MissingFileError, match=r"YoloV2_voc_categories\.txt must have a name in each line, got no file"):
        model.get_category_names()
    (tmp_path / "object_detection").mkdir()
    path = tmp_path / "object_detection" / "YoloV2_voc_categories.txt"
    path.write_text("\n".join(f"c{n}" for n in range(20)), encoding="utf-8")
    assert model.get_category_names()[19] == "c19"
    path.write_text("one\n", encoding="utf-8")
    with pytest.raises(ValueError, match="must have 20 lines, got 1"):
        model.get_category_names()
