"""Networks that callbacks change while they are read."""

from pathlib import Path

import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError
from nn_core.utils.nnp_graph import NnpLoader, NnpNetworkPass

DATA = Path(__file__).with_name("data")


def changed(change, name="net", **settings):
    return NnpLoader(DATA / "convnet.nnp").get_network(name, callback=change, **settings)


def kinds(network):
    found = []
    for output in network.outputs.values():
        output.visit(lambda f: found.append(f.name))
    return found


def test_networks_change_on_the_way():
    change = NnpNetworkPass()
    change.remove_and_rewire("@net/BatchNormalization")
    change.use_up_to("@net/ReLU_out")
    change.fix_parameters()
    network = changed(change)
    assert kinds(network) == ["Convolution", "ReLU"]
    assert not any(v.need_grad for f in [network.outputs["@net/ReLU_out"].parent] for v in f.inputs)


def test_normalizations_change_their_statistics():
    change = NnpNetworkPass()
    change.set_batch_normalization_batch_stat_all(True)
    found = []
    changed(change).outputs["y"].visit(lambda f: found.append(f.args.get("batch_stat")))
    assert True in found and False not in found


def test_variables_and_functions_are_offered_to_callbacks():
    change = NnpNetworkPass()
    seen = []

    @change.on_generate_variable("x")
    def _(variable):
        variable.proto.shape.dim[2:] = [8, 8]

    @change.on_generate_function_by_name("@net/Reshape")
    def _(function):
        function.proto.reshape_param.shape.dim[:] = [-1, 72]

    @change.on_function_pass_by_type("ReLU")
    def _(function, variables, scope):
        seen.append((function.name, [v.name for v in function.inputs], "x" in variables, "c1" in scope))

    change.use_up_to("@net/Reshape_out")
    assert changed(change).outputs["@net/Reshape_out"].shape == (4, 72)
    assert seen == [("@net/ReLU", ["@net/BatchNormalization_out"], True, True)]


def test_variables_can_be_put_in():
    change = NnpNetworkPass()
    h = F.exp(nn.Variable((4, 3, 6, 6)))
    change.set_variable("x", h)
    network = changed(change)
    found = []
    network.outputs["y"].visit(lambda f: found.append(f.name))
    assert found[0] == "Exp"


@pytest.mark.parametrize("use", [
    lambda c: c.drop_function("nothing"), lambda c: c.use_up_to("nothing"), lambda c: c.remove_and_rewire("nothing"),
    lambda c: c.remove_and_rewire("@net/ReLU", i=4), lambda c: c.set_variable("nothing", nn.Variable(())),
    lambda c: c.force_average_pooling_global("@net/ReLU"),
])  # fmt: skip
def test_changes_of_what_is_not_there_are_refused(use):
    change = NnpNetworkPass()
    use(change)
    with pytest.raises(ArgumentError):
        changed(change)
