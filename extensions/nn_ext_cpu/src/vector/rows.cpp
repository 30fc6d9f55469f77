// Loops over a matrix (rows, columns), columns innermost: what batch normalization of channels-last images is made of.
// Sums over rows run in the type of parameters over blocks of 64 rows, eight rows at a time lest chains grow long, and
// add up the blocks in double. The `_row` forms treat one row with the same number for all of its elements: they serve
// images that are stored channel by channel.
#include "support/vector.hpp"
#include "vector/bfloat16.hpp"
#include "vector/wide_math.hpp"

namespace nn_cpu::NN_ISA {
namespace {

constexpr int64_t kRows = 64, kChain = 8;
constexpr int kWidth = 32;

/// Adds sums over `rows` of first(row, column) and second(row, column) for `Width` columns from `column` on.
template <class R, int Width, class F>
void two_sums(int64_t rows, int64_t column, double* s1, double* s2, F terms) {
  for (int64_t start = 0; start < rows; start += kRows) {
    const int64_t end = start + kRows < rows ? start + kRows : rows;
    R a1[Width] = {}, a2[Width] = {};
    int64_t row = start;
    for (; row + kChain <= end; row += kChain) {
#pragma omp simd
      for (int j = 0; j < Width; ++j) {
        R b1 = R{0}, b2 = R{0};
        for (int64_t i = 0; i < kChain; ++i) terms(row + i, column + j, b1, b2);
        a1[j] += b1;
        a2[j] += b2;
      }
    }
    for (; row < end; ++row) {
#pragma omp simd
      for (int j = 0; j < Width; ++j) terms(row, column + j, a1[j], a2[j]);
    }
    for (int j = 0; j < Width; ++j) {
      s1[column + j] += a1[j];
      s2[column + j] += a2[j];
    }
  }
}

template <class R, class F>
void two_sums_of_columns(int64_t rows, int64_t columns, double* s1, double* s2, F terms) {
  int64_t column = 0;
  for (; column + kWidth <= columns; column += kWidth) two_sums<R, kWidth>(rows, column, s1, s2, terms);
  for (; column + 8 <= columns; column += 8) two_sums<R, 8>(rows, column, s1, s2, terms);
  for (; column < columns; ++column) two_sums<R, 1>(rows, column, s1, s2, terms);
}

template <class R, class F>
void two_sums_of_row(int64_t n, double* s1, double* s2, F terms) {
  constexpr int64_t kBlock = 256;
  for (int64_t start = 0; start < n; start += kBlock) {
    const int64_t end = start + kBlock < n ? start + kBlock : n;
    R a1 = R{0}, a2 = R{0};
#pragma omp simd reduction(+ : a1, a2)
    for (int64_t i = start; i < end; ++i) terms(i, a1, a2);
    *s1 += a1;
    *s2 += a2;
  }
}

/// s1[c] += sum of x - shift[c], s2[c] += sum of its square.
template <class T>
void column_moments(const T* x, int64_t rows, int64_t columns, const ParameterOf<T>* shift, double* s1, double* s2) {
  two_sums_of_columns<ParameterOf<T>>(rows, columns, s1, s2,
                                      [=](int64_t row, int64_t c, ParameterOf<T>& a1, ParameterOf<T>& a2) {
                                        const ParameterOf<T> d = value(x[row * columns + c]) - shift[c];
                                        a1 += d;
                                        a2 += d * d;
                                      });
}

template <class T>
void row_moments(const T* x, int64_t n, ParameterOf<T> shift, double* s1, double* s2) {
  two_sums_of_row<ParameterOf<T>>(n, s1, s2, [=](int64_t i, ParameterOf<T>& a1, ParameterOf<T>& a2) {
    const ParameterOf<T> d = value(x[i]) - shift;
    a1 += d;
    a2 += d * d;
  });
}

/// s1[c] += sum of dy, s2[c] += sum of dy (x - shift[c]); where `y` is given, only rows with y > 0 count.
template <class T>
void column_products(const T* dy, const T* y, const T* x, int64_t rows, int64_t columns, const ParameterOf<T>* shift,
                     double* s1, double* s2) {
  if (y == nullptr) {
    two_sums_of_columns<ParameterOf<T>>(rows, columns, s1, s2,
                                        [=](int64_t row, int64_t c, ParameterOf<T>& a1, ParameterOf<T>& a2) {
                                          const ParameterOf<T> g = value(dy[row * columns + c]);
                                          a1 += g;
                                          a2 += g * (value(x[row * columns + c]) - shift[c]);
                                        });
    return;
  }
  two_sums_of_columns<ParameterOf<T>>(
      rows, columns, s1, s2, [=](int64_t row, int64_t c, ParameterOf<T>& a1, ParameterOf<T>& a2) {
        const ParameterOf<T> g = value(y[row * columns + c]) > 0 ? value(dy[row * columns + c]) : ParameterOf<T>{0};
        a1 += g;
        a2 += g * (value(x[row * columns + c]) - shift[c]);
      });
}

template <class T>
void row_products(const T* dy, const T* y, const T* x, int64_t n, ParameterOf<T> shift, double* s1, double* s2) {
  two_sums_of_row<ParameterOf<T>>(n, s1, s2, [=](int64_t i, ParameterOf<T>& a1, ParameterOf<T>& a2) {
    const ParameterOf<T> g = y == nullptr || value(y[i]) > 0 ? value(dy[i]) : ParameterOf<T>{0};
    a1 += g;
    a2 += g * (value(x[i]) - shift);
  });
}

/// y = (x - mean[c]) scale[c] + shift[c], then plus z and a ReLU where asked. The mean is subtracted first, so that y
/// is exactly the shift where x is the mean.
template <class T>
void column_standardize(const T* x, const T* z, int64_t rows, int64_t columns, const ParameterOf<T>* mean,
                        const ParameterOf<T>* scale, const ParameterOf<T>* shift, bool relu, T* y) {
  for (int64_t row = 0; row < rows; ++row) {
    const T* from = x + row * columns;
    T* to = y + row * columns;
    if (!relu) {
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) put(to[c], (value(from[c]) - mean[c]) * scale[c] + shift[c]);
      continue;
    }
    const T* add = z + row * columns;
    if (z == nullptr) {
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) put(to[c], rectified((value(from[c]) - mean[c]) * scale[c] + shift[c]));
    } else {
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c)
        put(to[c], rectified((value(from[c]) - mean[c]) * scale[c] + shift[c] + value(add[c])));
    }
  }
}

template <class T>
void row_standardize(const T* x, const T* z, int64_t n, ParameterOf<T> mean, ParameterOf<T> scale, ParameterOf<T> shift,
                     bool relu, T* y) {
  if (!relu) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) put(y[i], (value(x[i]) - mean) * scale + shift);
  } else if (z == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) put(y[i], rectified((value(x[i]) - mean) * scale + shift));
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) put(y[i], rectified((value(x[i]) - mean) * scale + shift + value(z[i])));
  }
}

/// y = a x.
template <class T>
void row_scale(const T* x, int64_t n, ParameterOf<T> a, T* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) put(y[i], a * value(x[i]));
}

/// dx = p[c] dy + (q[c] (x - mean[c]) + r[c]), with dy = 0 where `y` is given and not above 0.
template <class T>
void column_gradient(const T* dy, const T* y, const T* x, int64_t rows, int64_t columns, const ParameterOf<T>* mean,
                     const ParameterOf<T>* p, const ParameterOf<T>* q, const ParameterOf<T>* r, T* dx) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t start = row * columns;
    if (y == nullptr) {
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c)
        put(dx[start + c], p[c] * value(dy[start + c]) + (q[c] * (value(x[start + c]) - mean[c]) + r[c]));
    } else {
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) {
        const ParameterOf<T> g = value(y[start + c]) > 0 ? value(dy[start + c]) : ParameterOf<T>{0};
        put(dx[start + c], p[c] * g + (q[c] * (value(x[start + c]) - mean[c]) + r[c]));
      }
    }
  }
}

template <class T>
void row_gradient(const T* dy, const T* y, const T* x, int64_t n, ParameterOf<T> mean, ParameterOf<T> p,
                  ParameterOf<T> q, ParameterOf<T> r, T* dx) {
  if (y == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) put(dx[i], p * value(dy[i]) + (q * (value(x[i]) - mean) + r));
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      put(dx[i], p * (value(y[i]) > 0 ? value(dy[i]) : ParameterOf<T>{0}) + (q * (value(x[i]) - mean) + r));
  }
}

}  // namespace

template <class T>
RowLoops<T> row_loops() {
  return {column_moments<T>,  row_moments<T>, column_products<T>, row_products<T>, column_standardize<T>,
          row_standardize<T>, row_scale<T>,   column_gradient<T>, row_gradient<T>};
}

template RowLoops<float> row_loops();
template RowLoops<Bf16> row_loops();
template RowLoops<double> row_loops();

}  // namespace nn_cpu::NN_ISA
