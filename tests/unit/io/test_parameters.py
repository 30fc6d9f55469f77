"""save_parameters and load_parameters: what comes back, in which order, and that failures change nothing."""

import base64
import io
import zlib

import h5py
import numpy as np
import pytest

import nn_core as nn
import nn_core.parametric_functions as PF
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.errors import ArgumentError, FileFormatError, ShapeError
from nn_core.files import Entry
from nn_core.io.parameters import parameter_of
from nn_core.parameter import get_parameter, get_parameter_or_create, parameter_scope

EXTENSIONS = [".h5", ".npz", ".safetensors"]


def make():
    with parameter_scope("net"):
        PF.batch_normalization(PF.convolution(nn.Variable((2, 3, 5, 5)), 4, (3, 3)))
    get_parameter_or_create("a", initializer=np.array([[1, 2]]), need_grad=False)
    get_parameter_or_create("scalar", ())


def snapshot():
    parameters = nn.get_parameters(grad_only=False)
    return [(key, v.need_grad, v.d.dtype, v.d.tolist()) for key, v in parameters.items()]


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_round_trip(tmp_path, extension):
    make()
    saved = snapshot()
    nn.save_parameters(tmp_path / f"p{extension}")
    nn.clear_parameters()
    nn.load_parameters(tmp_path / f"p{extension}")
    assert snapshot() == saved
    assert get_parameter("net/conv/W").name == "W"


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_open_files(extension):
    make()
    saved = snapshot()
    file = io.BytesIO()
    nn.save_parameters(file, extension=extension)
    file.seek(0)
    nn.clear_parameters()
    nn.load_parameters(file, extension=extension)
    assert snapshot() == saved


def test_existing_parameters_are_filled_in_place(tmp_path):
    make()
    nn.save_parameters(tmp_path / "p.h5")
    w = get_parameter("net/conv/W")
    before, data = w.d.copy(), w.data
    w.d = 0
    w.need_grad = False
    nn.load_parameters(tmp_path / "p.h5")
    assert get_parameter("net/conv/W") is w
    assert w.data is data
    assert w.need_grad
    assert np.array_equal(w.d, before)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("extension", [".h5", ".npz"])
def test_new_parameters_have_values_of_their_own_from_any_type(tmp_path, extension, order, dtype):
    values, path = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype), tmp_path / f"file{extension}"
    stored = values.astype(values.dtype.newbyteorder(order))
    if extension == ".h5":
        with h5py.File(path, "w") as store:
            store["layer/w"] = stored
    else:
        np.savez(path, **{"layer/w": stored})
    assert nn.load_parameters(path).created == ("layer/w",)
    w = get_parameter("layer/w")
    assert (w.d.dtype, w.data.dtype) == (values.dtype, values.dtype)
    w.d[...] = 0
    path.write_bytes(bytes(path.stat().st_size))
    np.testing.assert_array_equal(w.d, np.zeros_like(values))


def test_arrays_that_a_reader_keeps_are_not_shared():
    kept = Entry(np.ones(3, np.float32))
    parameter_of(kept).d[...] = 2
    assert kept.values.tolist() == [1, 1, 1]
    own = Entry(np.ones(3, np.float32), is_own=True)
    parameter_of(own).d[...] = 2
    assert own.values.tolist() == [2, 2, 2]


def test_scopes_of_saving_and_loading(tmp_path):
    make()
    with parameter_scope("net"):
        nn.save_parameters(tmp_path / "p.h5")
    nn.clear_parameters()
    with parameter_scope("other"):
        nn.load_parameters(tmp_path / "p.h5")
    assert list(nn.get_parameters()) == [f"other/{name}" for name in ("conv/W", "conv/b", "bn/beta", "bn/gamma")]


def test_given_parameters(tmp_path):
    nn.save_parameters(str(tmp_path / "p.h5"), {"b/w": nn.Variable((2,), need_grad=True), "a": nn.Variable((1,))})
    nn.load_parameters(str(tmp_path / "p.h5"))
    assert [(name, v.need_grad) for name, v in nn.get_parameters(grad_only=False).items()] == [
        ("b/w", True),
        ("a", False),
    ]


def test_layout_of_hdf5(tmp_path):
    make()
    nn.save_parameters(tmp_path / "p.h5")
    with h5py.File(tmp_path / "p.h5") as store:
        w = store["net/conv/W"]
        assert w.dtype == np.float32
        assert {key: w.attrs[key] for key in ("index", "need_grad")} == {"index": 0, "need_grad": True}
        assert store["scalar"].shape == ()
        assert store["a"].dtype == np.int64
        assert store["net/bn/mean"].attrs["need_grad"] == np.False_


#: {"l/w": arange(4) as (2, 2), trained; "c": [7.0], not trained}, saved by NNabla 1.39.
NNABLA_FILE = (
    "c-rgqaB<`1lHy_j0S*oZ76t(ZWbhvf76_yAVe$!3nh{EOK<O1sFmXn(oCH){5NbZUx{x4OSCH!eXaMdIsIxd2M!`q~9<Gi7AUXod"
    "hoz?zOsMK|pmZ`?x^y7ZUPfSwV?;8DkwF7OGeHDk*5jg?fi4B96jYE0<}DCVU=ZhE5U+>IvqH^hVuBdR0reR(BP^+-=0_fe0H`~-"
    "7}S7D@={Y%;?s)~Q()o31aYbW2h7PF3~r7-!LHyu7U~KM6h^f05rEqBfepg9fZND{79QC1a|Fb53>9p|<!2AU(fmA`pAq>Pmda<a"
    "p{grKOQ#+b+RMXW05y*d$mU?k%u7kFfaVttq>_ShM8!sfJ;dV<K>WaAG<A-GQ7{Td!6+C7!y5$q`MWRzdn>T^*90N_>S6750~XYF"
    "8G8GFWQHTW)5f5{Jes!1>u<B6^|v8CO-4pWl=Q|(asOHX8dWSb?O&7I?|{(&BRF3<"
)


def test_file_of_nnabla(tmp_path):
    (tmp_path / "p.h5").write_bytes(zlib.decompress(base64.b85decode(NNABLA_FILE)))
    nn.load_parameters(tmp_path / "p.h5")
    assert snapshot() == [
        ("l/w", True, np.float32, [[0.0, 1.0], [2.0, 3.0]]),
        ("c", False, np.float32, [7.0]),
    ]


# -- failures change nothing -------------------------------------------------------------------------------------------


def test_another_shape(tmp_path):
    make()
    nn.save_parameters(tmp_path / "p.h5", {"net/conv/b": nn.Variable((4,)), "net/conv/W": nn.Variable((4, 3, 2, 2))})
    before = snapshot()
    message = r"parameter 'net/conv/W' must keep its shape \(4, 3, 3, 3\), got \(4, 3, 2, 2\) in .*p.h5"
    with pytest.raises(ShapeError, match=message):
        nn.load_parameters(tmp_path / "p.h5")
    assert snapshot() == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("net/conv", "p.npz must not name a scope, got 'net/conv'"),
        ("net/conv/W/x", "p.npz must not put 'net/conv/W/x' inside a parameter"),
    ],
)
def test_names_of_scopes_and_parameters_do_not_mix(tmp_path, name, message):
    make()
    before = snapshot()
    nn.save_parameters(tmp_path / "p.npz", {"scalar": nn.Variable(()), name: nn.Variable((4,))})
    with pytest.raises(ArgumentError, match=message):
        nn.load_parameters(tmp_path / "p.npz")
    assert snapshot() == before


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["w", "w/b"], "p.npz: a parameter must not be inside another one, got 'w/b'"),
        (["a//b"], "p.npz: names must have parts between slashes .*, got 'a//b'"),
    ],
)
def test_files_that_contradict_themselves(tmp_path, names, message):
    np.savez(tmp_path / "p.npz", **{name: np.zeros(1, np.float32) for name in names})
    with pytest.raises(FileFormatError, match=message):
        nn.load_parameters(tmp_path / "p.npz")
    assert snapshot() == []


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_damaged_files(tmp_path, extension):
    make()
    path = tmp_path / f"p{extension}"
    nn.save_parameters(path)
    before = snapshot()
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileFormatError, match=f"p{extension}: "):
        nn.load_parameters(path)
    assert snapshot() == before


def test_formats_of_networks_name_their_package(tmp_path, monkeypatch):
    monkeypatch.setattr(PLUGINS, "offer", lambda kind, name: None)
    for file, extension in ((io.BytesIO(), ".nntxt"), (tmp_path / "net.nnp", ".nnp")):
        with pytest.raises(ArgumentError, match=f"must be installed to read {extension}, got none\n  hint: pip install"):
            nn.load_parameters(file)


def test_other_formats(tmp_path):
    with pytest.raises(ArgumentError, match=r"save_parameters: the extension must be one of .*, got '.pkl'"):
        nn.save_parameters(tmp_path / "p.pkl")
    with pytest.raises(ArgumentError, match=r"load_parameters: the extension must be one of .*, got '.pkl'"):
        nn.load_parameters(tmp_path / "p.pkl")
    with pytest.raises(ArgumentError, match=r"load_parameters: proto must be None .*\n  hint: .*params=module"):
        nn.load_parameters(tmp_path / "p.h5", needs_proto=True)
    with pytest.raises(FileNotFoundError):
        nn.load_parameters(tmp_path / "none.h5")


@pytest.mark.parametrize("index", ["first", 1.5, float("nan")])
def test_an_index_that_is_no_whole_number(tmp_path, index):
    with h5py.File(tmp_path / "p.h5", "w") as store:
        for name, value in {"a": 0, "b": index}.items():
            store[name] = np.ones(2)
            store[name].attrs["index"] = value
    with pytest.raises(FileFormatError, match=r"p.h5: attribute index of b must be a whole number, got"):
        nn.load_parameters(tmp_path / "p.h5")
