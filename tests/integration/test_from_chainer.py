"""The page for users of Chainer names what Chainer has, and what it names here exists, with the arguments that it shows."""

import ast
import builtins
import importlib
import inspect
import re

import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.solvers.base import Solver
from nn_core.training import Trainer
from tests.markdown import ROOT

PAGE = (ROOT / "docs" / "from_chainer.md").read_text(encoding="utf-8")
#: The modules of names without one, in this order.
MODULES = [
    importlib.import_module(name)
    for name in (
        "nn_core.training",
        "nn_core.utils.data_source",
        "nn_core.utils.data_source_implements",
        "nn_core.utils.data_iterator",
        "nn_core.data.array_sources",
        "nn_core.experimental.viewers",
        "nn_core.utils.profiler",
        "nn_core.testing",
        "nn_core.ext_utils",
        "nn_core",
    )
]
#: The objects of names in the examples.
ROOTS = {
    "F": F,
    "PF": PF,
    "S": S,
    "nn": nn,
    "trainer": Trainer,
    "module": nn.Module,
    "other": nn.Module,
    "solver": Solver,
}
#: Text of a cell that is no name of ours: a value, a line of code of the reader, an attribute of theirs.
NOT_NAMES = {
    "need_grad = False",
    "need_grad=True",
    "NN_CORE_DETERMINISTIC",
    "__init__",
    "pyplot",
    "x[...]",
    "mode",
    "weight",
}
#: Arguments that a cell speaks of without the function.
LOOSE = {
    "function_pre_hook=": [nn.Variable.forward, nn.Variable.backward],
    "function_post_hook=": [nn.Variable.forward, nn.Variable.backward],
    "apply_w=": [PF.affine, PF.convolution],
}
#: Methods of passes, and those that objects of a reader have.
PROTOCOL = {
    "forward",
    "backward",
    "start",
    "stop",
    "failed",
    "observe",
    "get_state",
    "set_state",
    "get_state()",
    "set_state(state)",
    "step()",
}
#: The names of Chainer, by the notes on its three tables: training, extensions, everything else.
CHAINER = """
Trainer extend get_extension Extension make_extension StandardUpdater update_core ParallelUpdater
MultiprocessParallelUpdater Reporter report Summary DictSummary IntervalTrigger ManualScheduleTrigger MinValueTrigger
MaxValueTrigger EarlyStoppingTrigger OnceTrigger TimeTrigger get_trigger SerialIterator MultithreadIterator
MultiprocessIterator DaliIterator concat_examples Evaluator LogReport PrintReport ProgressBar PlotReport snapshot
snapshot_object ExponentialShift observe_lr observe_value FailOnNonNumber ParameterStatistics VariableStatisticsPlot
MicroAverage dump_graph unchain_variables order_sampler Serializer serialize save_npz Link Chain ChainList Sequential
init_scope add_param add_persistent register_persistent namedparams children links namedlinks copyparams cleargrads
count_params enable_update disable_update repeat update_rule WeightDecay Lasso GradientClipping GradientHardClipping
GradientNoise GradientLARS loss_scaling FunctionHook TimerHook PrintHook CUDAProfileHook CupyMemoryProfileHook
SpectralNormalization WeightStandardization using_config enable_backprop type_check debug dtype mixed16
cudnn_deterministic use_cudnn autotune build_computational_graph check_backward check_double_backward numerical_grad
FunctionTestCase LinkTestCase retry CaffeFunction VGG16Layers ResNet50Layers GoogLeNet TupleDataset DictDataset
SubDataset TransformDataset ConcatenatedDataset ImageDataset LabeledImageDataset ZippedDataset split_dataset
split_dataset_random get_cross_validation_datasets PickleDataset TextDataset Classifier
"""

ROWS = [
    [cell.strip() for cell in line.replace("\\|", "\0").strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| Chainer"))
]
CODES = sorted({code.replace("\0", "|") for row in ROWS for code in re.findall(r"`([^`]+)`", row[1])})


@pytest.mark.parametrize("name", CHAINER.split())
def test_every_name_of_chainer_has_a_row(name):
    assert any(re.search(rf"\b{name}\b", row[0]) for row in ROWS)


def test_every_row_has_three_cells_and_an_answer():
    assert [row for row in ROWS if len(row) != 3 or not row[1]] == []
    assert [row[0] for row in ROWS if row[1] == "—" and not row[2]] == []  # what to do instead


def parsed(code):
    """The syntax of a piece of code: an expression, a ``with`` line, or a decorator."""
    for text in (code, f"{code} pass", f"{code}\ndef f(): pass"):
        try:
            return ast.parse(text)
        except SyntaxError:
            continue
    raise AssertionError(f"{code} is no Python")


def found(name):
    """Return the object of a dotted name."""
    head, *rest = name.split(".")
    if head in ROOTS:
        return attribute(ROOTS[head], rest)
    if head.startswith("nn_ext_"):
        return attribute(pytest.importorskip(head, reason="a package of its own"), rest)
    for module in MODULES:
        if hasattr(module, head):
            return attribute(getattr(module, head), rest)
    for package in ("nn_core", "nn_core.utils", "nn_core.experimental"):
        try:
            return attribute(importlib.import_module(f"{package}.{head}" if head != "nn_core" else "nn_core"), rest)
        except ImportError:
            continue
    raise AssertionError(f"there is no {name}")


def attribute(value, names):
    for name in names:
        if inspect.ismodule(value) and not hasattr(value, name):
            value = importlib.import_module(f"{value.__name__}.{name}")
        else:
            value = getattr(value, name)
    return value


def dotted(node):
    """The name that a node is, or None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return None if inner is None else f"{inner}.{node.attr}"
    return None


def require_call(node):
    """The function exists and takes the arguments."""
    name = dotted(node.func)
    if name is None or hasattr(builtins, name):  # a method of what another call returns, or a function of Python
        return
    function = found(name)
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    names = {parameter.name for parameter in parameters}
    assert [keyword.arg for keyword in node.keywords if keyword.arg not in names] == [], name


@pytest.mark.parametrize("code", [code for code in CODES if code not in NOT_NAMES | PROTOCOL])
def test_what_the_page_names_exists(code):
    if code in LOOSE:
        assert all(code[:-1] in inspect.signature(function).parameters for function in LOOSE[code])
        return
    code = code.replace("(...,", "(").replace("(..., ", "(").replace("=)", "=0)").replace("=,", "=0,").replace("(...)", "()")
    tree = parsed(code)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for node in calls:
        require_call(node)
    if isinstance(tree.body[0], ast.Expr) and (name := dotted(tree.body[0].value)) is not None:
        if name.startswith(("F.", "PF.")) and not hasattr(ROOTS[name.split(".")[0]], name.split(".")[1]):
            pytest.importorskip("nn_ext_contrib")
        found(name)


@pytest.mark.parametrize(
    "code", ["F.no_such_function", "no_such_trigger(3)", "Checkpoint(keeps=3)", "trainer.walk()", "utils.nothing.Thing"]
)
def test_what_does_not_exist_is_found(code):
    with pytest.raises((AssertionError, AttributeError, ImportError)):
        test_what_the_page_names_exists(code)
