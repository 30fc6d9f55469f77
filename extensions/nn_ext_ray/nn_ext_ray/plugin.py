"""The plugin module: one engine, described without importing Ray."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from nn_core.ext import CommunicatorInfo, Refusal, hookimpl
from nn_ext_ray.rank import current_rank

PLUGIN_API: Final = 1
REQUIRES_CORE: Final = ">=0.1,<0.2"


def probe() -> Refusal | None:
    """Say why workers cannot meet here."""
    if find_spec("ray") is None:
        return Refusal("ray is not installed: pip install 'ray>=2.50'")
    if current_rank() is None:
        return Refusal("the process is no worker of nn_ext_ray.train")
    return None


@hookimpl
def nn_core_communicators() -> Sequence[CommunicatorInfo]:
    """Return the one engine of this package; workers prefer it to others."""
    return [
        CommunicatorInfo(
            name="ray",
            description="workers of nn_ext_ray.train by Ray's object store",
            target="nn_ext_ray.engine:make",
            families=("CpuCachedArray",),
            probe=probe,
            priority=20,
        )
    ]
