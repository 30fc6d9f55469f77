"""Finding the library, its functions, and its errors as exceptions."""

import pytest

from nn_ext_cuda.device.errors import DeviceError, DeviceMemoryError
from nn_ext_cudnn import errors, library


@pytest.fixture
def nothing(monkeypatch):
    """A machine without libcudnn."""
    library.library.cache_clear()
    monkeypatch.setattr(library, "load", lambda: None)
    yield
    library.library.cache_clear()


def test_a_missing_library_is_told_with_the_remedy(nothing):
    with pytest.raises(errors.CudnnError, match="libcudnn 9 must be installed") as caught:
        library.library()
    assert "pip install nvidia-cudnn-cu13" in str(caught.value)


def test_folders_of_the_loader_come_before_wheels(monkeypatch, tmp_path):
    (tmp_path / library.SONAME).write_bytes(b"")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere:{tmp_path}")
    found = list(library.candidates())
    assert found[0] == str(tmp_path / library.SONAME)
    assert found[-1] == library.SONAME


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (1002, errors.CudnnError, "pip uninstall nvidia-cudnn-cu12 nvidia-cudnn-cu13"),
        (3007, errors.NotSupportedError, "no code for the device"),
        (3002, errors.NotSupportedError, "NOT_SUPPORTED_SHAPE"),
        (4004, DeviceMemoryError, "smaller batch"),
        (5001, DeviceError, "started anew"),
        (2003, errors.CudnnError, "MISALIGNED"),
        (9999, errors.CudnnError, "unknown status"),
    ],
)
def test_a_status_becomes_an_exception_with_a_hint(status, kind, text):
    error = errors.failure("cudnnCreate", status, " the reason \n")
    assert isinstance(error, kind)
    assert error.status == status
    assert str(error).startswith(f"cudnnCreate: status must be success, got {status}")
    assert "cuDNN says the reason" in str(error)
    assert text in str(error)


def test_functions_raise_what_the_library_says(cudnn):
    create = library.functions(library.HANDLES)
    with pytest.raises(errors.CudnnError, match="the handle was not made by cudnnCreate"):
        create.cudnnSetStream(77, 0)
    assert library.last_error() == ""


def test_a_function_that_a_version_lacks_is_told_with_the_version(cudnn):
    with pytest.raises(errors.CudnnError, match=r"cudnnNew: cuDNN must have this function, got cuDNN 9\.28\.0"):
        library.functions({"cudnnNew": ()})


def test_handles_belong_to_a_thread_and_follow_its_stream(cudnn):
    import threading

    from nn_ext_cuda.device.runtime import cupy
    from nn_ext_cudnn import handle

    first = handle.current()
    assert handle.current() is first
    assert cudnn.calls == ["cudnnCreate"]
    cupy.cuda.get_current_stream = lambda: type("Stream", (), {"ptr": 7})
    assert handle.current() is first
    assert cudnn.parts[0].streams[first.pointer.value] == 7
    assert handle.current() is first
    assert cudnn.calls == ["cudnnCreate", "cudnnSetStream"]
    others = []
    for _ in range(2):
        thread = threading.Thread(target=lambda: others.append(handle.current()))
        thread.start()
        thread.join()
    assert others[0] is not first
    assert others[1] is others[0], "the handle of a thread that ended is taken by the next"


def test_workspaces_grow_and_are_shared_on_a_stream(cudnn):
    from nn_ext_cuda.device.runtime import cupy
    from nn_ext_cudnn import handle

    small = handle.workspace()
    assert small.array is None
    assert handle.workspace(100) is small
    array = small.array
    assert handle.workspace(10).array is array
    assert handle.workspace(1000).array.nbytes == 1000
    cupy.cuda.get_current_stream = lambda: type("Stream", (), {"ptr": 7})
    assert handle.workspace(10) is not small


def test_statuses_are_those_of_the_header(header):
    found = header("cudnn_graph.h").numbers("CUDNN_STATUS_")
    known = {number: name for name, number in found.items() if number >= 1000 and name != "INVALID_VALUE"}
    assert len(known) > 40
    assert known.items() <= errors.STATUSES.items(), "an older cuDNN has fewer"


def test_argument_counts_are_those_of_the_header(header):
    graph = header("cudnn_graph.h")
    for name, arguments in library.HANDLES.items():
        assert len(arguments) == graph.n_parameters(name), name
