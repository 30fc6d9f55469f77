"""The functions that NNB files can hold."""

from dataclasses import dataclass
from functools import cache
from typing import Final

#: Name, identifier with the settings of NNabla 1.39, API level that has it; + when NNabla's C runtime computes it. NNabla also
#: lists AddN, MulN, TensorNormalization and Trilu, which the runtime has under their names only: they compute nothing.
_TABLE: Final = """
Affine:0:1+ RNN:244:2 LSTM:242:2 GRU:243:2 Convolution:265:4+ DepthwiseConvolution:2:1+ Deconvolution:292:15+
DepthwiseDeconvolution:4:1 DeformableConvolution:329:30 AdaptiveSeparableConvolution:278:7 MaxPooling:266:4+
AveragePooling:267:4+ GlobalAveragePooling:7:1 SumPooling:268:4+ Unpooling:287:13+ Embed:10:1 Sigmoid:11:1+
Swish:12:1+ Tanh:13:1+ ReLU:14:1+ LeakyReLU:128:2+ Softmax:16:1+ LogSoftmax:269:4 ELU:17:1+ SELU:18:1+ CReLU:19:1+
CELU:20:1+ PReLU:21:1+ GELU:245:2 ReLU6:256:2 HardTanh:261:4 LogSigmoid:251:2 SoftPlus:335:33 SoftSign:253:2
TanhShrink:254:2 Sinc:255:2 FusedBatchNormalization:270:4 BatchNormalization:326:28+ GroupNormalization:321:27
InstanceNormalization:322:27 LayerNormalization:323:27 NormNormalization:317:23 TensorNormalization:324:27
WeightNormalization:304:19 WeightStandardization:325:27 SpectralNorm:337:35 MeanSubtraction:23:1+
ClipGradByValue:121:1 ClipGradByNorm:122:1 Sum:24:1+ Mean:25:1 Max:132:2 Min:130:2 Norm:318:24 Prod:28:1
ReduceSum:29:1 ReduceMean:30:1 Add2:31:1+ AddN:281:10 BcAdd2:307:21 Sub2:308:21+ Mul2:309:21+ MulN:282:10
Div2:310:21+ Pow2:311:21+ AddScalar:312:21+ MulScalar:313:21+ PowScalar:314:21+ RSubScalar:40:1+ RDivScalar:41:1+
RPowScalar:42:1+ Sign:43:1+ Minimum2:44:1+ Maximum2:45:1+ MinimumScalar:46:1+ MaximumScalar:47:1+ LogicalAnd:48:1
LogicalOr:49:1 LogicalXor:50:1 Equal:51:1 NotEqual:52:1 GreaterEqual:53:1 Greater:54:1 LessEqual:55:1 Less:56:1
LogicalAndScalar:57:1 LogicalOrScalar:58:1 LogicalXorScalar:59:1 EqualScalar:60:1 NotEqualScalar:61:1
GreaterEqualScalar:62:1 GreaterScalar:63:1 LessEqualScalar:64:1 LessScalar:65:1 LogicalNot:66:1 IsNaN:236:2
IsInf:237:2 ResetNaN:238:2 ResetInf:239:2 Where:240:2 Constant:67:1 Arange:131:2 Linspace:343:38 Abs:68:1+ Exp:69:1+
Log:70:1+ Identity:71:1+ BatchMatmul:72:1+ Round:73:1+ Ceil:124:1 Floor:125:1 Sin:173:2 Cos:174:2 Tan:175:2 Sinh:176:2
Cosh:177:2 ASin:178:2 ACos:179:2 ATan:180:2 ATan2:241:2 ASinh:181:2 ACosh:182:2 ATanh:183:2 Erf:349:42
Concatenate:74:1+ Split:75:1+ Stack:76:1+ Slice:77:1+ Pad:123:1+ Transpose:78:1+ Broadcast:79:1 BroadcastTo:184:2
Tile:247:2 OneHot:80:1 Flip:81:1+ Shift:82:1+ Sort:129:2 Reshape:126:2+ Shape:348:41 MatrixDiag:84:1+
MatrixDiagPart:85:1+ Trilu:360:45 Meshgrid:334:32 BatchDet:276:5 BatchInv:275:5 BatchLogdet:319:25
BatchCholesky:347:41 Assign:248:2 GatherNd:264:4 BoolGather:339:36 ScatterNd:342:37 ScatterAdd:315:22
BoolScatter:340:36 BoolFill:341:36 PackPaddedSequence:305:20 PadPackedSequence:306:20 NonZero:351:44
Interpolate:291:14 FFT:158:2 IFFT:159:2 STFT:344:39 ISTFT:345:39 Dropout:336:34+ TopKData:350:43 TopKGrad:88:1
Rand:89:1 Randint:90:1 Randn:91:1 RandBinomial:289:13 RandBeta:288:13 RandGamma:290:13 RandomChoice:246:2
RandomCrop:92:1 RandomFlip:93:1 RandomShift:320:26 ImageAugmentation:95:1 SigmoidCrossEntropy:96:1
BinaryCrossEntropy:97:1 SoftmaxCrossEntropy:98:1 CategoricalCrossEntropy:99:1 SquaredError:100:1 AbsoluteError:101:1
HuberLoss:102:1 EpsilonInsensitiveLoss:103:1 KLMultinomial:104:1 AffineGrid:296:18 WarpByGrid:297:18 WarpByFlow:277:5
BinarySigmoid:105:1+ BinaryTanh:106:1+ BinaryConnectAffine:235:2+ BinaryConnectConvolution:233:2+
BinaryWeightAffine:234:2+ BinaryWeightConvolution:232:2+ INQAffine:111:1 INQConvolution:112:1 FixedPointQuantize:113:1
MinMaxQuantize:274:6 Pow2Quantize:114:1 Prune:135:2 QuantizeLinear:293:16 DequantizeLinear:294:16 TopNError:115:1
BinaryError:116:1 ConfusionMatrix:117:1 VATNoise:118:1 Unlink:119:1 Sink:120:1 NmsDetection2d:231:2
ONNXNonMaxSuppression:353:44 MaxPoolingBackward:272:4 PatchCorrelation:280:9 Unique:358:44 EyeLike:354:44 Mod2:355:44
BitShift:356:44 Einsum:359:44
"""
#: Functions that NNabla's API levels do not have, or whose settings NNB files cannot hold.
REASONS: Final = {
    "HardSigmoid": "its settings in NNB files are not those of NNP files",
    "Einsum": "NNB files hold numbers of choices in place of texts, and its equation is free",
    **dict.fromkeys(("FusedConvolution", "ONNXResize", "RandomErase"), "it has a list of real numbers as setting"),
    **dict.fromkeys(
        ("BinaryConnectAffine", "BinaryConnectConvolution", "BinaryWeightAffine", "BinaryWeightConvolution"),
        "NNB files hold its binary weights only, and those of the parameters may not be up to date",
    ),
}
#: Functions that the C runtime has and computes wrongly.
FAULTS: Final = {
    "BatchMatmul": (
        "NNabla's C runtime adds its products to what the memory of the result holds, and transposes its inputs where they are"
    ),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A function of NNB files.

    Attributes:
        name: "Convolution".
        number: its identifier.
        level: the first API level that has it.
        runs: whether NNabla's C runtime computes it.
    """

    name: str
    number: int
    level: int
    runs: bool


@cache
def by_name() -> dict[str, Entry]:
    """Return the functions by name."""
    rows = (row.split(":") for row in _TABLE.split())
    return {
        name: Entry(name, int(number), int(level.rstrip("+")), level.endswith("+"))
        for name, number, level in rows
        if name not in REASONS
    }


@cache
def by_number() -> dict[int, Entry]:
    """Return the functions by identifier."""
    return {entry.number: entry for entry in by_name().values()}


def reason_against(name: str) -> str:
    """Return the reason for which a function cannot be written."""
    return FAULTS.get(name) or REASONS.get(name, "NNabla's API levels do not have it")
