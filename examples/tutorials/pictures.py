"""Pictures of the tutorials, in the style of examples/nn_core.mplstyle."""

from pathlib import Path

import numpy as np

STYLE = Path(__file__).parents[1] / "nn_core.mplstyle"
#: The ground between images, which is neither black nor white.
GROUND = "#D9D9D9"


def new_figure(**options):
    """Return a matplotlib figure and its axes that need no screen."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.style.use(STYLE)
    return plt.subplots(**options)


def plot_stats(digits, path):
    """Draw how many images of each digit there are, and print their number and shape."""
    print(f"{len(digits.images)} images of shape {digits.images.shape[1:]}")
    figure, axis = new_figure(figsize=(6, 3))
    labels, counts = np.unique(digits.target, return_counts=True)
    axis.bar_label(axis.bar(labels, counts, tick_label=labels), padding=2, fontsize="small")
    axis.set(xlabel="digit", ylabel="number of images")
    axis.grid(visible=False)
    figure.savefig(path)


def plot_images(images, path, title, label, cmap=None):
    """Draw images (B, 1, H, W), or the maps of one layer, side by side with gaps, all on one scale.

    Args:
        images: The images.
        path: File to write.
        title: Title of the picture.
        label: Meaning of the values, for the colour bar.
        cmap: Colours, of matplotlib; None: those of the style.
    """
    images = np.asarray(images)[:, 0]
    scale = max(1, 16 // images.shape[2])  # small images would have gaps as wide as themselves
    images = images.repeat(scale, axis=1).repeat(scale, axis=2)
    n_columns = int(np.ceil(np.sqrt(len(images))))
    height, width = images.shape[1:]
    gap = max(1, width // 8)
    sheet = np.full((-(-len(images) // n_columns) * (height + gap) + gap, n_columns * (width + gap) + gap), np.nan)
    for number, image in enumerate(images):
        row, column = divmod(number, n_columns)
        top, left = row * (height + gap) + gap, column * (width + gap) + gap
        sheet[top : top + height, left : left + width] = image
    figure, axis = new_figure(figsize=(5.6, 5))
    shown = _show(axis, sheet, cmap)
    if images.min() < 0:
        shown.set_clim(-np.abs(images).max(), np.abs(images).max())
    figure.colorbar(shown, ax=axis, shrink=0.8, label=label)
    axis.set_title(title)
    figure.savefig(path)


def plot_responses(image, layers, scores, path):
    """Draw the activations of a network for one image.

    Args:
        image: The image, an array of two axes.
        layers: Pairs of a title and the activations of a layer, an array of two axes.
        scores: The scores of the ten digits.
        path: File to write.
    """
    figure, axes = new_figure(nrows=len(layers) + 2, figsize=(4.4, 1.5 * len(layers) + 3.5))
    _show(axes[0], image, "gray_r").axes.set(title="image", anchor="W")
    largest = max(np.abs(values).max() for _, values in layers)
    for axis, (title, values) in zip(axes[1:-1], layers, strict=True):
        shown = _show(axis, values)
        shown.set_clim(-largest, largest)
        axis.set(title=title, anchor="W")
    figure.colorbar(shown, ax=axes[1:-1], label="activation", panchor=False)  # one scale for all layers
    best = int(np.argmax(scores))
    axes[-1].bar(range(10), scores, tick_label=range(10), color=["C1" if digit == best else "C0" for digit in range(10)])
    axes[-1].set(xlabel="digit", ylabel="score", title=f"scores: the network sees a {best}")
    axes[-1].grid(visible=False, axis="x")
    figure.savefig(path)


def plot_losses(losses, interrupted, path):
    """Draw the loss of each step, and where training was interrupted and resumed."""
    figure, axis = new_figure(figsize=(6, 3.2))
    axis.plot(range(1, len(losses) + 1), losses)
    axis.axvline(interrupted + 0.5, color="C1", linestyle="--", linewidth=1.5)
    axis.annotate(
        "saved, and resumed in a new process",
        (interrupted + 0.5, 0.95),
        xytext=(6, 0),
        textcoords="offset points",
        xycoords=("data", "axes fraction"),
        color="C1",
        va="top",
    )
    axis.set(xlabel="step", ylabel="loss", yscale="log", title="The resumed run has the same losses, bit for bit")
    figure.savefig(path)


def plot_points(points, labels, path):
    """Draw points (N, 2) in the plane with their digit, one colour per digit and its name at the middle."""
    figure, axis = new_figure(figsize=(6.5, 5.5))
    colors = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D00", "#7F7F7F", "#6A3D9A")
    for digit, color in enumerate(colors):
        own = points[labels == digit]
        axis.scatter(*own.T, s=9, color=color, alpha=0.55, linewidths=0)
        axis.annotate(
            str(digit),
            np.median(own, axis=0),
            color=color,
            fontsize=14,
            fontweight="bold",
            ha="center",
            va="center",
            bbox={"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": color},
        )
    axis.set(xlabel="first coordinate", ylabel="second coordinate", title="One point per image, named by its digit")
    axis.set_aspect("equal", adjustable="datalim")
    figure.savefig(path)


def _show(axis, values, cmap=None):
    """Return an image on neutral ground, where elements that are NaN stay free."""
    axis.set_facecolor(GROUND)
    axis.grid(visible=False)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.spines[:].set_visible(False)
    return axis.imshow(np.asarray(values), cmap=cmap)
