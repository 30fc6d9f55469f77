// Discrete Fourier transforms of N complex numbers in shared memory, LINES of them by each block of THREADS threads.
//
// The passes are those of Stockham: pass number i combines r_i numbers that are N / r_i apart, N being the product of all
// r_i, and leaves them in the order in which the next one reads them. Prime factors up to 13 and 4 and 8 are radices of
// their own, in registers; larger ones are summed directly. `roots` holds exp(-2 pi j k / N), correctly rounded, so that errors
// grow as the number of passes. SIGN is 1 for the transform and -1 for its inverse, up to the factor.
//
// S is the type of what is read, T the type of what is written.
struct alignas(2 * sizeof(R)) Complex { R re, im; };
__device__ __forceinline__ Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
__device__ __forceinline__ Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
__device__ __forceinline__ Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// a times exp(-2 pi j / 4), or its conjugate.
__device__ __forceinline__ Complex turned(Complex a) { return {SIGN * a.im, -SIGN * a.re}; }

// Where an element is in shared memory. One is left out after every 16, so that what a warp writes r apart meets other banks.
__device__ __forceinline__ int spot(int line, int n) { return line * (N + N / 16) + n + n / 16; }

__device__ __forceinline__ Complex root(const R* __restrict__ roots, int k) {
  const Pack<R, 2> w = ((const Pack<R, 2>*)roots)[k];
  return {w.item[0], SIGN * w.item[1]};
}

// The transform of r numbers. For odd r the terms of n and r - n share their products.
template <int r>
struct Butterfly {
  static __device__ __forceinline__ void run(Complex* v, const R* __restrict__ roots) {
    constexpr int half = r / 2;
    const Complex first = v[0];
    Complex sums[half], differences[half];
#pragma unroll
    for (int n = 1; n <= half; ++n) {
      sums[n - 1] = v[n] + v[r - n], differences[n - 1] = v[n] - v[r - n];
      v[0] = v[0] + sums[n - 1];
    }
#pragma unroll
    for (int q = 1; q <= half; ++q) {
      Complex even = first, odd = {0, 0};
#pragma unroll
      for (int n = 1; n <= half; ++n) {
        const Complex w = root(roots, q * n % r * (N / r));
        even.re += w.re * sums[n - 1].re, even.im += w.re * sums[n - 1].im;
        odd.re -= w.im * differences[n - 1].im, odd.im += w.im * differences[n - 1].re;
      }
      v[q] = even + odd, v[r - q] = even - odd;
    }
  }
};

template <>
struct Butterfly<2> {
  static __device__ __forceinline__ void run(Complex* v, const R*) {
    const Complex a = v[0];
    v[0] = a + v[1], v[1] = a - v[1];
  }
};

template <>
struct Butterfly<4> {
  static __device__ __forceinline__ void run(Complex* v, const R*) {
    const Complex a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = turned(v[1] - v[3]);
    v[0] = a + c, v[1] = b + d, v[2] = a - c, v[3] = b - d;
  }
};

template <>
struct Butterfly<8> {
  static __device__ __forceinline__ void run(Complex* v, const R* roots) {
    const R s = R(0.70710678118654752440);
    Complex even[4] = {v[0], v[2], v[4], v[6]}, odd[4] = {v[1], v[3], v[5], v[7]};
    Butterfly<4>::run(even, roots), Butterfly<4>::run(odd, roots);
    const Complex one = turned(odd[1]), three = turned(odd[3]);
    odd[1] = {s * (odd[1].re + one.re), s * (odd[1].im + one.im)};
    odd[2] = turned(odd[2]);
    odd[3] = {s * (three.re - odd[3].re), s * (three.im - odd[3].im)};
#pragma unroll
    for (int q = 0; q < 4; ++q) v[q] = even[q] + odd[q], v[q + 4] = even[q] - odd[q];
  }
};

// A pass of radix r after passes whose radices have the product `done`.
template <int r, int done>
__device__ __forceinline__ void radix_pass(Complex* lines, const R* __restrict__ roots) {
  constexpr int apart = N / r, count = LINES * apart, items = (count + THREADS - 1) / THREADS;
  Complex held[items][r];
#pragma unroll
  for (int item = 0; item < items; ++item) {
    const int b = threadIdx.x + item * THREADS, line = b / apart, j = b % apart;
    if (b >= count) continue;
#pragma unroll
    for (int q = 0; q < r; ++q) {
      held[item][q] = lines[spot(line, j + q * apart)];
      if (done > 1 && q > 0) held[item][q] = held[item][q] * root(roots, q * (j % done) * (N / (done * r)));
    }
    Butterfly<r>::run(held[item], roots);
  }
  __syncthreads();
#pragma unroll
  for (int item = 0; item < items; ++item) {
    const int b = threadIdx.x + item * THREADS, line = b / apart, j = b % apart;
    if (b >= count) continue;
#pragma unroll
    for (int q = 0; q < r; ++q) lines[spot(line, j / done * (done * r) + j % done + q * done)] = held[item][q];
  }
  __syncthreads();
}

// The same for any r: each result is summed by itself.
template <int r, int done>
__device__ __forceinline__ void direct_pass(Complex* lines, const R* __restrict__ roots) {
  constexpr int apart = N / r, count = LINES * N, items = (count + THREADS - 1) / THREADS;
  Complex held[items];
#pragma unroll
  for (int item = 0; item < items; ++item) {
    const int b = threadIdx.x + item * THREADS, line = b / N, p = b % N;
    if (b >= count) continue;
    const int j = p / (done * r) * done + p % done, step = p % (done * r) * (N / (done * r));
    Complex sum = {0, 0};
    for (int n = 0, k = 0; n < r; ++n, k += step, k -= k >= N ? N : 0)
      sum = sum + lines[spot(line, j + n * apart)] * root(roots, k);
    held[item] = sum;
  }
  __syncthreads();
#pragma unroll
  for (int item = 0; item < items; ++item) {
    const int b = threadIdx.x + item * THREADS;
    if (b < count) lines[spot(b / N, b % N)] = held[item];
  }
  __syncthreads();
}

// Complex numbers of an array, real and imaginary part next to each other; in one access where they are aligned.
template <class V>
__device__ __forceinline__ bool is_aligned(const V* x) { return uint64(x) % sizeof(Pack<V, 2>) == 0; }
template <class V>
__device__ __forceinline__ Complex pair_at(const V* x, int64 place, bool aligned) {
  if (!aligned) return {R(load(x[2 * place])), R(load(x[2 * place + 1]))};
  const Pack<V, 2> pair = ((const Pack<V, 2>*)x)[place];
  return {R(load(pair.item[0])), R(load(pair.item[1]))};
}
template <class V>
__device__ __forceinline__ void put_pair(V* y, int64 place, Complex value, bool aligned) {
  if (aligned) {
    Pack<V, 2> pair;
    store(pair.item[0], value.re), store(pair.item[1], value.im);
    ((Pack<V, 2>*)y)[place] = pair;
  } else {
    store(y[2 * place], value.re), store(y[2 * place + 1], value.im);
  }
}

// x and y: (outer, N, inner) complex numbers, a line for each pair of outer and inner; they may be the same array. With
// STRIDED neighbouring threads take neighbouring lines, otherwise neighbouring elements.
//
// Lines that are too long for shared memory are transformed as matrices of N1 rows and N2 columns, in two launches. The first
// one (SPLIT 1) transforms columns, inner being N2 `part`, and multiplies by the roots of unity of the whole, in `twiddles`. The
// second one (SPLIT 2) transforms the rows, outer being numbers of rows, of which there are `part`, and transposes the matrices.
extern "C" __global__ void __launch_bounds__(THREADS) fourier(
    int64 n_lines, uint32 inner, uint32 inner_factor, uint32 inner_shift, uint32 part, R scale, const S* x, T* y,
    const R* __restrict__ roots, const R* __restrict__ twiddles) {
  extern __shared__ R shared[];
  Complex* const lines = (Complex*)shared;
  const int64 first = blockIdx.x * int64(LINES);
  const bool aligned_x = is_aligned(x), aligned_y = is_aligned(y);
  for (int i = threadIdx.x; i < LINES * N; i += THREADS) {
    const int line = STRIDED ? i % LINES : i / N, n = STRIDED ? i / LINES : i % N;
    if (first + line >= n_lines) continue;
    const int64 outer = divided(uint32(first + line), inner_factor, inner_shift), rest = first + line - outer * inner;
    lines[spot(line, n)] = pair_at(x, (outer * N + n) * inner + rest, aligned_x);
  }
  __syncthreads();
  PASSES
  for (int i = threadIdx.x; i < LINES * N; i += THREADS) {
    const bool by_line = STRIDED || SPLIT == 2;
    const int line = by_line ? i % LINES : i / N, n = by_line ? i / LINES : i % N;
    if (first + line >= n_lines) continue;
    const int64 outer = divided(uint32(first + line), inner_factor, inner_shift), rest = first + line - outer * inner;
    Complex value = lines[spot(line, n)];
    int64 place = (outer * N + n) * inner + rest;
    if (SPLIT == 1) value = value * root(twiddles, uint32(rest) / part * n);
    if (SPLIT == 2) place = ((outer / part * N + n) * part + outer % part) * inner + rest;
    put_pair(y, place, {scale * value.re, scale * value.im}, aligned_y);
  }
}

// The sum of the squared windows of all frames at a place of the padded signal.
__device__ __forceinline__ R weight_at(const R* __restrict__ window, int64 place, int64 n_frames, int64 stride) {
  R sum = 0;
  for (int64 m = place < N ? 0 : (place - N) / stride + 1; m < n_frames && m * stride <= place; ++m)
    sum += window[place - m * stride] * window[place - m * stride];
  return sum;
}

// y_r and y_i (batch, N / 2 + 1, n_frames), which may be null: the transforms of the windowed frames of x (batch, n_samples),
// padded by `margin` at both ends: with zeros, or `reflect`ed. With `divides`, x is divided by the weights of the windows first.
// Samples from `end` on count as zero. The factors are those of the frequencies 0 and 1/2, and of the others.
extern "C" __global__ void __launch_bounds__(THREADS) frames_transformed(
    int64 n_lines, uint32 n_frames, uint32 frames_factor, uint32 frames_shift, int64 n_samples, int64 end, int64 stride,
    int64 margin, int64 reflect, int64 divides, R edge, R middle, const S* x, T* y_r, T* y_i, const R* __restrict__ roots,
    const R* __restrict__ window) {
  extern __shared__ R shared[];
  Complex* const lines = (Complex*)shared;
  const int64 first = blockIdx.x * int64(LINES);
  for (int i = threadIdx.x; i < LINES * N; i += THREADS) {
    const int line = i / N, n = i % N;
    if (first + line >= n_lines) continue;
    const int64 sample = divided(uint32(first + line), frames_factor, frames_shift);
    const int64 place = (first + line - sample * n_frames) * stride + n;
    int64 t = place - margin;
    if (reflect) t = t < 0 ? -t : t >= n_samples ? 2 * (n_samples - 1) - t : t;
    R value = t >= 0 && t < end ? R(load(x[sample * n_samples + t])) : R(0);
    if (divides && t >= 0 && t < end) value /= weight_at(window, place, n_frames, stride);
    lines[spot(line, n)] = {value * window[n], R(0)};
  }
  __syncthreads();
  PASSES
  for (int i = threadIdx.x; i < LINES * (N / 2 + 1); i += THREADS) {
    const int line = i % LINES, k = i / LINES;
    if (first + line >= n_lines) continue;
    const int64 sample = divided(uint32(first + line), frames_factor, frames_shift), m = first + line - sample * n_frames;
    const R factor = k == 0 || 2 * k == N ? edge : middle;
    const Complex value = lines[spot(line, k)];
    const int64 target = (sample * (N / 2 + 1) + k) * n_frames + m;
    if (y_r) store(y_r[target], factor * value.re);
    if (y_i) store(y_i[target], factor * value.im);
  }
}

// frames (batch, n_frames, N): the windowed real signals of half spectra y_r and y_i (batch, N / 2 + 1, n_frames).
extern "C" __global__ void __launch_bounds__(THREADS) frames_restored(
    int64 n_lines, uint32 n_frames, uint32 frames_factor, uint32 frames_shift, R edge, R middle, const S* y_r, const S* y_i,
    R* frames, const R* __restrict__ roots, const R* __restrict__ window) {
  extern __shared__ R shared[];
  Complex* const lines = (Complex*)shared;
  const int64 first = blockIdx.x * int64(LINES);
  for (int i = threadIdx.x; i < LINES * (N / 2 + 1); i += THREADS) {
    const int line = i % LINES, k = i / LINES;
    if (first + line >= n_lines) continue;
    const int64 sample = divided(uint32(first + line), frames_factor, frames_shift), m = first + line - sample * n_frames;
    const int64 source = (sample * (N / 2 + 1) + k) * n_frames + m;
    const bool is_edge = k == 0 || 2 * k == N;
    const R re = (is_edge ? edge : middle) * R(load(y_r[source])), im = is_edge ? R(0) : middle * R(load(y_i[source]));
    lines[spot(line, k)] = {re, im};
    if (!is_edge) lines[spot(line, N - k)] = {re, -im};
  }
  __syncthreads();
  PASSES
  for (int i = threadIdx.x; i < LINES * N; i += THREADS) {
    const int line = i / N, n = i % N;
    if (first + line < n_lines) frames[(first + line) * N + n] = lines[spot(line, n)].re * window[n];
  }
}

__device__ __forceinline__ R added(const R* __restrict__ frames, int64 place, int64 n_frames, int64 stride) {
  R sum = 0;
  for (int64 m = place < N ? 0 : (place - N) / stride + 1; m < n_frames && m * stride <= place; ++m)
    sum += frames[m * N + place - m * stride];
  return sum;
}

// x (n / n_samples, n_samples): the frames added up where they overlap, without `margin` samples at both ends. These are
// added to the samples that they were reflected from with `fold`. With `divides`, sums are divided by the weights of the windows.
// Samples from `end` on are zero.
extern "C" __global__ void overlap_added(
    int64 n, int64 n_samples, int64 end, int64 n_frames, int64 stride, int64 margin, int64 fold, int64 divides,
    const R* __restrict__ frames, const R* __restrict__ window, T* x) {
  for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x) {
    const int64 sample = i / n_samples, t = i - sample * n_samples;
    const R* const own = frames + sample * n_frames * N;
    R sum = added(own, t + margin, n_frames, stride);
    if (divides) sum /= weight_at(window, t + margin, n_frames, stride);
    if (fold && t >= 1 && t <= margin) sum += added(own, margin - t, n_frames, stride);
    if (fold && t <= n_samples - 2 && t >= n_samples - 1 - margin)
      sum += added(own, 2 * (n_samples - 1) - t + margin, n_frames, stride);
    store(x[i], t < end ? sum : R(0));
  }
}
