"""Contents for `save` with each kind of fault once: each is an ArgumentError that names the place."""

import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.errors import ArgumentError
from nn_core.utils.load import load
from nn_core.utils.save import save


def contents():
    x = nn.Variable((4, 2))
    return {
        "global_config": {"default_context": nn.get_current_context()},
        "training_config": {"max_epoch": 1, "iter_per_epoch": 4 / 2, "save_best": True, "monitor_interval": 1},
        "networks": [{"name": "net", "batch_size": 4, "outputs": {"y": F.tanh(x)}, "names": {"x": x}}],
        "datasets": [
            {"name": "data", "uri": "data.csv", "cache_dir": "cache", "variables": {"x": x}, "shuffle": True, "batch_size": 4}
            | {"no_image_normalization": False}
        ],
        "optimizers": [
            {"name": "adam", "solver": S.Adam(), "network": "net", "dataset": "data", "weight_decay": 0, "lr_decay": 1}
            | {"lr_decay_interval": 1, "update_interval": 1}
        ],
        "monitors": [{"name": "monitor", "network": "net", "dataset": "data"}],
        "executors": [{"name": "executor", "network": "net", "data": ["x"], "output": ["y"]}],
    }


PLACES = [(part, key) for part, given in contents().items() for key in (given if isinstance(given, dict) else given[0])]
#: Keys of which absence has a meaning.
OPTIONAL = {"default_context", "cache_dir", "uri", "shuffle", "batch_size", "no_image_normalization", "monitor_interval"}
OPTIONAL |= {"weight_decay", "lr_decay", "lr_decay_interval", "update_interval", "data", "output"}


def written(given, tmp_path):
    save(tmp_path / "file.nntxt", given)
    return load([tmp_path / "file.nntxt"], prepare_data_iterator=False)


def part_of(given, part):
    return given[part] if isinstance(given[part], dict) else given[part][0]


def test_whole_numbers_may_be_floats(tmp_path):
    assert written(contents(), tmp_path).training_config.iter_per_epoch == 2
    with pytest.raises(ArgumentError, match=r"'max_epoch' of training_config must be a whole number, got 2\.5"):
        save(tmp_path / "other.nntxt", {"training_config": {"max_epoch": 2.5, "iter_per_epoch": 1, "save_best": True}})
    assert not (tmp_path / "other.nntxt").exists()


@pytest.mark.parametrize(("part", "key"), PLACES)
def test_missing_keys_are_named(part, key, tmp_path):
    given = contents()
    del part_of(given, part)[key]
    if key in OPTIONAL and (part, key) != ("networks", "batch_size"):
        written(given, tmp_path)
        return
    with pytest.raises(ArgumentError, match=f"{key!r}|must name one of the networks"):
        written(given, tmp_path)


@pytest.mark.parametrize("wrong", [object(), 2.5, -1j], ids=["object", "fraction", "complex"])
@pytest.mark.parametrize(("part", "key"), PLACES)
def test_values_of_another_kind_are_named(part, key, wrong, tmp_path):
    given = contents()
    part_of(given, part)[key] = wrong
    if wrong == 2.5 and key in ("weight_decay", "lr_decay"):
        assert written(given, tmp_path).optimizers["adam"]
        return
    with pytest.raises(ArgumentError, match=f"{key!r} of {part} must be "):
        written(given, tmp_path)


@pytest.mark.parametrize("part", contents())
@pytest.mark.parametrize("wrong", [None, 3, "text", ["text"], {"a": 1}.values()], ids=str)
def test_parts_of_another_kind_are_named(part, wrong, tmp_path):
    with pytest.raises(ArgumentError, match=f"save: {part} must (be a list of|hold) dictionaries, got"):
        written({**contents(), part: wrong}, tmp_path)


def test_a_configuration_may_be_empty(tmp_path):
    assert written({**contents(), "global_config": {}}, tmp_path).networks.keys() == {"net"}
