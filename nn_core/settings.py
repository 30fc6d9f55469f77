"""Every environment variable of nn_core, typed, in one table; no other module reads the environment.

What makes programs faster and changes no result beyond rounding has a name in `OPTIMIZATIONS`, and can be switched off:
by NN_CORE_DISABLE for a process, by ``with without("fuse"):`` for a while.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NoReturn

from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.runtime.context_values import Ambient
from nn_core.engine.runtime.environment import (
    read_address,
    read_bool,
    read_choices,
    read_count,
    read_limit,
    read_log_level,
    read_seconds,
    read_signals,
    read_status,
)
from nn_core.engine.runtime.machine import memory_limit, processor_limits
from nn_core.errors import ArgumentError, SignatureError, quoted

#: Megabytes of caches, if nothing else is said and memory is not short.
_CACHE_MB_AT_MOST: Final = 1024

#: The optimizations that can be switched off, and the effect.
OPTIMIZATIONS: Final[Mapping[str, str]] = {
    "channels_last": "images are in C order between functions",
    "checkpoints": "values that are marked to be computed again are all dropped, as far as the network goes",
    "fuse": "every step of a plan is called by itself",
    "inference_fusion": "inference runs convolution, normalization, addition and activation one after another",
    "multi_tensor": "solvers change one parameter after another",
    "pack": "weights are brought into the layout of a kernel in each run",
    "replay": "each call of a dynamic graph is worked out anew, and its backward pass is compiled in each step",
    "share_memory": "every intermediate array of a plan has memory of its own",
    "winograd": "3 x 3 convolutions use the direct method",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings from environment variables, with their defaults.

    Attributes:
        plugin_autoload: NN_CORE_PLUGIN_AUTOLOAD. False: a plugin is used only when a program names it.
        strict: NN_CORE_STRICT. True: leaving the device family of the first backend is an error.
        log_level: NN_CORE_LOG_LEVEL. From which level on messages are printed; None leaves it to the program.
        num_threads: NN_CORE_NUM_THREADS. Threads of native kernels; None: the cores that this process may use.
        skip_plugin_check: NN_CORE_SKIP_PLUGIN_CHECK. True: plugins are loaded whatever versions they ask for.
        plugins: NN_CORE_PLUGINS. "+acme" allows the plugin acme and those with a + only, "-other" blocks one.
        plugin_timeout: NN_CORE_PLUGIN_TIMEOUT. Seconds that importing, describing and probing a plugin may take.
        check_kernels: NN_CORE_CHECK_KERNELS. True: each call of a kernel is checked, at the cost of speed.
        disable: NN_CORE_DISABLE. Names of `OPTIMIZATIONS` to do without, with commas between them.
        cache_mb: NN_CORE_CACHE_MB. Megabytes that the caches of the process may take together (see
            `nn_core.engine.runtime.caches`); None: 1,024, or an eighth of what a container leaves the process if that is less.
        deterministic: NN_CORE_DETERMINISTIC. True: results do not depend on the number of threads; see `set_deterministic`.
        strict_shapes: NN_CORE_STRICT_SHAPES. True: values that are assigned to an array are not broadcast.
        communicator: NN_CORE_COMMUNICATOR. Name of the engine of communicators; None: the one that fits the launcher.
        data: NN_CORE_DATA. Folder for what `nn_core.utils.download` fetches; None: ~/nn_core_data.
        models_url_base: NN_CORE_MODELS_URL_BASE. Address below which `nn_core.models` finds weights; None: none.
        nnabla_models_url_base: NNABLA_MODELS_URL_BASE. The same for unchanged programs of NNabla, with its names of files.
        comm_timeout: NN_CORE_COMM_TIMEOUT. Seconds that a collective of a communicator may take; 0: any time.
        stop_signals: NN_CORE_STOP_SIGNALS. Names of signals besides SIGINT and SIGTERM that end a training when its step is
            saved; SIGHUP and SIGUSR1, where they are not among them, only save.
        time_limit: NN_CORE_TIME_LIMIT. When a training of this process saves and ends, such as 3h50m or slurm; see
            `nn_core.training.StopSignals`. None: never.
        requeue_status: NN_CORE_REQUEUE_STATUS. Exit status after that limit, which asks for the job to be started again.
        trust_hdf5: NN_CORE_TRUST_HDF5. True: HDF5 files of other writers are read without a trial in another process.
        nnabla_program: NN_CORE_NNABLA_PROGRAM. True: an unchanged program of NNabla runs, as under ``nn-core run``.
        keep_values: NN_CORE_KEEP_VALUES. True: clear flags of passes free nothing.

    Example:
        >>> from nn_core.settings import Settings
        >>> Settings().plugin_timeout
        30.0
    """

    plugin_autoload: bool = True
    strict: bool = False
    log_level: str | None = None
    num_threads: int | None = None
    skip_plugin_check: bool = False
    disable: frozenset[str] = field(default_factory=frozenset)
    strict_shapes: bool = False
    plugins: tuple[str, ...] = ()
    plugin_timeout: float = 30.0
    check_kernels: bool = False
    cache_mb: int | None = None
    deterministic: bool = False
    communicator: str | None = None
    data: str | None = None
    models_url_base: str | None = None
    nnabla_models_url_base: str | None = None
    comm_timeout: float = 300.0
    stop_signals: frozenset[str] = frozenset({"SIGHUP"})
    time_limit: str | None = None
    requeue_status: int = 75
    trust_hdf5: bool = False
    nnabla_program: bool = False
    keep_values: bool = False

    def allows_plugin(self, name: str) -> bool:
        """Return whether NN_CORE_PLUGINS lets the plugin called `name` be used."""
        allowed = [choice[1:] for choice in self.plugins if choice[0] == "+"]
        return f"-{name}" not in self.plugins and (not allowed or name in allowed)

    def how_to_allow(self, name: str) -> str:
        """Return the change of NN_CORE_PLUGINS that lets a plugin which it blocks be used."""
        listed = any(choice[0] == "+" and choice != f"+{name}" for choice in self.plugins)
        ways = [f"remove -{name} from it"] if f"-{name}" in self.plugins else []
        ways += [f"add +{name} to it"] if listed and f"+{name}" not in self.plugins else []
        return " and ".join(ways)

    @staticmethod
    def read(environment: Mapping[str, str]) -> "Settings":
        """Return the settings that `environment` holds; an empty value counts as not set.

        Raises:
            ArgumentError: when a variable has a value that it cannot have.
        """
        default = Settings()
        return Settings(
            plugin_autoload=read_bool(environment, "NN_CORE_PLUGIN_AUTOLOAD", default.plugin_autoload),
            strict=read_bool(environment, "NN_CORE_STRICT", default.strict),
            log_level=read_log_level(environment, "NN_CORE_LOG_LEVEL"),
            num_threads=read_count(environment, "NN_CORE_NUM_THREADS"),
            skip_plugin_check=read_bool(environment, "NN_CORE_SKIP_PLUGIN_CHECK", default.skip_plugin_check),
            plugins=read_choices(environment, "NN_CORE_PLUGINS"),
            plugin_timeout=read_seconds(environment, "NN_CORE_PLUGIN_TIMEOUT", default.plugin_timeout),
            check_kernels=read_bool(environment, "NN_CORE_CHECK_KERNELS", default.check_kernels),
            disable=_optimizations(environment, "NN_CORE_DISABLE"),
            strict_shapes=read_bool(environment, "NN_CORE_STRICT_SHAPES", default.strict_shapes),
            cache_mb=read_count(environment, "NN_CORE_CACHE_MB"),
            deterministic=read_bool(environment, "NN_CORE_DETERMINISTIC", default.deterministic),
            communicator=environment.get("NN_CORE_COMMUNICATOR") or None,
            data=environment.get("NN_CORE_DATA") or None,
            models_url_base=read_address(environment, "NN_CORE_MODELS_URL_BASE"),
            nnabla_models_url_base=read_address(environment, "NNABLA_MODELS_URL_BASE"),
            comm_timeout=read_seconds(environment, "NN_CORE_COMM_TIMEOUT", default.comm_timeout, or_none=True),
            stop_signals=read_signals(environment, "NN_CORE_STOP_SIGNALS", default.stop_signals),
            time_limit=read_limit(environment, "NN_CORE_TIME_LIMIT"),
            requeue_status=read_status(environment, "NN_CORE_REQUEUE_STATUS", default.requeue_status),
            trust_hdf5=read_bool(environment, "NN_CORE_TRUST_HDF5", default.trust_hdf5),
            nnabla_program=read_bool(environment, "NN_CORE_NNABLA_PROGRAM", default.nnabla_program),
            keep_values=read_bool(environment, "NN_CORE_KEEP_VALUES", default.keep_values),
        )


@cache
def settings() -> Settings:
    """Return the settings of this process, read from the environment at the first call.

    Example:
        >>> from nn_core.settings import settings
        >>> settings().plugin_timeout
        30.0
    """
    return Settings.read(os.environ)


#: The value that `without` has set; empty: the environment decides.
_DISABLED: Final[list[frozenset[str]]] = []
#: The number of threads that `set_num_threads` has set; empty: what the environment says.
_NUM_THREADS: Final[list[int]] = []
#: The values that `set_cache_mb`, `set_deterministic`, `set_nnabla_program` and `set_keep_values` have set; empty: the
#: environment decides.
_CACHE_MB: Final[list[int]] = []
_DETERMINISTIC: Final[list[bool]] = []
_NNABLA_PROGRAM: Final[list[bool]] = []
_KEEP_VALUES: Final[list[bool]] = []
_SWITCHES: Final[tuple[list[Any], ...]] = (_DISABLED, _NUM_THREADS, _CACHE_MB, _DETERMINISTIC, _NNABLA_PROGRAM, _KEEP_VALUES)
#: Called after one of these changed or an optimization was switched: work that was prepared is forgotten.
WHEN_SWITCHED: Final[list[Callable[[], object]]] = []


def disabled_optimizations() -> frozenset[str]:
    """Return the names of the optimizations that are switched off now."""
    return _DISABLED[0] if _DISABLED else settings().disable


def is_enabled(optimization: str) -> bool:
    """Return whether `optimization`, one of `OPTIMIZATIONS`, is in use.

    Args:
        optimization: The name.

    Example:
        >>> from nn_core.settings import is_enabled, without
        >>> with without("fuse"):
        ...     is_enabled("fuse")
        False
    """
    return optimization not in disabled_optimizations()


@fitted
@contextmanager
def without(*optimizations: str) -> Iterator[None]:
    """Do without some of `OPTIMIZATIONS` in a ``with`` block, in all threads of the process.

    Raises:
        ArgumentError: when one of them does not exist.

    Example:
        >>> from nn_core.settings import without
        >>> y = F.relu(nn.Variable((2, 3)))
        >>> with without("inference_fusion"):
        ...     y.forward(clear_buffer=True)
    """
    before, names = list(_DISABLED), disabled_optimizations() | _known(optimizations, "without")
    is_change = names != disabled_optimizations()
    try:
        _switch(names)
        yield
    finally:
        _DISABLED[:] = before  # ahead of everything that Ctrl-C may interrupt
        if is_change:
            _tell()


def num_threads(*surplus: NoReturn) -> int:
    """Return the number of threads that a native kernel may use.

    Unless `set_num_threads` or NN_CORE_NUM_THREADS say it, that is the number of cores that this process may use, as
    affinity, the quota of a container and OMP_NUM_THREADS limit them.

    Example:
        >>> nn.set_num_threads(2)
        >>> nn.num_threads()
        2
    """
    if surplus:
        raise SignatureError(
            f"num_threads: must be called without arguments, got {surplus[0]!r}\n  hint: set_num_threads(n) sets it"
        )
    return _NUM_THREADS[0] if _NUM_THREADS else settings().num_threads or _default_threads()


def thread_limits() -> list[tuple[int, str]]:
    """Return what decides the default of `num_threads`, the least number, each with its name."""
    return [*processor_limits(), *_openmp_limit(os.environ)]


@cache
def _default_threads() -> int:
    return max(1, min(count for count, _ in thread_limits()))


def _openmp_limit(environment: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    text = environment.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # more numbers are those of inner teams
    if text.isdecimal():
        yield int(text), f"OMP_NUM_THREADS={text}"


@fitted
def set_num_threads(threads: int) -> None:
    """Change how many threads a native kernel may use, in all threads of the process and on every backend.

    Raises:
        ArgumentError: when `threads` is not an integer of at least 1.

    Example:
        >>> nn.set_num_threads(2)
        >>> nn.num_threads()
        2
    """
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ArgumentError(f"set_num_threads: threads must be an integer of at least 1, got {threads!r}")
    _set(_NUM_THREADS, threads, num_threads())


@fitted
def cache_mb() -> int:
    """Return how many megabytes the caches of this process may take together.

    Example:
        >>> from nn_core.settings import cache_mb
        >>> cache_mb() >= 1
        True
    """
    return _CACHE_MB[0] if _CACHE_MB else settings().cache_mb or _default_cache_mb()


@cache
def _default_cache_mb() -> int:
    limit = memory_limit()
    return _CACHE_MB_AT_MOST if limit is None else max(1, min(_CACHE_MB_AT_MOST, limit // 8 // 2**20))


@fitted
def set_cache_mb(megabytes: int) -> None:
    """Change how many megabytes the caches of this process may take together; what is too much is dropped.

    Raises:
        ArgumentError: when `megabytes` is not an integer of at least 1.

    Example:
        >>> from nn_core.settings import cache_mb, set_cache_mb
        >>> before = cache_mb()
        >>> set_cache_mb(256)
        >>> cache_mb()
        256
        >>> set_cache_mb(before)
    """
    if isinstance(megabytes, bool) or not isinstance(megabytes, int) or megabytes < 1:
        raise ArgumentError(f"set_cache_mb: megabytes must be an integer of at least 1, got {megabytes!r}")
    _set(_CACHE_MB, megabytes, cache_mb())


def is_deterministic() -> bool:
    """Return whether results must not depend on the number of threads.

    Example:
        >>> from nn_core.settings import is_deterministic
        >>> is_deterministic()
        False
    """
    return _DETERMINISTIC[0] if _DETERMINISTIC else settings().deterministic


@fitted
def set_deterministic(deterministic: bool) -> None:
    """Let results of CPU kernels be the same to the last bit on any number of threads, or not, in all threads of the process.

    Kernels that cut sums by the number of threads (convolutions, normalizations) then run on one thread. Those whose method
    depends on sizes choose it by the size of a sample, so that a sample has the same bits in every batch. Runs on one and
    the same number of threads are equal without this.

    Raises:
        ArgumentError: when `deterministic` is not a boolean.

    Example:
        >>> from nn_core.settings import is_deterministic, set_deterministic
        >>> set_deterministic(True)
        >>> is_deterministic()
        True
        >>> set_deterministic(False)
    """
    if not isinstance(deterministic, bool):
        raise ArgumentError(f"set_deterministic: deterministic must be True or False, got {deterministic!r}")
    _set(_DETERMINISTIC, deterministic, is_deterministic())


def is_nnabla_program() -> bool:
    """Return whether this process runs a program that was written for NNabla and is unchanged.

    Example:
        >>> from nn_core.settings import is_nnabla_program
        >>> is_nnabla_program()
        False
    """
    return _NNABLA_PROGRAM[0] if _NNABLA_PROGRAM else settings().nnabla_program


def set_nnabla_program(unchanged: bool) -> None:
    """Say that this process runs a program that was written for NNabla and is unchanged, or not.

    Programs call `nn_core.compat.unchanged.run_unchanged`, which installs NNabla's names as well; docs/from_nnabla.md
    lists the effects.

    Raises:
        ArgumentError: when `unchanged` is not a boolean.

    Example:
        >>> from nn_core.settings import is_nnabla_program, set_nnabla_program
        >>> set_nnabla_program(True)
        >>> is_nnabla_program()
        True
        >>> set_nnabla_program(False)
    """
    if not isinstance(unchanged, bool):
        raise ArgumentError(f"set_nnabla_program: unchanged must be True or False, got {unchanged!r}")
    _set(_NNABLA_PROGRAM, unchanged, is_nnabla_program())


@cache  # each pass with a clear flag asks
def keeps_values() -> bool:
    """Return whether clear flags of passes free nothing.

    Example:
        >>> from nn_core.settings import keeps_values
        >>> keeps_values()
        False
    """
    return _KEEP_VALUES[0] if _KEEP_VALUES else settings().keep_values


def set_keep_values(keep: bool) -> None:
    """Let clear flags of passes free nothing, or free again: for programs that read what NNabla leaves behind by chance.

    Passes then take the memory and the time that they take without the flags.

    Raises:
        ArgumentError: when `keep` is neither True nor False.

    Example:
        >>> import numpy as np
        >>> import nn_core as nn, nn_core.functions as F
        >>> from nn_core.settings import set_keep_values
        >>> set_keep_values(True)
        >>> h = F.exp(nn.Variable.from_numpy_array(np.zeros(2)))
        >>> F.sum(h).forward(clear_buffer=True)
        >>> h.d.tolist()
        [1.0, 1.0]
        >>> set_keep_values(False)
    """
    if not isinstance(keep, bool):
        raise ArgumentError(f"set_keep_values: keep must be True or False, got {keep!r}")
    _set(_KEEP_VALUES, keep, keeps_values())
    keeps_values.cache_clear()


def _set(place: list[Any], value: object, before: object) -> None:
    if value != before:
        place[:] = [value]
        _tell()


def switches() -> tuple[tuple[Any, ...], ...]:
    """Return everything that functions of this module have set, for `set_switches`."""
    return tuple(map(tuple, _SWITCHES))


def set_switches(values: Iterable[Iterable[Any]]) -> None:
    """Set everything that functions of this module set to what it was when `switches` was called."""
    for place, value in zip(_SWITCHES, values, strict=True):
        place[:] = value
    keeps_values.cache_clear()
    _tell()


_STRICT_SHAPES: Final[Ambient[bool | None]] = Ambient("strict_shapes", None)


@fitted
def strict_shapes(strict: bool = True) -> AbstractContextManager[bool | None]:
    """Inside the ``with`` block, refuse to broadcast values that are assigned to an array (``x.d = values``).

    Then the values must have the shape of the array, or be a number. Outside of every block NN_CORE_STRICT_SHAPES
    decides; without it values are broadcast as in NumPy.

    Raises:
        ArgumentError: when `strict` is not a boolean.

    Example:
        >>> import nn_core as nn
        >>> x = nn.Variable((2, 3))
        >>> with strict_shapes():
        ...     x.d = [1, 2, 3]
        Traceback (most recent call last):
            ...
        nn_core.errors.ShapeError: NdArray: assigned values must have the shape (2, 3) or be a number, got (3,)...
    """
    if strict is not True and strict is not False:
        raise ArgumentError(f"strict_shapes: strict must be True or False, got {strict!r}")
    return _STRICT_SHAPES.scope(strict)


def are_shapes_strict() -> bool:
    """Return whether values that are assigned to an array must have its shape; see `strict_shapes`."""
    strict = _STRICT_SHAPES.get()
    return settings().strict_shapes if strict is None else strict


def _switch(names: frozenset[str]) -> None:
    if names != disabled_optimizations():
        _DISABLED[:] = [names]
        _tell()


def _tell() -> None:
    for callback in WHEN_SWITCHED:
        callback()


def _known(names: Iterable[str], what: str) -> frozenset[str]:
    for name in names:
        if name not in OPTIMIZATIONS:
            raise ArgumentError(f"{what}: must be names of {', '.join(OPTIMIZATIONS)}, got {quoted(name)}")
    return frozenset(names)


def _optimizations(environment: Mapping[str, str], name: str) -> frozenset[str]:
    return _known([part.strip() for part in environment.get(name, "").split(",") if part.strip()], name)
