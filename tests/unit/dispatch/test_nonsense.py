"""Parts of plugins that give what makes no sense: the error names the plugin."""

import sys
import types

import numpy as np
import pytest

import nn_core as nn
import nn_core.communicators as C
import nn_core.initializer as I
import nn_core.parametric_functions as PF
from nn_core import ext
from nn_core.errors import PluginError, ShapeError

PLUGIN = """
import numpy as np
from nn_core.communicators import AloneEngine
from nn_core.ext import CommunicatorInfo, InitializerInfo, hookimpl

class Odd:
    values = None

    def __call__(self, shape):
        return self.values

class Raising:
    def __getattr__(self, name):
        raise KeyError(name)

class Engine(AloneEngine):
    rank, size = 5, -2

ENGINE = [Raising]

def engine(context):
    return ENGINE[0]()

@hookimpl
def nn_core_initializers():
    return [InitializerInfo(name="Odd", target="odd:Odd")]

@hookimpl
def nn_core_communicators():
    return [CommunicatorInfo(name="odd", target="odd:engine")]
"""


@pytest.fixture
def odd():
    module = types.ModuleType("odd")
    sys.modules["odd"] = module
    exec(PLUGIN, vars(module))
    ext.register(module)
    yield module
    ext.unregister("odd")
    del sys.modules["odd"]


def test_an_initializer_whose_values_do_not_fit(odd):
    odd.Odd.values = np.ones(7)
    with pytest.raises(ShapeError, match=r"'affine/W' must have the shape \(3, 2\), got \(7,\) from plugin 'odd'"):
        PF.affine(nn.Variable((2, 3)), 2, w_init=I.Odd())
    odd.Odd.values = np.ones((3, 2)) * 1j
    with pytest.raises(PluginError, match=r"initializer of 'affine/W' from plugin 'odd' must return real .*complex128"):
        PF.affine(nn.Variable((2, 3)), 2, w_init=I.Odd())


def test_an_engine_whose_attributes_raise(odd):
    with pytest.raises(KeyError) as caught:
        C.Communicator(nn.get_current_context(), engine="odd").init()
    assert "of plugin 'odd'" in "".join(caught.value.__notes__)


def test_an_engine_that_is_no_member_of_its_group(odd):
    odd.ENGINE[0] = odd.Engine
    with pytest.raises(PluginError, match=r"'odd'.*rank must be an integer from 0 to size - 1, got rank 5 of size -2"):
        C.Communicator(nn.get_current_context(), engine="odd").init()
