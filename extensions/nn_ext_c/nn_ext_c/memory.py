"""A place in the arena for each buffer: those that are needed at different times share memory."""

from dataclasses import dataclass

from nn_ext_c.program import Argument, Buffer, Program, Step


@dataclass(slots=True)
class Span:
    """From the step that first writes memory to the one that last reads it, for buffers that share it in place."""

    first: int
    last: int
    size: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Offsets of buffers in the arena of their dtype, and the sizes of the arenas, in elements."""

    offsets: dict[Buffer, int]
    sizes: dict[str, int]


def plan_memory(program: Program) -> Plan:
    """Place the buffers of a program that belong to the arena."""
    spans = _spans(program.steps)
    owners = _joined(program.steps, spans)
    offsets: dict[Buffer, int] = {}
    sizes: dict[str, int] = {}
    for dtype in sorted({buffer.dtype for buffer in spans}):
        own = {buffer: span for buffer, span in spans.items() if buffer.dtype == dtype and owners[buffer] is buffer}
        offsets.update(_placed(own))
        sizes[dtype] = max(offsets[buffer] + span.size for buffer, span in own.items())
    return Plan({buffer: offsets[owner] for buffer, owner in owners.items()}, sizes)


def _spans(steps: list[Step]) -> dict[Buffer, Span]:
    spans: dict[Buffer, Span] = {}
    for number, step in enumerate(steps):
        for buffer in (*step.written, *step.read):
            if buffer.kind == "arena":
                spans.setdefault(buffer, Span(number, number, buffer.size)).last = number
    return spans


def _joined(steps: list[Step], spans: dict[Buffer, Span]) -> dict[Buffer, Buffer]:
    """Return the buffer whose memory each one has: its own, or that of an input of the step that writes it."""
    owners = {buffer: buffer for buffer in spans}
    for number, step in enumerate(steps):
        for argument in step.in_place:
            target = step.written[0]
            if not _fits(argument, target, number, spans):
                continue
            owner = owners[argument.value.buffer]
            spans[owner].last = spans[target].last
            owners[target] = owner
            spans[target] = spans[owner]
            break
    return owners


def _fits(argument: Argument, target: Buffer, number: int, spans: dict[Buffer, Span]) -> bool:
    source = argument.value.buffer
    if source.kind != "arena" or target.kind != "arena" or source.dtype != target.dtype or source.size != target.size:
        return False
    return spans[source].last == number and spans[target].first == number


def _placed(spans: dict[Buffer, Span]) -> dict[Buffer, int]:
    """Largest first, each at the lowest place that is free for as long as it is needed."""
    offsets: dict[Buffer, int] = {}
    for buffer, span in sorted(spans.items(), key=lambda item: (-item[1].size, item[1].first)):
        taken = sorted(
            (offset, offset + spans[other].size)
            for other, offset in offsets.items()
            if spans[other].first <= span.last and span.first <= spans[other].last
        )
        place = 0
        for start, stop in taken:
            if place + span.size <= start:
                break
            place = max(place, stop)
        offsets[buffer] = place
    return offsets
