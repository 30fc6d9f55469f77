"""An engine of eight Python functions passes the admission test of engines."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nn_core.testing.engines import *  # noqa: F403


class Post:
    """Letters between threads, by collective and sender."""

    def __init__(self, size: int) -> None:
        self.size, self.letters, self.changed = size, {}, threading.Condition()
        self.parts: dict[Any, Post] = {}


class Later:
    """Ends when all letters of a collective are there."""

    def __init__(self, post: Post, number: int, act: Callable[[list[Any]], None]) -> None:
        self.post, self.number, self.act, self.over = post, number, act, False

    def done(self) -> bool:
        return self.wait(0)

    def wait(self, timeout_s: float | None) -> bool:
        keys = [(self.number, rank) for rank in range(self.post.size)]
        with self.post.changed:
            if not self.post.changed.wait_for(lambda: all(key in self.post.letters for key in keys), timeout_s):
                return False
            if not self.over:
                self.over = True
                self.act([self.post.letters[key] for key in keys])
        return True


OPS = {"sum": np.add, "max": np.maximum}


class Mail:
    """The engine: everything is made of sending a copy to all."""

    def __init__(self, post: Post, rank: int) -> None:
        self.post_office, self.rank, self.local_rank, self.size, self.number = post, rank, rank, post.size, 0
        self.hosts = ["here"] * post.size

    def exchange(self, letter: Any, act: Callable[[list[Any]], None]) -> Later:
        self.number += 1
        with self.post_office.changed:
            self.post_office.letters[self.number, self.rank] = letter
            self.post_office.changed.notify_all()
        return Later(self.post_office, self.number, act)

    def all_reduce(self, array: Any, op: str = "sum") -> Later:
        return self.exchange(array.copy(), lambda all_: np.copyto(array, OPS[op].reduce(all_, dtype=array.dtype)))

    def broadcast(self, array: Any, src: int) -> Later:
        return self.exchange(array.copy(), lambda all_: np.copyto(array, all_[src]))

    def reduce(self, array: Any, dst: int, op: str = "sum") -> Later:
        total = array if self.rank == dst else array.copy()
        return self.exchange(array.copy(), lambda all_: np.copyto(total, OPS[op].reduce(all_, dtype=array.dtype)))

    def all_gather(self, send: Any, receive: Any) -> Later:
        return self.exchange(send.copy(), lambda all_: np.copyto(receive, np.concatenate(all_)))

    def reduce_scatter(self, send: Any, receive: Any, op: str = "sum") -> Later:
        def act(all_: list[Any]) -> None:
            np.copyto(receive, OPS[op].reduce(all_, dtype=send.dtype).reshape(self.size, -1)[self.rank])

        return self.exchange(send.copy(), act)

    def all_to_all(self, send: Any, receive: Any) -> Later:
        def act(all_: list[Any]) -> None:
            np.copyto(receive, np.concatenate([each.reshape(self.size, -1)[self.rank] for each in all_]))

        return self.exchange(send.copy(), act)

    def barrier(self) -> Later:
        return self.exchange(None, lambda all_: None)

    def split(self, ranks: Sequence[int]) -> "Mail | None":
        self.barrier().wait(None)
        with self.post_office.changed:
            part = self.post_office.parts.setdefault(self.number, Post(len(ranks)))
        return Mail(part, list(ranks).index(self.rank)) if self.rank in ranks else None


def run_ranks(program: Callable[[Any], Any], size: int = 2) -> list[Any]:
    post, results, failures = Post(size), {}, []

    def run(rank: int) -> None:
        try:
            results[rank] = program(Mail(post, rank))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    if failures:
        raise failures[0]
    return [results[rank] for rank in range(size)]
