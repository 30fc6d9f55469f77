"""Data sets for the detection of objects, with the places that NNabla 1.39 gives boxes; and lists of functions."""

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from nn_core.__main__ import main
from nn_ext_nnp.commands.detection import cluster_sizes, targets

SIZE = ("-c", 3, "-w", 32, "-g", 32, "-s", "false", "-f1", "a.csv")


def run(*args, code=0):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    return result.output


def pictures(folder, boxes, sizes=((32, 32),)):
    folder.mkdir()
    for number, lines in enumerate(boxes):
        height, width = sizes[number % len(sizes)]
        Image.fromarray(np.full((height, width, 3), 200, np.uint8)).save(folder / f"p{number}.png")
        (folder / f"p{number}.txt").write_text("\n".join(lines) + "\n")
    return folder


def detection(source, out, *more, code=0, mode="padding"):
    return run("create_object_detection_dataset", "-i", source, "-o", out, "-m", mode, *SIZE, *more, code=code)


def read(folder, name):
    return np.loadtxt(folder / "data" / name, delimiter=",", ndmin=2)


def test_boxes_are_in_the_cell_of_their_centre(tmp_path):
    boxes = [["0 0.5 0.5 0.2 0.2"], ["1 0.3 0.8 0.6 0.6"], ["0 0.1 0.1 0.6 0.6", "1 0.9 0.2 0.2 0.2"]]
    source = pictures(tmp_path / "in", boxes)
    text = detection(source, tmp_path / "out", "-n", 2, "-a", 1, "-d", 8)
    assert text == "3 images with 4 boxes, 0 left out for others with the same cell and anchor\n"
    table = (tmp_path / "out" / "a.csv").read_text().splitlines()
    assert table[:2] == ["x:image,y:label,r:region", "./data/p0.png,./data/p0_label.csv,./data/p0_region.csv"]
    ((width, height),) = np.loadtxt(tmp_path / "out" / "anchors.csv", delimiter=",", ndmin=2) / 32
    # Boxes are clipped to the image: 0.6 at 0.8 is 0.5 at 0.75, and 0.6 at 0.1 is 0.4 at 0.2.
    np.testing.assert_allclose([width, height], [(0.2 + 0.6 + 0.4 + 0.2) / 4, (0.2 + 0.5 + 0.4 + 0.2) / 4], atol=1e-6)
    labels = [read(tmp_path / "out", f"p{n}_label.csv") for n in range(3)]
    assert [array.shape for array in labels] == [(4, 4)] * 3
    assert [np.argwhere(array >= 0).tolist() for array in labels] == [[[2, 2]], [[3, 1]], [[0, 0], [0, 3]]]
    assert labels[1][3, 1] == 1 and labels[2][0].tolist() == [0, -1, -1, 1]
    regions = read(tmp_path / "out", "p1_region.csv").reshape(4, 4, 4)
    np.testing.assert_allclose(regions[3, 1], [0.2, 0.0, np.log(0.6 / width), np.log(0.5 / height)], atol=1e-5)
    assert np.count_nonzero(regions) == 3
    regions = read(tmp_path / "out", "p2_region.csv").reshape(4, 4, 4)
    np.testing.assert_allclose(regions[0, 0], [0.8, 0.8, np.log(0.4 / width), np.log(0.4 / height)], atol=1e-5)
    np.testing.assert_allclose(regions[0, 3], [0.6, 0.8, np.log(0.2 / width), np.log(0.2 / height)], atol=1e-5)


@pytest.mark.parametrize(("mode", "cell", "left"), [("padding", [1, 1], 2), ("trimming", [1, 0], 1)])
def test_boxes_follow_their_image(mode, cell, left, tmp_path):
    boxes = [["0 0.3 0.3 0.2 0.2"], ["0 0.02 0.5 0.02 0.2", "0 0.5 0.5 0.2 0.2"]]
    source = pictures(tmp_path / "in", boxes, sizes=((20, 40),))
    detection(source, tmp_path / "out", "-n", 1, "-a", 1, "-d", 8, mode=mode)
    # Padding adds ten rows above and below; trimming cuts ten columns on each side, and with them a part of the first box.
    assert np.argwhere(read(tmp_path / "out", "p0_label.csv") == 0).tolist() == [cell]
    assert np.count_nonzero(read(tmp_path / "out", "p1_label.csv") == 0) == left


def test_boxes_in_one_cell_get_anchors_of_their_own():
    boxes = np.array([[0, 0.5, 0.5, 0.2, 0.2], [1, 0.5, 0.5, 0.2, 0.2], [2, 0.5, 0.5, 0.2, 0.2]])
    labels, _, missed = targets(boxes, np.array([[0.2, 0.2], [0.9, 0.9]]), (1, 1))
    assert labels.tolist() == [[0], [1]] and missed == 1


def test_anchors_are_the_means_of_clusters():
    rng = np.random.default_rng(0)
    sizes = np.concatenate([rng.normal(center, 0.01, (20, 2)) for center in (0.1, 0.3, 0.8)])
    np.testing.assert_allclose(cluster_sizes(sizes, 3), [[0.1] * 2, [0.3] * 2, [0.8] * 2], atol=0.01)


@pytest.mark.parametrize(("boxes", "more", "message"), [
    (["2 0.5 0.5 0.2 0.2"], ("-a", 1, "-d", 8), "p0.txt, line 1: the class must be a number below 2, got 2"),
    (["0 0.5 0.5 0.2"], ("-a", 1, "-d", 8), "line 1: must have a class, x, y, and a positive width and height"),
    (["0 0.5 0.5 0.2 x"], ("-a", 1, "-d", 8), "line 1: must have numbers"),
    (["0 0.5 0.5 0.2 0.2"], ("-a", 2, "-d", 8), "--num_anchor must be at most the number of boxes"),
    (["0 0.5 0.5 0.2 0.2"], ("-a", 1, "-d", 7), "--grid_size must divide the width and the height, got 7 for 32 and 32"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(boxes, more, message, tmp_path):
    source = pictures(tmp_path / "in", [boxes])
    assert message in detection(source, tmp_path / "out", "-n", 2, *more, code=1)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["create_object_detection_dataset", "function_info"])
def test_help_has_an_example(name):
    assert f"Example: nn-core {name} " in " ".join(run(name, "--help").split())
    run(name, "--nothing", code=2)


def test_functions_are_listed(tmp_path):
    text = "".join(f'function {{ name: "{n}" type: "{n}" }}' for n in ("Exp", "ReLU"))
    (tmp_path / "a.nntxt").write_text(f'network {{ name: "n" {text} }}')
    assert run("function_info", tmp_path / "a.nntxt") == "Exp\nReLU\n"
    assert run("function_info", "-x", "Exp", tmp_path / "a.nntxt") == "ReLU\n"
    assert len(run("function_info").splitlines()) == 228
    run("function_info", "-f", "NNB", "-o", tmp_path / "list.txt")
    nnb = (tmp_path / "list.txt").read_text().splitlines()
    assert len(nnb) == 212 and "Mish" not in nnb
    first = run("function_info", "--api", 1).splitlines()
    assert "Affine_i" in first and "Abs_Empty" in first and "Convolution_iiIiIiIiB" not in first
    assert "identifier 265, API level 4, settings iiIiIiIiB" in run("function_info", "-q", "Convolution")
    assert "NNB: not written" in run("function_info", "-q", "Mish")
    assert "--query must name a function" in run("function_info", "-q", "x", code=1)
    assert "--exclude must name functions" in run("function_info", "-x", "x", code=1)
