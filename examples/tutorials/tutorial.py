"""The beginning and end of every tutorial: the choice of a backend, and a check of the result."""

import argparse
import sys
from pathlib import Path

import numpy as np

import nn_core as nn
from nn_core.ext_utils import get_extension_context


def parser(description):
    """Return the command line that all tutorials have."""
    arguments = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("-c", "--context", default="cpu", help="backend: cpu, reference, cuda, cudnn, ...")
    arguments.add_argument("-p", "--pictures", type=Path, metavar="FOLDER", help="draw pictures into this folder")
    return arguments


def begin(options):
    """Make the backend of the command line the default, seed everything; returns the folder for pictures or None."""
    nn.set_default_context(get_extension_context(options.context))
    nn.seed(0)
    np.random.seed(0)
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    return options.pictures


def start(description):
    """Read the command line and begin; returns the folder for pictures or None."""
    return begin(parser(description).parse_args())


def expect(what, value, low=-np.inf, high=np.inf):
    """Print a result; end the program with an error when it is not between `low` and `high`."""
    print(f"{what}: {value:.6g}")
    if not low <= value <= high:
        sys.exit(f"expected {what} between {low:g} and {high:g}, got {value:g}")
