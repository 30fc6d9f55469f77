"""The subcommand ``nn-core serve``."""

import asyncio
import logging
import signal
from pathlib import Path
from typing import Any, Final

import click
import uvicorn

from nn_core.ext import NNCoreError, axis_lengths, num_threads, say, set_num_threads
from nn_ext_serve.application import Application
from nn_ext_serve.batching import Batcher
from nn_ext_serve.loading import NetworkFile
from nn_ext_serve.predictor import Predictor

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
#: Names by which the machine itself is reached; other names would be those of other sites that lead here.
_LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")
#: Seconds that requests get to end when the server stops.
_GRACE: Final = 30
_LOG = logging.getLogger("uvicorn.error")


@click.command()
@click.argument("network", type=_FILE)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at; 0.0.0.0: all of the machine.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="Port; 0: a free one.")
@click.option("-n", "--name", help="Which network of the file; the first by default.")
@click.option("-d", "--dimension", multiple=True, metavar="NAME=LENGTH", help="The length of an axis that the file names.")
@click.option(
    "-w", "--weights", type=_FILE, help="File of parameters, which replace those of NETWORK; a reload reads it again."
)
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1), help="Threads that compute batches.")
@click.option("--max-batch", default=16, show_default=True, type=click.IntRange(1), help="The most samples of a batch.")
@click.option("--max-wait", default=2.0, show_default=True, help="Milliseconds that a request waits for others.")
@click.option("--capacity", default=256, show_default=True, type=click.IntRange(1), help="The most samples that wait.")
@click.option("--deadline", default=10.0, show_default=True, help="Seconds after which a waiting request is given up.")
@click.option(
    "--body-limit", default=8 * 2**20, show_default=True, type=click.IntRange(1), help="The most bytes of a request."
)
@click.option("--check-finite", is_flag=True, help="Answer by an error instead of NaN or infinities.")
@click.option("--unchecked-samples", is_flag=True, help="Serve a network whose samples depend on each other in a batch.")
@click.option("--reload-endpoint", is_flag=True, help="Reload by POST /reload too, not only by SIGHUP.")
@click.option("--allowed-host", multiple=True, help="A name in the header Host that is answered; at the loopback: its own.")
@click.option("--check", is_flag=True, help="Load the network, run it, show what it takes and returns, and end.")
def serve(network: Path, check: bool, **options: Any) -> None:
    """Serve a network of a file (.onnx, .nnp, .nntxt) by HTTP: POST /predict, GET /, /health/live, /health/ready, /metrics.

    A package that reads the file must be installed: nn-ext-nnp or nn-ext-onnx. SIGHUP reads the file again; SIGTERM answers
    what has arrived and ends. There is no encryption and no login: beyond the machine itself, put a proxy in front.

    Example: nn-core serve digits.onnx --port 8000
    """
    try:
        predictor, reload = _predictor(network, options)
        if check:
            say(_described(predictor))
            return
        run(predictor, reload, title=network.name, **options)
    except (NNCoreError, OSError) as error:
        raise click.ClickException(str(error)) from error


def _predictor(path: Path, options: dict[str, Any]) -> tuple[Predictor, Any]:
    """Return a predictor of a file, and a function that reads the file, or the file of weights, again."""
    workers: int = options["workers"]
    if workers > 1:
        set_num_threads(max(1, num_threads() // workers))
    file = NetworkFile(path, name=options["name"], dimensions=axis_lengths("serve", options["dimension"]))
    predictor = Predictor(
        file,
        graphs=workers,
        max_batch=options["max_batch"],
        check_finite=options["check_finite"],
        check_samples=not options["unchecked_samples"],
    )
    weights = options["weights"]
    if weights is None:
        return predictor, lambda: predictor.replace(file.again())
    predictor.swap_parameters(weights)
    return predictor, lambda: predictor.swap_parameters(weights)


def _described(predictor: Predictor) -> str:
    """Return a line for each input and each output."""
    rows = [("input", spec) for spec in predictor.inputs.values()] + [("output", spec) for spec in predictor.outputs.values()]
    return "\n".join(f"{kind} {spec.name} ({', '.join(('n', *map(str, spec.shape)))}) {spec.dtype}" for kind, spec in rows)


def run(predictor: Predictor, reload: Any, *, title: str, host: str, port: int, **options: Any) -> None:
    """Serve a predictor until SIGTERM or SIGINT arrives."""
    hosts = options["allowed_host"] or (_LOCAL if host in ("127.0.0.1", "localhost", "::1") else None)
    with Batcher(
        predictor,
        workers=options["workers"],
        max_wait=options["max_wait"] / 1000,
        capacity=options["capacity"],
        deadline=options["deadline"],
    ) as batcher:
        application = Application(
            batcher,
            name=title,
            reload=reload,
            has_reload_endpoint=options["reload_endpoint"],
            body_limit=options["body_limit"],
            hosts=hosts,
        )
        config = uvicorn.Config(
            application,
            host=host,
            port=port,
            http="h11",
            loop="asyncio",
            ws="none",
            lifespan="off",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE,
        )
        if hosts is None:
            _LOG.warning("anyone who reaches %s may send requests: there is no encryption and no login", host)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _end)  # uvicorn raises the signal again when it has ended
        asyncio.run(_served(uvicorn.Server(config), application))


def _end(number: int, frame: Any) -> None:
    raise SystemExit(0)


async def _served(server: uvicorn.Server, application: Application) -> None:
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    def reload() -> None:
        task = loop.create_task(_reloaded(application))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    if hasattr(signal, "SIGHUP"):
        loop.add_signal_handler(signal.SIGHUP, reload)
    await server.serve()


async def _reloaded(application: Application) -> None:
    """Reload, and say in the log what came of it: nobody waits for a signal."""
    try:
        await application.reload()
    except (NNCoreError, OSError) as error:
        _LOG.error("reload: %s; the present network stays", error)
    else:
        _LOG.info("reloaded")
