"""The kinds of descriptors of the backend API and their attributes, with the numbers of cudnn_graph.h.

An attribute is called as in the header, CUDNN_ATTR_<prefix of the kind>_<name>, in small letters.
"""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple


class Type(NamedTuple):
    """The type of an attribute: its number (CUDNN_TYPE_*) and what it is in C."""

    number: int
    c_type: Any


HANDLE: Final = Type(0, ctypes.c_void_p)
DATA_TYPE: Final = Type(1, ctypes.c_int)
BOOLEAN: Final = Type(2, ctypes.c_bool)
INT64: Final = Type(3, ctypes.c_int64)
FLOAT: Final = Type(4, ctypes.c_float)
DOUBLE: Final = Type(5, ctypes.c_double)
VOID_PTR: Final = Type(6, ctypes.c_void_p)
CONVOLUTION_MODE: Final = Type(7, ctypes.c_int)
HEUR_MODE: Final = Type(8, ctypes.c_int)
NUMERICAL_NOTE: Final = Type(11, ctypes.c_int)
POINTWISE_MODE: Final = Type(14, ctypes.c_int)
BACKEND_DESCRIPTOR: Final = Type(15, ctypes.c_void_p)
REDUCTION_OPERATOR_TYPE: Final = Type(18, ctypes.c_int)
CHAR: Final = Type(24, ctypes.c_char)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of descriptor.

    Attributes:
        name: As in CUDNN_BACKEND_<name>_DESCRIPTOR.
        number: The number of that.
        prefix: As in CUDNN_ATTR_<prefix>_*.
        attributes: Number and type by name. Scale factors are float here, and may be set as double.
    """

    name: str
    number: int
    prefix: str
    attributes: Mapping[str, tuple[int, Type]]


POINTWISE: Final = Kind(
    "POINTWISE", 0, "POINTWISE", {"mode": (0, POINTWISE_MODE), "math_prec": (1, DATA_TYPE), "axis": (9, INT64)}
)
CONVOLUTION: Final = Kind(
    "CONVOLUTION",
    1,
    "CONVOLUTION",
    {
        "comp_type": (100, DATA_TYPE),
        "conv_mode": (101, CONVOLUTION_MODE),
        "dilations": (102, INT64),
        "filter_strides": (103, INT64),
        "post_paddings": (104, INT64),
        "pre_paddings": (105, INT64),
        "spatial_dims": (106, INT64),
    },
)
ENGINE: Final = Kind("ENGINE", 2, "ENGINE", {"global_index": (1301, INT64), "numerical_note": (1303, NUMERICAL_NOTE)})
ENGINECFG: Final = Kind("ENGINECFG", 3, "ENGINECFG", {"engine": (300, BACKEND_DESCRIPTOR)})
ENGINEHEUR: Final = Kind(
    "ENGINEHEUR",
    4,
    "ENGINEHEUR",
    {
        "mode": (200, HEUR_MODE),
        "operation_graph": (201, BACKEND_DESCRIPTOR),
        "results": (202, BACKEND_DESCRIPTOR),
        "deviceprop": (204, BACKEND_DESCRIPTOR),
    },
)
EXECUTION_PLAN: Final = Kind(
    "EXECUTION_PLAN",
    5,
    "EXECUTION_PLAN",
    {
        "handle": (400, HANDLE),
        "engine_config": (401, BACKEND_DESCRIPTOR),
        "workspace_size": (402, INT64),
        "deviceprop": (407, BACKEND_DESCRIPTOR),
    },
)
CONVOLUTION_FORWARD: Final = Kind(
    "OPERATION_CONVOLUTION_FORWARD",
    10,
    "OPERATION_CONVOLUTION_FORWARD",
    {
        "alpha": (700, FLOAT),
        "beta": (701, FLOAT),
        "conv_desc": (702, BACKEND_DESCRIPTOR),
        "w": (703, BACKEND_DESCRIPTOR),
        "x": (704, BACKEND_DESCRIPTOR),
        "y": (705, BACKEND_DESCRIPTOR),
    },
)
CONVOLUTION_BACKWARD_FILTER: Final = Kind(
    "OPERATION_CONVOLUTION_BACKWARD_FILTER",
    11,
    "OPERATION_CONVOLUTION_BWD_FILTER",
    {
        "alpha": (712, FLOAT),
        "beta": (713, FLOAT),
        "conv_desc": (714, BACKEND_DESCRIPTOR),
        "dw": (715, BACKEND_DESCRIPTOR),
        "x": (716, BACKEND_DESCRIPTOR),
        "dy": (717, BACKEND_DESCRIPTOR),
    },
)
CONVOLUTION_BACKWARD_DATA: Final = Kind(
    "OPERATION_CONVOLUTION_BACKWARD_DATA",
    12,
    "OPERATION_CONVOLUTION_BWD_DATA",
    {
        "alpha": (706, FLOAT),
        "beta": (707, FLOAT),
        "conv_desc": (708, BACKEND_DESCRIPTOR),
        "w": (709, BACKEND_DESCRIPTOR),
        "dx": (710, BACKEND_DESCRIPTOR),
        "dy": (711, BACKEND_DESCRIPTOR),
    },
)
OPERATION_POINTWISE: Final = Kind(
    "OPERATION_POINTWISE",
    13,
    "OPERATION_POINTWISE",
    {
        "pw_descriptor": (750, BACKEND_DESCRIPTOR),
        "xdesc": (751, BACKEND_DESCRIPTOR),
        "bdesc": (752, BACKEND_DESCRIPTOR),
        "ydesc": (753, BACKEND_DESCRIPTOR),
        "tdesc": (758, BACKEND_DESCRIPTOR),
    },
)
OPERATIONGRAPH: Final = Kind(
    "OPERATIONGRAPH", 15, "OPERATIONGRAPH", {"handle": (800, HANDLE), "ops": (801, BACKEND_DESCRIPTOR)}
)
VARIANT_PACK: Final = Kind(
    "VARIANT_PACK",
    16,
    "VARIANT_PACK",
    {"unique_ids": (1000, INT64), "data_pointers": (1001, VOID_PTR), "workspace": (1003, VOID_PTR)},
)
TENSOR: Final = Kind(
    "TENSOR",
    17,
    "TENSOR",
    {
        "byte_alignment": (900, INT64),
        "data_type": (901, DATA_TYPE),
        "dimensions": (902, INT64),
        "strides": (903, INT64),
        "unique_id": (906, INT64),
        "is_virtual": (907, BOOLEAN),
        "is_by_value": (908, BOOLEAN),
    },
)
MATMUL: Final = Kind("MATMUL", 18, "MATMUL", {"comp_type": (1500, DATA_TYPE)})
OPERATION_MATMUL: Final = Kind(
    "OPERATION_MATMUL",
    19,
    "OPERATION_MATMUL",
    {
        "adesc": (1520, BACKEND_DESCRIPTOR),
        "bdesc": (1521, BACKEND_DESCRIPTOR),
        "cdesc": (1522, BACKEND_DESCRIPTOR),
        "desc": (1523, BACKEND_DESCRIPTOR),
    },
)
REDUCTION: Final = Kind(
    "REDUCTION", 21, "REDUCTION", {"operator": (1600, REDUCTION_OPERATOR_TYPE), "comp_type": (1601, DATA_TYPE)}
)
OPERATION_REDUCTION: Final = Kind(
    "OPERATION_REDUCTION",
    22,
    "OPERATION_REDUCTION",
    {"xdesc": (1610, BACKEND_DESCRIPTOR), "ydesc": (1611, BACKEND_DESCRIPTOR), "desc": (1612, BACKEND_DESCRIPTOR)},
)
OPERATION_RESHAPE: Final = Kind(
    "OPERATION_RESHAPE",
    31,
    "OPERATION_RESHAPE",
    {"xdesc": (2200, BACKEND_DESCRIPTOR), "ydesc": (2201, BACKEND_DESCRIPTOR)},
)
DEVICEPROP: Final = Kind("DEVICEPROP", 38, "DEVICEPROP", {"json_representation": (2702, CHAR)})

KINDS: Final = (
    POINTWISE,
    CONVOLUTION,
    ENGINE,
    ENGINECFG,
    ENGINEHEUR,
    EXECUTION_PLAN,
    CONVOLUTION_FORWARD,
    CONVOLUTION_BACKWARD_FILTER,
    CONVOLUTION_BACKWARD_DATA,
    OPERATION_POINTWISE,
    OPERATIONGRAPH,
    VARIANT_PACK,
    TENSOR,
    MATMUL,
    OPERATION_MATMUL,
    REDUCTION,
    OPERATION_REDUCTION,
    OPERATION_RESHAPE,
    DEVICEPROP,
)

#: cudnnDataType_t of dtypes.
DATA_TYPES: Final[Mapping[str, int]] = {"float32": 0, "float64": 1, "float16": 2, "int32": 4, "bfloat16": 9, "bool": 11}
#: cudnnPointwiseMode_t.
POINTWISE_MODES: Final[Mapping[str, int]] = {
    "add": 0,
    "mul": 1,
    "div": 6,
    "sub": 9,
    "exp": 13,
    "log": 15,
    "identity": 21,
    "relu_fwd": 100,
    "cmp_ge": 303,
    "cmp_lt": 304,
    "logical_not": 402,
    "gen_index": 501,
    "binary_select": 601,
}
#: cudnnReduceTensorOp_t.
REDUCTION_OPERATORS: Final[Mapping[str, int]] = {"add": 0, "max": 3}
#: cudnnConvolutionMode_t: filters are not flipped.
CROSS_CORRELATION: Final = 1
