"""Recurrent networks over sequences: all layers, directions and steps in one call.

What cuDNN keeps of a forward pass in training goes to the output `trace`, followed by y: the backward pass reads both,
and works on a copy, which cuDNN changes. Without training the backward pass runs the network again.

cuDNN may add up in different orders when a process uses several streams at once; the environment variable
``CUBLAS_WORKSPACE_CONFIG=:4096:8`` fixes the order.
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Final

from nn_core.ext import Call, Kernel, Refusal, Runner, Shape, forget_prepared
from nn_ext_cuda.codegen.describe import backward_arrays, backward_names, forward_arrays, forward_names
from nn_ext_cudnn.legacy import api
from nn_ext_cudnn.legacy.networks import network_of, pieces_of
from nn_ext_cudnn.legacy.recurrent_work import WEIGHTS, Work
from nn_ext_cudnn.legacy.refusal import refuse_arrays, refuse_failures


class Recurrent:
    """A recurrent network; which one, the function of the call says."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dropout between layers, and what cuDNN says it cannot do."""
        args = call.args
        if args["dropout"] and args["training"] and args["num_layers"] != 1:
            return Refusal("takes no dropout between layers: cuDNN draws random numbers of its own")
        if _key(call) in _UNSUPPORTED:
            return Refusal("cuDNN turned out not to support such a call when it ran")
        refusal = refuse_arrays(call) or api.refuse_part("ops") or api.refuse_part("adv")
        return refusal or refuse_failures(lambda: pieces_of(call))  # which makes the descriptors of the network first

    def private_shapes(self, call: Call) -> Sequence[Shape]:
        """Return the shape of `trace`."""
        if not call.args["training"]:
            return [(0,)]
        found = network_of(call)
        return [(found.n_kept(call.dtype) + call.outputs[0].size,)]

    def forward(self, call: Call) -> Runner:
        """One call, on weights that are packed when they have changed."""
        work = Work(call, forward_arrays(call), forward_names(call))
        y, h_n, c_n = (work.at(name) for name in ("y", "h_n", "c_n"))
        if work.has_trace():
            kept = work.kept()
            work.forward(api.RNN_TRAINING, work.found.training_bytes, y, h_n, c_n, kept)
            work.to_trace(kept)
        else:
            work.forward(api.RNN_INFERENCE, work.found.inference_bytes, y, h_n, c_n, None)
        return work.runner(partial(_leave, call))

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One call for inputs and states, and one for weights."""
        x = call.inputs[0]
        assert x is not None
        work = Work(call, backward_arrays(call, wanted), backward_names(call))
        y, kept = work.scratch(call.outputs[0].shape, call.dtype), work.kept()
        if work.has_trace():
            work.from_trace(y, kept)
        else:
            work.forward(api.RNN_TRAINING, work.found.training_bytes, y, None, None, kept)
        dx = work.at("dx") or work.scratch(x.shape, call.dtype)
        work.backward_data(y, dx, kept)
        if any(work.at(f"d{name}") is not None for name in WEIGHTS):
            work.backward_weights(y, kept)
        return work.runner(partial(_leave, call))


#: Calls that other backends have to run.
_UNSUPPORTED: Final[set[Hashable]] = set()


def _key(call: Call) -> Hashable:
    return call.spec.name, tuple(sorted(call.args.items())), call.inputs, call.dtype, call.device_id


def _leave(call: Call) -> None:
    """Refuse such calls from now on."""
    _UNSUPPORTED.add(_key(call))
    forget_prepared()


RECURRENT: Final[Mapping[str, Kernel]] = dict.fromkeys(("RNN", "LSTM", "GRU"), Recurrent())
