"""Models with the weights of PyTorch's compute what PyTorch's compute; needs torch, torchvision and safetensors."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.parametric_functions as PF
from nn_core.io import load_pytorch_parameters
from nn_core.models import imagenet
from nn_core.models.transformer import VisionTransformer

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch", reason="the results are compared with those of PyTorch, which no test depends on")
torchvision = pytest.importorskip("torchvision", reason="the networks that are compared are those of torchvision")
safetensors = pytest.importorskip("safetensors.torch", reason="state dicts are saved by safetensors")

#: Names of torchvision's functions.
NETWORKS = {
    "alexnet": "AlexNet",
    "densenet161": "DenseNet",
    "googlenet": "GoogLeNet",
    "inception_v3": "InceptionV3",
    "mobilenet_v2": "MobileNetV2",
    "resnet18": "ResNet18",
    "resnet50": "ResNet50",
    "resnext50_32x4d": "ResNeXt50",
    "squeezenet1_0": "SqueezeNetV10",
    "squeezenet1_1": "SqueezeNetV11",
    "vgg11": "VGG11",
}


def _drawn(module):
    """The network in evaluation mode, with statistics that are not 0 and 1."""
    for layer in module.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            for values, low, high in ((layer.running_mean, -0.1, 0.1), (layer.running_var, 0.8, 1.2)):
                values.uniform_(low, high)
            torch.nn.init.uniform_(layer.weight, 0.8, 1.2)
    return module.eval()


@pytest.mark.parametrize("theirs", NETWORKS)
def test_networks_of_imagenet(theirs, tmp_path, rng):
    torch.manual_seed(0)
    options = {"init_weights": True} if theirs in ("googlenet", "inception_v3") else {}
    network = _drawn(getattr(torchvision.models, theirs)(weights=None, **options))
    path = tmp_path / "weights.safetensors"
    safetensors.save_file(network.state_dict(), path)
    model = getattr(imagenet, NETWORKS[theirs])(weights=path)
    images = rng.uniform(0, 255, (1, *model.input_shape)).astype(np.float32)
    means, deviations = (np.reshape(v, (1, 3, 1, 1)) for v in (model.means, model.deviations))
    with torch.no_grad():
        expected = network(torch.tensor(((images - means) / deviations).astype(np.float32))).numpy()
    y = model(nn.Variable.from_numpy_array(images))
    y.forward(clear_buffer=True)
    np.testing.assert_allclose(y.d, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def test_a_vision_transformer(tmp_path, rng):
    torch.manual_seed(0)
    network = torchvision.models.VisionTransformer(32, 8, 2, 4, 16, 64, num_classes=5).eval()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    safetensors.save_file(network.state_dict(), tmp_path / "vit.safetensors")
    vit = VisionTransformer(32, 8, n_layers=2, n_features=16, n_heads=4, n_hidden=64, n_classes=5)
    x = rng.standard_normal((2, 3, 32, 32)).astype(np.float32)
    y = vit(nn.Variable.from_numpy_array(x))
    assert load_pytorch_parameters(tmp_path / "vit.safetensors", vit.torchvision_layers(), vit.get_parameters()).is_exact
    y.forward()
    with torch.no_grad():
        np.testing.assert_allclose(y.d, network(torch.tensor(x)).numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers(kind, tmp_path, rng):
    torch.manual_seed(0)
    network = torch.nn.ModuleDict({"rnn": getattr(torch.nn, kind)(3, 4, num_layers=2, bidirectional=True)})
    safetensors.save_file(network.state_dict(), tmp_path / "rnn.safetensors")
    x = rng.standard_normal((5, 2, 3)).astype(np.float32)
    states = [nn.Variable.from_numpy_array(np.zeros((2, 2, 2, 4))) for _ in range(2 if kind == "LSTM" else 1)]
    layer = getattr(PF, kind.lower())
    y, *_ = layer(nn.Variable.from_numpy_array(x), *states, num_layers=2, bidirectional=True, name="rnn")
    assert load_pytorch_parameters(tmp_path / "rnn.safetensors").is_exact
    y.forward()
    with torch.no_grad():
        expected, _ = network["rnn"](torch.tensor(x))
    np.testing.assert_allclose(y.d, expected.numpy(), rtol=1e-4, atol=1e-5)
