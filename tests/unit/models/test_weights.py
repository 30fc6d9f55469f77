"""Weights of models come from files: of ours, of PyTorch, from the folder of models or from an address."""

import numpy as np
import pytest

import nn_core as nn
from nn_core.errors import ArgumentError, FileFormatError, MissingFileError, ShapeError
from nn_core.models import utils
from nn_core.models.imagenet import ResNet18, ShuffleNet05, ShuffleNet10, SqueezeNetV11
from nn_core.models.object_detection import YoloV2
from nn_core.models.semantic_segmentation import DeepLabV3plus
from nn_core.settings import set_nnabla_program, settings


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("NN_CORE_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("NN_CORE_MODELS_URL_BASE", raising=False)
    monkeypatch.delenv("NNABLA_MODELS_URL_BASE", raising=False)
    settings.cache_clear()
    yield tmp_path / "data" / "nnp_models"
    set_nnabla_program(False)
    monkeypatch.undo()
    settings.cache_clear()


def _saved(path, with_scope):
    """A file with the parameters of a model, and what the model computes."""
    with nn.parameter_scope("other"):
        model = SqueezeNetV11(weights=None)
        x = nn.Variable.from_numpy_array(np.linspace(0, 255, 3 * 64 * 64).reshape(1, 3, 64, 64))
        y = model(x, use_up_to="lastconv")
        y.forward()
        nn.save_parameters(path, None if with_scope else model.get_parameters())
    return x, y.d.copy()


@pytest.mark.parametrize("with_scope", [True, False])
def test_a_file_of_parameters_gives_the_same_results(home, tmp_path, with_scope):
    x, expected = _saved(tmp_path / "a.safetensors", with_scope)
    y = SqueezeNetV11(weights=tmp_path / "a.safetensors")(x, use_up_to="lastconv")
    y.forward()
    np.testing.assert_array_equal(y.d, expected)


def test_the_folder_of_models_is_looked_through(home):
    with pytest.raises(MissingFileError, match=r"imagenet as SqueezeNetV11 with .*\n.*weights=path(.|\n)*weights=None"):
        SqueezeNetV11()
    (home / "imagenet").mkdir()
    x, expected = _saved(home / "imagenet" / "SqueezeNetV11.h5", True)
    y = SqueezeNetV11()(x, use_up_to="lastconv")
    y.forward()
    np.testing.assert_array_equal(y.d, expected)
    with pytest.raises(MissingFileError, match=r"categories.txt must have a name in each line"):
        _ = SqueezeNetV11().category_names
    (home / "imagenet" / "categories.txt").write_text("cat\ndog\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match="must have 1000 lines, got 2"):
        _ = SqueezeNetV11().category_names
    (home / "imagenet" / "categories.txt").write_text("\n".join(map(str, range(1000))), encoding="utf-8")
    assert SqueezeNetV11().category_names[999] == "999"


def test_files_are_fetched_only_where_an_address_is_set(home, tmp_path, monkeypatch):
    assert utils.get_model_url_base_from_env() is None
    with pytest.raises(ArgumentError, match="NN_CORE_MODELS_URL_BASE must be an address, got none"):
        utils.get_model_url_base()
    monkeypatch.setenv("NN_CORE_MODELS_URL_BASE", (tmp_path / "server").as_uri())
    settings.cache_clear()
    assert utils.get_model_url_base() == (tmp_path / "server").as_uri() + "/"
    (tmp_path / "server" / "imagenet").mkdir(parents=True)
    (tmp_path / "server" / "imagenet" / "SqueezeNetV11.nnp").write_bytes(b"no network")
    with pytest.raises(Exception, match=r"SqueezeNetV11\.nnp|nn-ext-nnp"):  # without the package its pip line
        SqueezeNetV11()
    assert (home / "imagenet" / "SqueezeNetV11.nnp").read_bytes() == b"no network"


@pytest.mark.parametrize(
    ("model", "file"),
    [
        (ResNet18, "imagenet/Resnet-18/Resnet-18.nnp"),
        (ShuffleNet05, "imagenet/ShuffleNet-0.5x/ShuffleNet-0.5x.nnp"),
        (ShuffleNet10, "imagenet/ShuffleNet/ShuffleNet.nnp"),
        (SqueezeNetV11, "imagenet/SqueezeNet-1.1/SqueezeNet-1.1.nnp"),
        (YoloV2, "object_detection/yolov2-voc.nnp"),
        (DeepLabV3plus, "semantic_segmentation/DeepLabV3-voc-os-16.nnp"),
    ],
)
def test_unchanged_programs_find_the_files_of_nnabla(model, file, home, tmp_path, monkeypatch):
    monkeypatch.setenv("NNABLA_MODELS_URL_BASE", (tmp_path / "server").as_uri())
    settings.cache_clear()
    (tmp_path / "server" / file).parent.mkdir(parents=True)
    (tmp_path / "server" / file).write_bytes(b"no network")
    with pytest.raises(MissingFileError, match="weights must be in"):  # not in the mode
        model()
    set_nnabla_program(True)
    task, name = file.split("/")[0], file.split("/")[-1]
    for _ in ("fetched", "found"):
        with pytest.raises(Exception, match=rf"{name}|nn-ext-nnp"):
            model()
        assert (home / task / name).read_bytes() == b"no network"
        (tmp_path / "server" / file).unlink(missing_ok=True)


def test_a_state_dict_of_pytorch_is_recognised(home, tmp_path, rng):
    model = ResNet18(weights=None)
    x = nn.Variable.from_numpy_array(rng.uniform(0, 255, (1, 3, 32, 32)))
    y = model(x, use_up_to="lastconv")
    tensors = {"bn1.num_batches_tracked": np.zeros(1)}
    endings = {"W": "weight", "gamma": "weight", "beta": "bias", "mean": "running_mean", "var": "running_var"}
    for name, parameter in model.get_parameters().items():
        *scopes, _, key = name.split("/")
        parameter.d = rng.uniform(0.5, 1, parameter.shape)
        tensors[".".join([*scopes, endings[key]])] = parameter.d if key == "W" else parameter.d.ravel()
    assert "layer3.0.downsample.1.running_var" in tensors
    y.forward()
    path = tmp_path / "resnet18.safetensors"
    nn.save_parameters(path, {name: nn.Variable.from_numpy_array(values) for name, values in tensors.items()})
    nn.clear_parameters()
    again = ResNet18(weights=path)
    loaded = again(x, use_up_to="lastconv")
    loaded.forward()
    np.testing.assert_array_equal(loaded.d, y.d)
    with pytest.raises(ArgumentError, match=r"the file must have 'fc.weight' for the parameter 'fc/affine/W', got none"):
        again(x, force_global_pooling=True)


def test_what_does_not_fit_is_refused(home, tmp_path):
    with pytest.raises(MissingFileError, match=r"the file of weights must exist, got no nowhere\.h5"):
        SqueezeNetV11(weights="nowhere.h5")
    with pytest.raises(ArgumentError, match="weights must be 'pretrained', a path or None, got 3"):
        SqueezeNetV11(weights=3)
    nn.save_parameters(tmp_path / "a.npz", {"features/0/conv/W": nn.Variable((1, 2))})
    with pytest.raises(ShapeError, match=r"'features/0/conv/W' of a.npz must have the shape \(64, 3, 3, 3\), got \(1, 2\)"):
        SqueezeNetV11(weights=tmp_path / "a.npz")()
    nn.save_parameters(tmp_path / "b.npz", {"features/1/conv/W": nn.Variable((1, 2))})
    with pytest.raises(ArgumentError, match=r"b\.npz must have the parameter 'features/0/conv/W', got none"):
        SqueezeNetV11(weights=tmp_path / "b.npz")()
