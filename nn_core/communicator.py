"""Communicators under NNabla's module name; see `nn_core.communicators`."""

from nn_core.communicators import Comm as Comm
from nn_core.communicators import Communicator as Communicator
from nn_core.communicators import DataParallelCommunicator as DataParallelCommunicator
from nn_core.communicators import Dist as Dist
from nn_core.communicators import MultiProcessCommunicator as MultiProcessCommunicator
from nn_core.communicators import MultiProcessDataParalellCommunicator as MultiProcessDataParalellCommunicator
from nn_core.communicators import MultiProcessDataParallelCommunicator as MultiProcessDataParallelCommunicator
