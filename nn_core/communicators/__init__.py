"""Communicators: data-parallel training by processes that run the same program.

    comm = C.MultiProcessCommunicator(ctx)
    comm.init()
    ...
    comm.all_reduce([parameter.grad for parameter in nn.get_parameters().values()], division=True)

docs/distributed.md shows how programs are written and started.
"""

from typing import Any

from nn_core.communicators.buckets import Buckets as Buckets
from nn_core.communicators.buckets import share_parameters as share_parameters
from nn_core.communicators.callback import AllReduceCallback as AllReduceCallback
from nn_core.communicators.communicator import Communicator as Communicator
from nn_core.communicators.elastic import fill_up as fill_up
from nn_core.communicators.elastic import join as join
from nn_core.communicators.engine import AloneEngine as AloneEngine
from nn_core.communicators.engine import Engine as Engine
from nn_core.communicators.engine import Handle as Handle
from nn_core.communicators.launchers import JOB_TOKEN as JOB_TOKEN
from nn_core.communicators.launchers import Launch as Launch
from nn_core.communicators.launchers import find_launch as find_launch
from nn_core.communicators.local import LocalCommunicator as LocalCommunicator
from nn_core.communicators.sharded_gradients import GradientSums as GradientSums
from nn_core.communicators.sharded_states import StateShards as StateShards
from nn_core.communicators.sharded_states import shard_states as shard_states
from nn_core.communicators.shards import Shards as Shards
from nn_core.context import Context
from nn_core.engine.error_messages.refusal import fitted
from nn_core.errors import ArgumentError

__all__ = [
    "JOB_TOKEN",
    "AllReduceCallback",
    "AloneEngine",
    "Buckets",
    "Comm",
    "Communicator",
    "DataParallelCommunicator",
    "Dist",
    "Engine",
    "GradientSums",
    "Handle",
    "Launch",
    "LocalCommunicator",
    "MultiProcessCommunicator",
    "MultiProcessDataParalellCommunicator",
    "MultiProcessDataParallelCommunicator",
    "Shards",
    "StateShards",
    "fill_up",
    "find_launch",
    "join",
    "shard_states",
    "share_parameters",
]


class MultiProcessDataParallelCommunicator(Communicator):
    """The communicator of processes that train one model on different data; see `Communicator`."""


#: The spelling of NNabla's tutorial.
MultiProcessDataParalellCommunicator = MultiProcessDataParallelCommunicator
MultiProcessCommunicator = MultiProcessDataParallelCommunicator
Comm = MultiProcessDataParallelCommunicator
Dist = MultiProcessDataParallelCommunicator


@fitted
def DataParallelCommunicator(ctx: Context | None = None) -> Any:  # noqa: N802 # NNabla's name
    """NNabla's communicator of threads with a device each, which nn_core does not have.

    Raises:
        ArgumentError: always.
    """
    raise ArgumentError(
        "DataParallelCommunicator: devices must belong to processes of their own, got a communicator of threads\n"
        "  hint: use MultiProcessDataParallelCommunicator, and start one process a device: nn-core launch -n 2 PROGRAM"
    )
