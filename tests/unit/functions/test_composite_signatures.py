"""The public signatures of nn_core.functions: names, order and defaults of arguments that programs rely on."""

import inspect
import re

import pytest

import nn_core.functions as F

# name: arguments, defaults as they are written; a long line continues in an indented one
SIGNATURES = """
abs: x
absolute_error: x0 x1
acos: x
acosh: x
adaptive_separable_convolution: x vertical_kernel horizontal_kernel
add2: x0 x1 inplace=False
add_n: *x
add_scalar: x val=1 inplace=False
affine: x weight bias=None base_axis=1
affine_grid: theta size align_corners=False
arange: start stop step=1
asin: x
asinh: x
assign: dst src
atan: x
atan2: x0 x1
atanh: x
average_pooling: x kernel stride=None ignore_border=True pad=None channel_last=False including_pad=True
batch_cholesky: x upper=False
batch_det: x
batch_inv: x
batch_logdet: x
batch_matmul: a b transpose_a=False transpose_b=False
batch_normalization: x beta gamma mean variance axes=(1,) decay_rate=0.9 eps=1e-05 batch_stat=True
    output_stat=False
bc_add2: x0 x1 inplace=False
binary_connect_affine: x weight binary_weight bias=None base_axis=1 quantize_zero_to=1.0
binary_connect_convolution: x weight binary_weight bias=None base_axis=1 pad=None stride=None dilation=None
    group=1 quantize_zero_to=1.0
binary_cross_entropy: x target
binary_error: x target
binary_sigmoid: x
binary_tanh: x
binary_weight_affine: x weight binary_weight alpha bias=None base_axis=1 quantize_zero_to=1.0
binary_weight_convolution: x weight binary_weight alpha bias=None base_axis=1 pad=None stride=None
    dilation=None group=1 quantize_zero_to=1.0
bit_shift: x shift direction='LEFT'
bool_fill: data mask value=0
bool_gather: input mask
bool_scatter: input mask output=None
broadcast: x shape
broadcast_to: x y axis=None
categorical_cross_entropy: x target axis=None
ceil: x
celu: x alpha=1.0 axis=1
clip_by_norm: x clip_norm axis=None
clip_by_value: x min max
clip_grad_by_norm: x clip_norm=None axes=None
clip_grad_by_value: x min max
concatenate: *x axis=None
confusion_matrix: x target axis=None
constant: val=0 shape=()
convolution: x weight bias=None base_axis=1 pad=None stride=None dilation=None group=1 channel_last=False
cos: x
cosh: x
crelu: x axis=1
cumprod: x axis=None exclusive=False reverse=False
cumsum: x axis=None exclusive=False reverse=False
deconvolution: x weight bias=None base_axis=1 pad=None stride=None dilation=None group=1 channel_last=False
    output_padding=None
deformable_convolution: x weight offset mask=None bias=None base_axis=1 pad=None stride=None dilation=None
    group=1 deformable_group=1 channel_last=False
depthwise_convolution: x weight bias=None base_axis=1 pad=None stride=None dilation=None multiplier=1
depthwise_deconvolution: x weight bias=None base_axis=1 pad=None stride=None dilation=None divisor=1
dequantize_linear: x scale zero_point
div2: x0 x1 inplace=False
dot: a b out=None
dropout: x p=0.5 seed=-1
einsum: *x equation
elu: x alpha=1.0
embed: x0 w
epsilon_insensitive_loss: x0 x1 epsilon
equal: x0 x1
equal_scalar: x0 val=1
erf: x
exp: x
eye_like: x k=0
fft: x signal_ndim normalized=False
fixed_point_quantize: x sign=True n=8 delta=0.0625 quantize=True ste_fine_grained=True
flip: x axes=None
floor: x
fused_batch_normalization: x beta gamma mean variance z=None axes=(1,) decay_rate=0.9 eps=1e-05
    batch_stat=True nonlinearity='relu' output_stat=False
fused_convolution: x weight bias=None beta=None gamma=None mean=None variance=None z=None base_axis=1 pad=None
    stride=None dilation=None group=1 channel_last=False decay_rate=0.9 eps=1e-05 batch_stat=True
    nonlinearity='relu' nonlinearity_args=() pad_mode='constant' constant_value=0
gather: x Indices axis=None batch_dims=None
gather_nd: data indices
gelu: x
global_average_pooling: x
greater: x0 x1
greater_equal: x0 x1
greater_equal_scalar: x0 val=1
greater_scalar: x0 val=1
group_normalization: x beta gamma num_groups channel_axis=1 batch_axis=0 eps=1e-05 output_stat=False
gru: x h weight_l0 weight=None bias=None num_layers=1 dropout=None bidirectional=False training=True
hard_sigmoid: x
hard_tanh: x
huber_loss: x0 x1 delta=1.0
identity: x
ifft: x signal_ndim normalized=False
image_augmentation: x shape=None pad=(0,0) min_scale=1.0 max_scale=1.0 angle=0.0 aspect_ratio=1.0
    distortion=0.0 flip_lr=False flip_ud=False brightness=0.0 brightness_each=False contrast=1.0
    contrast_center=0.0 contrast_each=False noise=0.0 seed=-1
inq_affine: x weight indicator_fixedweights bias=None base_axis=1 num_bits=4 inq_iterations=()
    selection_algorithm='largest_abs' seed=-1
inq_convolution: x weight indicator_fixedweights bias=None base_axis=1 pad=None stride=None dilation=None
    group=1 num_bits=4 inq_iterations=() selection_algorithm='largest_abs' seed=-1
instance_normalization: x beta gamma channel_axis=1 batch_axis=0 eps=1e-05 output_stat=False
interpolate: x scale=None output_size=None mode='linear' align_corners=False half_pixel=False
    half_pixel_for_nn=False channel_last=False
isinf: x0
isnan: x0
istft: y_r y_i window_size stride fft_size window_type='hanning' center=True pad_mode='reflect'
    as_stft_backward=False
kl_multinomial: p q base_axis=1
layer_normalization: x beta gamma batch_axis=0 eps=1e-05 output_stat=False
leaky_relu: x alpha=0.1 inplace=False
less: x0 x1
less_equal: x0 x1
less_equal_scalar: x0 val=1
less_scalar: x0 val=1
linspace: start stop num
log: x
log_sigmoid: x
log_softmax: x axis=None
logical_and: x0 x1
logical_and_scalar: x0 val
logical_not: x0
logical_or: x0 x1
logical_or_scalar: x0 val
logical_xor: x0 x1
logical_xor_scalar: x0 val
lstm: x h c weight_l0 weight=None bias=None num_layers=1 dropout=None bidirectional=False training=True
matrix_diag: x
matrix_diag_part: x
max: x axis=None keepdims=False with_index=False only_index=False
max_pooling: x kernel stride=None ignore_border=True pad=None channel_last=False
max_pooling_backward: dy x kernel stride=None ignore_border=True pad=None channel_last=False
maximum2: x0 x1
maximum_scalar: x val=1.0
mean: x axis=None keepdims=False
mean_subtraction: x mean t base_axis=1 update_running_mean=True
meshgrid: *x ij_indexing=False
min: x axis=None keepdims=False with_index=False only_index=False
min_max_quantize: x qr_min qr_max ql_min ql_max decay=0.999 x_min_max=False ema=False ste_fine_grained=True
    eps=0.01 quantize=True
minimum2: x0 x1
minimum_scalar: x val=1.0
mish: x
mod2: x0 x1 fmod=False
mul2: x0 x1 inplace=False
mul_n: *x
mul_scalar: x val=1 inplace=False
multi_head_attention: query key value num_heads q_weight k_weight v_weight out_weight q_bias=None k_bias=None
    v_bias=None out_bias=None attn_bias_k=None attn_bias_v=None dropout=0.0 additive_mask=None
    key_padding_mask=None
nms_detection2d: x thresh=None nms=None nms_per_class=None
nonzero: x
norm: x p=None axis=None keepdims=False
norm_normalization: x p=None axes=None eps=1e-12
not_equal: x0 x1
not_equal_scalar: x0 val=1
one_hot: x shape
onnx_non_max_suppression: boxes scores center_point_box=None max_output_boxes_per_class=None
    iou_threshold=None score_threshold=None
onnx_resize: x roi=() scales=() sizes=() mode='nearest' coordinate_transformation_mode='half_pixel'
    cubic_coeff_a=None exclude_outside=None extrapolation_value=None nearest_mode='round_prefer_floor'
pack_padded_sequence: padded_sequence lengths batch_first=False
pad: x pad_width mode='constant' constant_value=0
pad_packed_sequence: packed_sequence batch_sizes batch_first=False padding_value=None total_length=None
patch_correlation: x1 x2 patch=(1,1) shift=(0,0) patch_step=(1,1) shift_step=(1,1) padding=(0,0,0,0)
    channel_last=False
pow2: x0 x1 inplace=False
pow2_quantize: x sign=True with_zero=True n=8 m=1 quantize=True ste_fine_grained=True
pow_scalar: x val=1 inplace=False
prelu: x0 x1 base_axis=1
prod: x axis=None keepdims=False
prune: x rate=0.9
quantize_linear: x scale zero_point round_mode='HALF_AWAY_FROM_ZERO' narrow_range=False dtype='int8'
r_div_scalar: x val=1
r_pow_scalar: x val=1
r_sub_scalar: x val=1
rand: low=0 high=1 shape=() seed=-1
rand_beta: alpha=0.5 beta=0.5 shape=() seed=-1
rand_binomial: n=1 p=0.5 shape=() seed=-1
rand_gamma: k=0.5 theta=1 shape=() seed=-1
randint: low=0 high=1 shape=() seed=-1
randn: mu=0 sigma=1 shape=() seed=-1
random_choice: x w shape=() replace=True seed=-1
random_crop: x shape=None base_axis=1 seed=-1
random_erase: x prob=0.5 area_ratios=(0.02,0.4) aspect_ratios=(0.3,3.3333) replacements=(0.0,255.0) n=None
    share=True inplace=False base_axis=1 seed=-1 channel_last=False ste_fine_grained=True
random_flip: x axes=None base_axis=1 seed=-1
random_shift: x shifts=None border_mode='nearest' constant_value=0 base_axis=1 seed=-1
reduce: x op='sum'
reduce_mean: x
reduce_sum: x
relu: x inplace=False
relu6: x
reset_inf: x0 val=0
reset_nan: x0 val=0
reshape: x shape inplace=True
rnn: x h weight_l0 weight=None bias=None num_layers=1 nonlinearity='tanh' dropout=None bidirectional=False
    training=True
roi_align: input boxes output_size spatial_scale=(1.0,1.0) sampling_ratio=None channel_last=None
round: x
scatter_add: x0 indices x1 axis=None
scatter_nd: data indices shape=None out=None add=False
searchsorted: sorted_sequence values right=None
selu: x scale=1.05070098735548 alpha=1.673263242354377
shape: x start=None end=None
shift: x shifts=None border_mode='nearest'
sigmoid: x
sigmoid_cross_entropy: x target
sign: x alpha=1.0
sin: x
sinc: x
sinh: x
sink: *x one_input_grad=True
slice: x start=None stop=None step=None
softmax: x axis=None
softmax_cross_entropy: x target axis=None
softplus: x beta=1.0
softsign: x
sort: x axis=-1 reverse=False with_index=False only_index=False
spectral_norm: w u dim=0 itr=1 eps=1e-12 test=False output_u=False
split: x axis=0
squared_error: x0 x1
stack: *x axis=0
stft: x window_size stride fft_size window_type='hanning' center=True pad_mode='reflect'
    as_istft_backward=False
sub2: x0 x1 inplace=False
sum: x axis=None keepdims=False
sum_pooling: x kernel stride=None ignore_border=True pad=None channel_last=False
swish: x
sync_batch_normalization: x beta gamma mean variance comm group='world' axes=(1,) decay_rate=0.9 eps=1e-05
    batch_stat=True output_stat=False
tan: x
tanh: x
tanh_shrink: x
tensor_normalization: x axes beta=None gamma=None eps=1e-05 output_stat=False
tile: x reps
top_k_data: x k abs=False reduce=True base_axis=1 largest=True with_index=False
top_k_grad: x k abs=False base_axis=1
top_n_error: x target axis=None n=1
transpose: x axes
trilu: x k=0 upper=True
unique: x flatten=True axis=None sorted=True with_index=False with_inverse=False with_counts=False
unlink: x
unpooling: x kernel channel_last=False
vat_noise: x w base_axis=1 eps=1.0
warp_by_flow: data flow
warp_by_grid: x grid mode='linear' padding_mode='zero' align_corners=False channel_last=False
weight_normalization: w g dim=0 eps=1e-12
weight_standardization: w channel_axis=0 eps=1e-05 output_stat=False
where: condition x_true x_false
"""

ROWS = dict(line.split(":", 1) for line in re.sub(r"\n +", " ", SIGNATURES).strip().splitlines())


def described(parameter: inspect.Parameter) -> str:
    star = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else ""
    if parameter.default is inspect.Parameter.empty:
        return star + parameter.name
    default = getattr(parameter.default, "__name__", None)
    text = repr(default or parameter.default).replace(" ", "")
    return f"{parameter.name}={text}"


def plain(text: str) -> str:
    """Equal values are written in one way: 1 for 1.0, no blanks."""
    return re.sub(r"(\d)\.0(?!\d)", r"\1", text)


@pytest.mark.parametrize("name", ROWS)
def test_signature(name: str) -> None:
    parameters = inspect.signature(getattr(F, name)).parameters.values()
    shown = [described(parameter) for parameter in parameters if parameter.name not in ("n_outputs", "outputs")]
    assert plain(" ".join(shown)) == plain(ROWS[name].strip())


@pytest.mark.parametrize("name", sorted(F.__all__))
def test_every_function_is_documented(name: str) -> None:
    doc = inspect.getdoc(getattr(F, name)) or ""
    assert doc.split("\n\n")[0].endswith("."), doc[:80]
