"""Samples of the functions of the core, one file for each topic."""

from importlib import import_module
from importlib.util import find_spec

from nn_core.operators.spec.model import TOPICS

for _topic in TOPICS:
    if find_spec(f"{__name__}.{_topic}") is not None:
        import_module(f"{__name__}.{_topic}")
