// Sums of products of integers of 8 bits. Two neighbouring products are added in one instruction, exactly: numbers of 9
// bits with a sign have products of 17 bits. Sums wrap around as int32. O(m n k).
//
// The left matrix holds int16 numbers by rows, in an even number of columns. The right one is cut into panels of
// kColumns columns, in which the numbers of two rows follow each other column by column; missing rows are zeros.
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "support/vector.hpp"
#include "vector/lanes.hpp"

namespace nn_cpu::NN_ISA {

namespace {

constexpr int kTileRows = kWidth == 16 ? 12 : (kWidth == 8 ? 6 : 4);
constexpr int64_t kColumns = 2 * kWidth;

using Sums = uint32_t __attribute__((vector_size(kWidth * 4)));  // unsigned numbers wrap around
using Shorts = int16_t __attribute__((vector_size(kWidth * 4)));
template <class Byte>
Shorts widened(const Byte* p) {
  constexpr bool kSigned = static_cast<Byte>(-1) < 0;
#if defined(__AVX512BW__)
  const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return reinterpret_cast<Shorts>(kSigned ? _mm512_cvtepi8_epi16(v) : _mm512_cvtepu8_epi16(v));
#elif defined(__AVX2__)
  const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return reinterpret_cast<Shorts>(kSigned ? _mm256_cvtepi8_epi16(v) : _mm256_cvtepu8_epi16(v));
#elif defined(__SSE2__)
  const __m128i v = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)), zero = _mm_setzero_si128();
  return reinterpret_cast<Shorts>(kSigned ? _mm_srai_epi16(_mm_unpacklo_epi8(zero, v), 8) : _mm_unpacklo_epi8(v, zero));
#else
  Shorts v;
  for (int i = 0; i < 2 * kWidth; ++i) v[i] = p[i];
  return v;
#endif
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
template <int Rows, class Byte>
void tile(int64_t k, const int16_t* a, int64_t lda, const Byte* b, bool accumulate, int32_t* c, int64_t ldc) {
  Sums sum[Rows][2];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) sum[i][v] = Sums{};
  }
  for (int64_t p = 0; p < k; p += 2, b += 2 * kColumns) {
    const Shorts row[2] = {widened(b), widened(b + kColumns)};
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const Shorts x = splat_pair(a + i * lda + p);
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) sum[i][v] += pair_sums(x, row[v]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i, c += ldc) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      Sums total = sum[i][v];
      if (accumulate) {
        Sums before;
        __builtin_memcpy(&before, c + v * kWidth, sizeof(before));
        total += before;
      }
      __builtin_memcpy(c + v * kWidth, &total, sizeof(total));
    }
  }
}

/// tile<Rows, ...> for what is left of kTileRows.
template <class Byte, int Rows = kTileRows>
void some_rows(int64_t rows, int64_t k, const int16_t* a, int64_t lda, const Byte* b, bool accumulate, int32_t* c,
               int64_t ldc) {
  if (rows == Rows) {
    tile<Rows>(k, a, lda, b, accumulate, c, ldc);
  } else if constexpr (Rows > 1) {
    some_rows<Byte, Rows - 1>(rows, k, a, lda, b, accumulate, c, ldc);
  }
}

template <class Byte>
void product(int64_t m, int64_t n, int64_t k, const int16_t* a, int64_t lda, const Byte* b, bool accumulate, int32_t* c,
             int64_t ldc) {
  int32_t part[kTileRows * kColumns];
  const int64_t tiles = (m + kTileRows - 1) / kTileRows;
  for (int64_t t = 0; t < tiles; ++t) {  // of about as many rows each
    const int64_t i = m * t / tiles, rows = m * (t + 1) / tiles - i;
    if (n == kColumns) {
      some_rows(rows, k, a + i * lda, lda, b, accumulate, c + i * ldc, ldc);
      continue;
    }
    some_rows(rows, k, a + i * lda, lda, b, false, part, kColumns);
    for (int64_t r = 0; r < rows; ++r) {
      int32_t* to = c + (i + r) * ldc;
      for (int64_t j = 0; j < n; ++j) {
        const auto sum = static_cast<uint32_t>(part[r * kColumns + j]);
        to[j] = static_cast<int32_t>(accumulate ? static_cast<uint32_t>(to[j]) + sum : sum);
      }
    }
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

/// to[2 i] = first[i], to[2 i + 1] = second[i]
inline void interleave(const uint8_t* __restrict__ first, const uint8_t* __restrict__ second,
                       uint8_t* __restrict__ to) {
#ifdef __SSE2__
  for (int64_t i = 0; i < kColumns; i += 8) {
    const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(first + i)),
                  y = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(second + i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i), _mm_unpacklo_epi8(x, y));
  }
#else
  for (int64_t i = 0; i < kColumns; ++i) {
    to[2 * i] = first[i];
    to[2 * i + 1] = second[i];
  }
#endif
}

/// c (m, n) = a (m, k) b, plus c if `accumulate`, for the first n columns of a panel of b; k is even.
void integer_product(int64_t m, int64_t n, int64_t k, const int16_t* a, int64_t lda, const uint8_t* b, bool is_signed,
                     bool accumulate, int32_t* c, int64_t ldc) {
  if (is_signed) {
    product(m, n, k, a, lda, reinterpret_cast<const int8_t*>(b), accumulate, c, ldc);
  } else {
    product(m, n, k, a, lda, b, accumulate, c, ldc);
  }
}

/// Cuts the matrix b (k, n) into panels, which follow each other.
void pack_integers(const uint8_t* b, int64_t ldb, int64_t k, int64_t n, uint8_t* to) {
  uint8_t rows[2][kColumns] = {};
  for (int64_t j = 0; j < n; j += kColumns) {
    const int64_t columns = n - j < kColumns ? n - j : kColumns;
    for (int64_t p = 0; p < k; p += 2, to += 2 * kColumns) {
      const uint8_t *first = b + p * ldb + j, *second = first + ldb;
      if (columns == kColumns && p + 1 < k) {
        interleave(first, second, to);
        continue;
      }
      for (int64_t i = 0; i < kColumns; ++i) {
        rows[0][i] = i < columns ? first[i] : uint8_t{0};
        rows[1][i] = i < columns && p + 1 < k ? second[i] : uint8_t{0};
      }
      interleave(rows[0], rows[1], to);
    }
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

constexpr float kFarthest = 131072.0f;  // beyond all levels, so that steps and zero points have exact sums

/// One level: `x` in steps, rounded, halves to even, NaN as 0, and limited.
template <class Level>
Level level(float x, float scale, int32_t zero_point) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded to whole numbers
  constexpr bool kSigned = static_cast<Level>(-1) < 0;
  constexpr int kBits = 8 * sizeof(Level);
  constexpr int32_t kLow = kSigned ? -(1 << (kBits - 1)) : 0, kHigh = kLow + (1 << kBits) - 1;
  float steps = x / scale;
  steps = steps == steps ? steps : 0.0f;
  steps = steps < -kFarthest ? -kFarthest : steps;
  steps = steps > kFarthest ? kFarthest : steps;
  const int32_t whole = static_cast<int32_t>((steps + kShift) - kShift) + zero_point;
  return static_cast<Level>(whole < kLow ? kLow : (whole > kHigh ? kHigh : whole));
}

template <class Level>
void quantized(const float* __restrict__ x, int64_t n, const float* __restrict__ scale,
               const int32_t* __restrict__ zero_point, bool each, Level* __restrict__ y) {
  if (each) {
    for (int64_t i = 0; i < n; ++i) y[i] = level<Level>(x[i], scale[i], zero_point[i]);
    return;
  }
  const float one_scale = scale[0];
  const int32_t one_zero_point = zero_point[0];
  for (int64_t i = 0; i < n; ++i) y[i] = level<Level>(x[i], one_scale, one_zero_point);
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

}  // namespace

IntegerLoops integers() {
  return {kColumns,        integer_product,   pack_integers,      widen_integers,
          adjust_integers, quantize_integers, dequantize_integers};
}

}  // namespace nn_cpu::NN_ISA
