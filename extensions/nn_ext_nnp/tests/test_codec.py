"""Texts and bytes against those that NNabla 1.39 has written (the files in data/)."""

import hashlib
import io
import json
import re
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
from nn_core.errors import ArgumentError, FileFormatError, NNCoreError
from nn_core.utils.load import load
from nn_ext_nnp.archive import Member, write_archive
from nn_ext_nnp.codec import parse_bytes, parse_text, print_text
from nn_ext_nnp.document import read_document
from nn_ext_nnp.schema import file_descriptor, functions, solvers
from tools.lanes import nntxt_texts

DATA = Path(__file__).with_name("data")
#: Of the serialized description, which was compared with NNabla's: all of its 207 messages (209 with map entries) are equal.
DIGEST = "5f03158f7bb7f548e75f8928af4cdff1c996f892244242829e7461cb931b995c"


def test_the_schema_is_the_one_that_was_compared_with_nnabla():
    made = file_descriptor()
    assert len(made.message_type) == 207 and len(functions()) == 228 and len(solvers()) == 18
    assert hashlib.sha256(made.SerializeToString(deterministic=True)).hexdigest() == DIGEST


@pytest.mark.parametrize("name", ["convnet.nnp", "convnet_protobuf.nnp"])
def test_texts_in_archives_are_printed_as_nnabla_does(name):
    with zipfile.ZipFile(DATA / name) as archive:
        text = archive.read("network.nntxt")
    assert print_text(parse_text(text, name)) == text


def test_texts_with_parameters_are_printed_as_nnabla_does():
    text = (DATA / "convnet.nntxt").read_bytes()
    assert print_text(parse_text(text, "x")) == text


def test_texts_of_all_messages_are_printed_as_nnabla_does():
    texts = [nntxt_texts.drawn_text(seed) for seed in range(nntxt_texts.N_TEXTS)]
    digests = json.loads((DATA / "text_digests.json").read_text())
    assert [nntxt_texts.digest(print_text(parse_text(text.encode(), "x"))) for text in texts] == digests
    assert len(set(re.findall(r"\w+_param(?= {)", " ".join(texts)))) > 60


def test_bytes_are_written_as_nnabla_does():
    data = (DATA / "convnet.protobuf").read_bytes()
    assert parse_bytes(data, "x").SerializeToString() == data


def parameters():
    return {name: p.d.copy() for name, p in nn.get_parameters(grad_only=False).items()}


def test_parameters_of_all_formats_are_the_same():
    found = []
    for name in ("convnet.nnp", "convnet_protobuf.nnp", "convnet.nntxt", "convnet.protobuf", "parameters.protobuf"):
        nn.clear_parameters()
        nn.load_parameters(DATA / name)
        found.append(parameters())
        assert nn.get_parameters(grad_only=False)["b1/bn/mean"].need_grad is False
        assert nn.get_parameters(grad_only=False)["c1/conv/W"].need_grad is True
    layers = {"c1/conv": "W b", "b1/bn": "beta gamma mean var", "a/affine": "W b"}
    assert list(found[0]) == [f"{scope}/{name}" for scope, names in layers.items() for name in names.split()]
    for other in found[1:]:
        assert list(other) == list(found[0])
        for name, values in found[0].items():
            np.testing.assert_array_equal(other[name], values)


def test_parameters_are_written_as_nnabla_does(tmp_path):
    nn.load_parameters(DATA / "parameters.protobuf")
    nn.save_parameters(tmp_path / "p.protobuf")
    assert (tmp_path / "p.protobuf").read_bytes() == (DATA / "parameters.protobuf").read_bytes()


@pytest.mark.parametrize("extension", [".nnp", ".nntxt", ".prototxt", ".protobuf", ".h5"])
def test_parameters_survive(extension, tmp_path):
    rng = np.random.default_rng(0)
    shapes = {"scalar": (), "a/empty": (0, 3), "a/b/c": (2, 3, 1), "long name": (7,)}
    for name, shape in shapes.items():
        values = rng.normal(size=shape).astype(np.float32)
        nn.parameter.set_parameter(name, nn.Variable.from_numpy_array(values, need_grad=name != "scalar"))
    before = parameters()
    nn.save_parameters(tmp_path / f"p{extension}")
    nn.clear_parameters()
    nn.load_parameters(tmp_path / f"p{extension}")
    assert nn.get_parameters(grad_only=False)["scalar"].need_grad is False
    for name, values in before.items():
        np.testing.assert_array_equal(parameters()[name], values)


@pytest.mark.parametrize(("text", "message"), [
    ('network {\n  name: "n"\n  colour: 3\n}', r"net\.nntxt:3: the text must be that of an NNP network, got: .*colour"),
    ("network {\n", r"net\.nntxt:\d: the text must be that of an NNP network"),
    ('network {\n name: "n"\n function {\n  name: "f"\n  type: "Warp9"\n }\n}',
     r"net\.nntxt: functions must be those of NNabla 1\.39, got 'Warp9' \('f' in network 'n', line 5\)"),
    ("\xff".encode("latin-1"), r"net\.nntxt: the text must be UTF-8"),
    ("parameter { shape { dim: 3 } data: 1 }", "parameters must have names"),
    ('parameter { variable_name: "w" shape { dim: 3 } data: 1 }', r"'w' of shape \(3,\) must have as many values, got 1"),
    ('parameter { variable_name: "w" shape { dim: -1 dim: -1 } data: 1 }', "must have as many values"),
    (f'parameter {{ variable_name: "w" shape {{ {"dim: 1 " * 2004} }} data: 1 }}', "'w' must have at most 64 axes, got 2004"),
    (f'parameter {{ variable_name: "w" shape {{ dim: 0 dim: {2**62} dim: 4 }} }}', "'w' must have a shape of an array, got"),
    ('parameter { variable_name: "w" shape { } data: 1 } parameter { variable_name: "w" shape { } data: 1 }', "'w' twice"),
])  # fmt: skip
def test_wrong_texts_are_refused_with_their_place(text, message, tmp_path):
    path = tmp_path / "net.nntxt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(FileFormatError, match=message):
        read_document(path)


def test_texts_may_be_put_together(tmp_path):
    text = """
        version: "0.1" version: "0.2"
        training_config { max_epoch: 3 max_epoch: 5 } training_config { iter_per_epoch: 4 }
        network { name: "n" variable { name: "x" shape { dim: 2 } shape { dim: 3 } } }
    """
    (tmp_path / "a.nntxt").write_text(text)
    made = read_document(tmp_path / "a.nntxt").proto
    assert (made.version, made.training_config.max_epoch, made.training_config.iter_per_epoch) == ("0.2", 5, 4)
    assert list(made.network[0].variable[0].shape.dim) == [2, 3]


@pytest.mark.parametrize("change", [
    ("dim: 2 dim: 3", "dim: [2, 3]"), ('"', "'"), ("\n", "\r\n"), ("\n", " # note\n"), ('"Affine"', '"Aff" "ine"'),
    ("{ base_axis: 1 }", "< base_axis: 0x1 >"), ("base_axis: 1", "base_axis: 1;"), ("network {", "network: {"),
    ("multiplier: 0.5", "multiplier: 5e-1f"), (" ", "\t"), ('"Affine"', '"\\x41ffin\\145"'), ("true", "t"), ("true", "1"),
])  # fmt: skip
def test_every_way_to_write_a_text_is_read(change, tmp_path):
    text = """
network {
  name: "n"
  variable { name: "x" type: "Buffer" shape { dim: 2 dim: 3 } initializer { type: "Normal" multiplier: 0.5 } }
  function { name: "f" type: "Affine" input: "x" output: "y" affine_param { base_axis: 1 } }
}
training_config { save_best: true }
"""
    (tmp_path / "plain.nntxt").write_text(text)
    assert change[0] in text
    (tmp_path / "changed.nntxt").write_bytes(text.replace(*change).encode())
    assert read_document(tmp_path / "changed.nntxt").proto == read_document(tmp_path / "plain.nntxt").proto


def test_nesting_without_end_is_refused(tmp_path):
    (tmp_path / "a.nntxt").write_text("network { variable { shape { " * 20_000)
    with pytest.raises(FileFormatError, match="the text must be that of an NNP network"):
        read_document(tmp_path / "a.nntxt")


@pytest.mark.parametrize(("data", "message"), [
    (b"\xc2\x0c\xff\xff\xff\xff\x0f", "the file must be whole, got field 200"),
    (b"\xff" * 12, "got a number that does not end"),
    (b"\x0f", "wire type 7"),
    (b"\xfa\x3f\x01\x00", "fields must be those of NNabla 1.39, got number 1023 in NNablaProtoBuf"),
    (b"\xa2\x06\x03\x0a\x05a", "the file must be whole and an NNP message"),
])  # fmt: skip
def test_wrong_bytes_are_refused(data, message):
    with pytest.raises(FileFormatError, match=message):
        read_document(io.BytesIO(data), ".protobuf")


def test_other_extensions_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(ArgumentError, match=r"load: files must be \.nnp, .* got '.*a\.txt'"):
        read_document(tmp_path / "a.txt")


def archive(*members, **settings):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **settings) as made, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about two members with one name
        for name, data in members:
            made.writestr(name, data)
    file.seek(0)
    return file


@pytest.mark.parametrize("name", ["../a.nntxt", "/a.nntxt", "a/../../b.nntxt", "..\\a.nntxt", "C:/a.nntxt"])
def test_members_that_leave_the_folder_are_refused(name):
    with pytest.raises(FileFormatError, match="members must be inside the archive's folder, got"):
        read_document(archive((name, b"")), ".nnp")


def test_members_with_one_name_are_refused():
    with pytest.raises(FileFormatError, match=r"members must have different names, got 'a\.nntxt' twice"):
        read_document(archive(("a.nntxt", b""), ("a.nntxt", b"")), ".nnp")


def test_archives_that_grow_too_much_are_refused():
    bomb = archive(("a.nntxt", b" " * (64 << 20)), compression=zipfile.ZIP_DEFLATED)
    assert len(bomb.getvalue()) < 1 << 20
    with pytest.raises(FileFormatError, match=r"growth of an archive .* archive_growth 200, got"):
        read_document(bomb, ".nnp")


def test_encrypted_members_are_refused():
    data = bytearray(archive(("a.nntxt", b"")).getvalue())
    data[data.find(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(FileFormatError, match=r"members must not be encrypted, got 'a\.nntxt'"):
        read_document(io.BytesIO(bytes(data)), ".nnp")


def test_members_with_another_name_in_the_list_are_refused():
    data = bytearray(archive(("network.nntxt", b""), ("parameter.h5", b"")).getvalue())
    data[data.rfind(b"parameter.h5") + 9] ^= 2
    with pytest.raises(FileFormatError, match="must be a whole zip archive, got: File name in directory"):
        read_document(io.BytesIO(bytes(data)), ".nnp")


def test_what_is_no_archive_is_refused():
    with pytest.raises(FileFormatError, match="must be a whole zip archive"):
        read_document(io.BytesIO(b"PK nothing"), ".nnp")


def test_members_are_found_by_extension_in_any_folder():
    file = io.BytesIO()
    write_archive(file, [Member("sub/whatever.prototxt", b'network { name: "n" }'), Member("note.doc", b"\xff")])
    file.seek(0)
    assert [network.name for network in read_document(file, ".nnp").proto.network] == ["n"]
    assert zipfile.ZipFile(file).read("nnp_version.txt") == b"0.1\n"


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("is_mapped", [True, False])
def test_arrays_that_differ_from_the_checksum_of_the_archive_are_refused(compression, is_mapped, tmp_path):
    values = np.random.default_rng(0).standard_normal(5000).astype(np.float32)
    nn.save_parameters(tmp_path / "p.h5", {"w": nn.Variable.from_numpy_array(values)})
    data = bytearray(archive(("parameter.h5", (tmp_path / "p.h5").read_bytes()), compression=compression).getvalue())
    data[len(data) // 2] ^= 1
    (tmp_path / "a.nnp").write_bytes(data)
    with pytest.raises(FileFormatError, match=r"must be a whole zip archive, got: (Bad CRC-32|Error -3)"):
        read_document(tmp_path / "a.nnp" if is_mapped else io.BytesIO(bytes(data)), ".nnp")
    assert not read_document(archive(("n.nntxt", b""), ("parameter.h5", b"")), ".nnp", with_parameters=False).parameters


NUMBERS = (b"0", b"-1", b"7", b"99999999", b"2147483648", b"1000000000000")


def mutated(data, rng):
    """`data` with one number of the text replaced, or with up to five changes anywhere."""
    changed = bytearray(data)
    if rng.integers(2):
        digits = [place for place, byte in enumerate(changed) if 48 <= byte < 58]
        place = digits[int(rng.integers(len(digits)))]
        changed[place : place + 1] = NUMBERS[int(rng.integers(len(NUMBERS)))]
        return bytes(changed)
    for _ in range(int(rng.integers(1, 6))):
        place = int(rng.integers(len(changed)))
        match rng.integers(4):
            case 0:
                changed[place] = int(rng.integers(256))
            case 1:
                del changed[place : place + int(rng.integers(1, 50))]
            case 2:
                changed[place:place] = rng.bytes(int(rng.integers(1, 20)))
            case _:
                start = int(rng.integers(len(changed)))
                changed[place:place] = changed[start : start + int(rng.integers(1, 200))]
    return bytes(changed)


@pytest.mark.parametrize("name", ["convnet.nnp", "convnet_protobuf.nnp", "convnet.nntxt", "network.nntxt", "convnet.protobuf"])
def test_mutated_files_are_read_or_refused(name, tmp_path):
    rng = np.random.default_rng(7)
    if name == "network.nntxt":
        with zipfile.ZipFile(DATA / "convnet.nnp") as whole:
            original = whole.read(name)
    else:
        original = (DATA / name).read_bytes()
    outcomes = set()
    for _ in range(100):
        try:
            with nn.parameter_scope("", {}):
                load(io.BytesIO(mutated(original, rng)), prepare_data_iterator=False, extension=Path(name).suffix)
            outcomes.add("read")
        except NNCoreError:
            outcomes.add("refused")
    assert "refused" in outcomes


def test_sizes_that_a_text_only_claims_take_no_memory(tmp_path):
    text = 'network { name: "n" batch_size: 1 function { name: "f" type: "Exp" input: "w" output: "y" }'
    text += 'variable { name: "y" type: "Buffer" shape { dim: 1 } }'
    text += 'variable { name: "w" type: "Parameter" shape { dim: 100000000000 } MORE } }'
    (tmp_path / "a.nntxt").write_text(text.replace("MORE", 'initializer { type: "Normal" multiplier: 1 }'))
    with pytest.raises(FileFormatError, match=r"values to be drawn for 'w' must .*, drawn_values 536870912, got 100000000000"):
        load(tmp_path / "a.nntxt")
    (tmp_path / "b.nntxt").write_text(text.replace("MORE", ""))
    assert load(tmp_path / "b.nntxt").networks["n"].variables["w"].shape == (100000000000,)


@pytest.mark.parametrize(("text", "expected"), [("need_grad: true", True), ("need_grad: false", False), ("", False)])
def test_frozen_parameters_of_a_text_stay_frozen(text, expected, tmp_path):
    (tmp_path / "net.nntxt").write_text(f"""
        network {{
          name: "n" batch_size: 4
          variable {{ name: "x" type: "Buffer" shape {{ dim: -1 dim: 1 }} }}
          variable {{ name: "W" type: "Parameter" shape {{ dim: 1 dim: 1 }} }}
          variable {{ name: "y" type: "Buffer" shape {{ dim: -1 dim: 1 }} }}
          function {{ name: "f" type: "Affine" input: "x" input: "W" output: "y" affine_param {{ base_axis: 1 }} }}
        }}
        parameter {{ variable_name: "W" shape {{ dim: 1 dim: 1 }} data: 2 {text} }}
    """)
    load(tmp_path / "net.nntxt", prepare_data_iterator=False)
    assert {name: w.need_grad for name, w in nn.get_parameters(grad_only=False).items()} == {"W": expected}
