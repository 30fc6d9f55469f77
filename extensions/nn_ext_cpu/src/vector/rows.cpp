// Loops over a matrix (rows, columns), columns innermost: what batch normalization of channels-last images is made of.
// Sums over rows run in float32 over blocks of 64 rows and add up the blocks in double. The `_row` forms treat one row
// with the same number for all of its elements: they serve images that lie channel by channel.
#include "support/vector.hpp"
#include "vector/math.hpp"

namespace nn_cpu::NN_ISA {
namespace {

constexpr int64_t kRows = 64;
constexpr int kWidth = 32;

/// Adds sums over `rows` of first(row, column) and second(row, column) for `Width` columns from `column` on.
template <int Width, class F>
void two_sums(int64_t rows, int64_t column, double* s1, double* s2, F terms) {
  for (int64_t start = 0; start < rows; start += kRows) {
    const int64_t end = start + kRows < rows ? start + kRows : rows;
    float a1[Width] = {}, a2[Width] = {};
    for (int64_t row = start; row < end; ++row) {
#pragma omp simd
      for (int j = 0; j < Width; ++j) terms(row, column + j, a1[j], a2[j]);
    }
    for (int j = 0; j < Width; ++j) {
      s1[column + j] += a1[j];
      s2[column + j] += a2[j];
    }
  }
}

template <class F>
void two_sums_of_columns(int64_t rows, int64_t columns, double* s1, double* s2, F terms) {
  int64_t column = 0;
  for (; column + kWidth <= columns; column += kWidth) two_sums<kWidth>(rows, column, s1, s2, terms);
  for (; column + 8 <= columns; column += 8) two_sums<8>(rows, column, s1, s2, terms);
  for (; column < columns; ++column) two_sums<1>(rows, column, s1, s2, terms);
}

template <class F>
void two_sums_of_row(int64_t n, double* s1, double* s2, F terms) {
  for (int64_t start = 0; start < n; start += 512) {
    const int64_t end = start + 512 < n ? start + 512 : n;
    float a1 = 0.0f, a2 = 0.0f;
#pragma omp simd reduction(+ : a1, a2)
    for (int64_t i = start; i < end; ++i) terms(i, a1, a2);
    *s1 += a1;
    *s2 += a2;
  }
}

}  // namespace

/// s1[c] += sum of x - shift[c], s2[c] += sum of its square.
void column_moments(const float* x, int64_t rows, int64_t columns, const float* shift, double* s1, double* s2) {
  two_sums_of_columns(rows, columns, s1, s2, [=](int64_t row, int64_t c, float& a1, float& a2) {
    const float d = x[row * columns + c] - shift[c];
    a1 += d;
    a2 += d * d;
  });
}

void row_moments(const float* x, int64_t n, float shift, double* s1, double* s2) {
  two_sums_of_row(n, s1, s2, [=](int64_t i, float& a1, float& a2) {
    const float d = x[i] - shift;
    a1 += d;
    a2 += d * d;
  });
}

/// s1[c] += sum of dy, s2[c] += sum of dy (x - shift[c]); where `y` is given, only rows with y > 0 count.
void column_products(const float* dy, const float* y, const float* x, int64_t rows, int64_t columns, const float* shift, double* s1,
                     double* s2) {
  if (y == nullptr) {
    two_sums_of_columns(rows, columns, s1, s2, [=](int64_t row, int64_t c, float& a1, float& a2) {
      const float g = dy[row * columns + c];
      a1 += g;
      a2 += g * (x[row * columns + c] - shift[c]);
    });
    return;
  }
  two_sums_of_columns(rows, columns, s1, s2, [=](int64_t row, int64_t c, float& a1, float& a2) {
    const float g = y[row * columns + c] > 0.0f ? dy[row * columns + c] : 0.0f;
    a1 += g;
    a2 += g * (x[row * columns + c] - shift[c]);
  });
}

void row_products(const float* dy, const float* y, const float* x, int64_t n, float shift, double* s1, double* s2) {
  two_sums_of_row(n, s1, s2, [=](int64_t i, float& a1, float& a2) {
    const float g = y == nullptr || y[i] > 0.0f ? dy[i] : 0.0f;
    a1 += g;
    a2 += g * (x[i] - shift);
  });
}

/// y = a[c] x + b[c], then plus z and a ReLU where asked.
void column_affine(const float* x, const float* z, int64_t rows, int64_t columns, const float* a, const float* b, bool relu, float* y) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x + row * columns;
    float* to = y + row * columns;
    if (!relu) {
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) to[c] = a[c] * from[c] + b[c];
      continue;
    }
    const float* add = z + row * columns;
    if (z == nullptr) {
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) to[c] = larger(a[c] * from[c] + b[c], 0.0f);
    } else {
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) to[c] = larger(a[c] * from[c] + b[c] + add[c], 0.0f);
    }
  }
}

void row_affine(const float* x, const float* z, int64_t n, float a, float b, bool relu, float* y) {
  if (!relu) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = a * x[i] + b;
  } else if (z == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = larger(a * x[i] + b, 0.0f);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = larger(a * x[i] + b + z[i], 0.0f);
  }
}

/// dx = p[c] dy + q[c] x + r[c], with dy = 0 where `y` is given and not above 0.
void column_gradient(const float* dy, const float* y, const float* x, int64_t rows, int64_t columns, const float* p, const float* q,
                     const float* r, float* dx) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t start = row * columns;
    if (y == nullptr) {
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) dx[start + c] = p[c] * dy[start + c] + (q[c] * x[start + c] + r[c]);
    } else {
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) {
        const float g = y[start + c] > 0.0f ? dy[start + c] : 0.0f;
        dx[start + c] = p[c] * g + (q[c] * x[start + c] + r[c]);
      }
    }
  }
}

void row_gradient(const float* dy, const float* y, const float* x, int64_t n, float p, float q, float r, float* dx) {
  if (y == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = p * dy[i] + (q * x[i] + r);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = p * (y[i] > 0.0f ? dy[i] : 0.0f) + (q * x[i] + r);
  }
}

}  // namespace nn_cpu::NN_ISA
