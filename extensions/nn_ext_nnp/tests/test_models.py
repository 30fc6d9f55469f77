"""Models of nn_core that are read as networks from .nnp files: keys, sizes of images, training."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.models.imagenet import SqueezeNetV11
from nn_core.models.object_detection import YoloV2
from nn_core.models.semantic_segmentation import DeepLabV3plus
from nn_core.utils.save import save


@pytest.fixture
def file(tmp_path):
    """The path of a network in a file, and the model that was saved."""
    with nn.parameter_scope("made"):
        model = SqueezeNetV11(weights=None)
        x = nn.Variable((1, 3, 227, 227))
        network = {"name": "Training", "batch_size": 1, "outputs": {"y": model(x)}, "names": {"x": x}}
        executor = {"name": "runtime", "network": "Training", "data": ["x"], "output": ["y"]}
        save(str(tmp_path / "a.nnp"), {"networks": [network], "executors": [executor]})
    return tmp_path / "a.nnp", model


def test_keys_are_places_of_the_network(file):
    path, made = file
    model = SqueezeNetV11(weights=path)
    x = nn.Variable.from_numpy_array(np.random.default_rng(0).uniform(0, 255, (2, 3, 227, 227)))
    for key in model.keys:
        y = model(x, use_up_to=key)
        with nn.parameter_scope("made"):
            expected = made(x, use_up_to=key)
        nn.forward_all([y, expected])
        np.testing.assert_allclose(y.d, expected.d, rtol=1e-5, atol=1e-5)
    assert "SqueezeNetV11/features/0/conv/W" in nn.get_parameters(grad_only=False)


def test_images_of_other_sizes_need_a_global_pooling(file):
    path, _ = file
    model = SqueezeNetV11(weights=path)
    x = nn.Variable((1, 3, 131, 163))
    with pytest.raises(ValueError, match=r"images must have the size \(227, 227\), got \(131, 163\)"):
        model(x)
    assert model(x, force_global_pooling=True).shape == (1, 1000)


def test_training_decides_whether_parameters_are_trained(file):
    path, _ = file
    model = SqueezeNetV11(weights=path)
    assert model(training=True).need_grad
    assert not model().need_grad


def test_a_place_that_the_network_lacks_is_refused(file):
    path, _ = file
    model = SqueezeNetV11(weights=path)
    model.keys = (*model.keys, "lastfeature")
    with pytest.raises(ValueError, match=r"the network of a\.nnp must have a place for 'lastfeature', got none"):
        model(use_up_to="lastfeature")
    change = nn.utils.nnp_graph.NnpNetworkPass()
    model.use_up_to("pool", change)
    with pytest.raises(ValueError, match="use_up_to must be one of"):
        model.use_up_to("fc", change)


def test_the_places_of_a_detector_are_before_and_behind_its_last_convolution(tmp_path):
    with nn.parameter_scope("made"):
        x = nn.Variable((1, 3, 64, 64))
        h = F.max_pooling(F.relu(PF.convolution(x, 4, (3, 3), pad=(1, 1), name="first")), (2, 2))
        last = F.relu(h)
        network = {"name": "runtime", "batch_size": 1, "names": {"x": x}}
        network["outputs"] = {"y": F.sigmoid(PF.convolution(last, 2, (1, 1), name="last"))}
        executor = {"name": "runtime", "network": "runtime", "data": ["x"], "output": ["y"]}
        save(str(tmp_path / "a.nnp"), {"networks": [network], "executors": [executor]})
    model = YoloV2(weights=tmp_path / "a.nnp")
    kinds = {key: model(x, use_up_to=key).parent.info.type_name for key in model.keys}
    assert kinds == {"lastconv": "ReLU", "convdetect": "Convolution", "detection": "Sigmoid"}


def test_the_places_of_a_segmentation_are_before_its_scores(tmp_path):
    with nn.parameter_scope("made"):
        x = nn.Variable((1, 3, 64, 64))
        h = F.relu(PF.convolution(x, 4, (3, 3), pad=(1, 1), name="first"))
        last = F.relu(PF.batch_normalization(h, batch_stat=False))
        scores = PF.convolution(last, 21, (1, 1), name="last")
        network = {"name": "runtime", "batch_size": 1, "names": {"x": x}}
        network["outputs"] = {"y": F.interpolate(scores, output_size=(64, 64), mode="linear", align_corners=True)}
        executor = {"name": "runtime", "network": "runtime", "data": ["x"], "output": ["y"]}
        save(str(tmp_path / "a.nnp"), {"networks": [network], "executors": [executor]})
    model = DeepLabV3plus(weights=tmp_path / "a.nnp")
    kinds = {key: model(x, use_up_to=key).parent.info.type_name for key in model.keys}
    assert kinds == {"lastconv": "BatchNormalization", "lastconv+relu": "ReLU", "segmentation": "Interpolate"}
