"""The parts of a pass of a recurrent network: copies of weights and of what is kept around the calls of cuDNN."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from nn_core.ext import ArrayDesc, Call, Shape
from nn_ext_cuda.codegen.copies import Copies
from nn_ext_cuda.codegen.dtypes import ITEM_BYTES
from nn_ext_cuda.memory.derived_weights import WithDerived
from nn_ext_cudnn.legacy import api
from nn_ext_cudnn.legacy.descriptors import Descriptor
from nn_ext_cudnn.legacy.networks import network_of, pieces_of, question_of
from nn_ext_cudnn.legacy.recipe import At, LibraryCall, Recipe
from nn_ext_cudnn.legacy.weights import Packing, WeightCopy

#: The inputs that hold weights.
WEIGHTS: Final = ("weight_l0", "weight", "bias")


def weight_dtype(call: Call) -> str:
    """Return the dtype of the weights: that of the call, or a wider one."""
    names = [entry.name for entry in call.spec.inputs]
    first = call.inputs[names.index(WEIGHTS[0])]
    assert first is not None
    return first.dtype


class Work:
    """Collects the parts of a recipe.

    Args:
        call: The call.
        arrays: Its arrays.
        names: Their names.
    """

    def __init__(self, call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> None:
        self.found = network_of(call)
        self.pieces = pieces_of(call)
        self._call = call
        self._names = {name: place for place, name in enumerate(names)}
        #: the arrays of the call, and the weights where cuDNN wants them
        self._arrays = [*arrays, ArrayDesc((self._n_weights,), call.dtype)]
        self._space = At(len(arrays))
        self._n_arrays = len(arrays) + 1
        self._parts: list[Any] = []
        self._memory = At(-1)

    def at(self, name: str) -> At | None:
        """Return the array of that name; None where there is none."""
        place = self._names.get(name)
        return None if place is None or self._arrays[place] is None else At(place)

    def scratch(self, shape: Shape, dtype: str) -> At:
        """Return a new scratch array."""
        self._arrays.append(ArrayDesc(tuple(shape), dtype))
        return At(len(self._arrays) - 1)

    def kept(self) -> At:
        """Memory for what cuDNN keeps of a forward pass."""
        return self.scratch((self.found.n_kept(self._call.dtype),), self._call.dtype)

    def has_trace(self) -> bool:
        """Return whether the trace has room for what a forward pass keeps: in training, unless settings have changed since."""
        y = self._call.outputs[0]
        return self._size(self._at("trace")) == self.found.n_kept(self._call.dtype) + y.size

    def to_trace(self, kept: At) -> None:
        """Keep what cuDNN has kept, and y."""
        self._copies([(kept, 0, True), (self._at("y"), self._size(kept), True)])

    def from_trace(self, y: At, kept: At) -> None:
        """Take back what was kept."""
        self._copies([(kept, 0, False), (y, self._size(kept), False)])

    def forward(self, mode: int, n_bytes: int, y: At | None, h_n: At | None, c_n: At | None, kept: At | None) -> None:
        """Run the network."""
        found, memory = self.found, self.scratch((n_bytes,), "uint8")
        self._call_library(
            "cudnnRNNForward",
            *(found.network, mode, None, found.x, self.at("x"), found.y, y, found.states, self.at("h"), h_n),
            *(self._cell_states, self.at("c"), c_n, found.weight_bytes, self._space, n_bytes, memory),
            *(found.kept_bytes if kept else 0, kept),
        )

    def backward_data(self, y: At, dx: At, kept: At) -> None:
        """Gradients of the inputs and of the states."""
        found = self.found
        self._memory = self.scratch((found.training_bytes,), "uint8")
        self._call_library(
            "cudnnRNNBackwardData_v8",
            *(found.network, None, found.y, y, self.at("dy"), found.x, dx),
            *(found.states, self.at("h"), self.at("dh_n"), self.at("dh")),
            *(self._cell_states, self.at("c"), self.at("dc_n"), self.at("dc")),
            *(found.weight_bytes, self._space, found.training_bytes, self._memory, found.kept_bytes, kept),
        )

    def backward_weights(self, y: At, kept: At) -> None:
        """Gradients of the weights, which cuDNN adds to what is there."""
        found, gradients = self.found, self._weights()
        self._zero(gradients)
        self._call_library(
            "cudnnRNNBackwardWeights_v8",
            *(found.network, api.RNN_ADD_GRADIENTS, None, found.x, self.at("x"), found.states, self.at("h"), found.y, y),
            *(found.weight_bytes, gradients, found.training_bytes, self._memory, found.kept_bytes, kept),
        )
        self._copy("d", gradients, unpack=True)

    def runner(self, otherwise: Callable[[], None]) -> WithDerived:
        """All parts in order, on packed weights; `otherwise` is called where cuDNN turns out not to support them."""
        scratch = [(desc.shape, desc.dtype) for desc in self._arrays[self._n_arrays :] if desc is not None]
        parts = [part(len(self._arrays)) if callable(part) else part for part in self._parts]
        recipe = Recipe(self._call.spec.api, parts, self._n_arrays, scratch, otherwise)
        present = [at is not None for at in map(self.at, WEIGHTS)]
        places = [self._names[name] for name, is_there in zip(WEIGHTS, present, strict=True) if is_there]
        packing = Packing(self.pieces, self._n_weights, (weight_dtype(self._call), self._call.dtype), present)
        targets = [((self._n_weights,), self._call.dtype)]
        kind = "packed weights", question_of(self._call), packing.dtypes
        return WithDerived(recipe, self._n_arrays - 1, packing, places, targets, kind)

    @property
    def _cell_states(self) -> Descriptor | None:
        return self.found.states if "c" in self._names else None

    @property
    def _n_weights(self) -> int:
        return -(-self.found.weight_bytes // ITEM_BYTES[self._call.dtype])

    def _weights(self) -> At:
        return self.scratch((self._n_weights,), self._call.dtype)

    def _call_library(self, name: str, *arguments: Any) -> None:
        self._parts.append(LibraryCall(getattr(api.adv(), name), arguments))

    def _zero(self, array: At) -> None:
        def filled(n_arrays: int) -> Any:
            copies = self._copies_over([array], n_arrays)
            copies.fill(array.place)
            return copies.program()

        self._parts.append(filled)

    def _copies(self, moves: Sequence[tuple[At, int, bool]]) -> None:
        """Return copies between an array and a part of the trace, which begins there: to the trace, or from it."""
        trace = self._at("trace")

        def copied(n_arrays: int) -> Any:
            copies = self._copies_over([trace, *(array for array, _, _ in moves)], n_arrays)
            for array, start, to_trace in moves:
                own = copies.view(array.place).reshape(-1)
                part = copies.view(trace.place)[start : start + own.size]
                source, target = ((array, own), (trace, part))[:: 1 if to_trace else -1]
                copies.copy(source[0].place, source[1], target[0].place, target[1])
            return copies.program()

        self._parts.append(copied)

    def _copies_over(self, arrays: Sequence[At], n_arrays: int) -> Copies:
        places = {array.place for array in arrays}
        return Copies([self._arrays[place] if place in places else None for place in range(n_arrays)])

    def _at(self, name: str) -> At:
        found = self.at(name)
        assert found is not None
        return found

    def _size(self, array: At) -> int:
        desc = self._arrays[array.place]
        assert desc is not None
        return desc.size

    def _copy(self, prefix: str, space: At, *, unpack: bool) -> None:
        given = [self._names[f"{prefix}{name}"] for name in WEIGHTS]
        dtypes = weight_dtype(self._call), self._call.dtype
        self._parts.append(WeightCopy(self.pieces, dtypes, [*given, space.place], unpack=unpack))
