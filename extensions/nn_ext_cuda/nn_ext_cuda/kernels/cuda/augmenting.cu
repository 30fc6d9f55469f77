// Samples altered at random. Numbers are those of every backend (see philox.cuh): element i of stream s is lane i % 4 of block
// (s 2^40 + i) / 4. Geometry is computed in double precision, as the reference does. T is what floating arrays hold.
#define FOR_EACH(i, n) \
  for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x)

__device__ Words words_of(const uint64* key, uint64 stream, uint64 i) { return philox(key, (stream << 38) + i / 4); }
__device__ double unit(uint32 word) { return double(word >> 8) * (1.0 / 16777216.0); }
__device__ double drawn(const uint64* key, uint64 stream, uint64 i) { return unit(words_of(key, stream, i).lane[i % 4]); }
__device__ double drawn(const uint64* key, uint64 stream, uint64 i, double low, double high) {
  return low + (high - low) * drawn(key, stream, i);
}

// patches: first and last row, first and last column of each patch that is erased (Z. Zhong et al., "Random erasing data
// augmentation", 2017); a patch that is not has none.
extern "C" __global__ void erase_patches(
    int64 n, const uint64* key, double prob, double area_low, double area_high, double aspect_low, double aspect_high,
    double height, double width, double* patches) {
  FOR_EACH(i, n) {
    const double area = drawn(key, 1, i, area_low, area_high) * (height * width);
    const double aspect = drawn(key, 2, i, aspect_low, aspect_high);
    const double rows = smaller(sqrt(area * aspect), height), columns = smaller(sqrt(area / aspect), width);
    const double row = drawn(key, 3, i) * (height - rows), column = drawn(key, 4, i) * (width - columns);
    const bool is_erased = drawn(key, 0, i) < prob;
    patches[4 * i] = row, patches[4 * i + 1] = is_erased ? row + rows : row;
    patches[4 * i + 2] = column, patches[4 * i + 3] = column + columns;
  }
}

// kept (samples, channels, height, width), or channels last: 0 where one of the patches of a sample and channel is.
extern "C" __global__ void erase_kept(
    int64 n, int64 channels, int64 height, int64 width, int64 count, int64 channel_last, const double* patches, T* kept) {
  FOR_EACH(i, n) {
    const int64 area = height * width, sample = i / (channels * area), rest = i % (channels * area);
    const int64 channel = channel_last ? rest % channels : rest / area, place = channel_last ? rest / channels : rest % area;
    const double row = double(place / width) + 0.5, column = double(place % width) + 0.5;
    bool is_erased = false;
    for (int64 k = 0; k < count && !is_erased; ++k) {
      const double* const patch = patches + 4 * ((sample * count + k) * channels + channel);
      is_erased = row >= patch[0] && row < patch[1] && column >= patch[2] && column < patch[3];
    }
    store(kept[i], is_erased ? R(0) : R(1));
  }
}

// New values where something is erased; kept has as many channels as x, or one.
extern "C" __global__ void erase_replace(
    int64 n, const uint64* key, int64 channels, int64 area, int64 share, int64 channel_last, double low, double high, const T* x,
    const T* kept, T* y) {
  FOR_EACH(i, n) {
    const int64 place = channel_last ? i / channels : i / (channels * area) * area + i % area;
    if (load(kept[share ? place : i]) != 0) y[i] = x[i]; else store(y[i], drawn(key, 5, i, low, high));
  }
}

// What is drawn for a sample: factors of rows and columns, cosine and sine of the angle, distortion, the middle.
struct Geometry { double zoom_row, zoom_column, cosine, sine, distortion, row, column; };

extern "C" __global__ void augment_drawn(
    int64 n, const uint64* key, int64 channels, double height, double width, double out_height, double out_width, double pad_row,
    double pad_column, double log_min, double log_max, double log_aspect, double angle, double distortion, int64 flip_ud,
    int64 flip_lr, double log_contrast, int64 contrast_each, double brightness, int64 brightness_each, Geometry* geometry,
    double* tones) {
  FOR_EACH(i, n) {
    const int64 s = i / channels, shared_one = s * channels;
    tones[2 * i] = exp(log_contrast * (2 * drawn(key, 8, contrast_each ? i : shared_one) - 1));
    tones[2 * i + 1] = brightness * (2 * drawn(key, 9, brightness_each ? i : shared_one) - 1);
    if (i != shared_one) continue;
    const double zoom = exp(drawn(key, 0, s, log_min, log_max)), stretch = exp(drawn(key, 1, s, -0.5, 0.5) * log_aspect);
    const double zoom_row = zoom * stretch, zoom_column = zoom / stretch, turn = drawn(key, 2, s, -angle, angle);
    Geometry own;
    own.zoom_row = flip_ud && drawn(key, 4, s) < 0.5 ? -zoom_row : zoom_row;
    own.zoom_column = flip_lr && drawn(key, 5, s) < 0.5 ? -zoom_column : zoom_column;
    own.cosine = cos(turn), own.sine = sin(turn), own.distortion = drawn(key, 3, s, -distortion, distortion);
    own.row = (height - 1) / 2 + drawn(key, 6, s, -0.5, 0.5) * (height + 2 * pad_row - out_height / zoom_row);
    own.column = (width - 1) / 2 + drawn(key, 7, s, -0.5, 0.5) * (width + 2 * pad_column - out_width / zoom_column);
    geometry[s] = own;
  }
}

__device__ double held(double place, int64 length) { return place < 0 ? 0.0 : place > double(length - 1) ? double(length - 1) : place; }

extern "C" __global__ void augment(
    int64 n, const uint64* key, int64 channels, int64 height, int64 width, int64 out_height, int64 out_width, double center,
    double noise, const T* x, const Geometry* geometry, const double* tones, T* y) {
  FOR_EACH(i, n) {
    const int64 image = i / (out_height * out_width), place = i % (out_height * out_width);
    const Geometry own = geometry[image / channels];
    const double from_row = (double(place / out_width) - double(out_height - 1) / 2) / own.zoom_row;
    const double from_column = (double(place % out_width) - double(out_width - 1) / 2) / own.zoom_column;
    const double turned_row = own.cosine * from_row - own.sine * from_column;
    const double turned_column = own.sine * from_row + own.cosine * from_column;
    const double square_sum = turned_row * turned_row + turned_column * turned_column;
    const double bend = 1 + own.distortion * square_sum * 4 / double(height * height + width * width);
    const double row = held(turned_row * bend + own.row, height), column = held(turned_column * bend + own.column, width);
    const int64 top = int64(row), left = int64(column);
    const int64 bottom = min(top + 1, height - 1), right = min(left + 1, width - 1);
    const double down = row - double(top), over = column - double(left);
    const T* const pixels = x + image * height * width;
    const double upper = double(load(pixels[top * width + left])) * ((1 - down) * (1 - over)) +
                         double(load(pixels[top * width + right])) * ((1 - down) * over);
    const double lower = double(load(pixels[bottom * width + left])) * (down * (1 - over)) +
                         double(load(pixels[bottom * width + right])) * (down * over);
    double value = (upper + lower - center) * tones[2 * image] + center + tones[2 * image + 1];
    if (noise != 0) {
      const Words words = words_of(key, 10, i);
      const int lane = int(i % 4);
      const double radius = sqrt(-2.0 * log(unit(words.lane[lane & 2]) + 1.0 / 16777216.0));
      const double turn = 6.283185307179586 * unit(words.lane[lane | 1]);
      value += noise * (radius * (lane % 2 ? sin(turn) : cos(turn)));
    }
    store(y[i], value);
  }
}
