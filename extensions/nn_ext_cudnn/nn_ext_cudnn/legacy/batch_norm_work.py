"""The parts of a batch normalization: changes of dtype and layout around a call of cuDNN."""

from collections.abc import Mapping, Sequence
from typing import Any

from nn_core.ext import Array, ArrayDesc, Call, Runner, Shape
from nn_ext_cuda.codegen.compose import Composition
from nn_ext_cuda.codegen.dtypes import real_dtype
from nn_ext_cuda.kernels.normalization import NORMALIZATION as CUDA_NORMALIZATION
from nn_ext_cudnn.legacy.batch_norm_frame import as_matrix, axes_of, frame_of, rearranged
from nn_ext_cudnn.legacy.recipe import At, LibraryCall, Recipe


class Work:
    """Collects the parts of a recipe: what comes before cuDNN, its call, and what comes after.

    Args:
        call: The call.
        arrays: Its arrays.
        names: Their names.
        wanted: For each input, whether its gradient is wanted; None in the forward pass.
    """

    def __init__(
        self,
        call: Call,
        arrays: Sequence[ArrayDesc | None],
        names: Sequence[str],
        wanted: Sequence[bool] | None = None,
    ) -> None:
        x, y = call.inputs[0], call.outputs[0]
        assert x is not None
        self.frame = frame_of(y, axes_of(call))
        self._call, self._x, self._wanted = call, x, wanted
        self._arrays, self._names = list(arrays), list(names)
        self._n_arrays = len(arrays)
        self._before: dict[str, str] = {}
        self._after: dict[str, str] = {}
        self._copies: list[tuple[int, int]] = []
        self._copies_back: list[tuple[int, int]] = []
        self._main: list[Any] = []

    def at(self, name: str) -> At | None:
        """Return the array of that name; None where there is none."""
        place = self._names.index(name)
        return None if self._arrays[place] is None else At(place)

    def wide(self, name: str) -> At | None:
        """Return the array of that name, if it is there and holds the dtype of statistics."""
        place = self._names.index(name)
        desc = self._arrays[place]
        return At(place) if desc is not None and desc.dtype == real_dtype(self._call.dtype) else None

    # -- arrays ----------------------------------------------------------------------------------------------------

    def scratch(self, name: str, shape: Shape | None = None, dtype: str | None = None) -> At:
        """Return a scratch array; one number a channel, in the dtype of statistics, unless told otherwise."""
        shape = (self.frame.dims[1],) if shape is None else shape
        self._arrays.append(ArrayDesc(shape, dtype or real_dtype(self._call.dtype)))
        self._names.append(name)
        return At(len(self._arrays) - 1)

    def memory(self, n_bytes: int) -> At | None:
        """Scratch memory without a form."""
        return self.scratch("memory", (n_bytes,), "uint8") if n_bytes else None

    def image(self, name: str) -> At:
        """Return an image that cuDNN reads, in the layout of y."""
        place = self._names.index(name)
        turned = self._turned(name)
        if turned is None:
            return At(place)
        self._copies.append((place, turned.place))
        return turned

    def image_result(self, name: str) -> At:
        """Return an image that cuDNN writes, in the layout of y."""
        place = self._names.index(name)
        turned = self._turned(name)
        if turned is None:
            return At(place)
        self._copies_back.append((turned.place, place))
        return turned

    def _turned(self, name: str) -> At | None:
        """Scratch memory for an image whose layout is not that of y."""
        desc = self._arrays[self._names.index(name)]
        assert desc is not None
        if frame_of(desc, axes_of(self._call)).lies_as(self.frame):
            return None
        return self.scratch(f"{name}_turned", self._x.shape, self._x.dtype)

    def parameter(self, name: str, otherwise: str) -> At:
        """Return a parameter that cuDNN reads, in the dtype of statistics; `otherwise` where it is not given."""
        found = self.wide(name)
        return found or self.computed(f"own_{name}", otherwise if self.at(name) is None else name)

    def computed(self, name: str, expression: str) -> At:
        """Return a scratch array that is computed before cuDNN is called."""
        self._before[name] = expression
        return self.scratch(name)

    def updated(self, name: str) -> At | None:
        """Return a parameter that cuDNN reads and writes."""
        if self.at(name) is None:
            return None
        if self.wide(name) is None:
            self._after[name] = f"own_{name}"
        return self.parameter(name, "")

    def result(self, name: str) -> At:
        """Return an array that cuDNN writes, in the dtype of statistics; where nobody wants it, a scratch array."""
        found = self.wide(name)
        if found is not None:
            return found
        if self.at(name) is not None:
            self._after[name] = f"own_{name}"
        return self.scratch(f"own_{name}")

    # -- parts -----------------------------------------------------------------------------------------------------

    def call(self, function: Any, arguments: Sequence[Any]) -> None:
        """Call cuDNN."""
        self._main.append(LibraryCall(function, arguments))

    def after(self, outputs: Mapping[str, str]) -> None:
        """Compute arrays of numbers a channel when cuDNN is through."""
        self._after.update(outputs)

    def _cuda_runner(self) -> Runner | None:
        """Return the runner of nn_ext_cuda, for images with the layout of y."""
        call = as_matrix(self._call) if self.frame.layout == "channels_last" else self._call
        kernel = CUDA_NORMALIZATION[call.spec.name]
        return kernel.forward(call) if self._wanted is None else kernel.backward(call, self._wanted)

    def by_cuda(self, places: Mapping[str, At | None]) -> None:
        """Let nn_ext_cuda compute the call, on other arrays at some `places`."""
        runner = self._cuda_runner()
        order = list(range(self._n_arrays))
        for name, other in places.items():
            if other is not None:
                order[self._names.index(name)] = other.place
        self._main.append(_Reordered(runner, order))

    def recipe(self) -> Recipe:
        """All parts in order."""
        n_arrays, to_last = len(self._arrays), self.frame.layout == "channels_last"
        turned = [rearranged(self._x, places, n_arrays, to_last=to_last) for places in self._copies]
        back = [rearranged(self._x, places, n_arrays, to_last=not to_last) for places in self._copies_back]
        before, after = (self._per_channel(outputs) for outputs in (self._before, self._after))
        scratch = [(desc.shape, desc.dtype) for desc in self._arrays[self._n_arrays :] if desc is not None]
        main = [part(n_arrays) if callable(part) else part for part in self._main]
        parts = [*turned, *before, *main, *after, *back]
        otherwise = None if self._copies or self._copies_back else self._cuda_runner
        return Recipe(self._call.spec.api, parts, self._n_arrays, scratch, otherwise)

    def _per_channel(self, outputs: Mapping[str, str]) -> list[Any]:
        n_channels = self.frame.dims[1]
        per_channel = [desc if desc is not None and desc.size == n_channels else None for desc in self._arrays]
        shapes = dict.fromkeys(self._names, (n_channels,))
        composition = Composition(self._call, per_channel, self._names, (n_channels,), shapes)
        if outputs:  # none of them reads what another one writes
            composition.compute(f"{self._call.spec.api}_per_channel", outputs)
        return [composition.program()] if outputs else []


class _Reordered:
    """A runner whose arrays are among others in another order."""

    def __init__(self, runner: Any, order: Sequence[int]) -> None:
        self._runner = runner
        self._order = order

    def bind(self, *arrays: Array) -> Any:
        """Return the step on its arrays."""
        return self._runner.bind(*(arrays[place] for place in self._order))
