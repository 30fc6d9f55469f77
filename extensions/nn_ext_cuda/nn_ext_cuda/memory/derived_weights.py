"""Arrays that are made of weights alone, such as filters in another layout; they are made anew where weights have changed.

A plan tells its steps by functions whether somebody may have written to a weight; see `follow_weights` of
`nn_core.typing.KernelExtras`. What it cannot tell is made anew in each run. Steps of one thread that want the same of one
array share it: a backward pass uses the filters that the forward pass has laid out.
"""

import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from nn_core.ext import Array, Shape
from nn_ext_cuda.launch.program import arrays_of
from nn_ext_cuda.memory.arrays import allocated

#: Tells what an array holds; see `follow_weights`. None: nobody can tell.
Version: TypeAlias = Callable[[], object] | None
#: Made of arrays that exist, by thread, device, what is made, and the addresses of the arrays.
_SHARED: Final["weakref.WeakValueDictionary[Hashable, Derived]"] = weakref.WeakValueDictionary()
_ALL: Final["weakref.WeakSet[Derived]"] = weakref.WeakSet()


class _Failures:
    """Counts launches that failed after they were held back: what they should have made does not exist."""

    def __init__(self) -> None:
        self.number = 0


_FAILURES: Final = _Failures()


def distrust() -> None:
    """Make everything anew in the next runs."""
    _FAILURES.number += 1


class Derived:
    """Arrays, and the launches that make them of others.

    Attributes:
        sources: What it is made of; as long as these live, no other array gets their addresses.
        arrays: What is made.
        made: The launches.
        version: What the sources held when it was made, and in which stream; None: not known.
        device: Number of the device.
    """

    __slots__ = ("__weakref__", "arrays", "device", "made", "sources", "version")

    def __init__(self, program: Any, sources: Sequence[Array | None], targets: Sequence[tuple[Shape, str]]) -> None:
        from nn_ext_cuda.device.runtime import cupy  # programs can be made without CuPy

        self.device = int(cupy.cuda.Device().id)
        self.arrays = [allocated(shape, dtype) for shape, dtype in targets]
        self.sources = tuple(sources)
        self.made = program.bind(*sources, *self.arrays)
        self.version: object = None
        _ALL.add(self)

    def n_bytes(self) -> int:
        """Bytes of what is made."""
        return sum(int(array.nbytes) for array in self.arrays)


class Making:
    """The step that makes derived arrays, in one plan; to be left out of runs for which it `is_done`.

    Args:
        derived: The arrays.
    """

    __slots__ = ("_seen", "derived", "versions")

    capturable = True

    def __init__(self, derived: Derived) -> None:
        self.derived = derived
        self.versions: Sequence[Version] = (None,)
        self._seen: object = None

    @property
    def name(self) -> str:
        """Name for reports and profilers."""
        return str(getattr(self.derived.made, "name", "derived"))

    @property
    def is_shareable(self) -> bool:
        """Whether what is made for one step of a pass is right for a later one: nothing in the pass writes to the sources."""
        return None not in self.versions

    def is_done(self, moment: object) -> bool:
        """Return whether the arrays were made of what the sources hold now, in this stream. Notes what they hold."""
        self._seen = seen(self.versions, moment)
        if self._seen is not None and self._seen == self.derived.version:
            return True
        self.derived.version = None  # until it is made
        return False

    def note(self) -> None:
        """Note that the launches are on their way, of what the sources held when `is_done` was asked."""
        self.derived.version = self._seen

    def run(self) -> None:
        """Launch."""
        self.derived.made.run()

    __call__ = run


def seen(versions: Sequence[Version], moment: object) -> object:
    """Return a value that stays equal as long as arrays hold the same and nothing has failed; None where nobody can tell."""
    values = [None if version is None else version() for version in versions]
    return None if None in values else (moment, *values)


def present_moment() -> object:
    """Return the current stream, in whose order arrays are made and read, and how often held launches have failed."""
    from nn_ext_cuda.device.runtime import cupy  # programs can be made without CuPy

    return int(cupy.cuda.get_current_stream().ptr), _FAILURES.number


class WithDerived:
    """A runner whose last arrays are derived from weights.

    Args:
        runner: Takes the arrays of the call, then the derived ones.
        n_arrays: How many arrays the call has.
        program: Makes the derived arrays of the weights: takes these, then those.
        weights: Positions of the weights among the arrays of the call.
        targets: Shapes and dtypes of the derived arrays.
        kind: What is made, so that runners that make the same of one array share it; None: nobody shares.
    """

    __slots__ = ("_kind", "_n_arrays", "_program", "_runner", "_targets", "weights")

    def __init__(
        self,
        runner: Any,
        n_arrays: int,
        program: Any,
        weights: Sequence[int],
        targets: Sequence[tuple[Shape, str]],
        kind: Hashable = None,
    ) -> None:
        self._runner = runner
        self._n_arrays = n_arrays
        self._program = program
        self._targets = tuple(targets)
        self._kind = kind
        self.weights = tuple(weights)

    @property
    def launches(self) -> tuple[Any, ...]:
        """All launches."""
        return tuple(launch for each in (self._program, self._runner) for launch in getattr(each, "launches", ()))

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> "DerivingStep":
        """Return the step on these arrays."""
        derived = self._derived([arrays[position] for position in self.weights])
        return DerivingStep(Making(derived), self._runner.bind(*arrays[: self._n_arrays], *derived.arrays))

    def _derived(self, sources: Sequence[Array | None]) -> Derived:
        if self._kind is None:
            return Derived(self._program, sources, self._targets)
        from nn_ext_cuda.device.runtime import cupy  # programs can be made without CuPy

        addresses = tuple(0 if array is None else int(array.data.ptr) for array in sources)
        key = threading.get_ident(), int(cupy.cuda.Device().id), self._kind, addresses
        derived = _SHARED.get(key)
        if derived is None:
            derived = _SHARED[key] = Derived(self._program, sources, self._targets)
        return derived


class DerivingStep:
    """A step that reads derived arrays, and the one that makes them.

    Attributes:
        making: Makes the arrays.
        step: Reads them.
    """

    __slots__ = ("making", "step")

    def __init__(self, making: Making, step: Any) -> None:
        self.making = making
        self.step = step

    @property
    def name(self) -> str:
        """Name of what is computed."""
        return str(getattr(self.step, "name", type(self.step).__name__))

    @property
    def arrays(self) -> "Sequence[Array | None] | None":
        """All that is read and written; None where the step that reads what is made does not tell."""
        arrays = arrays_of([self.step])
        return None if arrays is None else [*self.making.derived.sources, *self.making.derived.arrays, *arrays]

    def follow_weights(self, versions: Sequence[Version]) -> None:
        """Take functions that tell what the weights hold."""
        self.making.versions = tuple(versions)

    def __call__(self) -> None:
        if not self.making.is_done(present_moment()):
            self.making.run()
            self.making.note()
        self.step()


class Converting:
    """The state of a step that converts a weight for all steps of its plan; see `Making`.

    Args:
        version: Tells what the weight holds.
    """

    __slots__ = ("_noted", "_seen", "_version")

    def __init__(self, version: Callable[[], object]) -> None:
        self._version = version
        self._seen: object = None
        self._noted: object = None

    def is_done(self, moment: object) -> bool:
        """Return whether the step has converted what the weight holds now."""
        self._seen = seen((self._version,), moment)
        if self._seen is not None and self._seen == self._noted:
            return True
        self._noted = None
        return False

    def note(self) -> None:
        """Note that the step is on its way."""
        self._noted = self._seen


def unfolded(steps: Sequence[Any]) -> Iterator[tuple[Any, "Making | Converting | None"]]:
    """Yield the steps of a pass, those that make derived arrays apart and each only once, with what tells whether one is
    done.
    """
    made: set[Derived] = set()
    for step in steps:
        version = getattr(step, "version", None)
        if not isinstance(step, DerivingStep):
            yield step, None if version is None else Converting(version)
            continue
        making = step.making
        if not making.is_shareable or making.derived not in made:
            yield making, making
        if making.is_shareable:
            made.add(making.derived)
        yield step.step, None


def sizes(device: int) -> list[int]:
    """Bytes of what was derived on a device, and is kept."""
    return [derived.n_bytes() for derived in list(_ALL) if derived.device == device]
