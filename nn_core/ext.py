"""The one door for authors of plugins: everything that a backend or an operator package needs, and nothing else.

docs/plugins.md walks through a plugin; examples/plugin_minimal and examples/plugin_backend are complete ones.
"""

from nn_core.context import Context as Context
from nn_core.dispatch.hookspecs import BackendInfo as BackendInfo
from nn_core.dispatch.hookspecs import FunctionPackage as FunctionPackage
from nn_core.dispatch.hookspecs import hookimpl as hookimpl
from nn_core.dispatch.plugins import forget_prepared as forget_prepared
from nn_core.errors import ArgumentError as ArgumentError
from nn_core.errors import BackendNotFoundError as BackendNotFoundError
from nn_core.errors import BackendUnavailableError as BackendUnavailableError
from nn_core.errors import DTypeError as DTypeError
from nn_core.errors import NNCoreError as NNCoreError
from nn_core.errors import PluginError as PluginError
from nn_core.errors import ShapeError as ShapeError
from nn_core.reference.registry import kernel as kernel
from nn_core.rules.registry import GradientCall as GradientCall
from nn_core.rules.registry import gradient as gradient
from nn_core.rules.registry import shape_rule as shape_rule
from nn_core.settings import WHEN_SWITCHED as WHEN_SWITCHED
from nn_core.settings import is_enabled as is_enabled
from nn_core.settings import settings as settings
from nn_core.spec.model import FunctionSpec as FunctionSpec
from nn_core.synced import dtype_of as dtype_of
from nn_core.typing import Array as Array
from nn_core.typing import ArrayDesc as ArrayDesc
from nn_core.typing import Backend as Backend
from nn_core.typing import Call as Call
from nn_core.typing import Kernel as Kernel
from nn_core.typing import Namespace as Namespace
from nn_core.typing import Refusal as Refusal
from nn_core.typing import Runner as Runner
from nn_core.typing import Shape as Shape
from nn_core.typing import Step as Step

__all__ = [
    "WHEN_SWITCHED",
    "ArgumentError",
    "Array",
    "ArrayDesc",
    "Backend",
    "BackendInfo",
    "BackendNotFoundError",
    "BackendUnavailableError",
    "Call",
    "Context",
    "DTypeError",
    "FunctionPackage",
    "FunctionSpec",
    "GradientCall",
    "Kernel",
    "NNCoreError",
    "Namespace",
    "PluginError",
    "Refusal",
    "Runner",
    "Shape",
    "ShapeError",
    "Step",
    "dtype_of",
    "gradient",
    "hookimpl",
    "is_enabled",
    "kernel",
    "settings",
    "shape_rule",
]
