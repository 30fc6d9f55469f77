"""The library in C; where there is no compiler the package is installed without it."""

import os

from setuptools import Extension, setup

FLAGS = [] if os.name == "nt" else ["-O3", "-g0", "-fvisibility=hidden"]  # -g0: no paths, so that builds give the same bytes

setup(
    ext_modules=[
        Extension("nn_ext_contrib._native", ["src/ctc.c"], extra_compile_args=FLAGS, py_limited_api=True, optional=True)
    ],
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
