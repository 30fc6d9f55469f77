"""Whether CuPy and the CUDA driver can be used here: found out in milliseconds, without importing CuPy."""

import ctypes
import os
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from nn_ext_cuda.device.toolkit import NVRTC_PACKAGES, Toolkit

#: Packages that bring the module cupy, with the major version of CUDA that each was built for (0: the user built it).
CUPY_PACKAGES: Final = {"cupy-cuda12x": 12, "cupy-cuda13x": 13, "cupy-cuda11x": 11, "cupy": 0}
#: The oldest driver that runs what was built for a major version of CUDA.
MINIMUM_DRIVERS: Final = {11: "450.80", 12: "525.60", 13: "580.65"}

_SUCCESS: Final = 0
_NO_DEVICE: Final = 100


class Driver:
    """The CUDA driver, as far as the question goes whether there is a device.

    Args:
        library: Name of the shared library.
    """

    def __init__(self, library: str = "libcuda.so.1") -> None:
        try:
            self._library: ctypes.CDLL | None = ctypes.CDLL(library)
        except OSError:
            self._library = None

    @property
    def is_installed(self) -> bool:
        """Whether the library of the driver could be loaded."""
        return self._library is not None

    def cuda_version(self) -> tuple[int, int]:
        """Return the newest CUDA that the driver runs, as (major, minor)."""
        number = ctypes.c_int(0)
        if self._library is not None:
            self._library.cuDriverGetVersion(ctypes.byref(number))
        return number.value // 1000, number.value % 1000 // 10

    def device_count(self) -> tuple[int, int]:
        """Return (number of devices, status of the driver); a status other than 0 says why there are none."""
        count = ctypes.c_int(0)
        if self._library is None:
            return 0, _NO_DEVICE
        status = self._library.cuInit(0) or self._library.cuDeviceGetCount(ctypes.byref(count))
        return count.value, status


def installed_cupy() -> list[str]:
    """Names of the installed packages that bring the module cupy."""
    return [name for name in CUPY_PACKAGES if _version_of(name)]


def why_not(packages: Sequence[str], driver: Driver, toolkit: Callable[[int], Toolkit] = Toolkit) -> str | None:
    """Why CUDA cannot be used with these packages and this driver, or None.

    Args:
        packages: Names of the installed packages that bring CuPy.
        driver: The CUDA driver.
        toolkit: Finds what compiles kernels for a major version of CUDA.
    """
    if not packages:
        return f"CuPy is not installed: pip install nn-ext-cuda[{_extra(driver)}]"
    if len(packages) > 1:
        names = " and ".join(packages)
        remedy = f"pip uninstall {' '.join(packages)}, then pip install nn-ext-cuda[{_extra(driver)}]"
        return f"two CuPys are installed and overwrite each other, {names}: {remedy}"
    if not driver.is_installed:
        return "no CUDA driver was found (libcuda.so.1): install the driver of NVIDIA; pip cannot"
    built_for = CUPY_PACKAGES[packages[0]]
    runs = driver.cuda_version()
    if runs[0] < built_for:
        return (
            f"the CUDA driver is too old: {packages[0]} needs driver {MINIMUM_DRIVERS[built_for]} or newer, "
            f"got one that runs CUDA up to {runs[0]}.{runs[1]}"
        )
    return _no_device(driver) or (toolkit(built_for).lacks(packages[0]) if built_for in NVRTC_PACKAGES else None)


def _no_device(driver: Driver) -> str | None:
    """Why there is no device, or None."""
    count, status = driver.device_count()
    if status not in (_SUCCESS, _NO_DEVICE):
        return f"the CUDA driver does not start: cuInit gave error {status}"
    if count:
        return None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "no CUDA device" + ("" if visible is None else f", with CUDA_VISIBLE_DEVICES={visible!r}")


def _extra(driver: Driver) -> str:
    return "cuda12" if driver.cuda_version()[0] == 12 else "cuda13"


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
