"""Commands that make data sets, with tables and pixels as NNabla 1.39 makes them, and commands that draw."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from nn_core.__main__ import main
from nn_core.utils.data_iterator import data_iterator_cache, data_iterator_csv_dataset

CONFIG = Path(__file__).with_name("data") / "convnet_protobuf.nnp"
NAMES = ("conv_dataset", "create_image_classification_dataset", "plot_series", "plot_timer", "draw_graph")


def run(*args, code=0):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("name", NAMES)
def test_help_has_an_example(name):
    assert f"Example: nn-core {name} " in " ".join(run(name, "--help").split())
    run(name, "--nothing", code=2)


def pictures(folder, sizes=((20, 41), (30, 20), (7, 12)), classes=("dog", "cat")):
    rng = np.random.default_rng(1)
    for name in classes:
        (folder / name).mkdir(parents=True)
        for n, (height, width) in enumerate(sizes):
            Image.fromarray(rng.integers(0, 256, (height, width, 3)).astype(np.uint8)).save(folder / name / f"{n}.png")
    return folder


def classification(source, out, *more, code=0, mode="trimming"):
    size = ("-c", 3, "-w", 12, "-g", 8, "-m", mode)
    return run("create_image_classification_dataset", "-i", source, "-o", out, *size, *more, code=code)


def lines(path):
    return list(csv.reader(path.read_text().splitlines()))


def test_images_are_listed_with_the_numbers_of_their_classes(tmp_path):
    source = pictures(tmp_path / "in")
    (source / "cat" / "note.txt").write_text("no image")
    text = classification(source, tmp_path / "out", "-s", "false", "-f1", "a.csv", "-r1", 70, "-f2", "b.csv", "-r2", 30)
    assert text == "6 images of 2 classes\n"
    assert lines(tmp_path / "out" / "a.csv") == [
        ["x:image", "y:label"], ["./cat/0.png", "0"], ["./cat/1.png", "0"], ["./cat/2.png", "0"], ["./dog/0.png", "1"],
    ]  # fmt: skip
    assert lines(tmp_path / "out" / "b.csv")[1:] == [["./dog/1.png", "1"], ["./dog/2.png", "1"]]
    with data_iterator_csv_dataset(tmp_path / "out" / "a.csv", 4, use_thread=False, with_file_cache=False) as iterator:
        assert iterator.next()[0].shape == (4, 3, 8, 12)


@pytest.mark.parametrize(("mode", "boxes"), [
    ("trimming", [(5, 0, 36, 20), (0, 8, 20, 22), (1, 0, 11, 7)]),
    ("padding", [(0, -3, 41, 24), (-12, 0, 33, 30), (0, 0, 12, 8)]),
])  # fmt: skip
def test_pixels_are_those_of_the_cut_or_padded_image_resized(mode, boxes, tmp_path):
    source = pictures(tmp_path / "in", classes=("cat",))
    classification(source, tmp_path / "out", "-s", "true", "-f1", "a.csv", mode=mode)
    for n, box in enumerate(boxes):
        expected = Image.open(source / "cat" / f"{n}.png").crop(box).resize((12, 8), Image.Resampling.BILINEAR)
        np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "out" / "cat" / f"{n}.png")), np.asarray(expected))


def test_images_with_one_name_stay_two(tmp_path):
    source = pictures(tmp_path / "in", sizes=((8, 12),), classes=("cat",))
    Image.open(source / "cat" / "0.png").save(source / "cat" / "0.bmp")
    classification(source, tmp_path / "out", "-s", "true", "-f1", "a.csv")
    assert sorted(row[0] for row in lines(tmp_path / "out" / "a.csv")[1:]) == ["./cat/0.png", "./cat/0.png.png"]


@pytest.mark.parametrize(("more", "message"), [
    (("-r1", 70), "--ratio1 must be 100 without --file2, got 70.0 and --ratio2 None"),
    (("-r1", 70, "-f2", "b.csv", "-r2", 20), "--ratio1 and --ratio2 must add up to 100, got 70 and 20.0"),
    (("-f2", "a.csv"), "--file1 and --file2 must be different, got a.csv for both"),
])  # fmt: skip
def test_shares_that_do_not_fit_are_refused(more, message, tmp_path):
    source = pictures(tmp_path / "in")
    assert message in classification(source, tmp_path / "out", "-s", "true", "-f1", "a.csv", *more, code=1)
    assert not (tmp_path / "out").exists()


def test_folders_without_images_are_refused(tmp_path):
    (tmp_path / "in").mkdir()
    assert "must have folders with images, got 0 folders" in classification(
        tmp_path / "in", tmp_path / "out", "-s", "true", "-f1", "a.csv", code=1
    )
    message = classification(pictures(tmp_path / "in2"), tmp_path / "in2", "-s", "true", "-f1", "a.csv", code=1)
    assert "OUTDIR must not be SOURCEDIR" in message


def table(folder, rows=5):
    (folder / "data.csv").write_text("x__0,x__1,y\n" + "".join(f"{n},{n + 0.5},{n * 2}\n" for n in range(rows)))
    return folder / "data.csv"


def samples(cache):
    with data_iterator_cache(cache, 5, use_thread=False) as iterator:
        return [array.tolist() for array in iterator.next()]


def test_tables_become_caches_and_caches_become_others(tmp_path):
    assert run("conv_dataset", table(tmp_path), tmp_path / "a.cache") == "5 samples\n"
    expected = [[[n, n + 0.5] for n in range(5)], [[n * 2] for n in range(5)]]
    assert samples(tmp_path / "a.cache") == expected
    assert lines(tmp_path / "a.cache" / "original.csv")[0] == ["x__0", "x__1", "y"]
    assert run("conv_dataset", "-S", tmp_path / "a.cache", tmp_path / "b.cache") == "5 samples\n"
    drawn = samples(tmp_path / "b.cache")
    assert drawn != expected and sorted(drawn[1]) == expected[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.cache", "b.cache", "data.csv"]


def test_normalized_images_reach_from_0_to_1(tmp_path):
    pictures(tmp_path / "in", sizes=((4, 4),), classes=("cat",))
    (tmp_path / "data.csv").write_text("x:image\nin/cat/0.png\n")
    run("conv_dataset", tmp_path / "data.csv", tmp_path / "a.cache")
    run("conv_dataset", "-N", tmp_path / "data.csv", tmp_path / "b.cache")
    plain, scaled = (np.load(tmp_path / name / "cache_00000000_00000000.npy") for name in ("a.cache", "b.cache"))
    assert plain.dtype == np.uint8 and scaled.dtype == np.float32
    np.testing.assert_allclose(scaled, plain / 255, rtol=1e-6)


def test_only_caches_are_replaced(tmp_path):
    source = table(tmp_path)
    run("conv_dataset", source, tmp_path / "a.cache")
    assert "DESTINATION must be new without --force" in run("conv_dataset", source, tmp_path / "a.cache", code=1)
    table(tmp_path, rows=3)
    assert run("conv_dataset", "-F", source, tmp_path / "a.cache") == "3 samples\n"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    message = run("conv_dataset", "-F", source, tmp_path / "other", code=1)
    assert "--force must replace a cache, got" in message and (tmp_path / "other" / "letter.txt").exists()
    source.write_text("x\n1\nno number\n")
    run("conv_dataset", "-F", source, tmp_path / "a.cache", code=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.cache", "data.csv", "other"]
    message = run("conv_dataset", "-F", tmp_path / "a.cache", tmp_path / "a.cache", code=1)
    assert "must be another folder than SOURCE" in message


def test_curves_of_monitors_are_plotted(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "loss.series.txt").write_text("9 1.5\n19 0.5\n")
    (tmp_path / "epoch.timer.txt").write_text("9 1.5 10 1.5\n19 0.5 10 2.0\n")
    drawn = ("-x", "a", "-y", "b", "-t", "c", "-l", "d", "-T", 2, "-B", 0, "-R", 30, "-L", 1)
    run("plot_series", *drawn, "-o", tmp_path / "a.svg", tmp_path / "loss.series.txt")
    run("plot_timer", *drawn, "-e", "-u", "m", "-o", tmp_path / "b.png", tmp_path / "epoch.timer.txt")
    assert "<svg" in (tmp_path / "a.svg").read_text() and (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
    assert ".xyz" in run("plot_series", "-o", tmp_path / "a.xyz", tmp_path / "loss.series.txt", code=1)
    two = run("plot_series", "-l", "a", "-l", "b", "-o", tmp_path / "c.png", tmp_path / "loss.series.txt", code=1)
    assert "--label must be given once for each of the 1 files, got 2" in two
    (tmp_path / "loss.series.txt").write_text("words\n")
    bad = run("plot_series", "-o", tmp_path / "c.png", tmp_path / "loss.series.txt", code=1)
    assert "loss.series.txt: must have lines of numbers" in bad
    assert not (tmp_path / "c.png").exists()


def test_plots_need_matplotlib(tmp_path, monkeypatch):
    (tmp_path / "loss.series.txt").write_text("9 1.5\n")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refused = run("plot_series", "-o", tmp_path / "a.svg", tmp_path / "loss.series.txt", code=1)
    assert "matplotlib must be installed" in refused and "hint: pip install 'nn-ext-nnp[plots]'" in refused


def test_networks_are_drawn_one_file_each(tmp_path):
    run("draw_graph", "-f", "html", "-o", tmp_path / "out", CONFIG)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["net.html", "train.html"]
    assert "Convolution" in (tmp_path / "out" / "net.html").read_text()
    run("draw_graph", "-f", "dot", "-n", "train", "-o", tmp_path / "one", CONFIG)
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["train.dot"]
    assert "--network must be one of ['net', 'train'], got 'x'" in run("draw_graph", "-n", "x", CONFIG, code=1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (r"a\000b", "must stay below its folder"), (r"a\nb", "has the character '\\n'"), ("L" * 300, "longer than 255 bytes"),
        ("NET", "names of different files, got 'net' and 'NET'"), ("../../evil", ""),
    ],
    ids=["NUL", "newline", "long", "case", "dots"],
)  # fmt: skip
def test_names_of_drawn_networks(tmp_path, name, words):
    config = tmp_path / "networks.nntxt"
    text = 'variable {name: "x" type: "Buffer" shape: {dim: 1}} function {name: "f" type: "Tanh" input: "x" output: "y"}'
    text += 'variable {name: "y" type: "Buffer" shape: {dim: 1}}'
    config.write_text("".join(f'network {{name: "{network}" batch_size: 1 {text}}}\n' for network in ("net", name)))
    told = run("draw_graph", "-f", "dot", "-o", tmp_path / "out", config, code=bool(words))
    assert words in told
    assert words or sorted(path.name for path in (tmp_path / "out").iterdir()) == [".._.._evil.dot", "net.dot"]


def test_pictures_without_graphviz_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    result = CliRunner().invoke(main, ["draw_graph", "-o", str(tmp_path), str(CONFIG)])
    assert result.exit_code == 1 and "hint" in result.output
    assert not list(tmp_path.iterdir())
