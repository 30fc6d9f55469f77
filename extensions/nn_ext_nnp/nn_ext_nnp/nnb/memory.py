"""Buffers that variables share when one is not needed any more while the other is."""

from collections.abc import Iterable, Sequence


def share_buffers(
    functions: Sequence[tuple[Sequence[int], Sequence[int]]], sizes: dict[int, int], outputs: Iterable[int]
) -> tuple[list[int], dict[int, int]]:
    """Give each variable that is computed or set a buffer.

    Variables that exist at the same time have different buffers: what is set exists from the first function on, results of
    the network until the end. The functions are walked from the last one to the first.

    Args:
        functions: inputs and outputs of each.
        sizes: of the variables that need a buffer, in elements or bytes.
        outputs: results of the network.

    Returns:
        The sizes of the buffers, small ones first, and the buffer of each variable.
    """
    buffers: list[int] = []
    places: dict[int, int] = {}
    free: list[int] = []

    def take(variable: int) -> None:
        if variable in places or variable not in sizes:
            return
        if free:
            place = min(free, key=lambda n: (abs(buffers[n] - sizes[variable]), n))
            free.remove(place)
        else:
            place = len(buffers)
            buffers.append(0)
        buffers[place] = max(buffers[place], sizes[variable])
        places[variable] = place

    for variable in outputs:
        take(variable)
    for inputs, results in reversed(functions):
        for variable in (*results, *inputs):
            take(variable)
        free.extend(places[variable] for variable in dict.fromkeys(results))
    for variable in sizes:
        take(variable)
    first = {place: variable for variable, place in sorted(places.items(), reverse=True)}
    order = sorted(range(len(buffers)), key=lambda place: (buffers[place], first[place]))
    return [buffers[place] for place in order], {variable: order.index(place) for variable, place in places.items()}
