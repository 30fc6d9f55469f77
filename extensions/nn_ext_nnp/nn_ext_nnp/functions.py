"""The functions of NNP files: name, stem of the parameter field, and settings, in the order that numbers them.

The parameter field of row n (from 0) has the number 1001 + n, the settings of a function are numbered from 1. A new
function of NNabla shifts the numbers of those after it, so binary networks belong to one version of NNabla; these
numbers are those of 1.39. Without a colon, a function has no parameter field. Types are those of `nn_ext_nnp.schema`.
"""

from typing import Final

FUNCTIONS: Final = """
Affine affine: base_axis:i
RNN rnn: num_layers:i nonlinearity:s dropout:f bidirectional:b training:b
LSTM lstm: num_layers:i dropout:f bidirectional:b training:b
GRU gru: num_layers:i dropout:f bidirectional:b training:b
Convolution convolution: base_axis:i pad:Shape stride:Shape dilation:Shape group:i channel_last:b
FusedConvolution fused_convolution: base_axis:i pad:Shape stride:Shape dilation:Shape group:i channel_last:b
    decay_rate:f eps:f batch_stat:b nonlinearity:s nonlinearity_args:f* pad_mode:s constant_value:f
DepthwiseConvolution depthwise_convolution: base_axis:i pad:Shape stride:Shape dilation:Shape multiplier:i
Deconvolution deconvolution: base_axis:i pad:Shape stride:Shape dilation:Shape group:i channel_last:b
    output_padding:Shape
DepthwiseDeconvolution depthwise_deconvolution: base_axis:i pad:Shape stride:Shape dilation:Shape divisor:i
DeformableConvolution deformable_convolution: base_axis:i pad:Shape stride:Shape dilation:Shape group:i
    deformable_group:i channel_last:b
AdaptiveSeparableConvolution adaptive_separable_convolution
MaxPooling max_pooling: kernel:Shape stride:Shape ignore_border:b pad:Shape channel_last:b
AveragePooling average_pooling: kernel:Shape stride:Shape ignore_border:b pad:Shape channel_last:b including_pad:b
GlobalAveragePooling global_average_pooling
SumPooling sum_pooling: kernel:Shape stride:Shape ignore_border:b pad:Shape channel_last:b
Unpooling unpooling: kernel:Shape channel_last:b
Embed embed
RoiAlign roi_align: output_size:Shape spatial_scale:f* sampling_ratio:i channel_last:b
Sigmoid sigmoid
Swish swish
Tanh tanh
ReLU relu: inplace:b
LeakyReLU leaky_relu: alpha:f inplace:b
Softmax softmax: axis:i
LogSoftmax log_softmax: axis:i
ELU elu: alpha:d
SELU selu: scale:d alpha:d
CReLU crelu: axis:i
CELU celu: alpha:d axis:i
PReLU prelu: base_axis:i
GELU gelu
Mish mish
ReLU6 relu6
HardSigmoid hard_sigmoid
HardTanh hard_tanh
LogSigmoid log_sigmoid
SoftPlus softplus: beta:d
SoftSign softsign
TanhShrink tanh_shrink
Sinc sinc
FusedBatchNormalization fused_batch_normalization: axes:i* decay_rate:f eps:f batch_stat:b nonlinearity:s
BatchNormalization batch_normalization: axes:i* decay_rate:f eps:f batch_stat:b no_scale:b no_bias:b
GroupNormalization group_normalization: num_groups:i channel_axis:i batch_axis:i* eps:f no_scale:b no_bias:b
InstanceNormalization instance_normalization: channel_axis:i batch_axis:i* eps:f no_scale:b no_bias:b
LayerNormalization layer_normalization: batch_axis:i* eps:f no_scale:b no_bias:b
NormNormalization norm_normalization: p:f axes:i* eps:f
SyncBatchNormalization sync_batch_normalization: comm:Communicator group:s axes:i* decay_rate:f eps:f batch_stat:b
TensorNormalization tensor_normalization: axes:i* eps:f no_scale:b no_bias:b
WeightNormalization weight_normalization: dim:i eps:f
WeightStandardization weight_standardization: channel_axis:i eps:f
SpectralNorm spectral_norm: dim:i itr:i eps:f test:b output_u:b
MeanSubtraction mean_subtraction: base_axis:i update_running_mean:b
ClipGradByValue clip_grad_by_value
ClipGradByNorm clip_grad_by_norm: clip_norm:f axes:i*
Sum sum: axes:i* keep_dims:b
CumSum cumsum: axis:i exclusive:b reverse:b
Mean mean: axes:i* keep_dims:b
Max max: axes:i* keep_dims:b with_index:b only_index:b
Min min: axes:i* keep_dims:b with_index:b only_index:b
Norm norm: p:f axes:i* keep_dims:b
Prod prod: axes:i* keep_dims:b
CumProd cumprod: axis:i exclusive:b reverse:b
ReduceSum reduce_sum
ReduceMean reduce_mean
Add2 add2: inplace:b
AddN add_n
BcAdd2 bc_add2: inplace:b
Sub2 sub2: inplace:b
Mul2 mul2: inplace:b
MulN mul_n
Div2 div2: inplace:b
Pow2 pow2: inplace:b
AddScalar add_scalar: val:d inplace:b
MulScalar mul_scalar: val:d inplace:b
PowScalar pow_scalar: val:d inplace:b
RSubScalar r_sub_scalar: val:d
RDivScalar r_div_scalar: val:d
RPowScalar r_pow_scalar: val:d
Sign sign: alpha:f
Minimum2 minimum2
Maximum2 maximum2
MinimumScalar minimum_scalar: val:d
MaximumScalar maximum_scalar: val:d
LogicalAnd logical_and
LogicalOr logical_or
LogicalXor logical_xor
Equal equal
NotEqual not_equal
GreaterEqual greater_equal
Greater greater
LessEqual less_equal
Less less
SearchSorted searchsorted: right:b
LogicalAndScalar logical_and_scalar: val:b
LogicalOrScalar logical_or_scalar: val:b
LogicalXorScalar logical_xor_scalar: val:b
EqualScalar equal_scalar: val:d
NotEqualScalar not_equal_scalar: val:d
GreaterEqualScalar greater_equal_scalar: val:d
GreaterScalar greater_scalar: val:d
LessEqualScalar less_equal_scalar: val:d
LessScalar less_scalar: val:d
LogicalNot logical_not
IsNaN isnan
IsInf isinf
ResetNaN reset_nan: val:d
ResetInf reset_inf: val:d
Where where
Constant constant: val:f shape:Shape
Arange arange: start:f stop:f step:f
Linspace linspace: start:f stop:f num:i
Abs abs
Exp exp
Log log
Identity identity
BatchMatmul batch_matmul: transpose_a:b transpose_b:b
Round round:
Ceil ceil:
Floor floor:
Sin sin
Cos cos
Tan tan
Sinh sinh
Cosh cosh
ASin asin
ACos acos
ATan atan
ATan2 atan2
ASinh asinh
ACosh acosh
ATanh atanh
Erf erf
Concatenate concatenate: axis:i
Split split: axis:i
Stack stack: axis:i
Slice slice: start:i* stop:i* step:i*
Pad pad: pad_width:i* mode:s constant_value:f
Transpose transpose: axes:i*
Broadcast broadcast: shape:Shape
BroadcastTo broadcast_to: axis:i
Tile tile: reps:i*
OneHot one_hot: shape:Shape
Flip flip: axes:i*
Shift shift: shifts:i* border_mode:s
Sort sort: axis:i reverse:b with_index:b only_index:b
Reshape reshape: shape:Shape inplace:b
Shape shape: start:i end:i
MatrixDiag matrix_diag
MatrixDiagPart matrix_diag_part
Trilu trilu: k:i upper:b
Meshgrid meshgrid: ij_indexing:b
BatchDet batch_det
BatchInv batch_inv
BatchLogdet batch_logdet
BatchCholesky batch_cholesky: upper:b
Assign assign
Gather gather: axis:i batch_dims:i
GatherNd gather_nd
BoolGather bool_gather
ScatterNd scatter_nd: shape:i* add:b
ScatterAdd scatter_add: axis:i
BoolScatter bool_scatter
BoolFill bool_fill: value:f
PackPaddedSequence pack_padded_sequence: batch_first:b
PadPackedSequence pad_packed_sequence: batch_first:b padding_value:f total_length:i
NonZero nonzero
Interpolate interpolate: output_size:i* mode:s align_corners:b half_pixel:b half_pixel_for_nn:b channel_last:b
ONNXResize onnx_resize: roi:f* scales:f* sizes:i* mode:s coordinate_transformation_mode:s cubic_coeff_a:f
    exclude_outside:i extrapolation_value:f nearest_mode:s
FFT fft: signal_ndim:i normalized:b
IFFT ifft: signal_ndim:i normalized:b
STFT stft: window_size:i stride:i fft_size:i window_type:s center:b pad_mode:s as_istft_backward:b
ISTFT istft: window_size:i stride:i fft_size:i window_type:s center:b pad_mode:s as_stft_backward:b
Dropout dropout: p:d seed:i
TopKData top_k_data: k:i abs:b reduce:b base_axis:i largest:b with_index:b
TopKGrad top_k_grad: k:i abs:b base_axis:i
Rand rand: low:f high:f shape:Shape seed:i
Randint randint: low:i high:i shape:Shape seed:i
Randn randn: mu:f sigma:f shape:Shape seed:i
RandBinomial rand_binomial: n:i p:f shape:Shape seed:i
RandBeta rand_beta: alpha:f beta:f shape:Shape seed:i
RandGamma rand_gamma: k:f theta:f shape:Shape seed:i
RandomChoice random_choice: shape:Shape replace:b seed:i
RandomCrop random_crop: shape:Shape base_axis:i seed:i
RandomFlip random_flip: axes:i* base_axis:i seed:i
RandomShift random_shift: shifts:i* border_mode:s constant_value:f base_axis:i seed:i
RandomErase random_erase: prob:f area_ratios:f* aspect_ratios:f* replacements:f* n:i share:b inplace:b base_axis:i
    seed:i channel_last:b ste_fine_grained:b
ImageAugmentation image_augmentation: shape:Shape pad:Shape min_scale:f max_scale:f angle:f aspect_ratio:f
    distortion:f flip_lr:b flip_ud:b brightness:f brightness_each:b contrast:f contrast_center:f contrast_each:b
    noise:f seed:i
SigmoidCrossEntropy sigmoid_cross_entropy
BinaryCrossEntropy binary_cross_entropy
SoftmaxCrossEntropy softmax_cross_entropy: axis:i
CategoricalCrossEntropy categorical_cross_entropy: axis:i
SquaredError squared_error
AbsoluteError absolute_error
HuberLoss huber_loss: delta:f
EpsilonInsensitiveLoss epsilon_insensitive_loss: epsilon:f
KLMultinomial kl_multinomial: base_axis:i
AffineGrid affine_grid: size:i* align_corners:b
WarpByGrid warp_by_grid: mode:s padding_mode:s align_corners:b channel_last:b
WarpByFlow warp_by_flow
BinarySigmoid binary_sigmoid
BinaryTanh binary_tanh
BinaryConnectAffine binary_connect_affine: base_axis:i quantize_zero_to:f
BinaryConnectConvolution binary_connect_convolution: base_axis:i pad:Shape stride:Shape dilation:Shape group:i
    quantize_zero_to:f
BinaryWeightAffine binary_weight_affine: base_axis:i quantize_zero_to:f
BinaryWeightConvolution binary_weight_convolution: base_axis:i pad:Shape stride:Shape dilation:Shape group:i
    quantize_zero_to:f
INQAffine inq_affine: base_axis:i num_bits:i inq_iterations:i* selection_algorithm:s seed:i
INQConvolution inq_convolution: base_axis:i pad:Shape stride:Shape dilation:Shape group:i num_bits:i
    inq_iterations:i* selection_algorithm:s seed:i
FixedPointQuantize fixed_point_quantize: sign:b n:i delta:f ste_fine_grained:b
MinMaxQuantize min_max_quantize: decay:f x_min_max:b ema:b ste_fine_grained:b eps:f
Pow2Quantize pow2_quantize: sign:b with_zero:b n:i m:i ste_fine_grained:b
Prune prune: rate:f
QuantizeLinear quantize_linear: round_mode:s narrow_range:b dtype:i
DequantizeLinear dequantize_linear
TopNError top_n_error: axis:i n:i
BinaryError binary_error
ConfusionMatrix confusion_matrix: axis:i
VATNoise vat_noise: base_axis:i eps:f
Unlink unlink
Sink sink: one_input_grad:b
NmsDetection2d nms_detection2d: thresh:f nms:f nms_per_class:b
ONNXNonMaxSuppression onnx_non_max_suppression: center_point_box:i max_output_boxes_per_class:i iou_threshold:f
    score_threshold:f
MaxPoolingBackward max_pooling_backward: kernel:Shape stride:Shape ignore_border:b pad:Shape channel_last:b
PatchCorrelation patch_correlation: patch:Shape shift:Shape patch_step:Shape shift_step:Shape padding:Shape
Unique unique: flatten:b axis:i sorted:b with_index:b with_inverse:b with_counts:b
EyeLike eye_like: k:i
Mod2 mod2: fmod:b
BitShift bit_shift: direction:s
Einsum einsum: equation:s
"""
