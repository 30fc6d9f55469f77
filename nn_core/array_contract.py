"""The array contract as data: what kernels that run over ``xp`` may use of a namespace and of its arrays.

docs/array_contract.md explains it. `nn_core.testing.strict_namespace` refuses everything else, and
`nn_core.engine.array_api_adapter` offers exactly this over any library that follows the Python array API standard.
"""

from typing import Final

#: Changes when a kernel that kept to the contract before could not run any more, or a namespace that met it does not.
CONTRACT_VERSION: Final = 1

CONSTANTS: Final = frozenset({"inf"})
DTYPES: Final = frozenset({"bool", "float16", "float32", "float64", "int64", "uint8", "complex64", "complex128"})
CREATION: Final = frozenset(
    {"arange", "asarray", "eye", "full", "full_like", "linspace", "meshgrid", "ones", "ones_like", "zeros", "zeros_like"}
)
UNARY: Final = frozenset(
    {
        *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "exp", "expm1", "floor"),
        *("isfinite", "isinf", "isnan", "log", "log2", "round", "sign", "sin", "sinh"),
        *("sqrt", "square", "tan", "tanh", "trunc"),
    }
)
BINARY: Final = frozenset({"atan2", "fmod", "logaddexp", "maximum", "minimum", "remainder"})
REDUCTIONS: Final = frozenset({"all", "any", "argmax", "argmin", "cumprod", "cumsum", "max", "mean", "min", "prod", "sum"})
SHAPES: Final = frozenset(
    {
        *("broadcast_to", "concat", "diagonal", "expand_dims", "flip", "moveaxis", "permute_dims", "repeat", "reshape"),
        *("stack", "tile", "tril", "triu"),
    }
)
SELECTION: Final = frozenset(
    {"add.at", "argsort", "clip", "nonzero", "searchsorted", "sort", "take", "take_along_axis", "unique", "where"}
)
PRODUCTS: Final = frozenset(
    {
        *("einsum", "matmul", "tensordot", "linalg.cholesky", "linalg.det", "linalg.inv", "linalg.slogdet"),
        *("fft.fftn", "fft.ifftn", "fft.irfft", "fft.rfft"),
    }
)
DESCRIPTION: Final = frozenset({"finfo"})
#: Every function that a kernel may call on the namespace.
FUNCTIONS: Final = frozenset(CREATION | UNARY | BINARY | REDUCTIONS | SHAPES | SELECTION | PRODUCTS | DESCRIPTION)
#: Attributes of arrays that a kernel may read.
ATTRIBUTES: Final = frozenset({"T", "dtype", "imag", "ndim", "real", "shape", "size"})
#: Methods of arrays that a kernel may call.
METHODS: Final = frozenset({"all", "any", "astype", "copy", "max", "min", "reshape", "tolist", "transpose"})
