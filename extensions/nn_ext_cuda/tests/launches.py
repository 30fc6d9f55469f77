"""Limits of devices for launches, and the needs of kernels."""

import math
import re

import compilers
import numpy as np
import sources

#: Of one multiprocessor, and of one launch that asks for no more.
REGISTERS, SHARED_BYTES, PARAMETER_BYTES = 65536, 48 * 1024, 4096
MAX_THREADS, MAX_BLOCK, MAX_GRID = 1024, (1024, 1024, 64), (2**31 - 1, 65535, 65535)
#: Bytes of local memory that a thread may use: arguments of sines that are very large are reduced there.
STACK_BYTES = 256
#: Bytes of registers that the assembler may keep in local memory: it spills a few of them so that more blocks fit.
SPILLED_BYTES = 32
NOTHING = compilers.Resources(0, 0, 0, 0)


def complaints(launch, needs=NOTHING):
    """Why a device would refuse a launch."""
    threads, shared_bytes = math.prod(launch.block), needs.shared_bytes + launch.shared_bytes
    registers = -(-needs.registers // 8) * 8 * (-(-threads // 32) * 32)
    bounds = re.search(r"__launch_bounds__\((\d+)", launch.code.text)
    limits = [
        ("threads", threads, int(bounds[1]) if bounds else MAX_THREADS),
        ("registers", registers, REGISTERS),
        ("bytes of shared memory", shared_bytes, SHARED_BYTES),
        ("bytes of parameters", parameter_bytes(launch), PARAMETER_BYTES),
        *((f"blocks on axis {axis}", n, most) for axis, (n, most) in enumerate(zip(launch.grid, MAX_GRID, strict=False))),
        *((f"threads on axis {axis}", n, most) for axis, (n, most) in enumerate(zip(launch.block, MAX_BLOCK, strict=False))),
    ]
    empty = [f"{launch.code.name}: no blocks or threads"] if min(*launch.grid, *launch.block) < 1 else []
    return empty + [f"{launch.code.name}: {value} {what}" for what, value, most in limits if value > most]


def parameter_bytes(launch):
    """Bytes of the arguments of a launch, each aligned to its size."""
    end = 0
    for argument in launch.arguments:
        size = argument.dtype.itemsize if isinstance(argument, np.generic) else 8
        end = -(-end // size) * size + size
    return end


def slow_memory(code, needs):
    """Complaints about registers that a thread keeps in local memory."""
    wrong = []
    if needs.spilled_bytes > SPILLED_BYTES:
        wrong.append(f"{code.name}: {needs.spilled_bytes} bytes of registers are spilled")
    if needs.stack_bytes > STACK_BYTES:
        wrong.append(f"{code.name}: {needs.stack_bytes} bytes of local memory")
    return wrong


def resources(compiler, codes, architecture):
    """The needs of the kernel of each code; they are compiled together."""
    found = {}
    for mangled, needs in compiler.resources(sources.together(codes), architecture).items():
        piece, name = _names_of(mangled)
        code = codes[int(piece.removeprefix("piece_"))]
        if name == code.name:  # a file may have other kernels
            found[code] = needs
    assert len(found) == len(codes)
    return found


def _names_of(mangled):
    """The names that a mangled one is made of, each of which has its length in front."""
    rest, names = mangled.removeprefix("_ZN"), []
    while number := re.match(r"\d+", rest):
        end = number.end() + int(number[0])
        names.append(rest[number.end() : end])
        rest = rest[end:]
    return names
