"""Convolutions in NumPy, solved for each of the three arrays: narrow = wide * filters, in any number of dimensions."""

import numpy as np


def solved(result, wide, filters, narrow, window):
    """The array called `result`; the other two are given, of the one only the shape is read.

    Args:
        result: narrow, wide or filter.
        wide: (batch, channels, spatial axes).
        filters: (filters, channels of a group, window axes).
        narrow: (batch, filters, spatial axes).
        window: (strides, dilations, padding), each with a number for each spatial axis.
    """
    strides, dilations, pads = window
    groups = wide.shape[1] // filters.shape[1]
    padded = np.zeros((*wide.shape[:2], *(n + 2 * pad for n, pad in zip(wide.shape[2:], pads, strict=True))))
    inside = (slice(None), slice(None), *(slice(pad, pad + n) for n, pad in zip(wide.shape[2:], pads, strict=True)))
    if result != "wide":
        padded[inside] = wide
    padded = _grouped(padded, groups)
    small = _grouped(np.zeros(narrow.shape) if result == "narrow" else narrow.astype(np.float64), groups)
    weight = np.zeros(filters.shape) if result == "filter" else filters.astype(np.float64)
    weight = weight.reshape(groups, -1, *filters.shape[1:])
    for place in np.ndindex(filters.shape[2:]):
        starts = [index * step for index, step in zip(place, dilations, strict=True)]
        ends = [start + step * (n - 1) + 1 for start, step, n in zip(starts, strides, narrow.shape[2:], strict=True)]
        spatial = tuple(map(slice, starts, ends, strides))
        seen = padded[(slice(None),) * 3 + spatial]
        taps = weight[(slice(None),) * 3 + place]
        if result == "narrow":
            small += np.einsum("ngc...,gkc->ngk...", seen, taps)
        elif result == "wide":
            seen += np.einsum("ngk...,gkc->ngc...", small, taps)
        else:
            taps += np.einsum("ngcp,ngkp->gkc", _flat(seen), _flat(small))
    if result == "filter":
        return weight.reshape(filters.shape)
    if result == "narrow":
        return small.reshape(narrow.shape)
    return padded.reshape(*wide.shape[:2], *padded.shape[3:])[inside]


def _grouped(image, groups):
    return image.reshape(image.shape[0], groups, -1, *image.shape[2:])


def _flat(image):
    return image.reshape(*image.shape[:3], -1)
