// Columns of a convolution whose filters read at displaced places (J. Dai et al., "Deformable convolutional networks", 2017).
//
// columns (samples, group, channels of a group * elements of a filter, places), in the order in which the filters have channels
// and elements: channels first, or with CHANNEL_LAST last. offset has a row and a column for each element of a filter, for
// each deformable group, at each place of a filter without strides; mask, which may be null, one factor.

struct Maps {
  int64 channels, height, width;
  __device__ int64 at(int64 sample, int64 channel, int64 row, int64 column) const {
    return CHANNEL_LAST ? ((sample * height + row) * width + column) * channels + channel
                        : ((sample * channels + channel) * height + row) * width + column;
  }
};

extern "C" __global__ void deformed_columns(
    int64 n, int64 first, int64 group, int64 deformable_group, int64 channels, int64 height, int64 width, int64 size0, int64 size1,
    int64 count0, int64 count1, int64 pad0, int64 pad1, int64 stride0, int64 stride1, int64 dilation0, int64 dilation1,
    int64 offset_height, int64 offset_width, const T* x, const T* offset, const T* mask, T* columns) {
  const int64 elements = size0 * size1, places = count0 * count1, members = channels / group;
  const Maps images = {channels, height, width}, moves = {2 * deformable_group * elements, offset_height, offset_width};
  const Maps factors = {deformable_group * elements, offset_height, offset_width};
  for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x) {
    const int64 place = i % places, number = i / places % (channels * elements), sample = first + i / places / (channels * elements);
    const int64 rest = number % (members * elements), inside = CHANNEL_LAST ? rest % members : rest / elements;
    const int64 element = CHANNEL_LAST ? rest / members : rest % elements;
    const int64 channel = number / (members * elements) * members + inside;
    const int64 own = channel / (channels / deformable_group) * elements + element;
    const int64 down = place / count1 * stride0, over = place % count1 * stride1;
    const R row = R(load(offset[moves.at(sample, 2 * own, down, over)])) + R(down - pad0 + element / size1 * dilation0);
    const R column = R(load(offset[moves.at(sample, 2 * own + 1, down, over)])) + R(over - pad1 + element % size1 * dilation1);
    R value = 0;
    for (int corner = 0; corner < 4; ++corner) {
      const R top = floor(row) + R(corner >> 1), left = floor(column) + R(corner & 1);
      if (!(top >= 0 && top < R(height) && left >= 0 && left < R(width))) continue;
      value += (1 - fabs(row - top)) * (1 - fabs(column - left)) * R(load(x[images.at(sample, channel, int64(top), int64(left))]));
    }
    if (mask) value *= R(load(mask[factors.at(sample, own, down, over)]));
    store(columns[i], value);
  }
}
