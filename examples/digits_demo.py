"""Train a convolutional net on scikit-learn's handwritten digits, save it, and predict with it in a new process.

    python examples/digits_demo.py                 train, save, reload, draw
    python examples/digits_demo.py -c cudnn        the same on another backend
    python examples/digits_demo.py --predict FILE  print the accuracy of saved parameters on the held-out images

Writes parameters.h5, learning_curve.png and predictions.png to demo_output/ and ends with an error when fewer than
98 % of the held-out images are recognised, or when the reloaded net predicts differently.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.ext_utils import get_extension_context

BATCH_SIZE = 64
REQUIRED_ACCURACY = 0.98


def load_images():
    """Training and held-out images (N, 1, 8, 8) in [0, 1] with labels (N, 1)."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, None]
    labels = digits.target[:, None]
    return train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)


def network(x, test=False):
    """Three convolutions with batch normalization, and a classifier: (B, 1, 8, 8) -> (B, 10)."""
    h = x
    for i, maps in enumerate((32, 64, 64)):
        with nn.parameter_scope(f"conv{i + 1}"):
            h = PF.convolution(h, maps, (3, 3), pad=(1, 1), with_bias=False)
            h = F.relu(PF.batch_normalization(h, batch_stat=not test))
        if i > 0:
            h = F.max_pooling(h, (2, 2))
    if not test:
        h = F.dropout(h, 0.3)
    return PF.affine(h, 10, name="classifier")


def predict(images):
    """Class probabilities (N, 10) of the images."""
    x = nn.Variable((len(images), 1, 8, 8))
    y = F.softmax(network(x, test=True))
    x.d = images
    y.forward(clear_buffer=True)
    return y.d.copy()


def accuracy(images, labels):
    """Share of the images that are recognised."""
    return float(np.mean(np.argmax(predict(images), axis=1) == labels[:, 0]))


def train(images, labels, held_out_images, held_out_labels, epochs):
    """Train from scratch; gives the mean loss and the held-out accuracy of each epoch."""
    x = nn.Variable((BATCH_SIZE, 1, 8, 8))
    t = nn.Variable((BATCH_SIZE, 1))
    loss = F.mean(F.softmax_cross_entropy(network(x), t))
    solver = S.Adam(alpha=2e-3)
    solver.set_parameters(nn.get_parameters())
    rng = np.random.default_rng(0)
    steps = len(images) // BATCH_SIZE
    losses, accuracies = [], []
    with tqdm(total=epochs * steps, desc="training", unit="step") as bar:
        for epoch in range(epochs):
            solver.set_learning_rate(2e-3 * 0.5 * (1 + np.cos(np.pi * epoch / epochs)))
            order = rng.permutation(len(images))
            total = 0.0
            for step in range(steps):
                batch = order[step * BATCH_SIZE : (step + 1) * BATCH_SIZE]
                x.d, t.d = images[batch], labels[batch]
                loss.forward(clear_no_need_grad=True)
                solver.zero_grad()
                loss.backward(clear_buffer=True)
                solver.weight_decay(1e-4)
                solver.update()
                total += float(loss.d)
                bar.update()
            losses.append(total / steps)
            accuracies.append(accuracy(held_out_images, held_out_labels))
            bar.set_postfix(loss=f"{losses[-1]:.4f}", held_out=f"{accuracies[-1]:.2%}")
    return losses, accuracies


def draw_curve(path, losses, accuracies):
    """Return the learning curves: loss and errors, each with its own axis."""
    figure, axes = _pyplot().subplots(nrows=2, sharex=True, figsize=(6.5, 5))
    epochs = range(1, len(losses) + 1)
    errors = [100 * (1 - a) for a in accuracies]
    for axis, values, color, name in zip(
        axes, (losses, errors), ("C0", "C1"), ("training loss", "held-out errors in %"), strict=True
    ):
        axis.plot(epochs, values, color=color, marker=".")
        axis.set_ylabel(name, color=color)
        axis.annotate(
            f"{values[-1]:.2g}", (epochs[-1], values[-1]), xytext=(6, 0), textcoords="offset points", color=color, va="center"
        )
    axes[0].set(yscale="log", title="Learning curves")
    # linear below 1 %, so that 0 has a place; logarithmic above, so that the first epoch does not flatten the others
    axes[1].set_yscale("symlog", linthresh=1)
    axes[1].set(xlabel="epoch", ylim=(0, 100), yticks=(0, 1, 10, 100), yticklabels=("0", "1", "10", "100"))
    figure.savefig(path)


def draw_predictions(path, images, labels, n_columns=10, n_rows=4):
    """Held-out images with what the network sees in them, the least certain ones first, errors with the true digit."""
    probabilities = predict(images)
    order = np.argsort(probabilities.max(axis=1))[: n_columns * n_rows]
    figure, axes = _pyplot().subplots(n_rows, n_columns, figsize=(n_columns, 1.35 * n_rows))
    for axis, index in zip(axes.flat, order, strict=True):
        guess, truth = int(np.argmax(probabilities[index])), int(labels[index, 0])
        axis.imshow(images[index, 0], cmap="gray_r")
        is_right = guess == truth
        certainty = f"{probabilities[index, guess]:.0%}"
        title = f"{guess}  {certainty}" if is_right else f"{guess}, is {truth}  {certainty}"
        axis.set_title(
            title, fontsize=8, loc="center", color="#333333" if is_right else "C1", weight="normal" if is_right else "bold"
        )
        axis.set(xticks=[], yticks=[])
        axis.grid(visible=False)
        axis.spines[:].set(visible=True, color="#D9D9D9" if is_right else "C1", linewidth=1 if is_right else 2)
    figure.suptitle("The least certain predictions: digit and probability; errors in orange", fontsize=10)
    figure.savefig(path)


def _pyplot():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.style.use(Path(__file__).with_name("nn_core.mplstyle"))
    return plt


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--context", default="cpu", help="backend: cpu, cuda, cudnn, ...")
    parser.add_argument("-o", "--output", type=Path, default=Path("demo_output"))
    parser.add_argument("-e", "--epochs", type=int, default=15)
    parser.add_argument("--predict", type=Path, metavar="FILE", help="only measure saved parameters")
    options = parser.parse_args()
    nn.set_default_context(get_extension_context(options.context))
    images, held_out_images, labels, held_out_labels = load_images()
    if options.predict:
        nn.load_parameters(str(options.predict))
        print(accuracy(held_out_images, held_out_labels))
        return
    nn.seed(0)
    start = time.perf_counter()
    losses, accuracies = train(images, labels, held_out_images, held_out_labels, options.epochs)
    seconds = time.perf_counter() - start
    options.output.mkdir(parents=True, exist_ok=True)
    parameters = options.output / "parameters.h5"
    nn.save_parameters(str(parameters))
    draw_curve(options.output / "learning_curve.png", losses, accuracies)
    draw_predictions(options.output / "predictions.png", held_out_images, held_out_labels)
    command = [sys.executable, __file__, "-c", options.context, "--predict", str(parameters)]
    reloaded = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(f"trained on {len(images)} images in {seconds:.1f} s on backend {options.context!r}")
    print(f"held-out accuracy {accuracies[-1]:.2%}, after reloading in a new process {reloaded:.2%}")
    print(f"see {options.output}/learning_curve.png, predictions.png, parameters.h5")
    if reloaded != accuracies[-1] or reloaded < REQUIRED_ACCURACY:
        sys.exit(f"expected at least {REQUIRED_ACCURACY:.0%}, the same before and after reloading")


if __name__ == "__main__":
    main()
