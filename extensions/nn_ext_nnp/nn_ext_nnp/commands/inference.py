"""Run networks of files on data."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

import nn_core as nn
from nn_core.ext import ArgumentError, FileFormatError, atomic_writer, axis_lengths, open_to_read, path_below, say
from nn_core.utils.data_iterator import DataIterator, data_iterator_cache, data_iterator_csv_dataset
from nn_core.utils.data_source_implements import CacheDataSource
from nn_ext_nnp.commands.context import choose_context, watched
from nn_ext_nnp.commands.dimensions import dimension_option
from nn_ext_nnp.commands.failing import clean_failures
from nn_ext_nnp.document import OWN_EXTENSIONS
from nn_ext_nnp.exchange import graph_of
from nn_ext_nnp.initial import generated
from nn_ext_nnp.loading import Executor, GlobalConfig, Info, TrainingConfig, load
from nn_ext_nnp.network import Network, built_for_values
from nn_ext_nnp.schema import message

Array = np.ndarray[Any, Any]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_DATASET: Final = click.Path(exists=True, path_type=Path)
_TYPES: Final = {"float32": np.float32, "uint8": np.uint8, "int32": np.int32}


def loaded(
    config: Path, param: Path | None, batch_size: int, context: str | None, dimensions: Mapping[str, int] | None = None
) -> Info:
    """Load a configuration, with parameters, built for `batch_size` samples (below 1: as the file says)."""
    choose_context(context)
    if config.suffix.lower() not in OWN_EXTENSIONS:
        if param is not None:
            raise ArgumentError(f"--param must be given with files of NNabla only, got {config}")
        return _only_network(graph_of(config, max(batch_size, 1), dimensions))
    sources = [config] if param is None else [config, param]
    samples = batch_size if batch_size > 0 else None
    return load(sources, prepare_data_iterator=False, batch_size=samples, dimensions=dimensions)


def _only_network(network: Network) -> Info:
    """Return a configuration with one executor, which gives a network all that it reads."""
    executor = Executor(name="runtime", network=network)
    executor.dataset_assign = {variable: name for name, variable in network.inputs.items()}
    executor.output_assign = {variable: ("", name) for name, variable in network.outputs.items()}
    info = Info(message("NNablaProtoBuf"), GlobalConfig(nn.get_current_context()), TrainingConfig())
    info.networks[network.name], info.executors[executor.name] = network, executor
    return info


def executor_of(info: Info, name: str | None, config: Path) -> Executor:
    """Return the executor called `name`, or the first, of what was loaded from the file `config`.

    Raises:
        ArgumentError: when there is none.
    """
    if not info.executors:
        raise ArgumentError(f"{config}: the file must have an executor, got none")
    if name is not None and name not in info.executors:
        raise ArgumentError(f"--executor must be one of {list(info.executors)}, got {name!r}")
    return info.executors[name] if name is not None else next(iter(info.executors.values()))


def compute(executor: Executor) -> list[Array]:
    """Return the outputs of an executor, combined over its evaluations."""
    names = {variable: name for name, variable in executor.network.variables.items()}
    outputs: list[nn.Variable] = []
    passes: list[list[Array]] = []
    for _ in range(executor.num_evaluations):
        for variable, (kind, multiplier) in executor.generator_assign.items():
            variable.d = generated(kind, multiplier, variable.shape)
        network = built_for_values(executor.network)
        if not outputs or network is not executor.network:
            outputs = [network.variables[names[variable]].apply(persistent=True) for variable in executor.output_assign]
        nn.forward_all(outputs, clear_buffer=True)
        passes.append([np.array(output.d, np.float32) for output in outputs])
    return [_combined(executor.repeat_evaluation_type, values) for values in zip(*passes, strict=True)]


def _combined(kind: str, results: Sequence[Array]) -> Array:
    """Return the results of several passes as one."""
    shapes = list(dict.fromkeys(result.shape for result in results))
    if len(shapes) > 1 and kind != "last":
        raise ArgumentError(f"the results of evaluations must have one shape to be combined as {kind}, got {shapes}")
    if kind == "mean":
        return np.asarray(np.mean(results, axis=0), np.float32)
    if kind == "std":
        return np.asarray(np.std(results, axis=0), np.float32)
    if kind == "last":
        return np.asarray(results[-1], np.float32)
    raise ArgumentError(f"repeat_evaluation_type must be mean, std or last, got {kind!r}")


@click.command()
@click.option("-c", "--config", required=True, type=_FILE, help="File of the network.")
@click.option("-o", "--output", default="", help="Where to write: <output>_<sample>.bin. Default: nothing is written.")
@click.option("-p", "--param", type=_FILE, help="File of parameters, in place of those of the network.")
@click.option("-t", "--data_type", type=click.Choice(list(_TYPES)), default="float32", help="Numbers in INPUTS.")
@click.option("-b", "--batch_size", default=1, help="Number of samples; -1: that of the file.")
@click.option("-E", "--executor", help="Which executor; the first by default.")
@click.option("-C", "--context", help="Where to run, such as cpu or cudnn:0.")
@dimension_option
@click.argument("inputs", nargs=-1, required=True, type=_FILE)
@clean_failures
def infer(
    config: Path,
    output: str,
    param: Path | None,
    data_type: str,
    batch_size: int,
    executor: str | None,
    context: str | None,
    dimensions: tuple[str, ...],
    inputs: tuple[Path, ...],
) -> None:
    """Run a network on raw binary files, one for each of its data variables.

    The outputs of each sample are joined and written as float32.

    Example: nn-core infer -c network.nnp -b 4 -o result images.bin
    """
    chosen = executor_of(loaded(config, param, batch_size, context, axis_lengths("infer", dimensions)), executor, config)
    variables = list(chosen.dataset_assign)
    if len(inputs) != len(variables):
        names = ", ".join(chosen.dataset_assign.values())
        raise ArgumentError(f"infer: INPUTS must be {len(variables)} files, for {names}, got {len(inputs)}")
    for variable, path in zip(variables, inputs, strict=True):
        values = np.fromfile(path, _TYPES[data_type])
        if values.size != variable.size:
            raise FileFormatError(
                f"infer: {path} must have {variable.size} numbers of type {data_type} for the shape {variable.shape}, "
                f"got {values.size}"
            )
        variable.d = values.reshape(variable.shape)
    samples = max((variable.shape[0] for variable in variables if variable.ndim), default=1)
    rows = _rows(chosen, samples)
    for index, row in enumerate(rows if output else ()):
        with atomic_writer(f"{output}_{index}.bin") as file:
            file.write(np.concatenate([part.ravel() for part in row]).astype("<f4").tobytes())
    say(f"{len(rows)} samples")


def _rows(executor: Executor, samples: int) -> list[list[Array]]:
    """Return the outputs for each sample, cut along their first axis; those without the samples there count once for each.

    Where shapes follow from values, results may have any length for a batch: the shapes at the time of loading decide.
    """
    shapes = [variable.shape for variable in executor.output_assign]
    outputs = compute(executor)
    if not _loses_samples(executor):
        shapes = [output.shape for output in outputs]
    cut = [shape[:1] == (samples,) for shape in shapes]
    return [[output[n] if is_cut else output for output, is_cut in zip(outputs, cut, strict=True)] for n in range(samples)]


def _loses_samples(executor: Executor) -> bool:
    plan = executor.network.plan
    return plan is not None and plan.loses_samples


@click.command()
@click.option("-c", "--config", required=True, type=_FILE, help="File of the network.")
@click.option("-d", "--dataset", type=_DATASET, help="CSV file or cache of the data; that of the only data set by default.")
@click.option("-o", "--outdir", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder to write to.")
@click.option("-p", "--param", type=_FILE, help="File of parameters, in place of those of the network.")
@click.option("-f", "--outfile", default="output_result.csv", help="Name of the CSV file to write.")
@click.option("--replace_path", is_flag=True, help="Write paths of files in the data as absolute paths.")
@click.option("--result_outdir", default="", help="Folder in OUTDIR for files of results.")
@click.option("-b", "--batch_size", default=-1, help="Number of samples at a time; -1: that of the file.")
@click.option("-E", "--executor", help="Which executor; the first by default.")
@click.option("-C", "--context", help="Where to run, such as cpu or cudnn:0.")
@dimension_option
@clean_failures
def forward(
    config: Path,
    dataset: Path | None,
    outdir: Path,
    param: Path | None,
    outfile: str,
    replace_path: bool,
    result_outdir: str,
    batch_size: int,
    executor: str | None,
    context: str | None,
    dimensions: tuple[str, ...],
) -> None:
    """Run a network on the rows of a CSV file and write them with the results in further columns.

    Of a cache, which has a copy of the table that it was made from, the rows are written in the order of its samples.
    Results with two axes, and vectors of different lengths, become .csv files, those with more axes .npy files, which the
    cells name. Networks with functions such as NonZero, whose shapes follow from values, are built for each batch, and run
    sample by sample where the file leaves the number of samples open and -b does not say one.

    Example: nn-core forward -c network.nnp -d data.csv -o results
    """
    lengths = axis_lengths("forward", dimensions)
    info = loaded(config, param, batch_size, context, lengths)
    chosen = executor_of(info, executor, config)
    if batch_size < 1 and _loses_samples(chosen):
        chosen = executor_of(loaded(config, param, 1, context, lengths), executor, config)
    dataset = _only_dataset(info, config) if dataset is None else dataset
    _require_inside(result_outdir)
    header, *rows = _table(dataset)
    outdir.mkdir(parents=True, exist_ok=True)
    results = _forward_rows(chosen, dataset, len(rows))
    columns = [_Column(name, [row[k] for row in results]) for k, (_, name) in enumerate(chosen.output_assign.values())]
    if replace_path:
        rows = [[_absolute(cell, dataset.parent) for cell in row] for row in rows]
    cells = _cells(columns, outdir, result_outdir, len(rows))
    _write_table(outdir / outfile, [row + more for row, more in zip([header, *rows], cells, strict=True)])
    say(f"{len(rows)} samples")


def _require_inside(folder: str) -> None:
    if Path(folder).is_absolute() or ".." in Path(folder).parts:
        raise ArgumentError(f"forward: --result_outdir must be a folder in OUTDIR, got {folder}")


def _only_dataset(info: Info, config: Path) -> Path:
    uris = [dataset.uri for dataset in info.datasets.values()]
    if len(uris) != 1:
        raise ArgumentError(f"forward: --dataset must be given for a configuration with {len(uris)} data sets, got none")
    return config.parent / uris[0]


def _table(dataset: Path) -> list[list[str]]:
    """Return the header of a data set, and a row for each of its samples."""
    if not dataset.is_dir():
        with io.TextIOWrapper(open_to_read(dataset), encoding="utf-8-sig", newline="") as file:
            return [row for row in csv.reader(file) if row]
    with CacheDataSource(dataset) as source:
        table = source.original_rows
    if table is None:
        raise ArgumentError(
            f"forward: a cache must have original.csv, the table that it was made from, got {dataset} without it; make it "
            "anew from its table (nn-core conv_dataset), or give --dataset the table"
        )
    return table


def _cells(columns: "Sequence[_Column]", outdir: Path, inside: str, count: int) -> list[list[str]]:
    """Return the titles of columns and their cells, which may name files that are written."""
    titles = [title for column in columns for title in column.titles()]
    return [titles, *([cell for column in columns for cell in column.cells(n, outdir, inside)] for n in range(count))]


def _write_table(path: Path, rows: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    with atomic_writer(path) as target:
        target.write(text.getvalue().encode())


def _absolute(cell: str, folder: Path) -> str:
    path = folder / cell.strip()
    return str(path.resolve()) if cell.strip() and path.is_file() else cell


def _samples(dataset: Path, size: int, normalize: bool) -> DataIterator:
    if dataset.is_dir():
        return data_iterator_cache(dataset, size, shuffle=False, use_thread=False, normalize=normalize)
    return data_iterator_csv_dataset(
        dataset, size, shuffle=False, use_thread=False, normalize=normalize, with_file_cache=False
    )


def _forward_rows(executor: Executor, dataset: Path, count: int) -> list[list[Array]]:
    variables = list(executor.dataset_assign)
    size = variables[0].shape[0] if variables and variables[0].ndim else 1
    results: list[list[Array]] = []
    with _samples(dataset, size, normalize=not executor.no_image_normalization) as iterator:
        places = {name: place for place, name in enumerate(iterator.variables)}
        missing = [name for name in executor.dataset_assign.values() if name not in places]
        if missing:
            raise ArgumentError(f"forward: {dataset} must have the columns {missing}, got {list(places)}")
        starts = range(0, count, size)
        for _ in watched(starts, len(starts), "forward"):
            batch = iterator.next()
            for variable, name in executor.dataset_assign.items():
                variable.d = np.asarray(batch[places[name]]).reshape(variable.shape)
            results += _rows(executor, size)
    return results[:count]


class _Column:
    """One result, as columns of a CSV file; vectors of different lengths are files, as tables are."""

    def __init__(self, name: str, values: list[Array]) -> None:
        self.name = name
        self.values = values
        self.in_cells = len({value.shape for value in values}) == 1 and values[0].ndim < 2

    def titles(self) -> list[str]:
        count = self.values[0].size if self.in_cells else 1
        return [f"{self.name}__{n}" for n in range(count)] if count > 1 else [self.name]

    def cells(self, index: int, outdir: Path, inside: str) -> list[str]:
        values = self.values[index]
        if self.in_cells:
            return [str(number) for number in np.atleast_1d(values)]
        name = f"{self.name}_{index // 1000:04d}/{index}{'.csv' if values.ndim <= 2 else '.npy'}"
        path = path_below(outdir / inside, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_writer(path) as file:
            if values.ndim <= 2:
                np.savetxt(file, values, fmt="%.9g", delimiter=",")
            else:
                np.save(file, values, allow_pickle=False)
        return [path.relative_to(outdir).as_posix()]
