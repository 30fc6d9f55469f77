"""Importing the package brings nothing heavy."""

import subprocess
import sys

import nn_core.training


def test_nothing_heavy_is_imported_before_it_is_used():
    program = """
import sys
from nn_core.training import Trainer, Plot, Progress, fit
heavy = {"matplotlib", "tqdm", "tensorboardX", "h5py", "PIL"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_name_is_there():
    for name in nn_core.training.__all__:
        assert getattr(nn_core.training, name) is not None
    assert set(nn_core.training.__all__) <= set(dir(nn_core.training))
    assert not hasattr(nn_core.training, "nothing")
