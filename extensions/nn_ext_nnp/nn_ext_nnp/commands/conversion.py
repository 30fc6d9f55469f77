"""Turn files of networks into others."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from nn_core.ext import ArgumentError, Entry, atomic_writer, axis_lengths
from nn_ext_nnp.archive import Member, write_archive
from nn_ext_nnp.codec import print_text
from nn_ext_nnp.commands.dimensions import dimension_option
from nn_ext_nnp.commands.failing import clean_failures, refused_options
from nn_ext_nnp.document import Document, read_document
from nn_ext_nnp.exchange import translate, write_other
from nn_ext_nnp.loops import expand_loops
from nn_ext_nnp.nnb.c_source import c_source
from nn_ext_nnp.nnb.numbers import type_named
from nn_ext_nnp.nnb.options import LAST_LEVEL, NnbOptions, read_settings_file
from nn_ext_nnp.nnb.writing import nnb_bytes, template_text
from nn_ext_nnp.parameters import h5_bytes
from nn_ext_nnp.saving import message_bytes
from nn_ext_nnp.wire import parameter_bytes

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_OUTPUT: Final = click.Path(dir_okay=False, path_type=Path)
#: Extensions of the formats that have one name and several kinds of files.
_FORMATS: Final = {
    "NNP": (".nnp", ".nntxt", ".prototxt", ".protobuf", ".h5"),
    "NNB": (".nnb",),
    "ONNX": (".onnx",),
}
#: C source for NNabla's runtime: a folder, which no extension tells.
_C_SOURCE: Final = "CSRC"
_VERSIONS: Final = {"nnb_2": 2, "nnb_3": 3}
_OPSETS: Final = {f"opset_{number}": number for number in range(13, 25)}
_TENSORFLOW: Final = "models of TensorFlow are not read or written; ONNX is the bridge"
_ONNX: Final = "the version of the format follows from the operator set"
_no_tensorflow = refused_options(_TENSORFLOW, ("--outputs",), ("--inputs",), ("--dataset",))
_no_tensorflow_flags = refused_options(
    _TENSORFLOW, ("--enable-optimize-pb",), ("--channel-last",), ("--quantization",), are_flags=True
)
_no_others = refused_options(
    "the whole network of an executor is written, for the latest functions",
    ("-S", "--split"),
    ("-c", "--config"),
    ("--nnp-version",),
)
_no_onnx = refused_options(_ONNX, ("--ir_version",))
_no_preprocess = refused_options(
    "functions of preprocessing are part of the network here", ("--nnp-exclude-preprocess",), are_flags=True
)


@click.command()
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.argument("output", type=click.Path(path_type=Path))
@click.option("-I", "--import-format", type=click.Choice(list(_FORMATS)), help="Format of FILES; checked only.")
@click.option("-O", "--export-format", type=click.Choice([*_FORMATS, _C_SOURCE]), help="Format of OUTPUT; needed for CSRC.")
@click.option("-f", "--force", is_flag=True, help="Without effect: OUTPUT is replaced as a whole.")
@click.option("-E", "--nnp-import-executor-index", "executor", type=int, help="Keep this executor, from 0, and its network.")
@click.option(
    "-b",
    "--batch-size",
    type=int,
    help="Number of samples; -1: that of the network. Default: 1 for .nnb and CSRC, for .onnx any if possible.",
)
@dimension_option
@click.option("-T", "--default-variable-type", default="FLOAT32", help=".nnb: type of parameters, such as FIXED16.")
@click.option("-s", "--settings", type=_FILE, help=".nnb: types of variables, in YAML; see nnb_template.")
@click.option("--api", type=int, default=LAST_LEVEL, help=".nnb, CSRC: API level of the runtime.", show_default=True)
@click.option(
    "-d", "--define_version", type=click.Choice([*_VERSIONS, *_OPSETS]), help="Version of .nnb, or operator set of .onnx."
)
@click.option("--nnp-parameter-h5", "stored", flag_value="h5", default="h5", help=".nnp: parameters in HDF5, the default.")
@click.option("--nnp-parameter-protobuf", "stored", flag_value="protobuf", help=".nnp: parameters as .protobuf.")
@click.option("--nnp-parameter-nntxt", "stored", flag_value="nntxt", help=".nnp: parameters in the text.")
@click.option("--nnp-exclude-parameter", "without_parameters", is_flag=True, help="Write no parameters.")
@click.option("--nnp-no-expand-network", "keep_loops", is_flag=True, help="Leave loops as they are.")
@_no_tensorflow
@_no_tensorflow_flags
@_no_others
@_no_onnx
@_no_preprocess
@clean_failures
def convert(
    files: tuple[Path, ...],
    output: Path,
    import_format: str | None,
    export_format: str | None,
    force: bool,
    executor: int | None,
    batch_size: int | None,
    dimensions: tuple[str, ...],
    default_variable_type: str,
    settings: Path | None,
    api: int,
    define_version: str | None,
    stored: str,
    without_parameters: bool,
    keep_loops: bool,
) -> None:
    """Write what FILES say together to OUTPUT, in the format of its extension.

    Formats: .nnp, .nntxt, .prototxt and .protobuf, .onnx with the package nn-ext-onnx, .nnb for NNabla's C runtime, and .h5
    for parameters alone. With -O CSRC, OUTPUT is a folder for C source that calls this runtime.

    Example: nn-core convert network.nntxt parameters.h5 network.nnp
    """
    if export_format != _C_SOURCE:
        _check_format("--export-format", export_format, [output])
    lengths, kind = axis_lengths("convert", dimensions), output.suffix.lower()
    is_onnx = export_format != _C_SOURCE and _is_onnx([output])
    if is_onnx and len(files) == 1 and _is_onnx(files):
        translate(files[0], output, _samples(batch_size), lengths, **_onnx_settings(define_version))
        return
    document = imported(files, import_format, keep_loops=keep_loops, dimensions=lengths)
    if executor is not None:
        keep_executor(document, executor)
    if is_onnx:
        write_other(document, output, _samples(batch_size), **_onnx_settings(define_version))
        return
    options = NnbOptions(1 if batch_size is None else batch_size, level=api)
    if export_format == _C_SOURCE:
        _require_plain(default_variable_type, settings)
        _write_folder(output, c_source(document, options))
        return
    if kind == ".nnb":
        data = nnb_bytes(document, _nnb_options(options, define_version, default_variable_type, settings))
    else:
        data = _nnp_bytes(document, {} if without_parameters else document.parameters, kind, stored)
    with atomic_writer(output) as file:
        file.write(data)


def _version(known: Mapping[str, int], name: str) -> int:
    if name not in known:
        raise ArgumentError(f"--define_version must be one of {', '.join(known)} for this format, got {name}")
    return known[name]


def _onnx_settings(define_version: str | None) -> dict[str, int]:
    return {} if define_version is None else {"opset": _version(_OPSETS, define_version)}


def _samples(batch_size: int | None) -> int | None:
    """Return a number of samples; None where the network has its own."""
    return batch_size if batch_size is not None and batch_size > 0 else None


def _is_onnx(paths: Sequence[Path]) -> bool:
    return all(path.suffix.lower() in _FORMATS["ONNX"] for path in paths)


def _require_plain(default_type: str, settings: Path | None) -> None:
    if settings is not None or default_type != "FLOAT32":
        raise ArgumentError("convert: numbers of C source must be FLOAT32, got --settings or --default-variable-type")


def _nnb_options(options: NnbOptions, define_version: str | None, default_type: str, settings: Path | None) -> NnbOptions:
    types, implementations = ({}, {}) if settings is None else read_settings_file(settings)
    default = type_named(default_type, "convert: --default-variable-type")
    version = _version(_VERSIONS, define_version or "nnb_2")
    return replace(options, version=version, default=default, types=types, implementations=implementations)


def _write_folder(folder: Path, texts: dict[str, str]) -> None:
    """Write files into a folder, which is made when it is not there.

    Raises:
        ArgumentError: when there is something else in its place.
    """
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"convert: OUTPUT must be a folder for C source, got the file {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with atomic_writer(folder / name) as file:
            file.write(text.encode())


@click.command("nnb_template")
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.argument("output", type=_OUTPUT)
@click.option("-I", "--import-format", type=click.Choice(list(_FORMATS)), help="Format of FILES; checked only.")
@click.option("-E", "--nnp-import-executor-index", "executor", type=int, default=0, help="Which executor, from 0.")
@click.option("-b", "--batch-size", default=-1, help="Number of samples; -1: that of the network.")
@click.option("-T", "--default-variable-type", default="FLOAT32", help="Type of parameters, such as FIXED16.")
@click.option("--api", type=int, default=LAST_LEVEL, help="API level of the runtime.", show_default=True)
@click.option("--nnp-no-expand-network", "keep_loops", is_flag=True, hidden=True)
@_no_preprocess
@clean_failures
def nnb_template(
    files: tuple[Path, ...],
    output: Path,
    import_format: str | None,
    executor: int,
    batch_size: int,
    default_variable_type: str,
    api: int,
    keep_loops: bool,
) -> None:
    """Write the settings of an NNB file with the network of FILES, in YAML, to be changed and given to convert.

    Variables that are computed get the type when it says the digits after the point (FIXED16_8), else FLOAT32.

    Example: nn-core nnb_template -T FIXED16 network.nnp settings.yaml
    """
    options = NnbOptions(batch_size, level=api, default=type_named(default_variable_type, "--default-variable-type"))
    text = template_text(imported(files, import_format), replace(options, executor=executor))
    with atomic_writer(output) as file:
        file.write(text.encode())


def imported(
    files: Sequence[Path], named: str | None, keep_loops: bool = False, dimensions: Mapping[str, int] | None = None
) -> Document:
    """Read files together, and write out loops.

    Raises:
        ArgumentError: when they are not of the format that is named.
    """
    _check_format("--import-format", named, files)
    document = read_document(list(files), dimensions=dimensions)
    if not keep_loops:
        expanded = [expand_loops(network, document.name) for network in document.proto.network]
        del document.proto.network[:]
        document.proto.network.extend(expanded)
    return document


def _check_format(option: str, named: str | None, files: Sequence[Path]) -> None:
    wrong = [path for path in files if named is not None and path.suffix.lower() not in _FORMATS[named]]
    if named is not None and wrong:
        raise ArgumentError(f"{option} {named} must go with {', '.join(_FORMATS[named])}, got {wrong[0]}")


def keep_executor(document: Document, index: int) -> None:
    """Drop everything but an executor and its network.

    Raises:
        ArgumentError: when there is no such executor.
    """
    proto = document.proto
    if not 0 <= index < len(proto.executor):
        raise ArgumentError(f"--nnp-import-executor-index must be below {len(proto.executor)}, got {index}")
    executor = proto.executor[index]
    networks = [network for network in proto.network if network.name == executor.network_name]
    for name, kept in (("executor", [executor]), ("network", networks), ("optimizer", []), ("monitor", [])):
        copies = [type(part).FromString(part.SerializeToString()) for part in kept]
        proto.ClearField(name)
        getattr(proto, name).extend(copies)
    document.states.clear()


def _nnp_bytes(document: Document, entries: dict[str, Entry], extension: str, stored: str) -> bytes:
    if extension in (".nntxt", ".prototxt", ".protobuf"):
        return message_bytes(document.proto, entries, extension)
    if extension == ".h5":
        return h5_bytes(entries)
    if extension != ".nnp":
        raise ArgumentError(
            "convert: OUTPUT must be .nnp, .nnb, .onnx, .nntxt, .prototxt, .protobuf or .h5, or a folder with -O CSRC, "
            f"got {extension!r}"
        )
    if stored == "nntxt":
        members = [Member("network.nntxt", message_bytes(document.proto, entries, ".nntxt"))]
    else:
        members = [Member("network.nntxt", print_text(document.proto)), *_parameter_members(entries, stored)]
    members += [Member(name.rpartition("/")[2], h5_bytes(states)) for name, states in document.states.items()]
    buffer = io.BytesIO()
    write_archive(buffer, members)
    return buffer.getvalue()


def _parameter_members(entries: dict[str, Entry], stored: str) -> list[Any]:
    if not entries:
        return []
    return [Member(f"parameter.{stored}", h5_bytes(entries) if stored == "h5" else parameter_bytes(entries))]
