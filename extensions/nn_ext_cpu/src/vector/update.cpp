// One step of a solver on a flat piece of a parameter: w and its states s[k] are changed in place, g is read. `h` are
// the numbers that kernels/update.cpp derives from the hyper-parameters. One pass over memory. The table is a constant
// expression: code that made it at load would run on machines without the instruction set.
#include "support/vector.hpp"
#include "vector/wide_math.hpp"

namespace nn_cpu::NN_ISA {
namespace {

template <class T>
struct Updates {
  using H = const T*;

  template <class F>
  static constexpr UpdateFunction<T> stateless(const char* name, F) {
    return {name, 0, [](int64_t n, T* w, const T* g, T* const*, const T* h) {
#pragma omp simd
              for (int64_t i = 0; i < n; ++i) F{}(w[i], g[i], h);
            }};
  }

  template <class F>
  static constexpr UpdateFunction<T> one_state(const char* name, F) {
    return {name, 1, [](int64_t n, T* w, const T* g, T* const* s, const T* h) {
              T* a = s[0];
#pragma omp simd
              for (int64_t i = 0; i < n; ++i) F{}(w[i], g[i], a[i], h);
            }};
  }

  template <class F>
  static constexpr UpdateFunction<T> two_states(const char* name, F) {
    return {name, 2, [](int64_t n, T* w, const T* g, T* const* s, const T* h) {
              T *a = s[0], *b = s[1];
#pragma omp simd
              for (int64_t i = 0; i < n; ++i) F{}(w[i], g[i], a[i], b[i], h);
            }};
  }

  template <class F>
  static constexpr UpdateFunction<T> three_states(const char* name, F) {
    return {name, 3, [](int64_t n, T* w, const T* g, T* const* s, const T* h) {
              T *a = s[0], *b = s[1], *c = s[2];
#pragma omp simd
              for (int64_t i = 0; i < n; ++i) F{}(w[i], g[i], a[i], b[i], c[i], h);
            }};
  }

  /// x between two bounds; NaN stays.
  static T within(T x, T low, T high) {
    const T raised = x < low ? low : x;
    return raised > high ? high : raised;
  }

  static T lamb_direction(T w, T m, T v, H h) { return h[4] * m / (root(h[5] * v) + h[6]) + h[7] * w; }

  static UpdateTable<T> table() {
    static constexpr UpdateFunction<T> rows[] = {
        // h: lr
        stateless("Sgd", [](T& w, T g, H h) { w -= h[0] * g; }),
        // h: lr, momentum
        one_state("Momentum",
                  [](T& w, T g, T& m, H h) {
                    m = h[1] * m + h[0] * g;
                    w -= m;
                  }),
        one_state("Nesterov",
                  [](T& w, T g, T& m, H h) {
                    const T next = h[1] * m - h[0] * g;
                    w += (1.0f + h[1]) * next - h[1] * m;
                    m = next;
                  }),
        // h: lr, momentum, decay of w
        one_state("SgdW",
                  [](T& w, T g, T& m, H h) {
                    m = h[1] * m + h[0] * g;
                    w -= m + h[2] * w;
                  }),
        // h: corrected alpha, beta1, 1 - beta1, beta2, 1 - beta2, eps, decay of w
        two_states("Adam",
                   [](T& w, T g, T& m, T& v, H h) {
                     m = h[1] * m + h[2] * g;
                     v = h[3] * v + h[4] * g * g;
                     w -= h[0] * m / (root(v) + h[5]);
                   }),
        two_states("AdamW",  // a rule of its own: 0 * w would make an infinite w NaN
                   [](T& w, T g, T& m, T& v, H h) {
                     m = h[1] * m + h[2] * g;
                     v = h[3] * v + h[4] * g * g;
                     w -= h[0] * m / (root(v) + h[5]) + h[6] * w;
                   }),
        three_states("AMSGRAD",
                     [](T& w, T g, T& m, T& v, T& largest, H h) {
                       m = h[1] * m + h[2] * g;
                       v = h[3] * v + h[4] * g * g;
                       largest = larger(largest, v);
                       w -= h[0] * m / (root(largest) + h[5]);
                     }),
        two_states("Adamax",
                   [](T& w, T g, T& m, T& u, H h) {
                     m = h[1] * m + h[2] * g;
                     u = larger(h[3] * u, absolute(g));
                     w -= h[0] * m / (u + h[5]);
                   }),
        // h: lr, eps
        one_state("Adagrad",
                  [](T& w, T g, T& v, H h) {
                    v += g * g;
                    w -= h[0] * g / (root(v) + h[1]);
                  }),
        // h: lr, eps, decay, 1 - decay
        one_state("RMSprop",
                  [](T& w, T g, T& v, H h) {
                    v = h[2] * v + h[3] * g * g;
                    w -= h[0] * g / (root(v) + h[1]);
                  }),
        two_states("Adadelta",
                   [](T& w, T g, T& s, T& v, H h) {
                     v = h[2] * v + h[3] * g * g;
                     const T delta = g * root(s + h[1]) / root(v + h[1]);
                     s = h[2] * s + h[3] * delta * delta;
                     w -= h[0] * delta;
                   }),
        // h: lr, eps, decay, 1 - decay, momentum
        three_states("RMSpropGraves",
                     [](T& w, T g, T& n, T& a, T& d, H h) {
                       n = h[2] * n + h[3] * g * g;
                       a = h[2] * a + h[3] * g;
                       d = h[4] * d - h[0] * g / root(n - a * a + h[1]);
                       w += d;
                     }),
        // h: corrected alpha, beta1, 1 - beta1, beta2, 1 - beta2, eps, bounds of the rate
        two_states("AdaBound",
                   [](T& w, T g, T& m, T& v, H h) {
                     m = h[1] * m + h[2] * g;
                     v = h[3] * v + h[4] * g * g;
                     w -= within(h[0] / (root(v) + h[5]), h[6], h[7]) * m;
                   }),
        three_states("AMSBound",
                     [](T& w, T g, T& m, T& v, T& largest, H h) {
                       m = h[1] * m + h[2] * g;
                       v = h[3] * v + h[4] * g * g;
                       largest = larger(largest, v);
                       w -= within(h[0] / (root(largest) + h[5]), h[6], h[7]) * m;
                     }),
        // h: momentum, decay; h[8] is the rate of the parameter
        one_state("Lars",
                  [](T& w, T g, T& v, H h) {
                    v = h[0] * v + h[8] * (g + h[1] * w);
                    w -= v;
                  }),
        // h: beta1, 1 - beta1, beta2, 1 - beta2, factors of both means, eps, decay; h[8] is the rate of the parameter
        three_states("LambDirection",
                     [](T& w, T g, T& m, T& v, T& r, H h) {
                       m = h[0] * m + h[1] * g;
                       v = h[2] * v + h[3] * g * g;
                       r = lamb_direction(w, m, v, h);
                     }),
        two_states("Lamb", [](T& w, T, T& m, T& v, H h) { w -= h[8] * lamb_direction(w, m, v, h); }),
        // h: lr, beta1, 1 - beta1, beta2, 1 - beta2, decay
        one_state("Lion",
                  [](T& w, T g, T& m, H h) {
                    const T mean = h[1] * m + h[2] * g;
                    const T sign = mean > 0.0f ? 1.0f : (mean < 0.0f ? -1.0f : mean);
                    // mean - mean is NaN where the mean is infinite: its sign would never change again.
                    w -= h[0] * (sign + (mean - mean) + h[5] * w);
                    m = h[3] * m + h[4] * g;
                  }),
    };
    return {rows, static_cast<int>(sizeof(rows) / sizeof(rows[0]))};
  }
};

}  // namespace

template <class T>
UpdateTable<T> updates() {
  return Updates<T>::table();
}

template UpdateTable<float> updates<float>();
template UpdateTable<double> updates<double>();

}  // namespace nn_cpu::NN_ISA
