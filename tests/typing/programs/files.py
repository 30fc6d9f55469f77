"""Files."""

import tempfile
from pathlib import Path

import nn_core as nn
import nn_core.parametric_functions as PF

y = PF.affine(nn.Variable((2, 3)), 4, name="saved")
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "net.h5"
    nn.save_parameters(str(path))
    nn.load_parameters(path)
