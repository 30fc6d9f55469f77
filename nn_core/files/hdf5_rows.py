"""HDF5 files whose rows are read one by one: what is opened, and what is read on trial."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from nn_core.files.hdf5 import dataset_named
from nn_core.files.probe_subprocess import try_reading

#: Portions of each dataset that are read on trial, from its first row to its last.
_PORTIONS: Final = 16
_PORTION_BYTES: Final = 1 << 22


def open_rows(path: Path, names: Sequence[str] | None) -> tuple[Any, tuple[str, ...]]:
    """Return a file, open for reading, and the names of its datasets, after a trial in a process of its own.

    Raises:
        FileFormatError: when the library crashes or does not end, or a dataset has its numbers elsewhere.
        OSError, KeyError, TypeError, ValueError, RuntimeError: by h5py, when the file is damaged.
    """
    import h5py  # opened only by programs that read such files

    chosen = None if names is None else list(names)
    try_reading(str(path), path.stat().st_size, chosen, by_rows=True)
    file = h5py.File(path, "r")
    try:
        return file, tuple(name for name, _ in _datasets(file, chosen))
    except BaseException:
        file.close()
        raise


def read_on_trial(path: str, names: Sequence[str] | None) -> None:
    """Read some rows of each dataset, and the places of all of its pieces; for the process of a trial."""
    import h5py  # opened only by programs that read such files

    with h5py.File(path, "r") as file:
        for _, dataset in _datasets(file, names):
            if dataset.chunks is not None:
                dataset.id.chunk_iter(lambda _: None)
            count = len(dataset)
            length = max(1, _PORTION_BYTES * count // max(dataset.nbytes, 1))
            last = max(count - length, 0)
            for start in sorted({last * portion // (_PORTIONS - 1) for portion in range(_PORTIONS)}):
                dataset[start : start + length]


def _datasets(file: Any, names: Sequence[str] | None) -> Iterator[tuple[str, Any]]:
    """Yield the datasets of the names, or all at the top level."""
    import h5py  # opened only by programs that read such files

    for name in file if names is None else names:
        is_stored = isinstance(file.get(name, getlink=True), h5py.HardLink)
        if names is None and is_stored and not isinstance(file[name], h5py.Dataset):
            continue  # a group, or a type
        yield name, dataset_named(file, name)
