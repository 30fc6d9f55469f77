"""Messages of Caffe's files, by the published numbers of their fields; classes are made when they are first used."""

import re
from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

#: One message a line, which may go on on indented ones: fields as ``name=number type``, a star after repeated ones. Types are
#: scalars, enumerations or messages. Numbers of weights are declared as bytes, which repeated packed numbers are in files:
#: they are viewed as arrays.
MESSAGES: Final = """
BlobShape: dim=1 int64*
BlobProto: num=1 int32, channels=2 int32, height=3 int32, width=4 int32, data=5 bytes*, shape=7 BlobShape,
  double_data=8 bytes*
FillerParameter: type=1 string, value=2 float, min=3 float, max=4 float, mean=5 float, std=6 float, sparse=7 int32,
  variance_norm=8 Norm
NetState: phase=1 Phase, level=2 int32, stage=3 string*
NetStateRule: phase=1 Phase, min_level=2 int32, max_level=3 int32, stage=4 string*, not_stage=5 string*
ParamSpec: name=1 string, share_mode=2 ShareMode, lr_mult=3 float, decay_mult=4 float
TransformationParameter: scale=1 float, mirror=2 bool, crop_size=3 uint32, mean_file=4 string, mean_value=5 float*,
  force_color=6 bool, force_gray=7 bool
LossParameter: ignore_label=1 int32, normalize=2 bool, normalization=3 Normalization
AccuracyParameter: top_k=1 uint32, axis=2 int32, ignore_label=3 int32
ArgMaxParameter: out_max_val=1 bool, top_k=2 uint32, axis=3 int32
ConcatParameter: concat_dim=1 uint32, axis=2 int32
BatchNormParameter: use_global_stats=1 bool, moving_average_fraction=2 float, eps=3 float
BiasParameter: axis=1 int32, num_axes=2 int32, filler=3 FillerParameter
ConvolutionParameter: num_output=1 uint32, bias_term=2 bool, pad=3 uint32*, kernel_size=4 uint32*, group=5 uint32,
  stride=6 uint32*, weight_filler=7 FillerParameter, bias_filler=8 FillerParameter, pad_h=9 uint32, pad_w=10 uint32,
  kernel_h=11 uint32, kernel_w=12 uint32, stride_h=13 uint32, stride_w=14 uint32, engine=15 Engine, axis=16 int32,
  force_nd_im2col=17 bool, dilation=18 uint32*
CropParameter: axis=1 int32, offset=2 uint32*
DataParameter: source=1 string, scale=2 float, mean_file=3 string, batch_size=4 uint32, crop_size=5 uint32, mirror=6
  bool, rand_skip=7 uint32, backend=8 Database, force_encoded_color=9 bool, prefetch=10 uint32
DropoutParameter: dropout_ratio=1 float
DummyDataParameter: data_filler=1 FillerParameter*, num=2 uint32*, channels=3 uint32*, height=4 uint32*, width=5
  uint32*, shape=6 BlobShape*
EltwiseParameter: operation=1 Eltwise, coeff=2 float*, stable_prod_grad=3 bool
ELUParameter: alpha=1 float
ExpParameter: base=1 float, scale=2 float, shift=3 float
FlattenParameter: axis=1 int32, end_axis=2 int32
HDF5DataParameter: source=1 string, batch_size=2 uint32, shuffle=3 bool
ImageDataParameter: source=1 string, scale=2 float, mean_file=3 string, batch_size=4 uint32, crop_size=5 uint32,
  mirror=6 bool, rand_skip=7 uint32, shuffle=8 bool, new_height=9 uint32, new_width=10 uint32, is_color=11 bool,
  root_folder=12 string
InnerProductParameter: num_output=1 uint32, bias_term=2 bool, weight_filler=3 FillerParameter, bias_filler=4
  FillerParameter, axis=5 int32, transpose=6 bool
InputParameter: shape=1 BlobShape*
LogParameter: base=1 float, scale=2 float, shift=3 float
LRNParameter: local_size=1 uint32, alpha=2 float, beta=3 float, norm_region=4 NormRegion, k=5 float, engine=6 Engine
MemoryDataParameter: batch_size=1 uint32, channels=2 uint32, height=3 uint32, width=4 uint32
PoolingParameter: pool=1 Pool, kernel_size=2 uint32, stride=3 uint32, pad=4 uint32, kernel_h=5 uint32, kernel_w=6
  uint32, stride_h=7 uint32, stride_w=8 uint32, pad_h=9 uint32, pad_w=10 uint32, engine=11 Engine, global_pooling=12
  bool, round_mode=13 Rounding
PowerParameter: power=1 float, scale=2 float, shift=3 float
PReLUParameter: filler=1 FillerParameter, channel_shared=2 bool
ReductionParameter: operation=1 Reduction, axis=2 int32, coeff=3 float
ReLUParameter: negative_slope=1 float, engine=2 Engine
ReshapeParameter: shape=1 BlobShape, axis=2 int32, num_axes=3 int32
ScaleParameter: axis=1 int32, num_axes=2 int32, filler=3 FillerParameter, bias_term=4 bool, bias_filler=5
  FillerParameter
SigmoidParameter: engine=1 Engine
SliceParameter: slice_dim=1 uint32, slice_point=2 uint32*, axis=3 int32
SoftmaxParameter: engine=1 Engine, axis=2 int32
TanHParameter: engine=1 Engine
ThresholdParameter: threshold=1 float
TileParameter: axis=1 int32, tiles=2 int32
LayerParameter: name=1 string, type=2 string, bottom=3 string*, top=4 string*, loss_weight=5 float*, param=6
  ParamSpec*, blobs=7 BlobProto*, include=8 NetStateRule*, exclude=9 NetStateRule*, phase=10 Phase, propagate_down=11
  bool*
V1LayerParameter: bottom=2 string*, top=3 string*, name=4 string, type=5 LayerType, blobs=6 BlobProto*, blobs_lr=7
  float*, weight_decay=8 float*, include=32 NetStateRule*, exclude=33 NetStateRule*, loss_weight=35 float*, param=1001
  string*, blob_share_mode=1002 ShareMode*, layer=1 bytes
NetParameter: name=1 string, layers=2 V1LayerParameter*, input=3 string*, input_dim=4 int32*, force_backward=5 bool,
  state=6 NetState, debug_info=7 bool, input_shape=8 BlobShape*, layer=100 LayerParameter*
"""
#: Enumerations: names and numbers.
ENUMS: Final = """
Phase: TRAIN=0, TEST=1
ShareMode: STRICT=0, PERMISSIVE=1
Norm: FAN_IN=0, FAN_OUT=1, AVERAGE=2
Normalization: FULL=0, VALID=1, BATCH_SIZE=2, NONE_OF_ALL=3
Engine: DEFAULT=0, CAFFE=1, CUDNN=2
Database: LEVELDB=0, LMDB=1
Eltwise: PROD=0, SUM=1, MAX=2
NormRegion: ACROSS_CHANNELS=0, WITHIN_CHANNEL=1
Pool: MAX=0, AVE=1, STOCHASTIC=2
Rounding: CEIL=0, FLOOR=1
Reduction: SUM=1, ASUM=2, SUMSQ=3, MEAN=4
LayerType: NONE=0, ACCURACY=1, BNLL=2, CONCAT=3, CONVOLUTION=4, DATA=5, DROPOUT=6, EUCLIDEAN_LOSS=7, FLATTEN=8,
  HDF5_DATA=9, HDF5_OUTPUT=10, IM2COL=11, IMAGE_DATA=12, INFOGAIN_LOSS=13, INNER_PRODUCT=14, LRN=15,
  MULTINOMIAL_LOGISTIC_LOSS=16, POOLING=17, RELU=18, SIGMOID=19, SOFTMAX=20, SOFTMAX_LOSS=21, SPLIT=22, TANH=23,
  WINDOW_DATA=24, ELTWISE=25, POWER=26, SIGMOID_CROSS_ENTROPY_LOSS=27, HINGE_LOSS=28, MEMORY_DATA=29, ARGMAX=30,
  THRESHOLD=31, DUMMY_DATA=32, SLICE=33, MVN=34, ABSVAL=35, SILENCE=36, CONTRASTIVE_LOSS=37, EXP=38, DECONVOLUTION=39
"""
#: The settings of layers: their numbers in a layer, and in one of the older kind; None where these have none.
SETTINGS: Final[dict[str, tuple[int, int | None]]] = {
    "TransformationParameter": (100, 36),
    "LossParameter": (101, 42),
    "AccuracyParameter": (102, 27),
    "ArgMaxParameter": (103, 23),
    "ConcatParameter": (104, 9),
    "ConvolutionParameter": (106, 10),
    "DataParameter": (107, 11),
    "DropoutParameter": (108, 12),
    "DummyDataParameter": (109, 26),
    "EltwiseParameter": (110, 24),
    "ExpParameter": (111, 41),
    "HDF5DataParameter": (112, 13),
    "ImageDataParameter": (115, 15),
    "InnerProductParameter": (117, 17),
    "LRNParameter": (118, 18),
    "MemoryDataParameter": (119, 22),
    "PoolingParameter": (121, 19),
    "PowerParameter": (122, 21),
    "ReLUParameter": (123, 30),
    "SigmoidParameter": (124, 38),
    "SoftmaxParameter": (125, 39),
    "SliceParameter": (126, 31),
    "TanHParameter": (127, 37),
    "ThresholdParameter": (128, 25),
    "PReLUParameter": (131, None),
    "ReshapeParameter": (133, None),
    "LogParameter": (134, None),
    "FlattenParameter": (135, None),
    "ReductionParameter": (136, None),
    "TileParameter": (138, None),
    "BatchNormParameter": (139, None),
    "ELUParameter": (140, None),
    "BiasParameter": (141, None),
    "ScaleParameter": (142, None),
    "InputParameter": (143, None),
    "CropParameter": (144, None),
}
#: Names of fields without an underscore that their messages have capitals for, or the other way round.
_JOINED: Final = {"re_lu": "relu", "pre_lu": "prelu", "tan_h": "tanh", "arg_max": "argmax", "hdf5data": "hdf5_data"}
_NAMES: Final = {"TransformationParameter": "transform_param"}

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "uint32": _Field.TYPE_UINT32,
    "bool": _Field.TYPE_BOOL,
    "float": _Field.TYPE_FLOAT,
}


def field_of(settings: str) -> str:
    """Return the field of a layer that has some settings: "inner_product_param" for "InnerProductParameter"."""
    name = settings.removesuffix("Parameter")
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    joined = _JOINED.get(parts, parts)
    return _NAMES.get(settings, f"{joined}_param")


@cache
def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="nn_ext_caffe.proto", package="nn_ext_caffe", syntax="proto2")
    enums = {}
    for name, entries in _lines(ENUMS):
        made = enums[name] = file.message_type.add(name=name).enum_type.add(name="Of")
        for entry in entries:
            label, number = entry.split("=")
            made.value.add(name=label, number=int(number))
    for name, entries in _lines(MESSAGES):
        message = file.message_type.add(name=name)
        for entry in entries:
            label, number, kind = re.split("[= ]", entry)
            _add(message, label, int(number), kind)
        for settings, numbers in SETTINGS.items():
            own = numbers[name == "V1LayerParameter"]
            if name in ("LayerParameter", "V1LayerParameter") and own is not None:
                _add(message, field_of(settings), own, settings)
    return file


def _lines(table: str) -> list[tuple[str, list[str]]]:
    found = []
    for line in re.sub(r"\n +", " ", table.strip()).splitlines():
        name, _, entries = line.partition(": ")
        found.append((name, entries.split(", ")))
    return found


_ENUM_NAMES: Final = frozenset(name for name, _ in _lines(ENUMS))


def _add(message: descriptor_pb2.DescriptorProto, name: str, number: int, kind: str) -> None:
    """Add a field to a message."""
    is_repeated, kind = kind.endswith("*"), kind.rstrip("*")
    field = message.field.add(name=name, number=number)
    field.label = _Field.LABEL_REPEATED if is_repeated else _Field.LABEL_OPTIONAL
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    elif kind in _ENUM_NAMES:
        field.type, field.type_name = _Field.TYPE_ENUM, f".nn_ext_caffe.{kind}.Of"
    else:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".nn_ext_caffe.{kind}"


@cache
def _classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file())
    names = [name for name, _ in _lines(MESSAGES)]
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"nn_ext_caffe.{name}")) for name in names}


def message(name: str, **fields: Any) -> Any:
    """Return a new message, such as a "NetParameter"."""
    return _classes()[name](**fields)
