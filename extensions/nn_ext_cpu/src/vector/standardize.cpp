// Loops over one row that is standardized by its own mean and deviation: what layer, group and instance normalization
// are made of. `gamma` and `beta` have an element for each of the row; a null pointer stands for ones and zeros.
#include "support/vector.hpp"
#include "vector/lanes.hpp"
#include "vector/wide_math.hpp"

namespace nn_cpu::NN_ISA {

/// y = (x - mean) scale + shift.
template <class T>
void standardize(const T* x, int64_t n, T mean, T scale, T shift, T* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale + shift;
}

/// y = (x - mean) rate gamma + beta.
template <class T>
void standardize_each(const T* x, int64_t n, T mean, T rate, const T* gamma, const T* beta, T* y) {
  if (gamma == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rate + beta[i];
  } else if (beta == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rate * gamma[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rate * gamma[i] + beta[i];
  }
}

/// s1 += sum of g, s2 += sum of g (x - mean), with g = dy gamma. In blocks of 512, blocks add up in double.
template <class T>
void standardize_products(const T* dy, const T* gamma, const T* x, int64_t n, T mean, double* s1, double* s2) {
  for (int64_t start = 0; start < n; start += 512) {
    const int64_t end = start + 512 < n ? start + 512 : n;
    T a1 = T{0}, a2 = T{0};
#pragma omp simd reduction(+ : a1, a2)
    for (int64_t i = start; i < end; ++i) {
      const T g = dy[i] * gamma[i];
      a1 += g;
      a2 += g * (x[i] - mean);
    }
    *s1 += a1;
    *s2 += a2;
  }
}

/// dx = p (dy scale + q (x - mean) + r), where `scale` is a number or, if given, gamma.
template <class T>
void standardize_gradient(const T* dy, const T* gamma, T scale, const T* x, int64_t n, T mean, T p, T q, T r, T* dx) {
  if (gamma == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = p * (dy[i] * scale + (q * (x[i] - mean) + r));
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = p * (dy[i] * gamma[i] + (q * (x[i] - mean) + r));
  }
}

/// y += dy (x - mean) rate.
template <class T>
void add_standardized(const T* dy, const T* x, int64_t n, T mean, T rate, T* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += dy[i] * ((x[i] - mean) * rate);
}

namespace {

/// A row of at most Vectors vectors in registers. The lanes beyond its end are 0.
template <class T, int Vectors>
struct ShortRow {
  using Vector = LanesOf<T>;
  static constexpr int kLanes = kWidthOf<T>, kVectors = Vectors;

  int64_t n;
  int part;     // numbers in the last vector
  Vector kept;  // 1 in their lanes

  explicit ShortRow(int64_t n) : n(n), part(static_cast<int>(n - (Vectors - 1) * kLanes)), kept{} {
    for (int lane = 0; lane < kLanes; ++lane) kept[lane] = lane < part ? T{1} : T{0};
  }

  void read(const T* x, Vector (&v)[Vectors]) const {
#pragma GCC unroll 16
    for (int k = 0; k < Vectors - 1; ++k) v[k] = load(x + k * kLanes);
    const T* last = x + (Vectors - 1) * kLanes;
    v[Vectors - 1] = part == kLanes ? load(last) : load_part(last, part);
  }

  void write(const Vector (&v)[Vectors], T* y) const {
#pragma GCC unroll 16
    for (int k = 0; k < Vectors - 1; ++k) store(y + k * kLanes, v[k]);
    T* last = y + (Vectors - 1) * kLanes;
    if (part == kLanes) {
      store(last, v[Vectors - 1]);
    } else {
      store_part(last, v[Vectors - 1], part);
    }
  }

  /// v less a number.
  void centre(T mean, Vector (&v)[Vectors]) const {
    const Vector all = splat(mean);
#pragma GCC unroll 16
    for (int k = 0; k < Vectors; ++k) v[k] -= all;
    v[Vectors - 1] *= kept;
  }

  T sum(const Vector (&v)[Vectors]) const {
    Vector total = v[0];
#pragma GCC unroll 16
    for (int k = 1; k < Vectors; ++k) total += v[k];
    return static_cast<T>(sum_of_lanes(total));
  }

  /// The sum of a b.
  T product(const Vector (&a)[Vectors], const Vector (&b)[Vectors]) const {
    Vector total = a[0] * b[0];
#pragma GCC unroll 16
    for (int k = 1; k < Vectors; ++k) total += a[k] * b[k];
    return static_cast<T>(sum_of_lanes(total));
  }
};

template <class T, int Vectors>
void short_rows(const T* x, int64_t rows, int64_t n, T eps, const T* gamma, const T* beta, T* y, T* mean, T* variance) {
  using Vector = LanesOf<T>;
  const ShortRow<T, Vectors> row(n);
  const T count = static_cast<T>(n);
  Vector scales[Vectors], shifts[Vectors];
  if (gamma != nullptr) row.read(gamma, scales);
  if (beta != nullptr) row.read(beta, shifts);
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    Vector v[Vectors], distances[Vectors];
    row.read(x, v);
    T centre = row.sum(v) / count;
    for (int k = 0; k < Vectors; ++k) distances[k] = v[k];
    row.centre(centre, distances);
    const T offset = row.sum(distances) / count;
    const T square = row.product(distances, distances) / count - offset * offset;
    const bool is_finite = offset - offset == T{0};
    if (is_finite) centre += offset;
    mean[r] = centre;
    variance[r] = is_finite ? (square < T{0} ? T{0} : square) : offset - offset;
    const Vector rate = splat(T{1} / root(variance[r] + eps)), all = splat(centre);
    for (int k = 0; k < Vectors; ++k) {
      v[k] = (v[k] - all) * rate;
      if (gamma != nullptr) v[k] *= scales[k];
      if (beta != nullptr) v[k] += shifts[k];
    }
    row.write(v, y);
  }
}

template <class T, int Vectors>
void short_gradients(const T* dy, const T* gamma, const T* x, int64_t rows, int64_t n, T eps, const T* mean,
                     const T* variance, T* dx, T* dbeta, T* dgamma) {
  using Vector = LanesOf<T>;
  const ShortRow<T, Vectors> row(n);
  const T count = static_cast<T>(n);
  Vector scales[Vectors], shift_sums[Vectors], scale_sums[Vectors];
  if (gamma != nullptr) row.read(gamma, scales);
  if (dbeta != nullptr) row.read(dbeta, shift_sums);
  if (dgamma != nullptr) row.read(dgamma, scale_sums);
  for (int64_t r = 0; r < rows; ++r, x += n, dy += n) {
    Vector g[Vectors], distances[Vectors];
    row.read(dy, g);
    row.read(x, distances);
    row.centre(mean[r], distances);
    const T rate = T{1} / root(variance[r] + eps);
    const Vector rates = splat(rate);
    for (int k = 0; k < Vectors; ++k) {
      if (dbeta != nullptr) shift_sums[k] += g[k];
      if (dgamma != nullptr) scale_sums[k] += g[k] * (distances[k] * rates);
      if (gamma != nullptr) g[k] *= scales[k];
    }
    if (dx == nullptr) continue;
    const Vector shift = splat(-row.sum(g) / count), slope = splat(-rate * rate * row.product(g, distances) / count);
    for (int k = 0; k < Vectors; ++k) g[k] = rates * (g[k] + (slope * distances[k] + shift));
    row.write(g, dx);
    dx += n;
  }
  if (dbeta != nullptr) row.write(shift_sums, dbeta);
  if (dgamma != nullptr) row.write(scale_sums, dgamma);
}

/// Calls body(number of vectors of a row of n, as a type).
template <class T, int Vectors = 1, class Body>
void with_vectors(int64_t n, const Body& body) {
  if constexpr (Vectors * kWidthOf<T> < kShortRow<T>) {
    if (n > Vectors * kWidthOf<T>) return with_vectors<T, Vectors + 1>(n, body);
  }
  body(ShortRow<T, Vectors>(n));
}

}  // namespace

/// The whole of layer normalization for rows of at most kShortRow numbers; parameters may be missing.
template <class T>
void standardize_short(const T* x, int64_t rows, int64_t n, T eps, const T* gamma, const T* beta, T* y, T* mean,
                       T* variance) {
  with_vectors<T>(
      n, [&](auto row) { short_rows<T, decltype(row)::kVectors>(x, rows, n, eps, gamma, beta, y, mean, variance); });
}

/// Its gradient: dx, and what is added to dbeta and dgamma. Any of the three may be missing.
template <class T>
void standardize_short_gradient(const T* dy, const T* gamma, const T* x, int64_t rows, int64_t n, T eps, const T* mean,
                                const T* variance, T* dx, T* dbeta, T* dgamma) {
  with_vectors<T>(n, [&](auto row) {
    short_gradients<T, decltype(row)::kVectors>(dy, gamma, x, rows, n, eps, mean, variance, dx, dbeta, dgamma);
  });
}

template void standardize_short(const float*, int64_t, int64_t, float, const float*, const float*, float*, float*,
                                float*);
template void standardize_short(const double*, int64_t, int64_t, double, const double*, const double*, double*, double*,
                                double*);
template void standardize_short_gradient(const float*, const float*, const float*, int64_t, int64_t, float,
                                         const float*, const float*, float*, float*, float*);
template void standardize_short_gradient(const double*, const double*, const double*, int64_t, int64_t, double,
                                         const double*, const double*, double*, double*, double*);
template void standardize(const float*, int64_t, float, float, float, float*);
template void standardize_each(const float*, int64_t, float, float, const float*, const float*, float*);
template void standardize_products(const float*, const float*, const float*, int64_t, float, double*, double*);
template void standardize_gradient(const float*, const float*, float, const float*, int64_t, float, float, float, float,
                                   float*);
template void add_standardized(const float*, const float*, int64_t, float, float, float*);
template void standardize(const double*, int64_t, double, double, double, double*);
template void standardize_each(const double*, int64_t, double, double, const double*, const double*, double*);
template void standardize_products(const double*, const double*, const double*, int64_t, double, double*, double*);
template void standardize_gradient(const double*, const double*, double, const double*, int64_t, double, double, double,
                                   double, double*);
template void add_standardized(const double*, const double*, int64_t, double, double, double*);

}  // namespace nn_cpu::NN_ISA
