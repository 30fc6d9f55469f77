// The transforms of Winograd's convolutions (Lavin and Gray, 2016, "Fast algorithms for convolutional neural
// networks"). All work on many channels at a time, one in each lane. y = A^T [(G g) * (B^T d)] in one dimension.
//   F(4x4, 3x3)  tiles of 4 x 4 outputs from 6 x 6 inputs with 36 instead of 144 products; polynomial points 0, +-a,
//                +-b and infinity. a = 2/3 and b = 3/2 keep rounding small: for 128 channels the root mean square error
//                is 1e-6 of the output's, against 2.2e-6 with the usual points 1 and 2
//   F(2x2, 3x3)  tiles of 2 x 2 outputs from 4 x 4 inputs with 16 instead of 36 products; points 0, +-1 and infinity
#include "support/vector.hpp"
#include "vector/lanes.hpp"

namespace nn_cpu::NN_ISA {
namespace {

constexpr float kA = 2.0f / 3.0f, kB = 1.5f;
constexpr float kA2 = kA * kA, kB2 = kB * kB, kA3 = kA2 * kA, kB3 = kB2 * kB;
constexpr float kSquares = kA2 + kB2;  // a^2 b^2 = 1
constexpr float kScaleA = 0.5f / (kA2 * (kA2 - kB2)), kScaleB = 0.5f / (kB2 * (kB2 - kA2));

/// A line of a small matrix of vectors: element i is at first[i * Step].
template <int Step>
struct Line {
  Lanes* first;
  Lanes& operator[](int i) const { return first[i * Step]; }
};

/// The transforms of one line, for tiles of Tile outputs.
template <int Tile>
struct Transform;

template <>
struct Transform<4> {
  /// B^T d: 6 to 6.
  template <class From, class To>
  static void input(From d, To t) {
    const Lanes e = d[4] - kB2 * d[2], o = kA * (d[3] - kB2 * d[1]), f = d[4] - kA2 * d[2],
                q = kB * (d[3] - kA2 * d[1]);
    const Lanes first = d[4] - kSquares * d[2] + d[0], last = d[5] - kSquares * d[3] + d[1];
    t[0] = first;
    t[1] = e + o;
    t[2] = e - o;
    t[3] = f + q;
    t[4] = f - q;
    t[5] = last;
  }

  /// G g: 3 to 6.
  template <class From, class To>
  static void filter(From g, To u) {
    const Lanes ea = kScaleA * (g[0] + kA2 * g[2]), oa = (kScaleA * kA) * g[1];
    const Lanes eb = kScaleB * (g[0] + kB2 * g[2]), ob = (kScaleB * kB) * g[1];
    const Lanes first = g[0], last = g[2];
    u[0] = first;
    u[1] = ea + oa;
    u[2] = ea - oa;
    u[3] = eb + ob;
    u[4] = eb - ob;
    u[5] = last;
  }

  /// A^T m: 6 to 4.
  template <class From, class To>
  static void output(From m, To y) {
    const Lanes sa = m[1] + m[2], da = m[1] - m[2], sb = m[3] + m[4], db = m[3] - m[4];
    const Lanes first = m[0] + sa + sb, last = m[5] + (kA3 * da + kB3 * db);
    y[0] = first;
    y[1] = kA * da + kB * db;
    y[2] = kA2 * sa + kB2 * sb;
    y[3] = last;
  }

  /// A y, the transpose of output: 4 to 6.
  template <class From, class To>
  static void gradient(From y, To m) {
    const Lanes ea = y[0] + kA2 * y[2], oa = kA * y[1] + kA3 * y[3], eb = y[0] + kB2 * y[2],
                ob = kB * y[1] + kB3 * y[3];
    const Lanes first = y[0], last = y[3];
    m[0] = first;
    m[1] = ea + oa;
    m[2] = ea - oa;
    m[3] = eb + ob;
    m[4] = eb - ob;
    m[5] = last;
  }

  /// G^T u, the transpose of filter: 6 to 3.
  template <class From, class To>
  static void weight(From u, To g) {
    const Lanes sa = kScaleA * (u[1] + u[2]), da = (kScaleA * kA) * (u[1] - u[2]);
    const Lanes sb = kScaleB * (u[3] + u[4]), db = (kScaleB * kB) * (u[3] - u[4]);
    const Lanes first = u[0] + sa + sb, last = u[5] + (kA2 * sa + kB2 * sb);
    g[0] = first;
    g[1] = da + db;
    g[2] = last;
  }
};

template <>
struct Transform<2> {
  /// B^T d: 4 to 4.
  template <class From, class To>
  static void input(From d, To t) {
    const Lanes first = d[0] - d[2], sum = d[1] + d[2], difference = d[2] - d[1], last = d[3] - d[1];
    t[0] = first;
    t[1] = sum;
    t[2] = difference;
    t[3] = last;
  }

  /// G g: 3 to 4.
  template <class From, class To>
  static void filter(From g, To u) {
    const Lanes outer = 0.5f * (g[0] + g[2]), inner = 0.5f * g[1], first = g[0], last = g[2];
    u[0] = first;
    u[1] = outer + inner;
    u[2] = outer - inner;
    u[3] = last;
  }

  /// A^T m: 4 to 2.
  template <class From, class To>
  static void output(From m, To y) {
    const Lanes first = m[0] + (m[1] + m[2]), last = m[3] + (m[1] - m[2]);
    y[0] = first;
    y[1] = last;
  }
};

/// Calls body(lane, lanes) for each vector of n channels.
template <class Body>
inline void for_each_vector(int64_t n, Body body) {
  for (int64_t lane = 0; lane < n; lane += kWidth) body(lane, static_cast<int>(n - lane < kWidth ? n - lane : kWidth));
}

inline Lanes load_some(const float* p, int lanes) { return lanes == kWidth ? load(p) : load_part(p, lanes); }
inline void store_some(float* p, Lanes v, int lanes) {
  if (lanes == kWidth) {
    store(p, v);
  } else {
    store_part(p, v, lanes);
  }
}

/// v[t * stride + channel] = B^T d B of the pixels at d, t = 0 .. positions - 1.
template <int Tile>
void input(const float* const* d, int64_t n, float* v, int64_t stride) {
  for_each_vector(n, [&](int64_t lane, int lanes) {
    constexpr int kIn = Tile + 2;
    Lanes pixels[kIn * kIn], t[kIn * kIn];
#pragma GCC unroll 36
    for (int i = 0; i < kIn * kIn; ++i) pixels[i] = load_some(d[i] + lane, lanes);
#pragma GCC unroll 6
    for (int j = 0; j < kIn; ++j) Transform<Tile>::input(Line<kIn>{pixels + j}, Line<kIn>{t + j});
#pragma GCC unroll 6
    for (int i = 0; i < kIn; ++i) Transform<Tile>::input(Line<1>{t + kIn * i}, Line<1>{pixels + kIn * i});
#pragma GCC unroll 36
    for (int i = 0; i < kIn * kIn; ++i) store_some(v + i * stride + lane, pixels[i], lanes);
  });
}

/// u[t * stride + place of the channel] = G g G^T of the filters g[0 .. 8]; channels are in panels of kPanelColumns.
template <int Tile>
void filter(const float* const* g, int64_t n, float* u, int64_t stride, int64_t panel_stride) {
  for_each_vector(n, [&](int64_t lane, int lanes) {
    constexpr int kIn = Tile + 2;
    Lanes weights[9], t[3 * kIn], result[kIn * kIn];
#pragma GCC unroll 9
    for (int i = 0; i < 9; ++i) weights[i] = load_some(g[i] + lane, lanes);
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) Transform<Tile>::filter(Line<3>{weights + j}, Line<3>{t + j});
#pragma GCC unroll 6
    for (int i = 0; i < kIn; ++i) Transform<Tile>::filter(Line<1>{t + 3 * i}, Line<1>{result + kIn * i});
    float* to = u + lane / kPanelColumns * panel_stride + lane % kPanelColumns;
#pragma GCC unroll 36
    for (int i = 0; i < kIn * kIn; ++i) store(to + i * stride, result[i]);
  });
}

/// The pixels y (nullptr: outside) = A^T m A * scale + shift + addends of m[t * stride + channel], not below zero with
/// `relu`; what is nullptr is left out.
template <int Tile>
void output(const float* m, int64_t stride, int64_t n, const float* scale, const float* shift,
            const float* const* addends, bool relu, float* const* y) {
  for_each_vector(n, [&](int64_t lane, int lanes) {
    constexpr int kIn = Tile + 2;
    Lanes products[kIn * kIn], t[Tile * kIn], pixels[Tile * Tile];
#pragma GCC unroll 36
    for (int i = 0; i < kIn * kIn; ++i) products[i] = load_some(m + i * stride + lane, lanes);
#pragma GCC unroll 6
    for (int j = 0; j < kIn; ++j) Transform<Tile>::output(Line<kIn>{products + j}, Line<kIn>{t + j});
#pragma GCC unroll 4
    for (int i = 0; i < Tile; ++i) Transform<Tile>::output(Line<1>{t + kIn * i}, Line<1>{pixels + Tile * i});
    const Lanes factor = scale != nullptr ? load_some(scale + lane, lanes) : Lanes{} + 1.0f;
    const Lanes offset = shift != nullptr ? load_some(shift + lane, lanes) : Lanes{};
#pragma GCC unroll 16
    for (int i = 0; i < Tile * Tile; ++i) {
      if (y[i] == nullptr) continue;
      Lanes value = pixels[i] * factor + offset;
      if (addends != nullptr) value += load_some(addends[i] + lane, lanes);
      if (relu) value = value < Lanes{} ? Lanes{} : value;
      store_some(y[i] + lane, value, lanes);
    }
  });
}

/// m[t * stride + place of the channel] = A dy A^T of the 4 x 4 pixels dy; channels are in panels of kPanelColumns.
void gradient(const float* const* dy, int64_t n, float* m, int64_t stride, int64_t panel_stride) {
  for_each_vector(n, [&](int64_t lane, int lanes) {
    Lanes pixels[16], t[24], result[36];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) pixels[i] = load_some(dy[i] + lane, lanes);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) Transform<4>::gradient(Line<4>{pixels + j}, Line<4>{t + j});
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) Transform<4>::gradient(Line<1>{t + 4 * i}, Line<1>{result + 6 * i});
    float* to = m + lane / kPanelColumns * panel_stride + lane % kPanelColumns;
#pragma GCC unroll 36
    for (int i = 0; i < 36; ++i) store(to + i * stride, result[i]);
  });
}

/// dg[0 .. 8][channel] = G^T u G of u[t * stride + place of the channel].
void weight(const float* u, int64_t stride, int64_t panel_stride, int64_t n, float* const* dg) {
  for_each_vector(n, [&](int64_t lane, int lanes) {
    Lanes sums[36], t[18], weights[9];
    const float* from = u + lane / kPanelColumns * panel_stride + lane % kPanelColumns;
#pragma GCC unroll 36
    for (int i = 0; i < 36; ++i) sums[i] = load(from + i * stride);
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) Transform<4>::weight(Line<6>{sums + j}, Line<6>{t + j});
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) Transform<4>::weight(Line<1>{t + 6 * i}, Line<1>{weights + 3 * i});
#pragma GCC unroll 9
    for (int i = 0; i < 9; ++i) store_some(dg[i] + lane, weights[i], lanes);
  });
}

}  // namespace

WinogradLoops winograd4() { return {input<4>, filter<4>, output<4>, gradient, weight}; }
WinogradLoops winograd2() { return {input<2>, filter<2>, output<2>, nullptr, nullptr}; }

}  // namespace nn_cpu::NN_ISA
