"""Faults that kernels find in values, such as labels out of range: noted by the device, raised when the host next waits.

A kernel cannot raise an exception, and the host does not wait for it. So it writes the number of a message and the value at
fault to a word of page-locked host memory, whose address is valid on every device (unified addressing). Reading the word
after the host has waited for another reason costs nothing, and the device can be used as before.
"""

import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nn_core.ext import ArgumentError

#: Bits of the value; larger ones are cut to the largest.
_VALUE_BITS: Final = 40
#: ``tell(fault, number, value)`` notes a fault in one write, so that threads cannot mix up their messages.
TELL: Final = f"""\
__device__ void tell(volatile int64* fault, int64 number, int64 value) {{
  const int64 limit = (int64(1) << {_VALUE_BITS - 1}) - 1;
  const int64 held = value > limit ? limit : value < -limit ? -limit : value;
  *fault = int64(uint64(number) << {_VALUE_BITS} | (uint64(held) & ((uint64(1) << {_VALUE_BITS}) - 1)));
}}
"""
#: The parameters of a kernel that tells of faults.
PARAMETERS: Final = ("volatile int64* fault", "const int64 fault_number")


class Faults:
    """The word that kernels write to, and the messages by number; as an argument of a launch, the address of the word."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self._word: Any = None
        self._memory: Any = None
        self._lock = threading.Lock()

    def number(self, text: str) -> np.int64:
        """Return the number of a message, in which {} stands for the value at fault."""
        with self._lock:
            if text not in self._numbers:
                self._texts.append(text)
                self._numbers[text] = len(self._texts)
            return np.int64(self._numbers[text])

    def address(self) -> np.uint64:
        """Return the address of the word, for kernels."""
        from nn_ext_cuda.device.runtime import cupy  # programs can be made without CuPy

        with self._lock:
            if self._word is None:
                self._memory = cupy.cuda.alloc_pinned_memory(8)
                self._word = np.frombuffer(self._memory, np.int64, 1)
                self._word[0] = 0
            return np.uint64(self._memory.ptr)

    def check(self) -> None:
        """Raise the last fault that was noted, and forget it. Call this after the host has waited for the device.

        Raises:
            ArgumentError: when a kernel has found a fault.
        """
        if self._word is None or not self._word[0]:
            return
        noted, self._word[0] = int(self._word[0]), 0
        value = (noted & ((1 << _VALUE_BITS) - 1)) - ((noted >> (_VALUE_BITS - 1) & 1) << _VALUE_BITS)
        text = self._texts[(noted >> _VALUE_BITS) - 1].format(value)
        raise ArgumentError(f"{text}\n  hint: the device found it in a call before this one; its results are spoilt by NaN")


FAULTS: Final = Faults()


def parameters_of(fault: str) -> Sequence[str]:
    """Return the parameters of a kernel that may tell of a fault with this message; none without a message."""
    return PARAMETERS if fault else ()


def arguments_of(fault: str) -> list[Any]:
    """Return the arguments of a launch for these parameters."""
    return [FAULTS, FAULTS.number(fault)] if fault else []


def beyond_classes(api: str, n_classes: int) -> str:
    """Return the message for a label that is no class."""
    return f"{api}: target must be below {n_classes}, the number of classes, got {{}}"


def beyond_length(api: str, name: str, *lengths: int) -> str:
    """Return the message for an index out of the axes that it names."""
    reach = " or ".join(f"[{-length}, {length})" for length in dict.fromkeys(lengths))
    return f"{api}: {name} must be in {reach}, got {{}}"
