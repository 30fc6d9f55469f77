"""Names of NNabla that programs import and nn_core has elsewhere, does without, or refuses with a reason."""

import logging
import subprocess
import sys

import numpy as np
import pytest

import nn_core as nn
import nn_core.parameter
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import _indexing
from nn_core.compat.config import nnabla_config
from nn_core.compat.contrib.context import extension_context
from nn_core.compat.lms import SwapInOutScheduler
from nn_core.errors import ArgumentError
from nn_core.ext_utils import get_extension_context
from nn_core.solver import SolverState
from nn_core.utils.image_utils import backend_manager, get_backend

#: One line for each name that public programs use.
PROGRAM = """
import nn_core.compat.nnabla
import nnabla as nn
import nnabla.contrib.context
import nnabla.experimental.parametric_function_classes as PFC
import nnabla.logger as logger
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.config import nnabla_config
from nnabla.contrib.context import extension_context
from nnabla.lms import SwapInOutScheduler
from nnabla.utils.data_source_loader import _load_functions, download, get_data_home
from nnabla.utils.image_utils import backend_manager
assert nn._variable.Variable is nn.Variable and nn._nd_array.NdArray is nn.NdArray and nn._array and nn._indexing
assert nn._init.get_devices() == ["0"] and nn._computation_graph.forward_all is nn.forward_all
assert nn.graph_def is nn.core.graph_def and nn.config.nnabla_config is nnabla_config
assert nn.contrib.context.extension_context is extension_context and issubclass(PFC.Affine, PFC.Module)
assert ".png" in _load_functions and backend_manager.set_backend and S.SolverState and PF.get_parameter_or_create
print("all there")
"""


def test_public_programs_find_their_names():
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("all there\n", "")


#: A program that reads the parts of packages after importing those alone.
PARTS = """
import nn_core.compat.nnabla
import nnabla as nn
import nnabla.core
import nnabla.utils.audio_utils as audio
import nnabla.utils.image_utils as images
assert nn.core.module.Module is nn.Module and nnabla.core.sequential.Sequential is nn.Sequential
images.backend_manager.set_backend("PilBackend")
assert images.get_backend() == "PilBackend"
audio.backend_manager.backend = "wave"
from nnabla.utils.audio_utils.backend_manager import AudioUtilsBackendManager
assert audio.get_backend() == "wave" and isinstance(audio.backend_manager, AudioUtilsBackendManager)
print("all there")
"""


def test_packages_have_their_modules_as_attributes():
    result = subprocess.run([sys.executable, "-c", PARTS], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("all there\n", "")


def test_states_of_solvers_can_be_made_empty_and_filled():
    parameter = nn.Variable.from_numpy_array(np.zeros(2), need_grad=True)
    solver = S.Adam()
    solver.set_parameters({"w": parameter})
    state = S.SolverState()
    assert (state.pstate, state.t) == ({}, 0) and S.SolverState().pstate is not state.pstate
    state.t = 3
    state.pstate = {name: nn.Variable.from_numpy_array(np.full(2, 0.5)) for name in ("mean", "var")}
    solver.set_states({"w": state})
    kept = solver.get_states()["w"]
    assert kept.t == 3 and kept.pstate["var"].d.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("name", ["experimental", "models", "training", "utils.rnn", "experimental.viewers", "lms"])
def test_a_module_that_is_first_imported_by_its_alias_is_loaded_once(name):
    real = "compat.lms" if name == "lms" else name
    code = f"""
import nn_core.compat.nnabla
import nnabla.{name} as alias
import nn_core.{real} as module
assert alias is module
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_stand_for_what_nn_core_has():
    assert PF.get_parameter_or_create is nn_core.parameter.get_parameter_or_create and S.SolverState is SolverState
    assert extension_context("reference", type_config="half") == get_extension_context("reference", type_config="half")
    before = get_backend()
    backend_manager.set_backend("PilBackend")
    assert backend_manager.get_backend() == "PilBackend" in backend_manager.get_available_backends()
    backend_manager.set_backend(before)


def test_the_configuration_says_that_it_has_no_effect(caplog):
    assert nnabla_config.getint("DATA_ITERATOR", "data_source_file_cache_size") == 100
    with caplog.at_level(logging.WARNING):
        for size in ("10", "100"):
            nnabla_config.set("DATA_ITERATOR", "data_source_file_cache_size", size)
    (record,) = caplog.records
    assert "data_source_file_cache_size of DATA_ITERATOR has no effect in nn_core" in record.getMessage()


def test_kinds_of_keys():
    flags, numbers = np.array([True, False]), np.array([1.0, 0.0])
    assert _indexing.is_numpy_boolean_ndarray(flags) and not _indexing.is_numpy_boolean_ndarray(numbers)
    assert _indexing.is_nnabla_boolean_ndarray(nn.NdArray.from_numpy_array(flags))
    assert _indexing.is_nnabla_boolean_variable(nn.Variable.from_numpy_array(flags))
    assert not _indexing.is_nnabla_boolean_variable(nn.Variable.from_numpy_array(numbers))
    assert [_indexing.is_python_boolean_sequence(key) for key in ([True], (), [True, 1], flags)] == [True, False, False, False]


def test_subscripts_as_functions():
    x = nn.Variable.from_numpy_array(np.arange(6.0).reshape(2, 3))
    rows = _indexing.advanced_getitem(x, ([1, 1],))
    _indexing.basic_setitem(x, (slice(None), 0), 9.0)
    nn.forward_all([rows, x])
    assert rows.d.tolist() == [[3, 4, 5], [3, 4, 5]] and x.d.tolist() == [[9, 1, 2], [9, 4, 5]]


def test_swapping_is_refused_when_it_is_asked_for():
    with pytest.raises(ArgumentError, match=r"(?s)SwapInOutScheduler: values must fit into.*hint: nn_core.recompute\(\)"):
        SwapInOutScheduler(None, size=1)


def test_the_cpu_extension_has_the_functions_of_a_device():
    cpu = pytest.importorskip("nn_ext_cpu")
    assert (cpu.get_device_count(), cpu.get_devices(), cpu.array_classes()[0]) == (1, ["0"], "CpuCachedArray")
    cpu.device_synchronize("0")
    cpu.synchronize(device_id="0")
    cpu.clear_memory_cache()
