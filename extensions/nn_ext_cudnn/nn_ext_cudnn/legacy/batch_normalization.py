"""Batch normalization.

cuDNN wants float32 parameters and statistics for 16-bit images, and keeps 1 / sqrt(variance + eps) for the gradient where
the function keeps the variance; small kernels turn one into the other.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cuda.codegen.describe import backward_arrays, backward_names, forward_arrays, forward_names
from nn_ext_cuda.fusion.joinable import Joinable
from nn_ext_cuda.kernels.normalization import BATCH_NORMALIZATION as CUDA_NORMALIZATION
from nn_ext_cuda.kernels.normalization import FUSED_BATCH_NORMALIZATION as CUDA_FUSED
from nn_ext_cudnn.legacy import api
from nn_ext_cudnn.legacy.batch_norm_frame import as_cuda, axes_of, frame_of, is_of_one_layout, tensors, training
from nn_ext_cudnn.legacy.batch_norm_work import Work
from nn_ext_cudnn.legacy.images import channels_last
from nn_ext_cudnn.legacy.recipe import Recipe, number
from nn_ext_cudnn.legacy.refusal import refuse_arrays, refuse_failures
from nn_ext_cudnn.precision import prefers_channels_last

#: The largest batch that cuDNN runs, by whether images have one place each and by whether it trains; with more it fails
#: when it runs.
LARGEST_BATCH: Final[Mapping[tuple[bool, bool], int]] = {
    (True, True): 131070,
    (True, False): 131070,
    (False, True): 880801,
    (False, False): 65535,
}
#: The largest number of channels of images.
MOST_CHANNELS: Final = 65535


class BatchNormalization:
    """Normalization by the statistics of the batch or by given ones.

    Gradients that do not flow through the statistics of the batch are those of nn_ext_cuda. On channels-last images
    cuDNN may sum in integers: finite values that are very large can become infinite there.

    With the sum and the ReLU after it, a plan runs it by the kernel of nn_ext_cuda, which computes all three in one pass.
    """

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse statistics over one element, channels that are several axes apart, and what cuDNN says it cannot do."""
        refusal = refuse_arrays(call)
        if refusal is not None:
            return refusal
        (x, _, _, mean, variance), axes = call.inputs[:5], axes_of(call)
        assert x is not None
        if axes != tuple(range(axes[0], axes[0] + len(axes))):
            return Refusal(f"takes axes that are neighbours, got {axes}")
        if (mean is None) != (variance is None):
            return Refusal("takes both mean and variance, or none of them")
        frame = frame_of(x, axes)
        limit = LARGEST_BATCH[frame.is_matrix, bool(call.args["batch_stat"])]
        if frame.dims[0] > limit:
            return Refusal(f"takes batches of at most {limit}, got {frame.dims[0]}")
        if frame.dims[1] > MOST_CHANNELS and not frame.is_matrix:
            return Refusal(f"takes images of at most {MOST_CHANNELS} channels, got {frame.dims[1]}")
        if call.args["batch_stat"] and x.size == frame.dims[1]:
            return Refusal("takes at least two elements a channel: the running variance of cuDNN is unbiased")
        refusal = api.refuse_part("ops") or _refuse_training(call, x)
        return refusal or refuse_failures(lambda: self.forward(call))

    def layout(self, call: Call) -> str:
        """Channels-last for images where convolutions want it, and cuDNN trains on them."""
        x = call.inputs[0]
        assert x is not None
        if not prefers_channels_last(call.dtype) or axes_of(call) != (1,) or not 3 <= len(x.shape) <= 5:
            return "contiguous"
        return "contiguous" if _refuse_training(call, channels_last(x)) else "channels_last"

    def forward(self, call: Call) -> Runner:
        """One call, in between the changes of dtype and layout that cuDNN wants."""
        recipe = self._forward(call)
        return Joinable(recipe, call, CUDA_NORMALIZATION.joined(as_cuda(call))) if is_of_one_layout(call) else recipe

    def _forward(self, call: Call) -> Recipe:
        work = Work(call, forward_arrays(call), forward_names(call))
        x, y = work.image("x"), work.at("y")
        scale, shift = work.parameter("gamma", "R(1)"), work.parameter("beta", "R(0)")
        one, zero = number(call.dtype, 1), number(call.dtype, 0)
        eps = float(call.args["eps"])  # type: ignore[arg-type]  # an argument of type float
        if not call.args["batch_stat"]:
            given = [work.parameter(name, "R(0)") for name in ("mean", "variance")]
            mode = api.BatchNorm.PER_ACTIVATION if work.frame.is_matrix else api.BatchNorm.SPATIAL
            tensor, parameters = tensors(work.frame, mode)
            work.call(
                api.ops().cudnnBatchNormalizationForwardInference,
                [mode, one, zero, tensor, x, tensor, y, parameters, scale, shift, *given, eps],
            )
            work.after({"batch_mean": "mean", "batch_variance": "variance"})
            return work.recipe()
        found = training(work.frame)
        tensor, parameters = tensors(work.frame, found.mode)
        running = [work.updated(name) for name in ("mean", "variance")]
        saved_mean, saved_scale = work.result("batch_mean"), work.scratch("saved_scale")
        memory = work.memory(found.forward_bytes)
        new_part = 1 - float(call.args["decay_rate"])  # type: ignore[arg-type]  # an argument of type float
        work.call(
            api.ops().cudnnBatchNormalizationForwardTrainingEx,
            [
                *(found.mode, api.NORMALIZE_ONLY, one, zero, tensor, x, None, None, tensor, y, parameters, scale, shift),
                *(new_part, *running, eps, saved_mean, saved_scale, None, memory, found.forward_bytes, None, 0),
            ],
        )
        work.after({"batch_variance": "larger(R(1) / square(saved_scale) - eps, R(0))"})
        return work.recipe()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One call where the gradient flows through the statistics of the batch."""
        if any(wanted[3:5]):
            return None
        recipe = self._backward(call, wanted)
        if not is_of_one_layout(call):
            return recipe
        return Joinable(recipe, call, CUDA_NORMALIZATION.joined_backward(as_cuda(call), wanted), is_backward=True)

    def _backward(self, call: Call, wanted: Sequence[bool]) -> Recipe:
        work = Work(call, backward_arrays(call, wanted), backward_names(call), wanted)
        x, dy = work.image("x"), work.image("dy")
        dx = work.image_result("dx") if wanted[0] else None
        if dx is None or not call.args["batch_stat"]:
            work.by_cuda({"x": x, "dx": dx})
            return work.recipe()
        found = training(work.frame)
        tensor, parameters = tensors(work.frame, found.mode)
        scale = work.parameter("gamma", "R(1)")
        saved = [work.at("batch_mean"), work.computed("saved_scale", "R(1) / sqrt(batch_variance + eps)")]
        dscale, dshift = work.result("dgamma"), work.result("dbeta")
        memory = work.memory(found.backward_bytes)
        one, zero = number(call.dtype, 1), number(call.dtype, 0)
        eps = float(call.args["eps"])  # type: ignore[arg-type]  # an argument of type float
        work.call(
            api.ops().cudnnBatchNormalizationBackwardEx,
            [
                *(found.mode, api.NORMALIZE_ONLY, one, zero, one, zero, tensor, x, None, None, tensor, dy),
                *(None, None, tensor, dx, parameters, scale, None, dscale, dshift, eps),
                *(*saved, None, memory, found.backward_bytes, None, 0),
            ],
        )
        return work.recipe()


class FusedBatchNormalization:
    """Normalization, the sum with z and the ReLU by the kernels of nn_ext_cuda, on images in either layout.

    They read and write each image once beside the statistics; functions of cuDNN would leave the sum and the ReLU to
    further launches, and to masks that they keep from the forward to the backward pass.
    """

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse what nn_ext_cuda refuses."""
        return CUDA_FUSED.refuse(call)

    def layout(self, call: Call) -> str:
        """Channels-last for images where convolutions want it."""
        x = call.inputs[0]
        assert x is not None
        is_wanted = prefers_channels_last(call.dtype) and axes_of(call) == (1,) and 3 <= len(x.shape) <= 5
        return "channels_last" if is_wanted else "contiguous"

    def forward(self, call: Call) -> Runner:
        """Return the kernels, after images have been brought into the layout of y."""
        if is_of_one_layout(call):
            return CUDA_FUSED.forward(as_cuda(call))
        work = Work(call, forward_arrays(call), forward_names(call))
        work.by_cuda({name: work.image(name) for name in ("x", "z") if work.at(name)})
        return work.recipe()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return the kernels, as `forward`; None for gradients of running statistics."""
        if is_of_one_layout(call):
            return CUDA_FUSED.backward(as_cuda(call), wanted)
        if any(wanted[3:5]):
            return None
        work = Work(call, backward_arrays(call, wanted), backward_names(call), wanted)
        images = {name: work.image(name) for name in ("x", "dy")}
        work.by_cuda(images | {name: work.image_result(name) for name in ("dx", "dz") if work.at(name)})
        return work.recipe()


def _refuse_training(call: Call, x: ArrayDesc) -> Refusal | None:
    """Refuse what cuDNN says it does not train on."""
    if not call.args["batch_stat"]:
        return None
    return refuse_failures(lambda: training(frame_of(x, axes_of(call))))


BATCH_NORMALIZATION: Final[Mapping[str, Kernel]] = {
    "BatchNormalization": BatchNormalization(),
    "FusedBatchNormalization": FusedBatchNormalization(),
}
