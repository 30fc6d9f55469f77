// One stage of a Fourier transform of several signals at once; see support/fourier.hpp.
#include "support/vector.hpp"

namespace nn_cpu::NN_ISA {
namespace {

/// y = w z for a number w = (c, s) and `n` complex numbers z.
inline void rotate(int64_t n, float c, float s, const float* re, const float* im, float* y_re, float* y_im) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float a = re[i], b = im[i];
    y_re[i] = c * a - s * b;
    y_im[i] = c * b + s * a;
  }
}

void butterflies_of_2(int64_t n, int64_t step, const float* w, const float* re, const float* im, float* y_re,
                      float* y_im) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float a = re[i], b = im[i], c = re[step + i], d = im[step + i];
    const float e = a - c, f = b - d;
    y_re[i] = a + c;
    y_im[i] = b + d;
    y_re[n + i] = w[2] * e - w[3] * f;
    y_im[n + i] = w[2] * f + w[3] * e;
  }
}

void butterflies_of_4(int64_t n, int64_t step, const float* w, const float* re, const float* im, float* y_re,
                      float* y_im) {
  const float c1 = w[2], s1 = w[3], c2 = w[4], s2 = w[5], c3 = w[6], s3 = w[7];
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float a = re[i] + re[2 * step + i], b = im[i] + im[2 * step + i];
    const float c = re[i] - re[2 * step + i], d = im[i] - im[2 * step + i];
    const float e = re[step + i] + re[3 * step + i], f = im[step + i] + im[3 * step + i];
    const float g = im[step + i] - im[3 * step + i], h = re[3 * step + i] - re[step + i];  // -i times the difference
    const float p = c + g, q = d + h, r = a - e, s = b - f, t = c - g, u = d - h;
    y_re[i] = a + e;
    y_im[i] = b + f;
    y_re[n + i] = c1 * p - s1 * q;
    y_im[n + i] = c1 * q + s1 * p;
    y_re[2 * n + i] = c2 * r - s2 * s;
    y_im[2 * n + i] = c2 * s + s2 * r;
    y_re[3 * n + i] = c3 * t - s3 * u;
    y_im[3 * n + i] = c3 * u + s3 * t;
  }
}

/// For any radix; `roots` are its powers of e^(-2 pi i / radix).
void butterflies(int64_t radix, int64_t n, int64_t step, const float* w, const float* roots, const float* re,
                 const float* im, float* y_re, float* y_im) {
  for (int64_t k = 0; k < radix; ++k) {
    float *to_re = y_re + k * n, *to_im = y_im + k * n;
    for (int64_t i = 0; i < n; ++i) to_re[i] = re[i], to_im[i] = im[i];
    for (int64_t j = 1; j < radix; ++j) {
      const float c = roots[2 * (j * k % radix)], s = roots[2 * (j * k % radix) + 1];
      const float *from_re = re + j * step, *from_im = im + j * step;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        to_re[i] += c * from_re[i] - s * from_im[i];
        to_im[i] += c * from_im[i] + s * from_re[i];
      }
    }
    if (k > 0) rotate(n, w[2 * k], w[2 * k + 1], to_re, to_im, to_re, to_im);
  }
}

}  // namespace

/// Stockham's method: `parts` butterflies of `radix` numbers, each for n neighbouring ones; part p has `radix` factors
/// at twiddles[2 * radix * p].
void fourier_stage(int64_t radix, int64_t parts, int64_t n, const float* twiddles, const float* roots, const float* re,
                   const float* im, float* y_re, float* y_im) {
  const int64_t step = parts * n;
  for (int64_t p = 0; p < parts; ++p, re += n, im += n, y_re += radix * n, y_im += radix * n, twiddles += 2 * radix) {
    if (radix == 2) {
      butterflies_of_2(n, step, twiddles, re, im, y_re, y_im);
    } else if (radix == 4) {
      butterflies_of_4(n, step, twiddles, re, im, y_re, y_im);
    } else {
      butterflies(radix, n, step, twiddles, roots, re, im, y_re, y_im);
    }
  }
}

}  // namespace nn_cpu::NN_ISA
