"""Names that programs look for in the wrong module, or that are words of other frameworks for something in another module."""

import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Final

from nn_core.engine.error_messages.synonyms import meant, plain_name

_RATES: Final = "nn_core.utils.learning_rate_scheduler"
#: Modules with names that programs call, in the order in which they are looked through.
MODULES: Final = (
    "nn_core", "nn_core.layers", "nn_core.functions", "nn_core.parametric_functions", "nn_core.solvers", "nn_core.training",
    "nn_core.data", "nn_core.initializer", _RATES,
)  # fmt: skip
#: Places by the lower-case name elsewhere without underscores.
WORDS: Final[dict[str, str]] = {
    # losses and metrics
    **dict.fromkeys(("focalloss", "sigmoidfocalloss", "binaryfocalcrossentropy"), "nn_core.training.focal_loss"),
    **dict.fromkeys(("tripletloss", "tripletmarginloss"), "nn_core.training.triplet_loss"),
    **dict.fromkeys(("cosineembeddingloss", "cosinesimilarity"), "nn_core.training.cosine_embedding_loss"),
    **dict.fromkeys(("ctc", "ctcloss"), "nn_core.training.ctc_loss"),
    **dict.fromkeys(("labelsmoothing", "sparsecategoricalcrossentropy"), "nn_core.training.cross_entropy"),
    **dict.fromkeys(("auc", "auroc", "rocauc", "rocaucscore"), "nn_core.training.AreaUnderCurve"),
    **dict.fromkeys(("f1", "f1score", "recall", "precision", "confusionmatrix"), "nn_core.training.Confusion"),
    **dict.fromkeys(("r2", "r2score", "meanabsoluteerror"), "nn_core.training.RegressionErrors"),
    **dict.fromkeys(("losses", "metrics", "callbacks", "trainer"), "nn_core.training"),
    # training
    "earlystopping": "nn_core.training.early_stop",
    "modelcheckpoint": "nn_core.training.Checkpoint",
    "reducelronplateau": "nn_core.training.ReduceOnPlateau",
    "csvlogger": "nn_core.training.Log",
    **dict.fromkeys(("ema", "exponentialmovingaverage", "averagedmodel"), "nn_core.training.MovingAverage"),
    **dict.fromkeys(("lambdalr", "learningratescheduler"), "nn_core.training.Schedule"),
    **dict.fromkeys(("lrfinder", "findlr"), "nn_core.training.find_learning_rate"),
    # rates
    **dict.fromkeys(("lrscheduler", "learningrateschedule", "schedulers"), _RATES),
    **dict.fromkeys(("onecycle", "onecyclelr"), f"{_RATES}.OneCycleScheduler"),
    **dict.fromkeys(("cosineannealinglr", "cosinedecay", "cosineannealing"), f"{_RATES}.CosineScheduler"),
    **dict.fromkeys(("cosineannealingwarmrestarts", "cosinedecayrestarts"), f"{_RATES}.CosineRestartsScheduler"),
    **dict.fromkeys(("steplr", "multisteplr", "piecewiseconstantdecay"), f"{_RATES}.StepScheduler"),
    **dict.fromkeys(("exponentiallr", "exponentialdecay"), f"{_RATES}.ExponentialScheduler"),
    **dict.fromkeys(("polynomiallr", "polynomialdecay"), f"{_RATES}.PolynomialScheduler"),
    "cycliclr": f"{_RATES}.CyclicScheduler",
    **dict.fromkeys(("linearlr", "warmup", "warmupscheduler"), f"{_RATES}.LinearWarmupScheduler"),
    # data
    **dict.fromkeys(("dataset", "datasource"), "nn_core.data.DataSource"),
    **dict.fromkeys(("dataloader", "loader"), "nn_core.data.data_iterator"),
    **dict.fromkeys(("tensordataset", "arraydataset"), "nn_core.data.ArrayDataSource"),
    **dict.fromkeys(("imagefolder", "imagedatasetfromdirectory"), "nn_core.data.ImageFolderDataSource"),
    **dict.fromkeys(("iterabledataset", "fromgenerator"), "nn_core.data.IterableDataSource"),
    **dict.fromkeys(("concatdataset", "chaindataset"), "nn_core.data.ConcatDataSource"),
    "subset": "nn_core.data.ChosenDataSource",
    **dict.fromkeys(("randomsplit", "traintestsplit"), "nn_core.data.split"),
    **dict.fromkeys(("kfold", "stratifiedkfold"), "nn_core.data.folds"),
    **dict.fromkeys(("weightedrandomsampler", "weightedsampler"), "nn_core.data.WeightedDataSource"),
    **dict.fromkeys(("datasets", "dataloaders"), "nn_core.data"),
    # initial values
    **dict.fromkeys(("xavieruniform", "glorotuniform", "xavier"), "nn_core.initializer.calc_uniform_lim_glorot"),
    **dict.fromkeys(("xaviernormal", "glorotnormal"), "nn_core.initializer.calc_normal_std_glorot"),
    **dict.fromkeys(("henormal", "kaimingnormal", "kaiming"), "nn_core.initializer.calc_normal_std_he_forward"),
    # files
    **dict.fromkeys(("savemodel", "savenetwork"), "nn_core.utils.save.save"),
    **dict.fromkeys(("onnx", "toonnx", "exportonnx", "export"), "nn_ext_onnx.export"),
    **dict.fromkeys(("fromonnx", "loadonnx", "importonnx", "loadmodel", "loadnetwork"), "nn_ext_onnx.OnnxModule"),
}


def attribute_suggestion(module: str, name: str, known: Iterable[str]) -> str:
    """Return the end of a message about a name that `module` does not have, as `suggestion`, and also from other modules."""
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches  # only where a name is wrong

    names = [other for other in known if other != name]
    words = meant(name, names)
    candidates = (
        *(word for word in words if word in names),
        *get_close_matches(name, names, 1, 0.85),  # a slip of the hand
        *places_of(name, module),
        *words,
        *get_close_matches(name, names, 1, 0.75),
    )
    return f"; did you mean {candidates[0]!r}?" if candidates else ""


def places_of(name: str, module: str) -> Iterator[str]:
    """Yield where a name is outside of `module`: as it is written, by another word, and by its letters."""
    modules = {other: _public_names(other) for other in MODULES if other != module}
    yield from (f"{other}.{name}" for other, names in modules.items() if name in names)
    word = WORDS.get(plain_name(name))
    if word is not None and word != module:
        yield word
    for other, names in modules.items():
        yield from (f"{other}.{found}" for found in meant(name, names) if found in names)


def _public_names(module: str) -> list[str]:
    """Return the public names of a module without those that plugins add, which would import them."""
    names = getattr(import_module(module), "__all__", None) or dir(sys.modules[module])
    return [name for name in names if not name.startswith("_")]
