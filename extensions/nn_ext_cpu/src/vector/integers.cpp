// Sums of products of integers of 8 bits. Two neighbouring products are added in one instruction, exactly: numbers of 9
// bits with a sign have products of 17 bits. Sums wrap around as int32. O(m n k).
//
// Both matrices hold int16 numbers, widened once when they are packed. The left one has them by rows, in an even number
// of columns. The right one is cut into panels of kColumns columns, in which the numbers of two rows follow each other
// column by column; missing rows and columns are zeros.
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "support/integer_loops.hpp"
#include "vector/lanes.hpp"

namespace nn_cpu::NN_ISA {

namespace {

constexpr int kTileRows = kWidth == 16 ? 12 : (kWidth == 8 ? 6 : 4);
constexpr int64_t kColumns = 2 * kWidth;
constexpr int64_t kLine = 32;  // numbers of a line of the cache

using Sums = uint32_t __attribute__((vector_size(kWidth * 4)));  // unsigned numbers wrap around
using Shorts = int16_t __attribute__((vector_size(kWidth * 4)));
using Whole = int32_t __attribute__((vector_size(kWidth * 4)));

template <class V, class T>
V load_vector(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

/// a[2 i] b[2 i] + a[2 i + 1] b[2 i + 1] in lane i.
inline Sums pair_sums(Shorts a, Shorts b) {
#if defined(__AVX512BW__)
  return reinterpret_cast<Sums>(_mm512_madd_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<Sums>(_mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__SSE2__)
  return reinterpret_cast<Sums>(_mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  Sums sums;
  for (int i = 0; i < kWidth; ++i) sums[i] = static_cast<uint32_t>(a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1]);
  return sums;
#endif
}

inline Shorts splat_pair(const int16_t* p) {
  uint32_t pair;
  __builtin_memcpy(&pair, p, sizeof(pair));
  return reinterpret_cast<Shorts>(pair + Sums{});
}

/// c (Rows, kColumns) = a b (+ c); k is even.
template <int Rows>
void tile(int64_t k, const int16_t* a, int64_t lda, const int16_t* b, int64_t ldb, bool accumulate, int32_t* c,
          int64_t ldc) {
  Sums sum[Rows][2];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) sum[i][v] = Sums{};
  }
  for (int64_t first = 0; first < k; first += kLine) {
    // a tile reads pieces of many rows, which processors do not take for one stream
    for (int i = 0; i < Rows; ++i) __builtin_prefetch(a + (i + Rows) * lda + first);
    const int64_t last = k - first < kLine ? k : first + kLine;
    for (int64_t p = first; p < last; p += 2, b += ldb) {
      const Shorts row[2] = {load_vector<Shorts>(b), load_vector<Shorts>(b + kColumns)};
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
        const Shorts x = splat_pair(a + i * lda + p);
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) sum[i][v] += pair_sums(x, row[v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i, c += ldc) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      Sums total = sum[i][v];
      if (accumulate) total += load_vector<Sums>(c + v * kWidth);
      __builtin_memcpy(c + v * kWidth, &total, sizeof(total));
    }
  }
}

/// tile<Rows> for what is left of kTileRows.
template <int Rows = kTileRows>
void some_rows(int64_t rows, int64_t k, const int16_t* a, int64_t lda, const int16_t* b, int64_t ldb, bool accumulate,
               int32_t* c, int64_t ldc) {
  if (rows == Rows) {
    tile<Rows>(k, a, lda, b, ldb, accumulate, c, ldc);
  } else if constexpr (Rows > 1) {
    some_rows<Rows - 1>(rows, k, a, lda, b, ldb, accumulate, c, ldc);
  }
}

template <class Byte>
int32_t widened_row(const Byte* x, int64_t n, int16_t* y) {
  int32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    y[i] = x[i];
    sum += x[i];
  }
  return sum;
}

/// to[2 i] = first[i], to[2 i + 1] = second[i] for the columns of a panel.
template <class Byte>
void interleave(const Byte* __restrict__ first, const Byte* __restrict__ second, int16_t* __restrict__ to) {
#ifdef __SSE2__
  constexpr bool kSigned = static_cast<Byte>(-1) < 0;
  const __m128i zero = _mm_setzero_si128();
  for (int64_t i = 0; i < kColumns; i += 8) {
    const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(first + i)),
                  y = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(second + i)), pairs = _mm_unpacklo_epi8(x, y);
    const __m128i low = kSigned ? _mm_srai_epi16(_mm_unpacklo_epi8(zero, pairs), 8) : _mm_unpacklo_epi8(pairs, zero),
                  high = kSigned ? _mm_srai_epi16(_mm_unpackhi_epi8(zero, pairs), 8) : _mm_unpackhi_epi8(pairs, zero);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i), low);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i + 8), high);
  }
#else
  for (int64_t i = 0; i < kColumns; ++i) {
    to[2 * i] = first[i];
    to[2 * i + 1] = second[i];
  }
#endif
}

template <class Byte>
void packed(const Byte* b, int64_t ldb, int64_t k, int64_t n, int16_t* to) {
  Byte rows[2][kColumns] = {};
  for (int64_t j = 0; j < n; j += kColumns) {
    const int64_t columns = n - j < kColumns ? n - j : kColumns;
    for (int64_t p = 0; p < k; p += 2, to += 2 * kColumns) {
      const Byte *first = b + p * ldb + j, *second = first + ldb;
      if (columns == kColumns && p + 1 < k) {
        interleave(first, second, to);
        continue;
      }
      for (int64_t i = 0; i < kColumns; ++i) {
        rows[0][i] = i < columns ? first[i] : Byte{0};
        rows[1][i] = i < columns && p + 1 < k ? second[i] : Byte{0};
      }
      interleave(rows[0], rows[1], to);
    }
  }
}

/// c (m, n) = a (m, k) b, plus c if `accumulate`, for the first n columns of a panel of b, whose pairs of rows are
/// `ldb` apart; k is even.
void integer_product(int64_t m, int64_t n, int64_t k, const int16_t* a, int64_t lda, const int16_t* b, int64_t ldb,
                     bool accumulate, int32_t* c, int64_t ldc) {
  int32_t part[kTileRows * kColumns];
  const int64_t tiles = (m + kTileRows - 1) / kTileRows;
  for (int64_t t = 0; t < tiles; ++t) {  // of about as many rows each
    const int64_t i = m * t / tiles, rows = m * (t + 1) / tiles - i;
    if (n == kColumns) {
      some_rows(rows, k, a + i * lda, lda, b, ldb, accumulate, c + i * ldc, ldc);
      continue;
    }
    some_rows(rows, k, a + i * lda, lda, b, ldb, false, part, kColumns);
    for (int64_t r = 0; r < rows; ++r) {
      int32_t* to = c + (i + r) * ldc;
      for (int64_t j = 0; j < n; ++j) {
        const auto sum = static_cast<uint32_t>(part[r * kColumns + j]);
        to[j] = static_cast<int32_t>(accumulate ? static_cast<uint32_t>(to[j]) + sum : sum);
      }
    }
  }
}

/// Cuts the matrix b (k, n) into panels, which follow each other.
void pack_integers(const uint8_t* b, int64_t ldb, int64_t k, int64_t n, bool is_signed, int16_t* to) {
  if (is_signed) {
    packed(reinterpret_cast<const int8_t*>(b), ldb, k, n, to);
  } else {
    packed(b, ldb, k, n, to);
  }
}

/// y = x, of 16 bits. Returns the sum.
int32_t widen_integers(const uint8_t* x, int64_t n, bool is_signed, int16_t* y) {
  return is_signed ? widened_row(reinterpret_cast<const int8_t*>(x), n, y) : widened_row(x, n, y);
}

/// Adds to the sums c (m, n) what `terms` says, modulo 2^32.
void adjust_integers(int64_t m, int64_t n, const IntegerTerms& terms, int32_t* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i, c += ldc) {
    const auto row = static_cast<uint32_t>(terms.rows != nullptr ? terms.rows[i] : 0);
    const auto add = [&](const auto& term) {
      for (int64_t j = 0; j < n; ++j) c[j] = static_cast<int32_t>(static_cast<uint32_t>(c[j]) + term(j));
    };
    if (terms.columns != nullptr) {
      add([&](int64_t j) { return row + static_cast<uint32_t>(terms.columns[j]); });
    } else if (row != 0) {
      add([&](int64_t) { return row; });
    }
    for (const IntegerTerms::Outer& outer : terms.outer) {
      if (outer.rows == nullptr || outer.rows[i] == 0) continue;
      const auto factor = static_cast<uint32_t>(outer.rows[i]);
      add([&](int64_t j) { return factor * static_cast<uint32_t>(outer.columns[j]); });
    }
  }
}

/// The lowest and the highest level of a type.
template <class Level>
constexpr int32_t kLowOf = static_cast<Level>(-1) < 0 ? -(1 << (8 * sizeof(Level) - 1)) : 0;
template <class Level>
constexpr int32_t kHighOf = kLowOf<Level> + (1 << (8 * sizeof(Level))) - 1;

// Of numbers: the compiler does not make one instruction of a choice, in which the order of NaN counts.
inline Lanes smaller(Lanes a, Lanes b) {
#if defined(__AVX__) && !defined(__AVX512F__)
  return reinterpret_cast<Lanes>(_mm256_min_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b)));
#elif defined(__SSE2__) && !defined(__AVX512F__)
  return reinterpret_cast<Lanes>(_mm_min_ps(reinterpret_cast<__m128>(a), reinterpret_cast<__m128>(b)));
#else
  return a < b ? a : b;
#endif
}

inline Lanes larger(Lanes a, Lanes b) {
#if defined(__AVX__) && !defined(__AVX512F__)
  return reinterpret_cast<Lanes>(_mm256_max_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b)));
#elif defined(__SSE2__) && !defined(__AVX512F__)
  return reinterpret_cast<Lanes>(_mm_max_ps(reinterpret_cast<__m128>(a), reinterpret_cast<__m128>(b)));
#else
  return a > b ? a : b;
#endif
}

/// Levels of numbers in steps: rounded, halves to even, NaN as 0, moved by the zero points, and limited. Limits are
/// whole numbers, so that it is the same to limit before.
template <class Level>
Whole levels_of(Lanes steps, Whole zero_point) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded to whole numbers
  const Lanes low = __builtin_convertvector(kLowOf<Level> - zero_point, Lanes),
              high = __builtin_convertvector(kHighOf<Level> - zero_point, Lanes);
  const auto is_number = reinterpret_cast<Whole>(steps == steps);
  steps = reinterpret_cast<Lanes>(reinterpret_cast<Whole>(steps) & is_number);
  steps = larger(smaller(steps, high), low);
  return __builtin_convertvector((steps + kShift) - kShift, Whole) + zero_point;
}

/// The lowest Bytes bytes of each number, which are the level with a sign and without one: to y, of kWidth levels.
template <int Bytes>
void narrow(Whole levels, void* y) {
#if defined(__AVX512F__)
  if constexpr (Bytes == 1) {
    _mm_storeu_si128(static_cast<__m128i*>(y), _mm512_maskz_cvtepi32_epi8(0xffff, reinterpret_cast<__m512i>(levels)));
  } else {
    _mm256_storeu_si256(static_cast<__m256i*>(y),
                        _mm512_maskz_cvtepi32_epi16(0xffff, reinterpret_cast<__m512i>(levels)));
  }
#elif defined(__AVX2__)
  const __m256i bytes = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12, -1,
                                         -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1),
                shorts = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1, 0, 1, 4, 5, 8, 9,
                                          12, 13, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m256i places = _mm256_shuffle_epi8(reinterpret_cast<__m256i>(levels), Bytes == 1 ? bytes : shorts);
  const __m128i low = _mm256_castsi256_si128(places), high = _mm256_extracti128_si256(places, 1);
  if constexpr (Bytes == 1) {
    _mm_storel_epi64(static_cast<__m128i*>(y), _mm_unpacklo_epi32(low, high));
  } else {
    _mm_storeu_si128(static_cast<__m128i*>(y), _mm_unpacklo_epi64(low, high));
  }
#elif defined(__SSE2__)
  const auto v = reinterpret_cast<__m128i>(levels);
  if constexpr (Bytes == 1) {
    const __m128i bytes = _mm_and_si128(v, _mm_set1_epi32(0xff)), shorts = _mm_packs_epi32(bytes, bytes);
    const int four = _mm_cvtsi128_si32(_mm_packus_epi16(shorts, shorts));
    __builtin_memcpy(y, &four, sizeof(four));
  } else {
    const __m128i shorts = _mm_srai_epi32(_mm_slli_epi32(v, 16), 16);
    _mm_storel_epi64(static_cast<__m128i*>(y), _mm_packs_epi32(shorts, shorts));
  }
#else
  for (int i = 0; i < kWidth; ++i) {
    if constexpr (Bytes == 1) {
      static_cast<int8_t*>(y)[i] = static_cast<int8_t>(levels[i]);
    } else {
      static_cast<int16_t*>(y)[i] = static_cast<int16_t>(levels[i]);
    }
  }
#endif
}

/// Writes the first n levels.
template <class Level>
void store_levels(Whole levels, int64_t n, Level* y) {
  constexpr int64_t kBytes = sizeof(Level);
  if (n == kWidth) return narrow<kBytes>(levels, y);
  char bytes[kWidth * kBytes];
  narrow<kBytes>(levels, bytes);
  const char* from = bytes;
  auto* to = reinterpret_cast<char*>(y);
  for (int64_t piece = kWidth / 2; piece > 0; piece /= 2) {  // a call of the library takes longer
    if ((n & piece) == 0) continue;
    for (int64_t i = 0; i < piece * kBytes; ++i) to[i] = from[i];
    from += piece * kBytes, to += piece * kBytes;
  }
}

/// The first n numbers at p, of 32 bits, n <= kWidth; zeros where there are none.
template <class V, class T>
V some(const T* p, int64_t n) {
  if (p == nullptr) return V{};
  if (n == kWidth) return load_vector<V>(p);
  return reinterpret_cast<V>(load_part(reinterpret_cast<const float*>(p), static_cast<int>(n)));
}

template <class Level>
void quantized(const float* x, int64_t n, const float* scale, const int32_t* zero_point, bool each, Level* y) {
  Lanes scales = splat(scale[0]);
  Whole zero_points = Whole{} + zero_point[0];
  for (int64_t i = 0; i < n; i += kWidth) {
    const int64_t lanes = n - i < kWidth ? n - i : kWidth;
    if (each) scales = some<Lanes>(scale + i, lanes), zero_points = some<Whole>(zero_point + i, lanes);
    store_levels(levels_of<Level>(some<Lanes>(x + i, lanes) / scales, zero_points), lanes, y + i);
  }
}

template <class Level>
void dequantized(const Level* __restrict__ x, int64_t n, const float* __restrict__ scale,
                 const int32_t* __restrict__ zero_point, bool each, float* __restrict__ y) {
  if (each) {
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i] - zero_point[i]) * scale[i];
    return;
  }
  const float one_scale = scale[0];
  const int32_t one_zero_point = zero_point[0];
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i] - one_zero_point) * one_scale;
}

/// y = x / scale in whole numbers from zero_point on. Scales and zero points are vectors if `each`, else one number.
void quantize_integers(const float* x, int64_t n, const float* scale, const int32_t* zero_point, bool each,
                       LevelType type, void* y) {
  switch (type) {
    case LevelType::kInt8:
      return quantized(x, n, scale, zero_point, each, static_cast<int8_t*>(y));
    case LevelType::kUInt8:
      return quantized(x, n, scale, zero_point, each, static_cast<uint8_t*>(y));
    case LevelType::kInt16:
      return quantized(x, n, scale, zero_point, each, static_cast<int16_t*>(y));
    case LevelType::kUInt16:
      return quantized(x, n, scale, zero_point, each, static_cast<uint16_t*>(y));
  }
}

/// y = (x - zero_point) scale, with vectors as above.
void dequantize_integers(const void* x, int64_t n, const float* scale, const int32_t* zero_point, bool each,
                         LevelType type, float* y) {
  switch (type) {
    case LevelType::kInt8:
      return dequantized(static_cast<const int8_t*>(x), n, scale, zero_point, each, y);
    case LevelType::kUInt8:
      return dequantized(static_cast<const uint8_t*>(x), n, scale, zero_point, each, y);
    case LevelType::kInt16:
      return dequantized(static_cast<const int16_t*>(x), n, scale, zero_point, each, y);
    case LevelType::kUInt16:
      return dequantized(static_cast<const uint16_t*>(x), n, scale, zero_point, each, y);
  }
}

/// Lines whose terms and scales are those of rows alone.
template <class Level>
void requantized_rows(int64_t m, int64_t n, const int32_t* shifts, const int32_t* c, int64_t ldc,
                      const LevelScales& scales, Level* y, int64_t ldy) {
  const Whole zero_point = Whole{} + scales.zero_point;
  for (int64_t i = 0; i < m; ++i, c += ldc, y += ldy) {
    const Lanes scale = splat(scales.rows[i]);
    const Sums shift = Sums{} + static_cast<uint32_t>(shifts != nullptr ? shifts[i] : 0);
    const auto levels = [&](Sums sums) {
      return levels_of<Level>(__builtin_convertvector(reinterpret_cast<Whole>(sums + shift), Lanes) / scale,
                              zero_point);
    };
    int64_t j = 0;
    for (; j + kWidth <= n; j += kWidth) store_levels(levels(load_vector<Sums>(c + j)), kWidth, y + j);
    if (j < n) store_levels(levels(some<Sums>(c + j, n - j)), n - j, y + j);
  }
}

template <class Level>
void requantized(int64_t m, int64_t n, const IntegerTerms& terms, const int32_t* c, int64_t ldc,
                 const LevelScales& scales, Level* y, int64_t ldy) {
  if (scales.rows != nullptr && terms.columns == nullptr && terms.outer[0].rows == nullptr &&
      terms.outer[1].rows == nullptr) {
    return requantized_rows(m, n, terms.rows, c, ldc, scales, y, ldy);
  }
  const auto moved = [](const auto* p, int64_t by) { return p == nullptr ? nullptr : p + by; };
  const Whole zero_point = Whole{} + scales.zero_point;
  for (int64_t j = 0; j < n; j += kWidth) {
    const int64_t lanes = n - j < kWidth ? n - j : kWidth;
    const auto columns = some<Sums>(moved(terms.columns, j), lanes);
    const Sums outer[2] = {some<Sums>(moved(terms.outer[0].columns, j), lanes),
                           some<Sums>(moved(terms.outer[1].columns, j), lanes)};
    const Lanes column_scales = scales.columns != nullptr ? some<Lanes>(scales.columns + j, lanes) : Lanes{};
    for (int64_t i = 0; i < m; ++i) {
      Sums sums = some<Sums>(c + i * ldc + j, lanes) + columns;
      if (terms.rows != nullptr) sums += static_cast<uint32_t>(terms.rows[i]);
      for (int t = 0; t < 2; ++t) {
        if (terms.outer[t].rows != nullptr) sums += static_cast<uint32_t>(terms.outer[t].rows[i]) * outer[t];
      }
      const Lanes scale = scales.rows != nullptr ? splat(scales.rows[i]) : column_scales;
      const Lanes steps = __builtin_convertvector(reinterpret_cast<Whole>(sums), Lanes) / scale;
      store_levels(levels_of<Level>(steps, zero_point), lanes, y + i * ldy + j);
    }
  }
}

/// The levels y (m, n) of sums c and `terms`.
void requantize_integers(int64_t m, int64_t n, const IntegerTerms& terms, const int32_t* c, int64_t ldc,
                         const LevelScales& scales, void* y, int64_t ldy) {
  if (scales.type == LevelType::kInt8) {
    requantized(m, n, terms, c, ldc, scales, static_cast<int8_t*>(y), ldy);
  } else {
    requantized(m, n, terms, c, ldc, scales, static_cast<uint8_t*>(y), ldy);
  }
}

template <int Vectors>
void tap_sums(const float* const* x, const float* weights, int64_t count, int64_t j, int32_t* y) {
  Lanes sum[Vectors] = {};
  for (int64_t t = 0; t < count; ++t) {
    const Lanes weight = splat(weights[t]);
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) sum[v] += weight * load(x[t] + j + v * kWidth);
  }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    const Whole whole = __builtin_convertvector(sum[v], Whole);
    __builtin_memcpy(y + j + v * kWidth, &whole, sizeof(whole));
  }
}

/// y = weights[0] x[0] + weights[1] x[1] + ..., whole numbers that float holds exactly.
void integer_taps(const float* const* x, const float* weights, int64_t count, int64_t n, int32_t* y) {
  int64_t j = 0;
  for (; j + 4 * kWidth <= n; j += 4 * kWidth) tap_sums<4>(x, weights, count, j, y);
  for (; j + kWidth <= n; j += kWidth) tap_sums<1>(x, weights, count, j, y);
  for (; j < n; ++j) {
    float sum = 0.0f;
    for (int64_t t = 0; t < count; ++t) sum += weights[t] * x[t][j];
    y[j] = static_cast<int32_t>(sum);
  }
}

}  // namespace

void winograd_line(const uint8_t*, const uint8_t*, bool, int32_t, int64_t, int64_t, int64_t, uint32_t*, uint32_t*);
void winograd_columns(const uint32_t*, int64_t, int64_t, uint32_t*, int64_t);
void winograd_output(const int32_t*, int64_t, int32_t*);
int64_t winograd_padded(int64_t);

const IntegerLoops& integers() {
  static const IntegerLoops loops{kColumns,        integer_product,     pack_integers,     widen_integers,
                                  adjust_integers, requantize_integers, quantize_integers, dequantize_integers,
                                  integer_taps,    winograd_line,       winograd_columns,  winograd_output,
                                  winograd_padded};
  return loops;
}

}  // namespace nn_cpu::NN_ISA
