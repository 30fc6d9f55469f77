"""Lowers the gradients of nodes into a plan: a kernel or a gradient rule each, and the sums that they lead to."""

from collections.abc import Sequence

import numpy as np

from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.arrays.synced import HOST, Space, SyncedArray
from nn_core.engine.dispatch.given_dtypes import GIVEN_KINDS
from nn_core.engine.graph.backward_data import BackwardPlan, ForwardData, dtype_held, storages_read
from nn_core.engine.graph.call import PreparedKernel
from nn_core.engine.graph.compile import alias, assign, is_view, kernel_of, needed_data, require_computed
from nn_core.engine.graph.gradient_rule import RuleRunner
from nn_core.engine.graph.gradient_sums import GradientSums, GradientTarget
from nn_core.engine.graph.memory import Buffer
from nn_core.engine.graph.node import Node, Storage, Value
from nn_core.engine.graph.plan import Attachment
from nn_core.engine.graph.python_function import PythonBackward
from nn_core.engine.graph.zero_copy import arrangement_of, show_parts, show_whole
from nn_core.errors import GraphError
from nn_core.settings import is_enabled
from nn_core.typing import Runner


class GradientCompiler:
    """Adds the gradient of one node after the other to a plan."""

    def __init__(self, plan: BackwardPlan, data: ForwardData, targets: dict[Storage, GradientTarget], overwrite: bool) -> None:
        self._plan = plan
        self._data = data
        self._builder = data.builder
        self._targets = targets
        self._sums = GradientSums(plan, data.builder, overwrite)
        #: arrays of gradients that no other variable may have
        self._own_grads: set[SyncedArray] = set()

    def start(self, root: Value, own_start: bool) -> None:
        """Return the gradient of the root: the user's value, or what its own gradient array holds."""
        dtype, space = self._place_of(root)
        target = self._targets[root.storage]
        if own_start:
            grad = root.storage.grad
            # read while the pass runs, so no gradient may be written there
            self._own_grads.add(grad.synced)
            self._plan.storages.append((root.storage, root.storage.data, grad))
            target.buffer = self._builder.read(grad, (space, dtype), True)
        else:
            target.buffer = Buffer(root.plain_shape, dtype, space, space.empty(root.plain_shape, dtype))
            self._plan.start = target.buffer

    def _kernel_of(self, node: Node) -> PreparedKernel:
        # the kernel is right for these dtypes only: the plan compares them before each run
        if any(entry.dtype in GIVEN_KINDS for entry in node.spec.inputs):
            arrays = [value.storage.data.synced for value in node.inputs if value is not None]
            self._plan.dtypes += [(synced, dtype_held(synced)) for synced in arrays]
        return kernel_of(node, self._data.dtypes)

    def _place_of(self, value: Value) -> tuple[str, Space]:
        node = value.producer
        assert node is not None
        if node.python is not None:
            return "float32", HOST
        kernel = self._kernel_of(node)
        return kernel.output_dtypes[value.output_index], kernel.space

    def add(self, node: Node) -> None:
        """Return the gradient of `node`, and the additions that it leads to."""
        # nothing to compute: the gradient of a view is that of the memory which it shows, in another shape
        if is_view(node):
            self._add_view(node)
            return
        wanted = tuple(value is not None and value.need_grad for value in node.inputs)
        if node.python is not None:
            self._add_python(node, wanted)
            return
        # a sink computes nothing: gradients start at its inputs, where the caller has set them
        if node.spec.has("sink") and not node.args["one_input_grad"]:
            self._take_given(node, wanted)
            return
        kernel = self._kernel_of(node)
        wanted = tuple(want and _is_floating(dtype) for want, dtype in zip(wanted, kernel.input_dtypes, strict=True))
        if self._shows(node):
            return
        wanted = self._not_passed(node, kernel, wanted)
        if node.spec.has("keeps_gradient"):
            self._keep_gradient(node, kernel)
        elif any(wanted):  # indices and labels have no gradient: that of their variables stays zero
            self._add_kernel(node, kernel, wanted)

    def _keep_gradient(self, node: Node, kernel: PreparedKernel) -> None:
        """Write the gradient of the last input over its values, if it is a leaf, instead of handing it on."""
        value, target = node.inputs[-1], self._targets.get(node.storages[0])
        dtype = kernel.input_dtypes[-1]
        if value is None or dtype is None or not value.is_leaf or target is None or target.buffer is None:
            return
        synced, key = value.storage.data.synced, (kernel.space, dtype)
        synced.make_contiguous(key)
        synced.readwrite(key)
        self._plan.rewritten.append(synced)
        others = [False] * (len(node.inputs) - 1)
        runner, read, _ = self._prepared(node, kernel, (*others, True))
        kept = self._builder.read(value.storage.data, key, True)
        self._builder.add(node, runner, [*read, *[None for _ in others], kept], kernel.backend, strided=kernel.strided)

    def _not_passed(self, node: Node, kernel: PreparedKernel, wanted: tuple[bool, ...]) -> tuple[bool, ...]:
        """Let inputs share the gradient of the result where theirs is the same; return which others are wanted."""
        grad = self._shareable(node.storages[0]) if node.spec.has("passes_gradient") else None
        if grad is None or grad.space is not kernel.space:
            return wanted
        inputs = zip(wanted, node.inputs, kernel.input_dtypes, strict=True)
        return tuple([want and not self._shares(value, dtype, grad) for want, value, dtype in inputs])

    def _shows(self, node: Node) -> bool:
        """Show gradients of a function that arranges elements in each other, if possible."""
        arrangement = arrangement_of(node)
        target = None if arrangement is None else self._untouched(node.inputs[0])
        grads = [] if target is None else self._own_grads_of(node)
        if arrangement is None or target is None or not grads:
            return False
        buffer = Buffer(target.value.plain_shape, grads[0].dtype, grads[0].space)
        if all(grad.is_movable for grad in grads):
            done = show_parts(buffer, grads, arrangement)
        else:
            done = self._makes_strided(target.value) and show_whole(buffer, grads[0], arrangement)
        if done:
            target.received, target.buffer, target.written = 1, buffer, True
        return done

    def _untouched(self, value: Value | None) -> GradientTarget | None:
        """Return the gradient of a value, if it gets one contribution, which has not come, and nobody sees it afterwards."""
        target = None if value is None else self._targets.get(value.storage)
        if target is None or target.expected != 1 or target.buffer is not None or not self._is_cleared(target):
            return None
        return target

    def _own_grads_of(self, node: Node) -> list[Buffer]:
        """Return the gradients of all results, of one kind; none where one is missing or has no memory of its own."""
        grads = [self._own_grad(storage) for storage in node.storages]
        given = [grad for grad in grads if grad is not None]
        return given if len(given) == len(grads) and len({(grad.dtype, grad.space) for grad in given}) == 1 else []

    def _own_grad(self, storage: Storage) -> Buffer | None:
        """Return the gradient of a result in memory of the pass, in C order so far, that no other value has and nobody
        sees.
        """
        target, grad = self._targets.get(storage), self._shareable(storage)
        if grad is None or target is None or target.is_shared:
            return None
        return None if grad.channels_last or grad.strided else grad

    def _makes_strided(self, value: Value) -> bool:
        """Return whether the function that has made a value reads its gradient in any order."""
        node = value.producer
        if node is None or node.python is not None or is_view(node) or arrangement_of(node) is not None:
            return False
        return self._kernel_of(node).strided

    def _shareable(self, storage: Storage) -> Buffer | None:
        """Return the gradient of what is in a storage, if it is in memory of the pass, and nobody sees it afterwards."""
        target = self._targets.get(storage)
        if target is None or target.buffer is None or target.buffer.root().array is not None:
            return None
        return target.buffer if is_enabled("share_memory") and self._is_cleared(target) else None

    def _shares(self, value: Value | None, dtype: str | None, grad: Buffer) -> bool:
        """Let `grad` be the gradient of an input, read in `dtype`, if it is the first one and nobody sees it afterwards."""
        target = None if value is None else self._targets[value.storage]
        if target is None or target.buffer is not None or not self._is_cleared(target):
            return False
        if (target.value.plain_shape, dtype) != (grad.shape, grad.dtype):
            return False
        target.share(grad)
        return True

    def _is_cleared(self, target: GradientTarget) -> bool:
        """Return whether nobody sees a gradient after the pass."""
        return self._plan.clear_buffer and not target.is_leaf and not target.value.persistent

    def _add_kernel(self, node: Node, kernel: PreparedKernel, wanted: tuple[bool, ...]) -> None:
        """Add the gradient by the backend's kernel, or by the gradient rule."""
        backend = kernel.backend
        if kernel.dynamic or _reads_what_changes(node):  # shapes and inputs are right once the function has run
            require_computed(node, node.storages[0].data.synced)
        runner, read, flags = self._prepared(node, kernel, wanted)
        # after the data was asked for, because the copies of that are operations too and come first
        gradients, additions = self._input_targets(node, kernel, wanted, flags)
        runner, additions = self._sums.accumulating(runner, gradients, additions, len(read))
        self._builder.add(node, runner, [*read, *gradients], backend, strided=kernel.strided)
        self._sums.accumulate(node, additions, backend)

    def _prepared(
        self, node: Node, kernel: PreparedKernel, wanted: tuple[bool, ...]
    ) -> tuple[Runner, list[Buffer | None], Sequence[bool]]:
        """Return what computes the wanted gradients, what it reads (data, gradients of results), and layouts by array."""
        data = self._data_read(node, kernel)
        grads = self._output_grads(node, kernel)
        flags = self._data.layout(node, kernel, data)
        runner = kernel.backward_for(wanted, flags)
        if runner is None:  # the rule is array code, and takes arrays in whatever layout they have
            shapes = [None if value is None else value.plain_shape for value in node.inputs]
            runner = RuleRunner(kernel, shapes, [storage.data.shape for storage in node.storages], wanted)
        return runner, [*self._laid_out(data, flags, kernel), *self._laid_out(grads, flags[len(node.inputs) :], kernel)], flags

    def _data_read(self, node: Node, kernel: PreparedKernel) -> list[Buffer | None]:
        """Return the data of inputs and outputs that the gradient reads, None for the others."""
        reads_inputs, reads_outputs = needed_data(node)
        storages, reads = [*storages_read(node), *node.storages], [*reads_inputs, *reads_outputs]
        keys = [*kernel.input_keys, *kernel.output_keys]
        read = [
            (storage, key) if needed and storage is not None and key is not None else None
            for storage, key, needed in zip(storages, keys, reads, strict=True)
        ]
        for pair in read:  # all of them before one is copied: what was dropped is computed again once, in its layout
            if pair is not None:
                self._data.locate(pair[0].data.synced)
        in_order = kernel.layout == "contiguous"
        return [
            None if pair is None else self._data.of(*pair, in_order, kernel.backend, strided=kernel.strided) for pair in read
        ]

    def _laid_out(
        self, buffers: Sequence[Buffer | None], flags: Sequence[bool], kernel: PreparedKernel
    ) -> list[Buffer | None]:
        return [
            None if buffer is None else self._builder.laid_out(buffer, flag, kernel.backend, strided=kernel.strided)
            for buffer, flag in zip(buffers, flags, strict=False)
        ]

    def _output_grads(self, node: Node, kernel: PreparedKernel) -> list[Buffer | None]:
        grads: list[Buffer | None] = []
        n_visible = len(node.storages) - sum(entry.aux for entry in node.spec.outputs)
        for storage, dtype in list(zip(node.storages, kernel.output_dtypes, strict=True))[:n_visible]:
            target = self._targets.get(storage)
            if target is None or target.buffer is None or not _is_floating(dtype):
                # a kernel takes a gradient for each visible output, also for one that nobody reads, and for indices, where
                # what arrives ends: it may be NaN, which no index is
                zeros = kernel.space.empty(storage.data.shape, dtype)
                zeros[...] = 0
                grads.append(Buffer(storage.data.shape, dtype, kernel.space, zeros))
            else:
                grads.append(self._builder.converted(target.buffer, kernel.space, dtype, kernel.backend))
        return grads

    def _input_targets(
        self, node: Node, kernel: PreparedKernel, wanted: Sequence[bool], flags: Sequence[bool]
    ) -> tuple[list[Buffer | None], list[tuple[GradientTarget, Buffer]]]:
        """Return the buffers that receive the gradients of the inputs, and the sums to compute afterwards."""
        gradients: list[Buffer | None] = []
        additions: list[tuple[GradientTarget, Buffer]] = []
        for value, dtype, want, flag in zip(node.inputs, kernel.input_dtypes, wanted, flags[: len(node.inputs)], strict=True):
            if value is None or not want or dtype is None:
                gradients.append(None)
                continue
            target = self._targets[value.storage]
            buffer, add = self._sums.contribution(target, dtype, kernel.space, flag)
            gradients.append(buffer)
            if add:
                additions.append((target, buffer))
        return gradients, additions

    def _add_view(self, node: Node) -> None:
        value = node.inputs[0]
        out = self._targets.get(node.storages[0])
        if value is None or not value.need_grad or out is None or out.buffer is None:
            return
        target = self._targets[value.storage]
        grad = self._builder.laid_out(out.buffer, False)
        # the only contribution, in memory of the pass: it serves as it is
        if not target.is_leaf and target.expected == 1 and grad.array is None:
            target.received += 1
            target.buffer, target.written = alias(grad, value.plain_shape), True
            return
        backend = self._kernel_of(node).backend
        buffer, add = self._sums.contribution(target, grad.dtype, grad.space, False)
        self._builder.add(node, assign, (buffer, alias(grad, value.plain_shape)))
        if add:
            self._sums.accumulate(node, [(target, buffer)], backend)

    def _take_given(self, node: Node, wanted: Sequence[bool]) -> None:
        """Continue with the gradients that the caller has set on the inputs."""
        kernel = self._kernel_of(node)
        for value, dtype, want in zip(node.inputs, kernel.input_dtypes, wanted, strict=True):
            if value is None or not want or dtype is None or value.producer is None:
                continue
            target = self._targets[value.storage]
            target.received += 1
            target.is_leaf = True  # its gradient array is the caller's, not the plan's
            grad = value.storage.grad
            given = self._builder.read(grad, (kernel.space, dtype), True)
            if target.buffer is None:
                target.buffer, target.written = Buffer(value.plain_shape, dtype, kernel.space), True
                self._builder.add(node, assign, (target.buffer, given))
            else:
                self._sums.accumulate(node, [(target, given)])

    def _add_python(self, node: Node, wanted: tuple[bool, ...]) -> None:
        inputs = [None if storage is None else self._as_it_is(storage) for storage in storages_read(node)]
        outputs = [self._data.of(storage, (HOST, "float32"), True) for storage in node.storages]
        grads: list[Buffer | None] = []
        for storage in node.storages:
            target = self._targets.get(storage)
            if target is None or target.buffer is None:
                grads.append(Buffer(storage.data.shape, "float32", HOST, np.zeros(storage.data.shape, np.float32)))
            else:
                grads.append(self._builder.laid_out(self._builder.converted(target.buffer, HOST, "float32"), False))
        gradients: list[Buffer | None] = []
        additions: list[tuple[GradientTarget, Buffer]] = []
        for value, want in zip(node.inputs, wanted, strict=True):
            if value is None or not want:
                gradients.append(None)
                continue
            buffer, add = self._sums.contribution(self._targets[value.storage], "float32", HOST, False)
            gradients.append(buffer)
            if add:
                additions.append((self._targets[value.storage], buffer))
        self._builder.add(node, PythonBackward(node, wanted), [*inputs, *outputs, *grads, *gradients])
        self._sums.accumulate(node, additions)

    def _as_it_is(self, storage: Storage) -> Buffer:
        """Return the data of a storage in the space and the dtype that it has."""
        located = self._data.locate(storage.data.synced)
        latest = storage.data.synced.latest if located is None else (located.space, located.dtype)
        return self._data.of(storage, latest or (HOST, "float32"), True)

    def finish(self, root: Value, clear_buffer: bool) -> None:
        """Place the arrays; let the gradients of kept variables be seen."""
        self._own_grads |= self._sums.leaf_grads.keys()
        between = [
            (target, target.buffer, not clear_buffer or target.value.persistent)
            for target in self._targets.values()
            if not target.is_leaf and target.storage is not root.storage and target.buffer is not None
        ]
        for _, buffer, keep in between:
            if keep:
                # before memory is handed out, so that nothing else is placed there
                buffer.keep = buffer.root().keep = True
        self._builder.finish()
        for target, buffer, keep in between:
            synced = target.storage.grad.synced
            array = buffer.resolve(self._plan.arena) if keep else None
            if array is not None and synced.shape != buffer.shape:
                array = array.reshape(synced.shape)
            self._attach(target.storage, Attachment(synced, (buffer.space, buffer.dtype), array, keep))

    def _attach(self, storage: Storage, attachment: Attachment) -> None:
        if attachment.synced in self._own_grads:
            raise GraphError(
                "backward: the gradient of a variable that a function computes must be an array of its own, got one that it "
                f"shares with another variable, of shape {storage.data.shape}"
            )
        self._own_grads.add(attachment.synced)
        self._plan.attachments.append(attachment)
        self._plan.storages.append((storage, storage.data, storage.made_grad))


def _reads_what_changes(node: Node) -> bool:
    """Return whether the gradient of a function reads an input that the function rewrites."""
    rewritten = {id(value) for value in node.rewritten()}
    needed, _ = needed_data(node) if rewritten else ((), ())
    return any(id(value) in rewritten for value, reads in zip(node.inputs, needed, strict=False) if reads)


def _is_floating(dtype: str | None) -> bool:
    return dtype is not None and dtype_of(dtype).kind not in "iub"
