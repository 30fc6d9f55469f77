"""One attempt of a job: room for the workers, the workers, and what came of them."""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from nn_core.errors import CommunicationError
from nn_core.logger import logger
from nn_ext_ray.meeting import Meeting
from nn_ext_ray.rank import RayRank, set_rank


class WorkerFailure(Exception):  # noqa: N818 # an event that is answered by another attempt
    """A worker that died, or one that found out that another had."""


class Worker:
    """The actor that runs the program."""

    def node(self) -> str:
        """Return the name of the machine, and the start of Ray's name for it: several may share a name in tests."""
        return f"{socket.gethostname()}/{ray.get_runtime_context().get_node_id()[:8]}"

    def run(self, place: RayRank, program: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        """Take the place among the workers and call the program."""
        set_rank(place)
        numbers = {"WORLD_SIZE": len(place.nodes), "RANK": place.rank, "LOCAL_RANK": place.local_rank}
        os.environ.update({name: str(number) for name, number in numbers.items()})
        return program(*arguments)


class Cluster:
    """The Ray cluster of this program; one of this machine is started, and ended, where there is none.

    Args:
        needs: Resources of a worker.
        strategy: Ray's name of the placement.
        wait_s: Seconds to wait until the smallest number of workers has room.
        grow_wait_s: Seconds to wait for each larger number.
        variables: Environment variables of the workers.
    """

    def __init__(
        self, needs: Mapping[str, float], strategy: str, wait_s: float, grow_wait_s: float, variables: Mapping[str, str]
    ) -> None:
        self._needs = dict(needs)
        self._strategy = strategy
        self._wait_s = wait_s
        self._grow_wait_s = grow_wait_s
        threads = str(max(1, int(self._needs["CPU"])))
        self._variables = {"NN_CORE_NUM_THREADS": threads, "OMP_NUM_THREADS": threads, **variables}
        self._is_own = False

    def __enter__(self) -> "Cluster":
        self._is_own = not ray.is_initialized()
        if self._is_own:
            ray.init(include_dashboard=False)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._is_own:
            ray.shutdown()

    def run(self, program: Callable[..., Any], arguments: Sequence[Any], counts: Sequence[int]) -> list[Any]:
        """Run the program on the largest number of workers that has room.

        Raises:
            WorkerFailure: when a worker died.
            CommunicationError: when there is no room.
            Exception: that of the program.
        """
        group = self._room(counts)
        actors: list[Any] = []
        try:
            # on the machine of this process, so that the loss of another one does not take it away
            here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
            meeting = ray.remote(Meeting).options(num_cpus=0, scheduling_strategy=here).remote()
            actors.append(meeting)
            workers = [self._worker(group, rank) for rank in range(group.bundle_count)]
            actors += workers
            return self._results(workers, meeting, program, arguments)
        finally:
            for actor in actors:
                ray.kill(actor)
            remove_placement_group(group)

    def _room(self, counts: Sequence[int]) -> PlacementGroup:
        """Reserve room for the first number of workers that fits."""
        for count in counts:
            group: PlacementGroup = placement_group([self._needs] * count, strategy=self._strategy)
            try:
                ray.get(group.ready(), timeout=self._wait_s if count == counts[-1] else self._grow_wait_s)
            except GetTimeoutError:
                remove_placement_group(group)
                continue
            logger.info("train: %d workers", count)
            return group
        needs = ", ".join(f"{amount:g} {name}" for name, amount in self._needs.items())
        available: Mapping[str, float] = ray.available_resources()
        free = ", ".join(f"{amount:g} {name}" for name, amount in available.items() if name in self._needs)
        raise CommunicationError(
            f"train: the cluster must have room for {counts[-1]} workers with {needs} each within {self._wait_s:g} s, "
            f"got {free or 'none of these'} free\n  hint: ask for fewer workers, or less for each by resources="
        )

    def _worker(self, group: PlacementGroup, rank: int) -> Any:
        others = {name: amount for name, amount in self._needs.items() if name not in ("CPU", "GPU")}
        return (
            ray.remote(Worker)
            .options(
                num_cpus=self._needs["CPU"],
                num_gpus=self._needs.get("GPU", 0),
                resources=others,
                runtime_env={"env_vars": self._variables},
                scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank),
            )
            .remote()
        )

    def _results(
        self, workers: Sequence[Any], meeting: Any, program: Callable[..., Any], arguments: Sequence[Any]
    ) -> list[Any]:
        nodes: Sequence[str] = []
        rank = 0
        try:
            for rank, worker in enumerate(workers):  # noqa: B007 # read where an exception is answered
                nodes = [*nodes, ray.get(worker.node.remote(), timeout=self._wait_s)]
            places = [RayRank(rank, nodes, meeting) for rank in range(len(workers))]
            running = [worker.run.remote(place, program, arguments) for worker, place in zip(workers, places, strict=True)]
            waiting = list(running)
            while waiting:
                (done,), waiting = ray.wait(waiting)
                rank = running.index(done)
                ray.get(done)
            results: list[Any] = ray.get(running)
            return results
        except RayTaskError as error:
            if isinstance(error.cause, CommunicationError):  # of a worker that has lost another one
                raise WorkerFailure(str(error.cause)) from error
            raise
        except GetTimeoutError as error:  # the machine was lost after it had room
            raise WorkerFailure(f"{self._wait_s:g} s without a start of worker {rank}") from error
        except RayActorError as error:
            where = f" on {nodes[rank]}" if rank < len(nodes) else ""
            raise WorkerFailure(f"the death of worker {rank}{where}") from error
