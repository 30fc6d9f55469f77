"""Networks of ImageNet: parameters, keys, sizes of images, auxiliary classifiers."""

import numpy as np
import pytest

import nn_core as nn
from nn_core.errors import ArgumentError
from nn_core.models import imagenet
from nn_core.models.imagenet.base import GLOBAL_POOLING_KEYS

PLAIN_KEYS = ("lastconv", "lastconv+relu", "pool", "lastfeature", "classifier")
INCEPTION_KEYS = ("prepool", "pool", "classifier")

#: Trained numbers, keys, shape of the last maps; the numbers are those of the papers' tables or of torchvision's models.
NETWORKS = {
    "ResNet18": (11_689_512, GLOBAL_POOLING_KEYS, (512, 7, 7)),
    "ResNet34": (21_797_672, GLOBAL_POOLING_KEYS, (512, 7, 7)),
    "ResNet50": (25_557_032, GLOBAL_POOLING_KEYS, (2048, 7, 7)),
    "ResNet101": (44_549_160, GLOBAL_POOLING_KEYS, (2048, 7, 7)),
    "ResNeXt50": (25_028_904, GLOBAL_POOLING_KEYS, (2048, 7, 7)),
    "DenseNet": (28_681_000, GLOBAL_POOLING_KEYS, (2208, 7, 7)),
    "MobileNet": (4_231_976, GLOBAL_POOLING_KEYS, (1024, 7, 7)),
    "MobileNetV2": (3_504_872, GLOBAL_POOLING_KEYS, (1280, 7, 7)),
    "ShuffleNet05": (718_888, GLOBAL_POOLING_KEYS, (480, 7, 7)),
    "ShuffleNet10": (1_865_728, GLOBAL_POOLING_KEYS, (960, 7, 7)),
    "ShuffleNet20": (5_448_208, GLOBAL_POOLING_KEYS, (1920, 7, 7)),
    "NIN": (7_595_176, GLOBAL_POOLING_KEYS, (1000, 6, 6)),
    "SqueezeNetV10": (1_248_424, GLOBAL_POOLING_KEYS, (1000, 13, 13)),
    "SqueezeNetV11": (1_235_496, GLOBAL_POOLING_KEYS, (1000, 14, 14)),
    "Xception": (22_855_952, GLOBAL_POOLING_KEYS, (2048, 10, 10)),
    "GoogLeNet": (6_624_904, INCEPTION_KEYS, (1024, 7, 7)),
    "InceptionV3": (23_834_568, INCEPTION_KEYS, (2048, 8, 8)),
}
#: The same for networks that take more than two seconds to fill with random values.
LARGE = {
    "ResNet152": (60_192_808, GLOBAL_POOLING_KEYS, (2048, 7, 7)),
    "ResNeXt101": (83_455_272, GLOBAL_POOLING_KEYS, (2048, 7, 7)),
    "SENet": (115_088_984, GLOBAL_POOLING_KEYS, (2048, 7, 7)),
    "AlexNet": (61_100_840, PLAIN_KEYS, (256, 13, 13)),
    "VGG11": (132_863_336, PLAIN_KEYS, (512, 14, 14)),
    "VGG13": (133_047_848, PLAIN_KEYS, (512, 14, 14)),
    "VGG16": (138_357_544, PLAIN_KEYS, (512, 14, 14)),
}


@pytest.mark.parametrize("name", [*NETWORKS, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)])
def test_each_network_has_its_parameters_keys_and_shapes(name):
    n_numbers, keys, maps = (NETWORKS | LARGE)[name]
    model = getattr(imagenet, name)(weights=None)
    net = model(returns_net=True, training=True)
    assert model.name == name or name in ("ResNet", "SENet")
    assert model.keys == keys == tuple(key for key in net.variables if key != "x")
    assert net.variables[keys[0]].shape == (1, *maps)
    assert net.inputs["x"].shape == (1, *model.input_shape)
    assert net.outputs["classifier"].shape == (1, 1000)
    assert sum(w.size for w in nn.get_parameters(grad_only=True).values()) == n_numbers
    assert all(parameter.startswith(f"{name}/") for parameter in nn.get_parameters())


def test_the_general_classes_choose_by_an_argument():
    for model, name in (
        (imagenet.ResNet(50, weights=None), "ResNet50"),
        (imagenet.ResNeXt(101, weights=None), "ResNeXt101"),
        (imagenet.VGG(16, weights=None), "VGG16"),
        (imagenet.ShuffleNet(5, weights=None), "ShuffleNet05"),
        (imagenet.SqueezeNet("v1.0", weights=None), "SqueezeNetV10"),
    ):
        assert model.name == name
    for make, message in (
        (lambda: imagenet.ResNet(20), "ResNet: num_layers must be one of 18, 34, 50, 101, 152, got 20"),
        (lambda: imagenet.ShuffleNet(True), "ShuffleNet: scaling_factor must be one of 5, 10, 20, got True"),
        (lambda: imagenet.SqueezeNet("1.1"), "SqueezeNet: version must be one of v1.0, v1.1, got '1.1'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            make()


def test_a_part_of_a_network_makes_no_other_parameters():
    model = imagenet.ShuffleNet05(weights=None)
    pool = model(use_up_to="pool", training=True)
    assert pool.shape == (1, 480, 1, 1)
    assert "ShuffleNet05/fc/affine/W" not in nn.get_parameters()
    model(training=True)
    assert "ShuffleNet05/fc/affine/W" in nn.get_parameters()


def test_calls_share_the_parameters_and_training_decides_whether_they_are_trained(rng):
    model = imagenet.SqueezeNetV11(weights=None)
    x = nn.Variable.from_numpy_array(rng.uniform(0, 255, (1, 3, 64, 64)))
    fixed = model(x, force_global_pooling=True)
    trained = model(x, force_global_pooling=True, training=True, use_up_to="lastconv")
    assert not fixed.need_grad
    assert trained.need_grad
    for parameter in nn.get_parameters().values():
        parameter.grad.zero()
    trained.forward()
    trained.backward()
    name = "SqueezeNetV11/features/0/conv/W"
    assert np.abs(nn.get_parameters()[name].g).max() > 0
    fixed.forward()
    before = fixed.d.copy()
    nn.get_parameters()[name].d *= 2
    fixed.forward()
    assert not np.allclose(fixed.d, before)


def test_the_last_pooling_is_checked_forced_or_left(rng):
    model = imagenet.SqueezeNetV11(weights=None)
    x = nn.Variable.from_numpy_array(rng.uniform(0, 255, (2, 3, 259, 259)))
    with pytest.raises(ArgumentError, match=r"images must have the size \(227, 227\), got others.*sees \(16, 16\)"):
        model(x)
    assert model(x, use_up_to="lastconv+relu").shape == (2, 1000, 16, 16)
    left = model(x, check_global_pooling=False, use_up_to="pool")
    assert left.shape == (2, 1000, 3, 3)
    net = model(x, force_global_pooling=True, returns_net=True)
    nn.forward_all(list(net.variables.values())[1:])
    maps, result = net.variables["lastconv+relu"].d, net.outputs["classifier"].d
    np.testing.assert_allclose(result, maps.mean(axis=(2, 3)), rtol=1e-4, atol=1e-6)


def test_images_are_normalized_inside():
    model = imagenet.SqueezeNetV11(weights=None)
    x = nn.Variable.from_numpy_array(np.broadcast_to(np.reshape(model.means, (1, 3, 1, 1)), (1, 3, 32, 32)))
    y = model(x, use_up_to="lastconv")
    y.forward()
    np.testing.assert_array_equal(y.d, 0)  # images of the means are zeros, and initial biases are zeros


def test_towers_are_beside_the_classifier():
    model = imagenet.GoogLeNet(weights=None)
    assert [y.shape for y in model(with_aux_tower=True)] == [(1, 1000)] * 3
    assert sum(w.size for n, w in model.get_parameters().items() if "/aux" in f"/{n}") > 6_000_000
    assert [y.shape for y in imagenet.InceptionV3(weights=None)(with_aux_tower=True)] == [(1, 1000)] * 2
    for name, key in (("GoogLeNet", "pool"), ("SqueezeNetV11", "classifier")):
        with pytest.raises(ArgumentError, match="with_aux_tower must be False"):
            getattr(imagenet, name)(weights=None)(use_up_to=key, with_aux_tower=True)


def test_wrong_calls_are_refused():
    model = imagenet.SqueezeNetV11(weights=None)
    for call, message in (
        (lambda: model(use_up_to="pool5"), r"must be one of lastconv, lastconv\+relu, pool, classifier, got 'pool5'"),
        (lambda: model(use_from="pool"), "use_from must be None, got 'pool'"),
        (lambda: model(nn.Variable((1, 1, 227, 227))), r"input_var must have the shape \(N, 3, H, W\), got shape \(1, 1, 227"),
        (lambda: model(np.zeros((1, 3, 227, 227))), "input_var must have the shape"),
        (lambda: model.use_up_to("pool", None), "weights must be a file with a network"),
    ):
        with pytest.raises(ArgumentError, match=message):
            call()
    model()
    with pytest.raises(ArgumentError, match="got that of another model"):
        imagenet.SqueezeNetV11(weights=None)()
    with nn.parameter_scope("second"):
        imagenet.SqueezeNetV11(weights=None)()
    assert "second/SqueezeNetV11/features/0/conv/W" in nn.get_parameters()
