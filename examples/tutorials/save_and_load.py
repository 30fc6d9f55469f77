"""Interrupt training, continue in a new process from files, and end exactly where an undisturbed training ends.

    python examples/tutorials/save_and_load.py

Parameters are not all there is: solvers keep states, and the data have an order. With these in files as well, the
resumed training computes the same numbers, bit for bit. The files are replaced only when they are complete, so a
program that is killed while it saves leaves the old ones intact.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from pictures import plot_losses
from tiny_digits import load_digits
from tutorial import begin, expect, parser

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S

BATCH_SIZE = 64
N_STEPS = 100
"""Steps of the whole training; it is interrupted half-way."""


class Training:
    """A graph, a solver, and the steps that were done."""

    def __init__(self):
        digits = load_digits()
        self.images = digits.images[:, None].astype(np.float32) / 16
        self.labels = digits.target[:, None]
        self.x = nn.Variable((BATCH_SIZE, 1, 8, 8))
        self.t = nn.Variable((BATCH_SIZE, 1))
        h = F.relu(PF.convolution(self.x, 16, (3, 3), name="conv"))
        h = F.relu(PF.batch_normalization(PF.affine(h, 64, name="fc1"), name="fc1"))
        self.loss = F.mean(F.softmax_cross_entropy(PF.affine(h, 10, name="fc2"), self.t))
        self.solver = S.Adam()
        self.solver.set_parameters(nn.get_parameters())

    def run(self, first, last):
        """Do the steps from `first` to `last`; returns their losses."""
        losses = []
        for step in range(first, last):
            # The batch follows from the step, so the order of the data needs no file.
            batch = np.random.default_rng(step).integers(len(self.images), size=BATCH_SIZE)
            self.x.d, self.t.d = self.images[batch], self.labels[batch]
            self.loss.forward(clear_no_need_grad=True)
            self.solver.zero_grad()
            self.loss.backward(clear_buffer=True)
            self.solver.update()
            losses.append(float(self.loss.d))
        return losses

    def save(self, folder):
        """Write everything that the training depends on."""
        # get_parameters() names what is trained; the file also has the running means of batch normalization.
        nn.save_parameters(str(folder / "parameters.h5"))
        self.solver.save_states(str(folder / "solver.h5"))

    def load(self, folder):
        """Read what `save` wrote."""
        nn.load_parameters(str(folder / "parameters.h5"))
        self.solver.load_states(str(folder / "solver.h5"))


def digest():
    """All parameters, running means included, as one array."""
    return np.concatenate([parameter.d.ravel() for parameter in nn.get_parameters(grad_only=False).values()])


def main():
    """Train without interruption; train half, save, and let a new process do the rest; compare."""
    arguments = parser(__doc__)
    arguments.add_argument("--resume", type=Path, metavar="FOLDER", help="do the second half from these files")
    options = arguments.parse_args()
    pictures = begin(options)
    training = Training()
    if options.resume:
        training.load(options.resume)
        training.run(N_STEPS // 2, N_STEPS)
        np.save(options.resume / "result.npy", digest())
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = training.run(0, N_STEPS // 2)
        training.save(folder)
        after = training.run(N_STEPS // 2, N_STEPS)
        subprocess.run([sys.executable, __file__, "-c", options.context, "--resume", name], check=True)
        resumed = np.load(folder / "result.npy")
        check_formats(folder)
    if pictures is not None:
        plot_losses([*before, *after], len(before), pictures / "losses.png")
    print(f"loss half-way {before[-1]:.4f}, at the end {after[-1]:.4f}")
    expect("parameters that differ after resuming", np.count_nonzero(resumed != digest()), high=0)
    expect("last loss", after[-1], high=0.5)


def check_formats(folder):
    """Every format holds the same values; a damaged file changes nothing."""
    values = digest()
    for extension in (".h5", ".npz", ".safetensors"):
        path = folder / f"parameters{extension}"
        nn.save_parameters(str(path))
        for parameter in nn.get_parameters(grad_only=False).values():
            parameter.d = 0
        nn.load_parameters(str(path))
        expect(f"values that differ in {extension}", np.count_nonzero(values != digest()), high=0)
        path.write_bytes(path.read_bytes()[:-100])
        try:
            nn.load_parameters(str(path))
        except ValueError as error:
            print("refused:", str(error).replace(str(folder), "..."))
        expect(f"values changed by a damaged {extension}", np.count_nonzero(values != digest()), high=0)


if __name__ == "__main__":
    main()
