"""Names that are looked for in the wrong module, and words of other frameworks, end in the place where the thing is."""

import re
from importlib import import_module

import pytest

from nn_core.engine.error_messages.elsewhere import MODULES, WORDS
from nn_core.errors import UnknownAttributeError

RATES = "nn_core.utils.learning_rate_scheduler"
LOOKED_FOR = {
    "nn_core": {
        "Linear": "nn_core.layers.Linear",
        "Conv2d": "nn_core.layers.Conv",
        "LSTM": "nn_core.layers.LSTM",
        "relu": "nn_core.functions.relu",
        "zeros": "nn_core.functions.constant",
        "CrossEntropyLoss": "nn_core.functions.softmax_cross_entropy",
        "Adam": "nn_core.solvers.Adam",
        "DataLoader": "nn_core.data.data_iterator",
        "ImageFolder": "nn_core.data.ImageFolderDataSource",
        "EarlyStopping": "nn_core.training.early_stop",
        "lr_scheduler": RATES,
        "save_model": "nn_core.utils.save.save",
        "export": "nn_ext_onnx.export",
        "load_model": "nn_ext_onnx.OnnxModule",
        "Tensor": "Variable",
        "load": "load_parameters",
    },
    "nn_core.functions": {
        "focal_loss": "nn_core.training.focal_loss",
        "TripletMarginLoss": "nn_core.training.triplet_loss",
        "nll_loss": "categorical_cross_entropy",
        "batch_norm": "batch_normalization",
        "reluu": "relu",
    },
    "nn_core.layers": {
        "Sequential": "nn_core.Sequential",
        "ModuleList": "nn_core.ModuleList",
        "Dense": "Affine",
        "Concatenate": "nn_core.functions.concatenate",
    },
    "nn_core.solvers": {
        "SGD": "Sgd",
        "ReduceLROnPlateau": "nn_core.training.ReduceOnPlateau",
        "OneCycleLR": f"{RATES}.OneCycleScheduler",
        "StepLR": f"{RATES}.StepScheduler",
    },
    "nn_core.training": {
        "EarlyStopping": "nn_core.training.early_stop",
        "accuracy": "Accuracy",
        "ReduceLROnPlateau": "ReduceOnPlateau",
        "DataLoader": "nn_core.data.data_iterator",
    },
    "nn_core.data": {
        "TensorDataset": "nn_core.data.ArrayDataSource",
        "random_split": "nn_core.data.split",
        "WeightedRandomSampler": "nn_core.data.WeightedDataSource",
        "ArrayDataSorce": "ArrayDataSource",
    },
    RATES: {"CosineAnnealingLR": f"{RATES}.CosineScheduler"},
    "nn_core.initializer": {"xavier_uniform": "nn_core.initializer.calc_uniform_lim_glorot", "zeros": "ConstantInitializer"},
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in LOOKED_FOR.items() for name in names])
def test_the_place_is_told(module: str, name: str) -> None:
    with pytest.raises(UnknownAttributeError, match=f"'{name}'.*; did you mean {re.escape(repr(LOOKED_FOR[module][name]))}"):
        getattr(import_module(module), name)


@pytest.mark.parametrize(("module", "name"), [("nn_core", "vmap"), ("nn_core", "__wrapped__"), ("nn_core.functions", "_relu")])
def test_nothing_is_told_of_what_is_nowhere(module: str, name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(import_module(module), name)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("place", sorted({place for place in WORDS.values() if not place.startswith("nn_ext_")}))
def test_the_places_exist(place: str) -> None:
    module, _, name = place.rpartition(".")
    assert place in MODULES or hasattr(import_module(module), name)


@pytest.mark.parametrize("module", ["nn_core.data", "nn_core.training"])
def test_the_names_of_packages_can_be_imported(module: str) -> None:
    package = import_module(module)
    assert dir(package) == sorted(package.__all__)
    assert all(callable(getattr(package, name)) for name in package.__all__)
