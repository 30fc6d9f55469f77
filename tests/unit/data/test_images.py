"""Images are read, written and resized by every backend that is installed."""

import io

import numpy as np
import pytest

pytest.importorskip("PIL")

from nn_core.errors import ArgumentError, FileFormatError
from nn_core.utils import image_utils
from nn_core.utils.image_utils import imread, imresize, imsave, minmax_auto_scale


@pytest.fixture(params=["PilBackend", "Cv2Backend"])
def backend(request):
    if request.param not in image_utils.get_available_backends():
        pytest.skip(f"the library of {request.param} is not installed")
    image_utils.set_backend(request.param)
    yield request.param
    image_utils.set_backend(None)


def colours(channels=3):
    return np.random.default_rng(0).integers(0, 256, (4, 5, channels)).astype(np.uint8)


@pytest.mark.parametrize("channel_first", [False, True])
@pytest.mark.parametrize("channels", [3, 4])
def test_colours_come_back(backend, tmp_path, channels, channel_first):
    image = colours(channels)
    image = np.moveaxis(image, -1, 0) if channel_first else image
    imsave(tmp_path / "a.png", image, channel_first=channel_first)
    assert np.array_equal(imread(tmp_path / "a.png", channel_first=channel_first), image)


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 1)])
def test_grey_comes_back_without_an_axis_of_channels(backend, tmp_path, shape):
    image = colours(1).reshape(shape)
    imsave(tmp_path / "a.png", image)
    assert np.array_equal(imread(tmp_path / "a.png"), image.reshape(4, 5))
    assert imread(tmp_path / "a.png", num_channels=3).shape == (4, 5, 3)


def test_sixteen_bits_come_back(backend, tmp_path):
    image = (np.arange(20, dtype=np.uint16) * 3000).reshape(4, 5)
    imsave(tmp_path / "a.png", image, as_uint16=True)
    assert np.array_equal(imread(tmp_path / "a.png", as_uint16=True), image)
    assert np.array_equal(imread(tmp_path / "a.png"), image >> 8)


def test_channels_and_bits_are_converted(backend, tmp_path):
    imsave(tmp_path / "a.png", colours())
    assert imread(tmp_path / "a.png", grayscale=True).shape == (4, 5)
    alpha = imread(tmp_path / "a.png", num_channels=4)
    assert (alpha[..., 3] == 255).all()
    assert np.array_equal(imread(tmp_path / "a.png", as_uint16=True), colours().astype(np.uint16) * 257)


@pytest.mark.parametrize(("channels", "shape"), [(0, (4, 5)), (1, (4, 5, 1)), (3, (4, 5, 3)), (4, (4, 5, 4))])
def test_grey_is_repeated_in_each_channel(backend, tmp_path, channels, shape):
    imsave(tmp_path / "a.png", colours())
    grey = imread(tmp_path / "a.png", grayscale=True)
    image = imread(tmp_path / "a.png", grayscale=True, num_channels=channels)
    assert image.shape == shape
    assert (image.reshape(4, 5, -1) == grey[..., None]).all()
    first = imread(tmp_path / "a.png", grayscale=True, num_channels=channels, channel_first=True)
    assert first.shape == (shape[2:] + shape[:2])


def test_indices_of_a_palette(tmp_path):
    from PIL import Image

    indices = (np.arange(20, dtype=np.uint8) % 3).reshape(4, 5)
    file = Image.fromarray(indices).convert("P")
    file.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    file.save(tmp_path / "a.png")
    imsave(tmp_path / "b.png", colours())
    assert np.array_equal(imread(tmp_path / "a.png", return_palette_indices=True), indices)
    assert imread(tmp_path / "a.png").shape == (4, 5, 3)
    assert imread(tmp_path / "a.png", return_palette_indices=True, num_channels=3)[0, 0].tolist() == [255, 0, 0]
    assert imread(tmp_path / "a.png", return_palette_indices=True, grayscale=True)[0, 0] == 76
    assert np.array_equal(imread(tmp_path / "b.png", return_palette_indices=True), colours())


def test_open_files_are_taken(backend):
    file = io.BytesIO()
    imsave(file, colours())
    assert np.array_equal(imread(io.BytesIO(file.getvalue())), colours())


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("shape", [(3, 4, 6), (1, 4, 6), (4, 6)])
def test_resizing_keeps_dtype_and_layout(backend, dtype, shape):
    image = np.full(shape, 7, dtype)
    resized = imresize(image, (3, 8), channel_first=True)
    assert resized.shape == (*shape[:-2], 8, 3)
    assert resized.dtype == dtype
    assert (resized == 7).all()


def test_nearest_neighbours_repeat(backend):
    assert imresize(np.array([[1, 2]], np.uint8), (4, 1), "nearest").tolist() == [[1, 1, 2, 2]]


def test_numbers_are_scaled():
    assert minmax_auto_scale(np.array([[0, 0.5, 1]]), False).tolist() == [[0, 127, 255]]
    assert minmax_auto_scale(np.array([[0, 255]], np.uint8), True).tolist() == [[0, 65535]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda path: imsave(path, np.array([[0, 2.0]])), ArgumentError, "numbers from 0 to 1, got float64 from 0.0 to 2.0"),
        (lambda path: imsave(path, np.zeros((2, 2)), auto_scale=False), ArgumentError, "must be of uint8 without auto_scale"),
        (imread, FileFormatError, "a.png: the file must be an image"),
        (lambda path: imread(path, num_channels=2), ArgumentError, "num_channels must be one of"),
        (lambda path: imsave(path, colours()[0, 0]), ArgumentError, r"img must have the shape .*got \(3,\)"),
        (lambda path: imsave(path, colours(5)), ArgumentError, r"img must have the shape .*got \(4, 5, 5\)"),
        (lambda path: imresize(colours(), (0, 3)), ArgumentError, "size must be a positive width and height"),
        (lambda path: imresize(colours(), (3, 3), "cubic"), ArgumentError, "interpolate must be one of nearest"),
        (lambda path: image_utils.set_backend("Gdi"), ArgumentError, "must be one that is available"),
    ],
)
def test_wrong_calls_are_refused(tmp_path, call, error, message):
    with pytest.raises(error, match=message):
        call(tmp_path / "a.png")


@pytest.mark.parametrize("end", [0, 8, 30])
def test_truncated_images_are_refused(backend, tmp_path, end):
    path = tmp_path / "a.png"
    imsave(path, colours())
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(FileFormatError, match=r"a\.png: the file must be an image"):
        imread(path)


def test_an_image_that_ends_in_the_middle_is_refused(tmp_path):
    path = tmp_path / "a.png"
    imsave(path, np.random.default_rng(0).integers(0, 256, (32, 32, 3)).astype(np.uint8))
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(FileFormatError, match="truncated"):
        imread(path)
