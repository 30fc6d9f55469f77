"""Draw where networks of different sizes change their mind, and what they do beyond their data.

    python examples/tutorials/decision_boundaries.py --pictures pictures

Two classes lie in half circles that reach into each other. A network without a hidden layer can only divide the plane by a
straight line. Hidden units with relu bend it, one corner each at most; too many of them on noisy samples bend it around
single points, and accuracy on new samples falls behind that on the training set.
"""

import numpy as np
from pictures import new_figure
from sklearn.datasets import make_moons
from tutorial import expect, start

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.training import fit

#: Numbers of hidden units of the networks.
SIZES = (0, 6, 128)


def trained(n_hidden, samples):
    """Return a trained network with `n_hidden` hidden units, or none."""

    def network(x):
        h = F.relu(PF.affine(x, n_hidden, name="hidden")) if n_hidden else x
        return PF.affine(h, 2, name="scores")

    with nn.parameter_scope("", {}):
        return fit(network, samples, epochs=150, batch_size=len(samples[0]), solver=S.Adam(0.05), seed=0, progress=False)


def plot_boundaries(results, samples, path):
    """Draw the probability of the second class over the plane for each network, with the samples."""
    x, t = samples
    across, up = np.meshgrid(np.linspace(-2, 3, 100), np.linspace(-1.5, 2, 70))
    plane = np.stack([across.ravel(), up.ravel()], axis=1).astype(np.float32)
    figure, axes = new_figure(ncols=len(results), figsize=(4 * len(results), 3.2), sharey=True)
    for axis, (n_hidden, result) in zip(axes, results.items(), strict=True):
        scores = result.predict(plane)
        probability = 1 / (1 + np.exp(scores[:, 0] - scores[:, 1]))
        axis.contourf(across, up, probability.reshape(across.shape), levels=11, cmap="RdBu", alpha=0.7)
        axis.contour(across, up, probability.reshape(across.shape), levels=[0.5], colors="black")
        axis.scatter(*x.T, c=t, cmap="RdBu", edgecolors="black", s=12, linewidths=0.5)
        axis.set(title=f"{n_hidden} hidden units" if n_hidden else "no hidden layer", xlabel="first coordinate")
    axes[0].set(ylabel="second coordinate")
    figure.savefig(path)


def main():
    """Train networks of different sizes on the same samples, and compare them on new ones."""
    pictures = start(__doc__)

    def moons(n, seed):
        x, t = make_moons(n, noise=0.3, random_state=seed)
        return x.astype(np.float32), t

    samples, new = moons(100, 0), moons(1000, 1)
    results = {n_hidden: trained(n_hidden, samples) for n_hidden in SIZES}
    found = {n: (result.evaluate(samples)["accuracy"], result.evaluate(new)["accuracy"]) for n, result in results.items()}
    for n_hidden, (own, others) in found.items():
        print(f"{n_hidden} hidden units: {own:.3f} of the training samples, {others:.3f} of new ones")
    expect("accuracy of a straight line", found[0][1], high=0.9)
    expect("accuracy with a few hidden units", found[6][1], low=0.86)
    expect("accuracy of many, on their training samples", found[128][0], low=0.96)
    expect("how much less it is on new samples", found[128][0] - found[128][1], low=0.05)
    if pictures is not None:
        plot_boundaries(results, samples, pictures / "boundaries.png")


if __name__ == "__main__":
    main()
