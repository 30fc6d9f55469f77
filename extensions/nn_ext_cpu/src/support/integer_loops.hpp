// The loops of products of 8-bit integers, and of levels.
#pragma once

#include <cstdint>

namespace nn_cpu {

/// What is added to sums c (m, n) of products of integers: rows[i] + columns[j] + products of a number for the row and
/// one for the column. Missing vectors are zeros.
struct IntegerTerms {
  struct Outer {
    const int32_t *rows = nullptr, *columns = nullptr;
  };
  const int32_t *rows = nullptr, *columns = nullptr;
  Outer outer[2];
};

enum class LevelType { kInt8, kUInt8, kInt16, kUInt16 };

/// How sums become levels: divided by the scale of their row or of their column, one of which is given, rounded to
/// whole numbers, shifted by the zero point, and limited to the range of the type.
struct LevelScales {
  const float *rows = nullptr, *columns = nullptr;
  int32_t zero_point = 0;
  LevelType type = LevelType::kUInt8;
};

/// Products of integers of 8 bits, and levels of 8 or 16 bits; see vector/integers.cpp.
struct IntegerLoops {
  int64_t columns;  // of a panel
  void (*product)(int64_t m, int64_t n, int64_t k, const int16_t* a, int64_t lda, const int16_t* b, int64_t ldb,
                  bool accumulate, int32_t* c, int64_t ldc);
  void (*pack)(const uint8_t* b, int64_t ldb, int64_t k, int64_t n, bool is_signed, int16_t* to);
  int32_t (*widen)(const uint8_t* x, int64_t n, bool is_signed, int16_t* y);
  void (*adjust)(int64_t m, int64_t n, const IntegerTerms& terms, int32_t* c, int64_t ldc);
  void (*requantize)(int64_t m, int64_t n, const IntegerTerms& terms, const int32_t* c, int64_t ldc,
                     const LevelScales& scales, void* y, int64_t ldy);
  void (*quantize)(const float* x, int64_t n, const float* scale, const int32_t* zero_point, bool each, LevelType type,
                   void* y);
  void (*dequantize)(const void* x, int64_t n, const float* scale, const int32_t* zero_point, bool each, LevelType type,
                     float* y);
  void (*taps)(const float* const* x, const float* weights, int64_t count, int64_t n, int32_t* y);
  // Winograd's method, see vector/integer_winograd.cpp
  void (*winograd_line)(const uint8_t* even, const uint8_t* odd, bool is_signed, int32_t zero_point, int64_t n,
                        int64_t pad, int64_t tiles, uint32_t* line, uint32_t* h);
  void (*winograd_columns)(const uint32_t* h, int64_t ldh, int64_t tiles, uint32_t* to, int64_t stride);
  void (*winograd_output)(const int32_t* m, int64_t stride, int32_t* y);
  int64_t (*winograd_padded)(int64_t tiles);
};

}  // namespace nn_cpu
