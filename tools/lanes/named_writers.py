"""Writers that get names from a program, which may have them from a file; each writes below the folder ``o``.

Each takes a name. What it can write it must be able to read again, with the same name.
"""

import contextlib
import csv
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import ArgumentError, FileFormatError
from nn_core.experimental.viewers import SimpleGraph
from nn_core.files.formats import FORMATS
from nn_core.monitor import Monitor, MonitorImage, MonitorImageTile, MonitorSeries, MonitorTimeElapsed
from nn_core.training import Checkpoint, Log, Trainer, Updater, every, load_checkpoint, report, save_checkpoint
from nn_core.utils.create_cache import CreateCache
from nn_core.utils.data_iterator import data_iterator_cache, data_iterator_simple
from nn_core.utils.nnp_graph import NnpLoader
from nn_core.utils.save import save

Writer = Callable[[str], object]
_Extension = Callable[[Trainer], object]


def _ones(*shape: int) -> nn.Variable:
    return nn.Variable.from_numpy_array(np.ones(shape, np.float32))


def _require(is_kept: object, name: str) -> None:
    if not is_kept:
        raise AssertionError(f"{name!r} is not read as it was written")


def _monitored(kind: type, *values: Any) -> Writer:
    return lambda name: kind(name, Monitor("o/m"), interval=1, verbose=False).add(0, *values)


def _in_parameters(extension: str) -> Writer:
    """Save two parameters whose names differ in case alone, and load them."""

    def write(name: str) -> None:
        saved = {name: _ones(2), name.swapcase(): _ones(2)}
        nn.save_parameters(f"o/p{extension}", saved)
        with nn.parameter_scope("", {}):
            nn.load_parameters(f"o/p{extension}")
            _require(set(nn.get_parameters(grad_only=False)) == set(saved), name)

    return write


def _in_checkpoint(extension: str) -> Writer:
    def write(name: str) -> None:
        save_checkpoint(f"o/c{extension}", net={name: _ones(2)}, **({name: {"w": _ones(2)}} if name else {}))
        found = nn.Variable((2,))
        load_checkpoint(f"o/c{extension}", net={name: found}, **({name: {"w": nn.Variable((2,))}} if name else {}))
        _require(found.d.all(), name)

    return write


def _solver_states(name: str) -> None:
    solver = S.Adam()
    solver.set_parameters({name: nn.Variable((2,), need_grad=True)})
    solver.save_states("o/s.h5")
    solver.load_states("o/s.h5")


def _table(*titles: str) -> str:
    with Path("o/t.csv").open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        csv.writer(file).writerows([titles, (1, 2), (3, 4)])
    return "o/t.csv"


def _in_cache(extension: str) -> Writer:
    """Write a cache of a table with a column of the name, up to what stands for a label there."""

    def write(name: str) -> None:
        source = CreateCache(_table(name, "z"))
        source.create("o/cache", cache_file_format=extension)
        with data_iterator_cache("o/cache", 2) as data:
            _require(sorted(data.variables) == sorted(source.variables), name)
            data.next()

    return write


def _cache_files(name: str) -> None:
    CreateCache(_table("x", "y")).create("o/cache", cache_file_name_prefix=name)
    with data_iterator_cache("o/cache", 2) as data:
        data.next()


def _cache_index(name: str) -> None:
    """Read a cache whose index has the name."""
    CreateCache(_table("x", "y")).create("o/cache")
    Path("o/cache/cache_checksums.json").unlink()
    with Path("o/cache/cache_index.csv").open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        csv.writer(file).writerow([name, 2])
    with data_iterator_cache("o/cache", 2) as data:
        data.next()


def _trained(
    extension: Callable[[str, nn.Variable], Callable[[Trainer], object]], *, names_parameters: bool = False
) -> Writer:
    """Train two steps that report a value of the name, with an extension of the trainer."""

    def write(name: str) -> None:
        with nn.parameter_scope("", {}):
            x, t = nn.Variable((2, 3)), nn.Variable((2, 2))
            loss = F.mean(F.squared_error(PF.affine(x, 2, name=name if names_parameters else "a"), t))
            solver = S.Sgd()
            solver.set_parameters(nn.get_parameters())
            with data_iterator_simple(lambda _: (np.ones(3, np.float32), np.ones(2, np.float32)), 4, 2) as data:
                trainer = Trainer(Updater(data, [x, t], loss, solver), every(2, "iteration"), "o/run")
                trainer.extend(extension(name, loss), every=every(1, "iteration"))
                trainer.on(every(1, "iteration"))(lambda _: report({name: 1.0}))
                trainer.run()

    return write


def _board(name: str, loss: nn.Variable) -> _Extension:
    from nn_ext_tensorboard import TensorBoard

    images = {name: lambda: np.ones((3, 2, 2), np.float32)}
    return TensorBoard(histograms=True, images=images, graph=loss)


def _onnx(name: str) -> None:
    """Write a model with external data whose ports and parameters have the name."""
    import nn_ext_onnx

    with nn.parameter_scope("", {}):
        x = nn.Variable((2, 300))
        y = PF.affine(x, 300, name=name)
        nn_ext_onnx.export("o/m.onnx", {name: y}, {"x": x}, name=name, external_data=True)
    _require(name in nn_ext_onnx.load("o/m.onnx").outputs, name)


def _onnx_location(name: str) -> None:
    """Read a model whose external data is in the file of the name."""
    import onnx

    import nn_ext_onnx

    with nn.parameter_scope("", {}):
        x = nn.Variable((2, 300))
        nn_ext_onnx.export("o/m.onnx", {"y": PF.affine(x, 300)}, {"x": x}, external_data=True)
    model = onnx.load("o/m.onnx", load_external_data=False)
    entries = [entry for tensor in model.graph.initializer for entry in tensor.external_data if entry.key == "location"]
    for entry in entries:
        entry.value = _encodable(name)  # no file has lone surrogates
    Path("o/m.onnx").write_bytes(model.SerializeToString())
    try:
        nn_ext_onnx.load("o/m.onnx")
    except FileFormatError:
        return
    raise AssertionError(f"reads external data in {name!r}")


def _c_source(name: str) -> None:
    import nn_ext_c

    x = nn.Variable((2, 3))
    nn_ext_c.export("o", {name: F.tanh(x)}, {f"in {name}": x}, name=name)


def _networks(name: str) -> None:
    """Write archives of networks, as texts and as members of an archive."""
    x = nn.Variable((2, 3))
    network = {"name": name, "batch_size": 2, "outputs": {name: F.tanh(x)}, "names": {"x": x}}
    executor = {"name": name, "network": name, "data": ["x"], "output": [name]}
    for path in ("o/n.nnp", "o/n.nntxt"):
        save(path, {"networks": [network], "executors": [executor]})
        _require(name in NnpLoader(path).get_network_names(), name)


def _archive_member(name: str) -> None:
    """Read an archive of networks that has a member of the name besides."""
    x = nn.Variable((2, 3))
    save("o/n.nnp", {"networks": [{"name": "n", "batch_size": 2, "outputs": {"y": F.tanh(x)}, "names": {"x": x}}]})
    with zipfile.ZipFile("o/n.nnp", "a") as archive:
        archive.writestr(zipfile.ZipInfo(_encodable(name) or "/"), b"EVIL")
    NnpLoader("o/n.nnp").get_network("n")


def _archive_of_arrays(name: str) -> None:
    """Read an archive of arrays with the name."""
    content = io.BytesIO()
    np.save(content, np.ones(3))
    with zipfile.ZipFile("o/p.npz", "w") as archive:
        archive.writestr(zipfile.ZipInfo(f"{_encodable(name)}.npy"), content.getvalue())
    with nn.parameter_scope("", {}):
        nn.load_parameters("o/p.npz")


def _encodable(name: str) -> str:
    return name.encode(errors="replace").decode()


def _model_weights(name: str) -> None:
    from nn_core.models.imagenet import SqueezeNetV11

    nn.save_parameters("o/w.safetensors", {name: _ones(2)})
    with contextlib.suppress(ArgumentError):  # the file lacks the parameters of the network
        SqueezeNetV11(weights="o/w.safetensors")(nn.Variable((1, 3, 224, 224)))


def _drawing(name: str) -> None:
    with nn.parameter_scope("", {}):
        y = PF.affine(nn.Variable((2, 3)), 2, name=name)
        for kind in ("dot", "html"):
            SimpleGraph(format=kind).save(y, "o/g")


_IMAGES: Final = np.ones((1, 3, 2, 2), np.float32)
#: All writers, by name.
NAMED_WRITERS: Final[dict[str, Writer]] = {
    "MonitorSeries": _monitored(MonitorSeries, 1.0),
    "MonitorTimeElapsed": _monitored(MonitorTimeElapsed),
    "MonitorImage": _monitored(MonitorImage, _IMAGES),
    "MonitorImageTile": _monitored(MonitorImageTile, _IMAGES),
    **{f"two parameters in {extension}": _in_parameters(extension) for extension in FORMATS},
    **{f"a checkpoint in {extension}": _in_checkpoint(extension) for extension in (".npz", ".h5", ".safetensors")},
    "states of a solver": _solver_states,
    "a cache of NumPy": _in_cache(".npy"),
    "a cache of HDF5": _in_cache(".h5"),
    "files of a cache": _cache_files,
    "an index of a cache": _cache_index,
    "TensorBoard": _trained(_board),
    "TensorBoard, parameters": _trained(_board, names_parameters=True),
    "a log": _trained(lambda _name, _loss: Log()),
    "checkpoints of a trainer": _trained(lambda _name, _loss: Checkpoint(), names_parameters=True),
    "ONNX with external data": _onnx,
    "external data of ONNX": _onnx_location,
    "C": _c_source,
    "archives of networks": _networks,
    "a member of an archive": _archive_member,
    "an archive of arrays": _archive_of_arrays,
    "weights of a model": _model_weights,
    "a drawing": _drawing,
}
