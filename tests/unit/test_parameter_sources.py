"""Functions that take parameters take them from a dictionary, a scope, a module, or by the name of a scope."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import layers as L
from nn_core.data.iterators import data_iterator_simple
from nn_core.errors import ArgumentError, UnknownNameError
from nn_core.graph_rewriting import network_ports, parameters_behind
from nn_core.training import Checkpoint, Evaluator, MovingAverage, Trainer, Updater, every, load_checkpoint, save_checkpoint


@pytest.fixture(autouse=True)
def empty_scope() -> None:
    nn.clear_parameters()


def in_scope() -> nn.Variable:
    x = nn.Variable((4, 5))
    with nn.parameter_scope("encoder"):
        return PF.batch_normalization(PF.affine(x, 3, name="fc"), name="norm")


def module() -> nn.Sequential:
    net = nn.Sequential(L.Affine(3), L.BatchNorm())
    net(nn.Variable((4, 5)))
    return net


NAMES = ["encoder/fc/affine/W", "encoder/fc/affine/b", "encoder/norm/bn/beta", "encoder/norm/bn/gamma"]
OF_MODULE = ["@affine_0/affine/W", "@affine_0/affine/b", "@batchnorm_1/bn/beta", "@batchnorm_1/bn/gamma"]


def sources() -> Mapping[str, tuple[Any, list[str]]]:
    """Return each source, and the names of its parameters to train."""
    in_scope()
    with nn.parameter_scope("encoder") as scope:
        inside = [name.removeprefix("encoder/") for name in NAMES]
        return {
            "a dictionary": (nn.get_parameters(), inside),
            "a scope": (scope, inside),
            "a module": (module(), OF_MODULE),
        }


@pytest.mark.parametrize("kind", ["a dictionary", "a scope", "a module"])
def test_everything_takes_every_source(kind: str, tmp_path: Path) -> None:
    source, names = sources()[kind]
    solver = S.Sgd()
    solver.set_parameters(source)
    assert list(solver.get_parameters()) == names
    assert set(MovingAverage(source).averages()) >= set(names)
    nn.save_parameters(tmp_path / "all.npz", source)
    save_checkpoint(tmp_path / "checkpoint.npz", parameters=source)
    variables = solver.get_parameters()
    saved = {name: variable.d.copy() for name, variable in variables.items()}
    for change in (
        lambda: nn.load_parameters(tmp_path / "all.npz", params=source),
        lambda: nn.swap_parameters(tmp_path / "all.npz", source),
        lambda: load_checkpoint(tmp_path / "checkpoint.npz", parameters=source),
    ):
        for variable in variables.values():
            variable.d = 7
        change()
        assert all((variables[name].d == values).all() for name, values in saved.items())
    nn.freeze_parameters(source)
    assert not any(variable.need_grad for variable in variables.values())
    nn.unfreeze_parameters(source)
    assert all(variable.need_grad for variable in variables.values())


def test_the_name_of_a_scope_stays_in_front_of_its_parameters(tmp_path: Path) -> None:
    in_scope()
    assert list(nn.get_parameters("encoder")) == NAMES
    assert list(nn.get_parameters("encoder/fc", grad_only=False)) == NAMES[:2]
    assert list(nn.get_parameters("encoder/fc/affine/W", path="net")) == ["net/encoder/fc/affine/W"]
    solver = S.Adam()
    solver.set_parameters("encoder/norm")
    assert list(solver.get_parameters()) == NAMES[2:]
    nn.save_parameters(tmp_path / "part.h5", "encoder/fc")
    assert list(nn.load_parameters(tmp_path / "part.h5", params="encoder/fc").loaded) == NAMES[:2]
    assert list(nn.get_parameters(module(), grad_only=False)) == [*OF_MODULE, "@batchnorm_1/bn/mean", "@batchnorm_1/bn/var"]


def test_the_parameters_of_a_scope_are_not_added_to_it() -> None:
    in_scope()
    with nn.parameter_scope("encoder") as whole, nn.parameter_scope("fc/affine") as flat:
        pass
    net = nn.Sequential(L.Affine(3))
    assert [*nn.get_parameters(whole)] == [name.removeprefix("encoder/") for name in NAMES]
    assert [*nn.get_parameters(flat)] == ["W", "b"]
    assert nn.get_parameters(net.parameter_scope) == {}
    assert [*nn.get_parameters()] == NAMES


@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_parameters_are_added_to_a_dictionary(kind: type[dict[str, nn.Variable]]) -> None:
    in_scope()
    collected = kind(first=nn.Variable((1,)))
    assert nn.get_parameters(collected) is collected
    assert [*collected] == ["first", *NAMES]


FORMATS = [".h5", ".npz", ".safetensors"]


@pytest.mark.parametrize("extension", FORMATS)
def test_files_are_loaded_under_other_names(extension: str, tmp_path: Path) -> None:
    in_scope()
    path = tmp_path / f"net{extension}"
    nn.save_parameters(path)
    weight = nn.get_parameters()[NAMES[0]].d.copy()
    for rename, first in (
        ({"encoder": "backbone/first"}, "backbone/first/fc/affine/W"),
        ({"": "all"}, f"all/{NAMES[0]}"),
        ({"encoder": ""}, "fc/affine/W"),
        ({"encoder": "e", "encoder/fc/affine/W": "weight"}, "weight"),
        (lambda name: name.replace("fc", "dense"), "encoder/dense/affine/W"),
        (lambda name: name if name.endswith("W") else None, NAMES[0]),
    ):
        nn.clear_parameters()
        report = nn.load_parameters(path, rename=rename)
        assert first in report.created
        assert nn.get_parameters()[first].d.tolist() == weight.tolist()
    assert report.created == (NAMES[0],)
    net = module()
    table = {"encoder/fc": "@affine_0", "encoder/norm": "@batchnorm_1"}
    assert net.load_parameters(path, rename=table).is_exact
    assert nn.load_parameters(path, params=net, rename=table, strict=True).is_exact
    assert net.get_parameters()[OF_MODULE[0]].d.tolist() == weight.tolist()


def test_wrong_names_are_refused(tmp_path: Path) -> None:
    in_scope()
    path = tmp_path / "net.npz"
    nn.save_parameters(path)
    mistakes: Mapping[str, Callable[[], object]] = {
        r"rename must name scopes or parameters of .*net.npz \(encoder\), got 'decoder'": lambda: nn.load_parameters(
            path, rename={"decoder": "x"}
        ),
        "rename must give different names to the parameters of .*, got 'one' twice": lambda: nn.load_parameters(
            path, rename=lambda name: "one"
        ),
        "rename must give a name for 'encoder/fc/affine/W' of .*, got 3": lambda: nn.load_parameters(
            path, rename=lambda name: 3
        ),  # type: ignore[arg-type, return-value]
        "rename must be new names by the old ones, or a function, got 3": lambda: nn.load_parameters(path, rename=3),  # type: ignore[arg-type]
        "rename must give a name for 'encoder', got 3": lambda: nn.load_parameters(path, rename={"encoder": 3}),  # type: ignore[dict-item]
        "there must be a parameter 'encoder/fc/affine/W' to load, got none": lambda: nn.load_parameters(path, params=module()),
    }
    for text, call in mistakes.items():
        with pytest.raises(ArgumentError, match=f"^load_parameters: {text}"):
            call()


def test_unknown_sources_are_refused() -> None:
    in_scope()
    with pytest.raises(
        UnknownNameError, match=r"^set_parameters: the name must be that of a scope \(encoder\), got 'decoder'"
    ):
        S.Sgd().set_parameters("decoder")
    with pytest.raises(ArgumentError, match=r"^save_parameters: params must be Variables by name, a module, or .* got 3"):
        nn.save_parameters("x.npz", 3)  # type: ignore[arg-type]
    with pytest.raises(
        ArgumentError, match=r"^set_parameters: module Sequential must have .*\n.*\n  hint: call the module once"
    ):
        S.Sgd().set_parameters(nn.Sequential(L.Affine(3)))
    with pytest.raises(ArgumentError, match=r"^MovingAverage: module Sequential must have parameters, got none"):
        MovingAverage(nn.Sequential(L.Affine(3)))


def trainer(net: nn.Module, solver: S.Sgd, folder: Path, **settings: Any) -> Trainer:
    x, t = nn.Variable((4, 5)), nn.Variable((4, 3))
    values = np.random.RandomState(0).randn(16, 5).astype(np.float32)
    loss = F.mean(F.squared_error(net(x), t))
    solver.set_parameters(net)
    data = data_iterator_simple(lambda index: (values[index], values[index, :3]), 16, 4)
    updater = Updater(data, [x, t], loss, solver, **settings)
    made = Trainer(updater, every(3, "epoch"), folder)
    made.extend(Evaluator((values, values[:, :3]), [x, t], {"loss": loss}, batch_size=4))
    made.extend(Checkpoint(best="validation/loss", mode="min"))
    return made


def test_a_trainer_finds_the_module_of_its_solver_and_its_best_weights_load_in_one_line(tmp_path: Path) -> None:
    net = module()
    made = trainer(net, S.Sgd(0.1), tmp_path)
    other = module()  # not the solver's
    made.run()
    best = {name: variable.d.copy() for name, variable in net.get_parameters().items()}
    for variable in net.get_parameters().values():
        variable.d = 7
    assert net.load_parameters(tmp_path / "best.npz").is_exact
    assert all((variable.d == best[name]).all() for name, variable in net.get_parameters().items())
    assert other.load_parameters(tmp_path / "best.npz").is_exact


def test_networks_of_modules_have_no_parameters_for_inputs() -> None:
    x = nn.Variable((4, 5))
    net, other = module(), module()
    y = net(x)
    _, inputs = network_ports(y)
    assert list(inputs.values()) == [x]
    assert list(parameters_behind([y])) == [*OF_MODULE[:2], *list(net.get_parameters())[2:]]
    both = parameters_behind([y + other(x)])
    assert len(both) == 12 and sum("Sequential_" in name for name in both) == 6


def test_summary_of_graphs_of_modules_and_of_parameters() -> None:
    in_scope()
    net = module()
    table = nn.summary(net(nn.Variable((4, 5))))
    assert [row.scope for row in table.rows] == ["@affine_0/affine", "@batchnorm_1/bn"]
    rows = nn.summary("encoder/fc").rows
    assert [(row.scope, row.shapes, row.n_parameters) for row in rows] == [(NAMES[0], ((5, 3),), 15), (NAMES[1], ((3,),), 3)]
    assert nn.summary(net.get_parameters()).n_parameters == 30 and nn.summary(net.get_parameters()).n_trained == 24
    assert [row.function for row in nn.summary({"y": F.tanh(nn.Variable((2,)))}).rows] == ["Tanh"]
