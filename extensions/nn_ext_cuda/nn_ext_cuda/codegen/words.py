"""Numbers that the host gives to kernels before each run: keys of random functions, numbers of solvers.

A recorded graph takes no arguments. So kernels read such numbers from the memory of the device, and one small launch in
front of the graph, which has them as its arguments, writes them there. What has not changed is not written again.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from nn_ext_cuda.codegen.code import Code, compiled, generated
from nn_ext_cuda.memory.arrays import allocated

#: Words that one launch takes; as many arguments cost a few microseconds.
MAX_WORDS: Final = 32


class Words:
    """64-bit words in the memory of the device.

    Args:
        n: How many.
        read: Gives them as a NumPy array of uint64, or of float64 whose bits are meant.
    """

    __slots__ = ("_read", "memory", "sent", "taken")

    def __init__(self, n: int, read: Callable[[], Any]) -> None:
        self.memory = allocated((n,), "uint64")
        self._read = read
        self.taken: list[int] = []
        self.sent: list[int] = []

    def take(self) -> None:
        """Note what the host says now; it is sent later."""
        self.taken = self._read().view(np.uint64).tolist()

    def send(self) -> None:
        """Write what was taken, unless it is there."""
        if self.taken != self.sent:
            n = len(self.taken)
            values = [np.uint64(value) for value in self.taken]
            compiled(put_words_code(n))((1,), (n,), (self.memory, *values), shared_mem=0)
            self.sent = self.taken


class Letter:
    """Several `Words`, brought to the device together.

    Args:
        words: The words.
    """

    __slots__ = ("_chunks", "words")

    def __init__(self, words: Sequence[Words]) -> None:
        self.words = tuple(words)
        targets = [int(one.memory.data.ptr) + 8 * place for one in self.words for place in range(one.memory.size)]
        self._chunks = [_chunk(targets[start : start + MAX_WORDS]) for start in range(0, len(targets), MAX_WORDS)]

    def take(self) -> None:
        """Note what the host says now."""
        for one in self.words:
            one.take()

    def send(self) -> None:
        """Write what was taken, unless it is there."""
        if all(one.taken == one.sent for one in self.words):
            return
        values = [value for one in self.words for value in one.taken]
        for (function, targets, n), start in zip(self._chunks, range(0, len(values), MAX_WORDS), strict=True):
            own = values[start : start + MAX_WORDS]
            own += own[-1:] * (n - len(own))
            function((1,), (n,), (targets, *[np.uint64(value) for value in own]), shared_mem=0)
        for one in self.words:
            one.sent = one.taken


def _chunk(targets: list[int]) -> tuple[Any, Any, int]:
    """Return the function for some targets, the table of them on the device, and how many words it takes."""
    from nn_ext_cuda.device.runtime import cupy  # sources can be made without CuPy

    n = 1 << max(len(targets) - 1, 1).bit_length()
    table = np.array(targets + targets[-1:] * (n - len(targets)), np.uint64)
    return compiled(set_words_code(n)), cupy.asarray(table), n


def put_words_code(n: int) -> Code:
    """Return the kernel that writes `n` words, one after the other."""
    return _words_code("put_words", "uint64* memory", n, "memory[threadIdx.x]")


def set_words_code(n: int) -> Code:
    """Return the kernel that writes `n` words to as many places; equal places get equal words."""
    return _words_code("set_words", "const uint64* targets", n, "*(uint64*)targets[threadIdx.x]")


def _words_code(name: str, parameter: str, n: int, target: str) -> Code:
    words = [f"word{k}" for k in range(n)]
    body = f"  const uint64 words[] = {{{', '.join(words)}}};\n  {target} = words[threadIdx.x];"
    return generated(name, [parameter, *[f"const uint64 {word}" for word in words]], body, "float")
