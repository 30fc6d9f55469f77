"""Train a generator and a discriminator against each other on scikit-learn's handwritten digits, with a trainer.

A second run continues from the newest checkpoint in the folder -o. Ends with an error when the real images nearest to the
generated ones show fewer than eight digits, or fewer than 90 % are at a distance of up to 2.5 (noise: 3.5, real images: 1.1).
"""

import numpy as np
from command import require, start
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.data import data_iterator_simple
from nn_core.training import Checkpoint, Log, Plot, Progress, Trainer, Updater, every, report

BATCH_SIZE, NOISE, EPOCHS = 64, 16, 120


def generate(noise):
    """Images from noise: (B, NOISE) -> (B, 64), from 0 to 1."""
    with nn.parameter_scope("generator"):
        h = F.relu(PF.affine(F.relu(PF.affine(noise, 128, name="first")), 128, name="second"))
        return F.sigmoid(PF.affine(h, 64, name="pixels"))


def judge(images):
    """Scores of being real: (B, 64) -> (B, 1)."""
    with nn.parameter_scope("discriminator"):
        h = F.leaky_relu(PF.affine(images, 128, name="first"), 0.2)
        h = F.leaky_relu(PF.affine(h, 64, name="second"), 0.2)
        return PF.affine(h, 1, name="score")


class Adversaries(Updater):
    """One step of each: every solver changes its parameters only, and sets their gradients to zero before its loss."""

    def __init__(self, data, real, losses, solvers):
        super().__init__(data, [real], losses["discriminator"], solvers)
        self._losses, self._real = losses, real

    def step(self):
        """Both steps, each on noise of its own."""
        (self._real.d,) = self.next_batch()
        for name, loss in self._losses.items():
            self.solvers[name].zero_grad()
            loss.forward(clear_no_need_grad=True)
            loss.backward(clear_buffer=True)
            self.apply_gradients(self.solvers[name])
            report({name: float(loss.d)}, weight=BATCH_SIZE)


def main():
    """Train, look for real images that are near to generated ones, and compare with what is expected."""
    out = start(__doc__)
    digits = load_digits()
    images = (digits.data / 16.0).astype(np.float32)
    real = nn.Variable((BATCH_SIZE, 64))
    taken_for_real, found_out = judge(real), judge(generate(F.randn(shape=(BATCH_SIZE, NOISE))))
    seen_through = F.mean(F.softplus(-taken_for_real)) + F.mean(F.softplus(found_out))
    losses = {"discriminator": seen_through, "generator": F.mean(F.softplus(-found_out))}
    solvers = {name: S.Adam(5e-4, beta1=0.5) for name in losses}
    for name, solver in solvers.items():
        with nn.parameter_scope(name):
            solver.set_parameters(nn.get_parameters())
    with data_iterator_simple(lambda index: (images[index],), len(images), BATCH_SIZE, shuffle=True) as data:
        trainer = Trainer(Adversaries(data, real, losses, solvers), every(EPOCHS, "epoch"), out)
        trainer.extend(Log(), Plot("generator", "discriminator"), Progress(), Checkpoint())
        trainer.run(resume=True)
    drawn = generate(F.randn(shape=(1000, NOISE), seed=2))
    drawn.forward()
    distances, nearest = NearestNeighbors(n_neighbors=1).fit(images).kneighbors(drawn.d)
    require(len(set(digits.target[nearest[:, 0]])) / 10, 0.8, "the digits are drawn")
    require((distances < 2.5).mean(), 0.9, "the generated images are near a real one")


if __name__ == "__main__":
    main()
