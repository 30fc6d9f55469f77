"""A world of one process is free: each call is a few calls of Python, about a microsecond."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.communicators as C
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.training import Updater
from nn_core.utils.data_iterator import data_iterator_simple
from tests.calls import n_calls

#: Calls of Python and C functions: what a collective may make, and what gathering may make beside its copy.
ALLOWED, ALLOWED_BESIDE_COPY = 15, 30


@pytest.fixture
def comm():
    comm = C.MultiProcessCommunicator(nn.Context())
    comm.init()
    return comm


@pytest.mark.parametrize("name", ["all_reduce", "reduce", "bcast", "barrier", "buckets", "any_rank", "callback"])
def test_calls_return_at_once(comm, name):
    w = nn.Variable((3,), need_grad=True)
    buckets, grads = C.Buckets(comm, [w]), [w.grad]
    calls = {
        "all_reduce": lambda: comm.all_reduce(grads, division=True),
        "reduce": lambda: comm.reduce(grads, 0),
        "bcast": lambda: comm.bcast(grads, 0),
        "barrier": comm.barrier,
        "buckets": lambda: buckets.all_reduce(division=True),
        "callback": lambda: comm.all_reduce_callback(grads, 1 << 20, division=True).on_finish_backward(),
        "any_rank": lambda: comm.any_rank("test", [True]),
    }
    calls[name]()  # fills the caches
    assert n_calls(calls[name]) < ALLOWED


@pytest.mark.parametrize("name", ["all_gather", "reduce_scatter"])
def test_gathering_takes_as_long_as_the_copy(comm, name):
    own, result = nn.NdArray.from_numpy_array(np.arange(3, dtype=np.float32)), nn.NdArray((3,))
    calls = {
        "all_gather": lambda: comm.all_gather(own, [result]),
        "reduce_scatter": lambda: comm.reduce_scatter([own], result, division=True),
    }
    calls[name]()
    result.zero()
    assert n_calls(calls[name]) < n_calls(result.copy_from, own) + ALLOWED_BESIDE_COPY
    assert result.data.tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["float16", "int64"])
def test_gathering_gives_dtypes_and_fits_shapes(comm, dtype):
    own, result = nn.NdArray.from_numpy_array(np.arange(4, dtype=dtype)), nn.NdArray((2, 2))
    comm.all_gather(own, [result])
    assert result.data.tolist() == [[0, 1], [2, 3]] and result.dtype.name == dtype


def test_the_trainer_leaves_the_communicator_out(comm):
    """So that its iterations are those of a program without one, to the last call."""
    x = nn.Variable((2, 1))
    w = nn.Variable.from_numpy_array([1.0], need_grad=True)
    solver = S.Sgd(0.1)
    solver.set_parameters({"w": w})
    with data_iterator_simple(lambda i: (np.ones(1),), 4, 2) as data:
        assert Updater(data, [x], F.mean(x * w), solver, comm=comm, model={"w": w}).comm is None
