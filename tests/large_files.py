"""Files with any number of parts, and the programs that read them, for tests of limits and interrupts."""

import io
import pickle
import struct
import tarfile
import zipfile

import numpy as np

import nn_core as nn


def _fields(field, content):
    """Return a field of bytes, as protobuf writes it."""
    length, written = len(content), bytes([field << 3 | 2])
    while length > 127:
        written, length = written + bytes([length & 127 | 128]), length >> 7
    return written + bytes([length]) + content


def _safetensors(path, count):
    entries = ",".join(f'"w{i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for i in range(count))
    header = f"{{{entries}}}".encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)


def _npz(path, count):
    content = io.BytesIO()
    np.save(content, np.ones(2, np.float32))
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(count):
            archive.writestr(f"w{i}.npy", content.getvalue())


def _h5(path, count):
    import h5py

    with h5py.File(path, "w") as store:
        for i in range(count):
            store.create_dataset(f"w{i}", data=np.ones(2), chunks=(2,))


def _pth(path, count):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", pickle.dumps({f"w{i}": [i] for i in range(count)}, 2))
        archive.writestr("a/version", "3")


def _network_text(count):
    functions = "".join(f'function {{ name: "f{i}" type: "ReLU" input: "v{i}" output: "v{i + 1}" }}\n' for i in range(count))
    variables = "".join(f'variable {{ name: "v{i}" type: "Buffer" shape: {{ dim: 2 }} }}\n' for i in range(count + 1))
    return f'network {{ name: "n" batch_size: 1\n{variables}{functions}}}\n'.encode()


def _nntxt(path, count):
    path.write_bytes(_network_text(count))


def _nnp(path, count):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("nnp_version.txt", "0.1\n")
        archive.writestr("network.nntxt", _network_text(count))
        archive.writestr("parameter.protobuf", b"")


def _onnx(path, count):
    nodes = (
        _fields(1, _fields(1, f"v{i}".encode()) + _fields(2, f"v{i + 1}".encode()) + _fields(4, b"Relu")) for i in range(count)
    )
    ports = b"".join(_fields(field, _fields(1, name) + _fields(2, _fields(1, b"\x08\x01\x12\x04\x0a\x02\x08\x02")))
                     for field, name in ((11, b"v0"), (12, f"v{count}".encode())))  # fmt: skip
    graph = b"".join(nodes) + _fields(2, b"g") + ports
    path.write_bytes(b"\x08\x08" + _fields(7, graph) + _fields(8, b"\x10\x11"))


def _prototxt(path, count):
    layers = "".join(f'layer {{ name: "l{i}" type: "ReLU" bottom: "v{i}" top: "v{i + 1}" }}\n' for i in range(count))
    path.write_text(f'input: "v0" input_dim: 1 input_dim: 2\n{layers}')


def _protobuf(path, count):
    with nn.parameter_scope("", {}):
        for i in range(count):
            nn.parameter.set_parameter(f"w{i}", nn.Variable((1,)))
        nn.save_parameters(path)


def _parquet(path, count):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": np.arange(count)}), path, row_group_size=10)


def _csv(path, count):
    path.write_text("x,y\n" + "".join(f"{i},{i}\n" for i in range(count)))


def _tar(path, count):
    with tarfile.open(path, "w") as archive:
        for i in range(count):
            member = tarfile.TarInfo(f"{i}.txt")
            archive.addfile(member)


def _json_member(path, count):
    from nn_core.training import save_checkpoint

    save_checkpoint(path, net={f"w{i}": nn.Variable((1,)) for i in range(count)})


PARAMETERS = "import nn_core as nn\nread = nn.load_parameters"
NETWORK = "from nn_core.utils.nnp_graph import NnpLoader\nread = lambda path: NnpLoader(path).get_network('n')"
#: How a file is made, how many items it has, and the program that reads it.
READERS = {
    "f.safetensors": (_safetensors, 100_000, PARAMETERS),
    "f.npz": (_npz, 10_000, PARAMETERS),
    "f.h5": (_h5, 2_000, PARAMETERS),
    "rows.h5": (_h5, 2_000, "from nn_core.data.array_sources import Hdf5DataSource as read"),
    "f.pth": (_pth, 200_000, PARAMETERS),
    "f.protobuf": (_protobuf, 20_000, PARAMETERS),
    "f.nntxt": (_nntxt, 30_000, NETWORK),
    "f.nnp": (_nnp, 30_000, NETWORK),
    "f.onnx": (_onnx, 30_000, "from nn_ext_onnx import load as read"),
    "f.prototxt": (_prototxt, 30_000, "from nn_ext_caffe import load as read"),
    "f.csv": (_csv, 300_000, "from nn_core.data.table import CsvDataSource as read"),
    "f.parquet": (_parquet, 100_000, "from nn_core.data.parquet import ParquetDataSource as read"),
    "f.tar": (_tar, 5_000, "from nn_core.data.tar import TarDataSource as read"),
    "checkpoint.npz": (_json_member, 2_000, "from nn_core.training.checkpoint import read_snapshot as read"),
}
