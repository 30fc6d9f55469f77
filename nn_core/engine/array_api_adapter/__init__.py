"""Any array library under the array contract: mutable arrays with views over values that never change.

`AdaptedBackend` makes a backend of a library that follows the Python array API standard (PyTorch through array-api-compat,
JAX, array_api_strict). docs/array_contract.md says what the library has to bring.
"""

from nn_core.engine.array_api_adapter.backend import AdaptedBackend as AdaptedBackend

__all__ = ["AdaptedBackend"]
