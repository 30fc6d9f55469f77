"""Times of engines: which convolutions are tried, that the fastest one runs, and what the file keeps."""

import json

import pytest

SHAPES = (2, 4, 6, 5), (6, 4, 3, 3)


@pytest.fixture
def tuning(cudnn, monkeypatch, tmp_path):
    """The module, with a file of the test; engine 0 is faster than engine 1."""
    from nn_ext_cudnn import precision
    from nn_ext_cudnn.graph import plans, tuning

    monkeypatch.setattr(precision, "_autotuning", True)
    monkeypatch.setenv(tuning.PATH_VARIABLE, str(tmp_path / "folder" / "engines.json"))
    monkeypatch.setattr(tuning, "_known", {})
    monkeypatch.setattr(tuning, "_read_from", None)

    def milliseconds(plan, pack):
        plan.execute(pack)
        return {0: 1.5, 1: 2.5}[plan.engine]

    milliseconds.true = tuning._milliseconds
    monkeypatch.setattr(tuning, "_milliseconds", milliseconds)
    plans._built.cache_clear()
    yield tuning
    plans._built.cache_clear()


@pytest.fixture
def engine_of(cudnn, call_of):
    """Prepares a convolution; the engine of its plan."""

    def prepare(shapes=SHAPES, **args):
        from nn_ext_cudnn.graph import plans
        from nn_ext_cudnn.kernels import KERNELS

        plans._built.cache_clear()
        return KERNELS["Convolution"].forward(call_of("Convolution", *shapes, **args))._plan.engine

    return prepare


def test_the_fastest_engine_is_taken_and_kept_in_the_file(tuning, engine_of, cudnn):
    assert engine_of() == 0
    assert set(cudnn.parts[-1].engines) == {0, 1}
    (key, entry), *others = json.loads(tuning.path().read_text()).items()
    assert not others
    assert key.startswith("Fake 0|cuDNN 9.28.0|")
    assert entry == {"place": 2, "engine": 0, "milliseconds": 1.5}
    assert engine_of((SHAPES[0], (6, 4, 3, 2))) == 0
    assert len(json.loads(tuning.path().read_text())) == 2


def test_another_process_reads_the_file_and_times_nothing(tuning, engine_of, cudnn, monkeypatch):
    assert engine_of() == 0
    monkeypatch.setattr(tuning, "_known", {})
    monkeypatch.setattr(tuning, "_read_from", None)
    cudnn.parts[-1].engines.clear()
    assert engine_of() == 0
    assert cudnn.parts[-1].engines == []


def test_an_entry_for_other_engines_is_measured_anew(tuning, engine_of, monkeypatch):
    engine_of()
    for entry in tuning._known.values():
        entry["engine"] = 77
    assert engine_of() == 0
    assert [entry["engine"] for entry in tuning._known.values()] == [0]


@pytest.mark.parametrize("entry", [{"place": "2", "engine": 0}, {"place": 2}, {"place": None, "engine": 0}])
def test_an_entry_of_another_form_is_measured_anew(tuning, engine_of, monkeypatch, entry):
    engine_of()
    (key,) = json.loads(tuning.path().read_text())
    tuning.path().write_text(json.dumps({key: entry}))
    monkeypatch.setattr(tuning, "_read_from", None)
    assert engine_of() == 0
    assert json.loads(tuning.path().read_text())[key]["place"] == 2


def test_a_file_that_cannot_be_read_is_replaced(tuning, engine_of, caplog):
    tuning.path().parent.mkdir()
    tuning.path().write_text("{")
    assert engine_of() == 0
    assert "are measured anew" in caplog.text
    assert len(json.loads(tuning.path().read_text())) == 1


def test_without_a_file_times_are_kept_by_the_process(tuning, engine_of, cudnn, monkeypatch, tmp_path):
    monkeypatch.setenv(tuning.PATH_VARIABLE, "")
    assert engine_of() == 0
    cudnn.parts[-1].engines.clear()
    assert engine_of() == 0
    assert cudnn.parts[-1].engines == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("shapes", "args"), [((SHAPES[0], (6, 4, 1, 1)), {}), (SHAPES, {"dtype": "float16"}), (SHAPES, {"dtype": "float64"})]
)
def test_other_convolutions_are_not_timed(tuning, engine_of, cudnn, shapes, args):
    engine_of(shapes, **args)
    assert cudnn.parts[-1].engines == []


def test_tf32_is_not_timed_and_not_taken_unless_it_is_asked_for(tuning, engine_of, cudnn):
    from nn_ext_cuda.gemm import precision

    assert engine_of() == 0
    cudnn.parts[-1].engines.clear()
    precision.allow_tf32()
    try:
        assert engine_of() == 10
        assert cudnn.parts[-1].engines == []
    finally:
        precision.allow_tf32(False)


def test_it_can_be_turned_off(tuning, engine_of):
    import nn_ext_cudnn

    nn_ext_cudnn.allow_autotuning(False)
    assert not nn_ext_cudnn.is_autotuning_allowed()
    assert engine_of() == 1


def test_nothing_is_timed_while_a_graph_is_recorded_or_where_memory_is_short(tuning, engine_of, monkeypatch):
    import fake_cupy

    from nn_ext_cuda.device.errors import DeviceMemoryError

    with monkeypatch.context() as patch:
        patch.setattr(fake_cupy.Graph, "recording", [])
        assert engine_of() == 1

    def allocated(shape, dtype):
        raise DeviceMemoryError("no room")

    monkeypatch.setattr(tuning, "allocated", allocated)
    assert engine_of() == 1
    assert not tuning._known


def test_an_engine_that_fails_is_passed_over(tuning, engine_of, monkeypatch):
    from nn_ext_cudnn.errors import failure

    def run(plan, pack):
        if plan.engine == 0:
            raise failure("cudnnBackendExecute", 4000)
        return 2.5

    monkeypatch.setattr(tuning, "_milliseconds", run)
    assert engine_of() == 1


def test_a_run_is_timed_by_events(tuning, engine_of, monkeypatch):
    found = []
    monkeypatch.setattr(tuning, "fastest", lambda graph, excluded, plans: found.append((graph, plans)) or plans[0])
    monkeypatch.setattr(tuning, "_milliseconds", tuning._milliseconds.true)
    engine_of()
    times = tuning.timed(*found[0])
    assert set(times) == {0, 1, 2}
    assert min(times.values()) > 0
