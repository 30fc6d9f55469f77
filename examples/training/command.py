"""The common part of the examples of training: the command line, and the comparison with expected results."""

import argparse
from pathlib import Path

import nn_core as nn
from nn_core.ext_utils import get_extension_context


def start(description: str, precision: str = "float") -> Path:
    """Read the arguments, choose the backend, seed; the folder for what the training writes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--context", default="cpu", help="the backend")
    parser.add_argument("-o", "--out", type=Path, default=Path("result"), help="folder for the log, curves and checkpoints")
    arguments = parser.parse_args()
    nn.set_default_context(get_extension_context(arguments.context, type_config=precision))
    nn.seed(1)
    return arguments.out


def require(reached: float, required: float, what: str) -> None:
    """Print a result; an error when it is less than required."""
    print(f"{reached:.2%} of {what}")
    if reached < required:
        raise SystemExit(f"expected at least {required:.0%}")
