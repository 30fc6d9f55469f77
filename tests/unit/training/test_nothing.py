"""Nothing to train, average, save or load: a module and the scope of the process are two places, and errors name them."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.engine.runtime.holders import HOLDERS
from nn_core.errors import ArgumentError, FileFormatError
from nn_core.files import Entry, write_entries
from nn_core.training import (
    Checkpoint,
    MovingAverage,
    Trainer,
    Updater,
    early_stop,
    every,
    fit,
    load_checkpoint,
    save_checkpoint,
)
from nn_core.utils.data_iterator import data_iterator_simple

X, T = np.eye(4, dtype=np.float32), np.arange(4)


@pytest.fixture(autouse=True)
def _alone_and_seeded():
    """The modules that other tests keep alive would be named, too."""
    kept = dict(HOLDERS)
    HOLDERS.clear()
    nn.clear_parameters()
    nn.seed(1)
    yield
    HOLDERS.update(kept)


class Perceptron(nn.Module):
    def call(self, x):
        return PF.affine(x, 4)


@pytest.fixture
def net():
    made = Perceptron()
    made(nn.Variable((2, 4)))
    return made


HOLDER = r"parameters are in .*module Perceptron \(2\)"


def test_saving_nothing_names_the_module(net, tmp_path, caplog):
    nn.save_parameters(tmp_path / "m.h5")
    (message,) = caplog.messages
    assert message.startswith("save_parameters: there must be parameters to save, got none")
    assert "module Perceptron (2)" in message
    nn.load_parameters(tmp_path / "m.h5")
    assert "m.h5 must hold parameters, got none" in caplog.messages[1] and len(caplog.messages) == 2


def test_saving_nothing_names_other_scopes(tmp_path, caplog):
    PF.affine(nn.Variable((2, 4)), 3, name="encoder")
    with nn.parameter_scope("decoder"):
        nn.save_parameters(tmp_path / "m.npz")
    assert "scope 'encoder' (2)" in caplog.messages[0] and "decoder" not in caplog.messages[0]


def test_loading_into_the_scope_what_a_module_has_is_told(net, tmp_path, caplog):
    net.save_parameters(tmp_path / "m.npz")
    report = nn.load_parameters(tmp_path / "m.npz")
    assert report.created == ("affine/W", "affine/b")
    (message,) = caplog.messages
    assert "those of module Perceptron stay as they are" in message
    net.load_parameters(tmp_path / "m.npz")
    assert len(caplog.messages) == 1


def test_loading_before_building_is_not_told(tmp_path, caplog):
    PF.affine(nn.Variable((2, 4)), 3, name="plain")
    nn.save_parameters(tmp_path / "m.npz")
    nn.clear_parameters()
    nn.load_parameters(tmp_path / "m.npz")
    assert not caplog.messages


def test_an_update_of_nothing_is_one_warning(net, caplog):
    solver = S.Sgd()
    solver.set_parameters(nn.get_parameters())
    solver.update()
    solver.update()
    (message,) = caplog.messages
    assert "there must be parameters to change, got none" in message and "module Perceptron (2)" in message


def test_averages_and_checkpoints_of_nothing_are_refused(net, tmp_path):
    with pytest.raises(ArgumentError, match=rf"(?s)MovingAverage: there must be parameters to average, got none.*{HOLDER}"):
        MovingAverage(nn.get_parameters())
    for name in ("parameters", "params", "model"):
        with pytest.raises(ArgumentError, match=rf"(?s)save_checkpoint: {name} must have parameters, got none.*{HOLDER}"):
            save_checkpoint(tmp_path / "c.npz", **{name: nn.get_parameters()}, iteration=3)
    with pytest.raises(ArgumentError, match="save_checkpoint: net must have parameters, got none"):
        save_checkpoint(tmp_path / "c.npz", net=Perceptron())
    assert not list(tmp_path.iterdir())
    save_checkpoint(tmp_path / "c.npz", net=net, history={})
    assert load_checkpoint(tmp_path / "c.npz", net=net) == {"history": {}}


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_trainer_without_parameters_is_refused(net, dynamic, tmp_path):
    solver, x = S.Sgd(), nn.Variable((2, 4))

    def loss(x):
        return F.mean(net(x) ** 2)

    solver.set_parameters(nn.get_parameters())
    with data_iterator_simple(lambda i: (X[i],), 4, 2) as data:
        updater = Updater(data, None if dynamic else [x], loss if dynamic else loss(x), solver, model=net)
        with pytest.raises(ArgumentError, match=rf"(?s)Updater: solver must have parameters to train, got none.*{HOLDER}"):
            Trainer(updater, every(1, "epoch"), tmp_path).run()


def test_a_function_may_give_its_solver_parameters_in_the_first_iteration(tmp_path):
    solver = S.Sgd()

    def loss(x):
        y = F.mean(PF.affine(x, 4) ** 2)
        if not solver.get_parameters():
            solver.set_parameters(nn.get_parameters())
        return y

    with data_iterator_simple(lambda i: (X[i],), 4, 2) as data:
        Trainer(Updater(data, None, loss, solver), every(1, "epoch"), tmp_path).run()


def test_fit_of_a_network_without_parameters_names_the_module(net):
    with pytest.raises(ArgumentError, match=rf"(?s)fit: network must have parameters to train, got none.*{HOLDER}"):
        fit(lambda x: F.relu(net(x)), (X, T), progress=False)


def test_fit_warns_of_parameters_that_it_does_not_train(net, caplog):
    fit(lambda x: PF.affine(net(x), 4), (X, T), epochs=1, progress=False)
    (message,) = caplog.messages
    assert message.startswith("fit: the network must have all parameters of the loss, got others: ")
    assert "module Perceptron (2)" in message


# -- arguments of fit --------------------------------------------------------------------------------------------------


def network(x):
    return PF.affine(F.dropout(PF.affine(x, 8, name="first"), 0.2), 4, name="last")


def test_a_trigger_among_the_extensions_ends_training():
    result = fit(network, (X, T), epochs=50, progress=False, extensions=[early_stop("loss", 1, "max")])
    assert len(result.history) < 50
    with data_iterator_simple(lambda i: (X[i],), 4, 2) as data:
        solver, x = S.Sgd(), nn.Variable((2, 4))
        loss = F.mean(PF.affine(x, 2) ** 2)
        solver.set_parameters(nn.get_parameters())
        trainer = Trainer(Updater(data, [x], loss, solver), every(1, "epoch"))
        with pytest.raises(ArgumentError, match="extend: extensions must do something, got the trigger"):
            trainer.extend(early_stop("loss", 1, "max"))


def test_a_seed_seeds_weights_and_random_functions():
    histories, weights = [], []
    for seed in (1, 1, 2):
        nn.clear_parameters()
        result = fit(network, (X, T), epochs=3, progress=False, seed=seed)
        histories.append(result.history[-1]["loss"])
        weights.append(result.parameters["first/affine/W"].d.copy())
    assert histories[0] == histories[1] != histories[2]
    assert np.array_equal(weights[0], weights[1]) and not np.array_equal(weights[0], weights[2])


def test_a_second_fit_does_not_go_on_silently(tmp_path):
    fit(network, (X, T), epochs=1, progress=False)
    with pytest.raises(ArgumentError, match="fit: the weights must be new, or set since an earlier fit, got first/affine/W"):
        fit(network, (X, T), epochs=1, progress=False)
    fit(network, (X, T), epochs=1, progress=False, go_on=True)
    nn.save_parameters(tmp_path / "w.npz")
    nn.load_parameters(tmp_path / "w.npz")  # whoever sets them knows what they are
    fit(network, (X, T), epochs=1, progress=False)
    nn.clear_parameters()
    fit(network, (X, T), epochs=1, progress=False)


def test_the_networks_of_evaluations_do_not_train():
    flags = []

    class Noting(nn.Module):
        def call(self, x):
            flags.append(self.training)
            return PF.affine(x, 4)

    net = Noting()
    fit(net, (X, T), (X, T), epochs=1, progress=False)
    assert flags == [True, False, False] and net.training and "_training" not in net.__dict__


# -- parameters of checkpoints -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("extension", [".npz", ".h5", ".safetensors"])
def test_the_best_weights_load_in_one_line(tmp_path, extension):
    extensions = [Checkpoint(best="validation/accuracy", mode="max", extension=extension)]
    result = fit(network, (X, T), (X, T), epochs=3, progress=False, extensions=extensions, out=tmp_path)
    last = {name: variable.d.copy() for name, variable in result.parameters.items()}
    path = sorted(tmp_path.glob(f"checkpoint-*{extension}"))[-1]
    nn.clear_parameters()
    report = nn.load_parameters(path)
    assert set(report.created) == set(last)
    assert all(np.array_equal(nn.get_parameters(grad_only=False)[name].d, values) for name, values in last.items())
    assert nn.load_parameters(tmp_path / f"best{extension}").is_exact


def test_parameters_of_a_checkpoint_of_a_module(net, tmp_path):
    solver = S.Adam()
    net.get_parameters()["affine/b"].need_grad = False
    solver.set_parameters(net.get_parameters(grad_only=True))
    save_checkpoint(tmp_path / "c.npz", net=net, solver=solver)
    other = Perceptron()
    other.load_parameters(tmp_path / "c.npz")
    assert np.array_equal(other.get_parameters()["affine/W"].d, net.get_parameters()["affine/W"].d)
    assert [name for name, variable in other.get_parameters().items() if variable.need_grad] == ["affine/W"]


def test_checkpoints_of_several_models_and_states_of_solvers_are_refused(net, tmp_path):
    other = Perceptron()
    other(nn.Variable((2, 4)))
    save_checkpoint(tmp_path / "c.npz", one=net, two=other)
    with pytest.raises(ArgumentError, match=r"c\.npz must hold one model, got one, two"):
        nn.load_parameters(tmp_path / "c.npz")
    solver = S.Adam()
    solver.set_parameters(net.get_parameters())
    solver.save_states(tmp_path / "s.npz")
    with pytest.raises(ArgumentError, match=r"s\.npz must hold parameters, got the states of a solver"):
        nn.load_parameters(tmp_path / "s.npz")
    assert not nn.get_parameters()


@pytest.mark.parametrize("text", ["{", "[]", '{"states": {"trainer": {}}}', '{"states": {"p": {"w": {"__array__": "no"}}}}'])
def test_damaged_checkpoints_are_refused(tmp_path, text):
    write_entries(tmp_path / "c.npz", {"checkpoint.json": Entry(np.frombuffer(text.encode(), np.uint8))}, ".npz")
    with pytest.raises(FileFormatError, match=r"c\.npz: a checkpoint must say what its arrays are"):
        nn.load_parameters(tmp_path / "c.npz")
