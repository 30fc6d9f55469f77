"""The table of cuDNN's functions against its headers, descriptors against the library, and installations without parts."""

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import pytest

from nn_core.ext import Refusal
from nn_ext_cudnn import library
from nn_ext_cudnn.legacy import api, descriptors
from nn_ext_cudnn.legacy.images import Image, channels_last, image

C_TYPES = {"int": "c_int", "int32_t": "c_int", "double": "c_double", "float": "c_float", "size_t": "c_ulong"}
C_TYPES |= {"uint32_t": "c_uint", "unsigned long long": "c_ulong"}


def _folder():
    spec = find_spec("nvidia.cudnn") if find_spec("nvidia") else None
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("cuDNN is not installed (package nvidia-cudnn-cu12 or nvidia-cudnn-cu13)")
    return Path(next(iter(spec.submodule_search_locations)))


@pytest.fixture
def true_library():
    """The installed libcudnn; what does not need a device works without one."""
    _folder()
    library.library.cache_clear()
    yield library.library()
    library.library.cache_clear()


def _header(*names):
    texts = [(_folder() / "include" / name).read_text() for name in names]
    return re.sub(r"/\*.*?\*/", "", "\n".join(texts), flags=re.DOTALL)


def _kind(parameter):
    """The C type that ctypes needs for a parameter of a header."""
    text = re.sub(r"\b(const|struct)\b", "", parameter).strip()
    if "[" in text or re.match(r"(int|size_t|int32_t)\s*\*", text):
        base = text.split()[0].rstrip("*")
        return "c_void_p" if "devSeqLengths" in text else f"LP_{C_TYPES[base]}"
    if re.match(r"void\s*\*\*|cudnn\w+Descriptor_t\s*\*", text):
        return "LP_c_void_p"
    if re.match(r"cudnnDataType_t\s*\*", text):
        return "LP_c_int"
    if "*" in text or re.match(r"cudnn(Handle|\w*Descriptor)_t", text):
        return "c_void_p"
    base = re.sub(r"\s+\w+$", "", text)
    return "c_int" if base.startswith("cudnn") else C_TYPES[base]


@pytest.mark.parametrize("table", ["OPS", "ADV"])
def test_signatures_are_those_of_the_headers(table):
    text = _header("cudnn_ops.h", "cudnn_adv.h")
    for name, kinds in getattr(api, table).items():
        (parameters,) = re.findall(rf"\b{name}\(([^)]*)\);", text)
        declared = [] if parameters.strip() == "void" else [_kind(part) for part in parameters.split(",")]
        assert [kind.__name__ for kind in kinds] == declared, name


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (api.DATA_TYPES["float32"], "CUDNN_DATA_FLOAT"),
        (api.DATA_TYPES["float64"], "CUDNN_DATA_DOUBLE"),
        (api.DATA_TYPES["float16"], "CUDNN_DATA_HALF"),
        (api.DATA_TYPES["bfloat16"], "CUDNN_DATA_BFLOAT16"),
        (api.Softmax.ACCURATE, "CUDNN_SOFTMAX_ACCURATE"),
        (api.Softmax.LOG, "CUDNN_SOFTMAX_LOG"),
        (api.SOFTMAX_OVER_CHANNELS, "CUDNN_SOFTMAX_MODE_CHANNEL"),
        (api.Pooling.MAX, "CUDNN_POOLING_MAX"),
        (api.Pooling.AVERAGE_WITH_PADDING, "CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING"),
        (api.Pooling.AVERAGE_WITHOUT_PADDING, "CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING"),
        (api.PROPAGATE_NAN, "CUDNN_PROPAGATE_NAN CUDNN_DEPRECATED_ENUM"),
        (api.BatchNorm.PER_ACTIVATION, "CUDNN_BATCHNORM_PER_ACTIVATION"),
        (api.BatchNorm.SPATIAL, "CUDNN_BATCHNORM_SPATIAL"),
        (api.BatchNorm.SPATIAL_PERSISTENT, "CUDNN_BATCHNORM_SPATIAL_PERSISTENT"),
        (api.NORMALIZE_ONLY, "CUDNN_BATCHNORM_OPS_BN"),
        (api.Cell.RELU, "CUDNN_RNN_RELU"),
        (api.Cell.TANH, "CUDNN_RNN_TANH"),
        (api.Cell.LSTM, "CUDNN_LSTM"),
        (api.Cell.GRU, "CUDNN_GRU"),
        (api.Bias.NONE, "CUDNN_RNN_NO_BIAS"),
        (api.Bias.INPUT, "CUDNN_RNN_SINGLE_INP_BIAS"),
        (api.Bias.BOTH, "CUDNN_RNN_DOUBLE_BIAS"),
        (api.Math.DEFAULT, "CUDNN_DEFAULT_MATH"),
        (api.Math.TENSOR_OP, "CUDNN_TENSOR_OP_MATH"),
        (api.Math.FMA, "CUDNN_FMA_MATH"),
        (api.RNN_STANDARD, "CUDNN_RNN_ALGO_STANDARD"),
        (api.RNN_LINEAR_INPUT, "CUDNN_LINEAR_INPUT"),
        (api.RNN_STEPS_OUTERMOST, "CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED"),
        (api.RNN_INFERENCE, "CUDNN_FWD_MODE_INFERENCE"),
        (api.RNN_TRAINING, "CUDNN_FWD_MODE_TRAINING"),
        (api.RNN_ADD_GRADIENTS, "CUDNN_WGRAD_MODE_ADD"),
    ],
)  # fmt: skip
def test_constants_are_those_of_the_headers(value, name):
    assert re.search(rf"\b{name}\s*=\s*{int(value)}\b", _header("cudnn_ops.h", "cudnn_adv.h", "cudnn_graph.h"))


def test_tensors_are_what_was_described(true_library):
    dims, strides = (2, 3, 4, 5), (60, 1, 15, 3)
    assert descriptors.layout_of(descriptors.tensor("float16", dims, strides)) == (2, dims, strides)
    assert descriptors.layout_of(descriptors.tensor("bfloat16", dims)) == (9, dims, (60, 20, 5, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("strides", [(60, 20, 5, 1), (60, 1, 15, 3)])
def test_parameters_of_a_batch_normalization_are_wide(true_library, dtype, strides):
    x = descriptors.tensor(dtype, (2, 3, 4, 5), strides)
    kind = 1 if dtype == "float64" else 0
    for mode in (api.BatchNorm.SPATIAL, api.BatchNorm.SPATIAL_PERSISTENT):
        assert descriptors.layout_of(descriptors.parameters_of(x, mode)) == (kind, (1, 3, 1, 1), (3, 1, 1, 1))


def test_poolings_have_the_shape_of_the_specification(true_library):
    from nn_core.operators.rules.pooling import pooling_shape

    for length, size, step, edge in product((5, 8, 11), (1, 2, 3, 4), (1, 2, 3, 5), (0, 1, 2)):
        if edge >= size or size > length + 2 * edge:
            continue
        pooling = descriptors.pooling(api.Pooling.MAX, (size, 2), (edge, 0), (step, 2))
        settings = {"kernel": (size, 2), "stride": (step, 2), "pad": (edge, 0), "channel_last": False}
        (shape,) = pooling_shape((2, 3, length, 6), ignore_border=True, **settings)
        assert descriptors.pooled(pooling, descriptors.tensor("float32", (2, 3, length, 6)), 4) == shape


def test_installations_of_the_graphs_alone_refuse_with_the_remedy(tmp_path):
    """The content of the wheels of the engines made at run time, in a process of its own, which loads nothing else."""
    installed = _folder() / "lib"
    shutil.copy(installed / library.SONAME, tmp_path)
    for name in ("libcudnn_graph.so.9", "libcudnn_engines_runtime_compiled.so.9"):
        (tmp_path / name).symlink_to(installed / name)
    program = "from nn_ext_cudnn.legacy import api; print(api.refuse_part('ops'), api.refuse_part('adv'))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {[path for path in sys.path if path]!r}; {program}"],
        env={"CUDNN_LIB_CONFIG": "GRAPH_JIT_ONLY", "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("SUBLIBRARY_UNAVAILABLE") == 2
    assert done.stdout.count("pip install nvidia-cudnn-cu13") == 2


def test_a_missing_part_is_refused(cudnn):
    assert api.refuse_part("ops") is None
    cudnn.parts[1].missing = True
    api._refusal.cache_clear()
    refusal = api.refuse_part("ops")
    assert isinstance(refusal, Refusal)
    assert "needs libcudnn_ops, which this cuDNN lacks (cudnnOpsVersionCheck: status must be success" in refusal.reason
    api._refusal.cache_clear()


def test_descriptors_are_destroyed_with_their_holders(cudnn):
    objects = cudnn.parts[1].registry.objects
    held = descriptors.tensor("float32", (1, 2, 3))
    assert len(objects) == 1
    del held
    assert not objects


def test_images_have_two_spatial_axes_or_three():
    from nn_core.ext import ArrayDesc

    def of(shape, n_spatial, **settings):
        seen = image(ArrayDesc(shape, "float32"), n_spatial, **settings)
        return seen.dims, seen.strides

    assert of((2, 3, 4, 5), 2) == ((2, 3, 4, 5), (60, 20, 5, 1))
    assert of((2, 3, 5), 1) == ((2, 3, 1, 5), (15, 5, 5, 1))
    assert of((4, 5), 2) == ((1, 1, 4, 5), (20, 20, 5, 1))
    assert of((7, 2, 3, 4, 5), 2) == ((14, 3, 4, 5), (60, 20, 5, 1))
    assert of((2, 4, 5, 3), 2, channel_last=True) == ((2, 3, 4, 5), (60, 1, 15, 3))
    assert of((2, 5, 3), 1, channel_last=True) == ((2, 3, 1, 5), (15, 1, 15, 3))
    assert of((2, 3, 4, 5, 6), 3) == ((2, 3, 4, 5, 6), (360, 120, 30, 6, 1))
    laid_out = image(channels_last(ArrayDesc((2, 3, 4, 5), "float16")), 2)
    assert laid_out == Image((2, 3, 4, 5), (60, 1, 15, 3), "float16")
    assert laid_out.layout == "channels_last"
    assert image(ArrayDesc((2, 3, 1, 1), "float32"), 2).layout == "either"
