// One step of a solver on a flat piece of a parameter: w and its states s[k] are changed in place, g is read. `h` are
// the numbers that kernels/update.cpp derives from the hyper-parameters. One pass over memory. The table is a constant
// expression: code that made it at load would run on machines without the instruction set.
#include "support/vector.hpp"
#include "vector/math.hpp"

namespace nn_cpu::NN_ISA {
namespace {

template <class F>
constexpr UpdateFunction stateless(const char* name, F) {
  return {name, 0, [](int64_t n, float* w, const float* g, float* const*, const float* h) {
#pragma omp simd
            for (int64_t i = 0; i < n; ++i) F{}(w[i], g[i], h);
          }};
}

template <class F>
constexpr UpdateFunction one_state(const char* name, F) {
  return {name, 1, [](int64_t n, float* w, const float* g, float* const* s, const float* h) {
            float* a = s[0];
#pragma omp simd
            for (int64_t i = 0; i < n; ++i) F{}(w[i], g[i], a[i], h);
          }};
}

template <class F>
constexpr UpdateFunction two_states(const char* name, F) {
  return {name, 2, [](int64_t n, float* w, const float* g, float* const* s, const float* h) {
            float *a = s[0], *b = s[1];
#pragma omp simd
            for (int64_t i = 0; i < n; ++i) F{}(w[i], g[i], a[i], b[i], h);
          }};
}

template <class F>
constexpr UpdateFunction three_states(const char* name, F) {
  return {name, 3, [](int64_t n, float* w, const float* g, float* const* s, const float* h) {
            float *a = s[0], *b = s[1], *c = s[2];
#pragma omp simd
            for (int64_t i = 0; i < n; ++i) F{}(w[i], g[i], a[i], b[i], c[i], h);
          }};
}

using H = const float*;

/// x between two bounds; NaN stays.
inline float within(float x, float low, float high) {
  const float raised = x < low ? low : x;
  return raised > high ? high : raised;
}

inline float lamb_direction(float w, float m, float v, H h) {
  return h[4] * m / (__builtin_sqrtf(h[5] * v) + h[6]) + h[7] * w;
}

constexpr UpdateFunction kUpdates[] = {
    // h: lr
    stateless("Sgd", [](float& w, float g, H h) { w -= h[0] * g; }),
    // h: lr, momentum
    one_state("Momentum",
              [](float& w, float g, float& m, H h) {
                m = h[1] * m + h[0] * g;
                w -= m;
              }),
    one_state("Nesterov",
              [](float& w, float g, float& m, H h) {
                const float next = h[1] * m - h[0] * g;
                w += (1.0f + h[1]) * next - h[1] * m;
                m = next;
              }),
    // h: lr, momentum, decay of w
    one_state("SgdW",
              [](float& w, float g, float& m, H h) {
                m = h[1] * m + h[0] * g;
                w -= m + h[2] * w;
              }),
    // h: corrected alpha, beta1, 1 - beta1, beta2, 1 - beta2, eps, decay of w
    two_states("Adam",
               [](float& w, float g, float& m, float& v, H h) {
                 m = h[1] * m + h[2] * g;
                 v = h[3] * v + h[4] * g * g;
                 w -= h[0] * m / (__builtin_sqrtf(v) + h[5]);
               }),
    two_states("AdamW",  // a rule of its own: 0 * w would make an infinite w NaN
               [](float& w, float g, float& m, float& v, H h) {
                 m = h[1] * m + h[2] * g;
                 v = h[3] * v + h[4] * g * g;
                 w -= h[0] * m / (__builtin_sqrtf(v) + h[5]) + h[6] * w;
               }),
    three_states("AMSGRAD",
                 [](float& w, float g, float& m, float& v, float& largest, H h) {
                   m = h[1] * m + h[2] * g;
                   v = h[3] * v + h[4] * g * g;
                   largest = larger(largest, v);
                   w -= h[0] * m / (__builtin_sqrtf(largest) + h[5]);
                 }),
    two_states("Adamax",
               [](float& w, float g, float& m, float& u, H h) {
                 m = h[1] * m + h[2] * g;
                 u = larger(h[3] * u, absolute(g));
                 w -= h[0] * m / (u + h[5]);
               }),
    // h: lr, eps
    one_state("Adagrad",
              [](float& w, float g, float& v, H h) {
                v += g * g;
                w -= h[0] * g / (__builtin_sqrtf(v) + h[1]);
              }),
    // h: lr, eps, decay, 1 - decay
    one_state("RMSprop",
              [](float& w, float g, float& v, H h) {
                v = h[2] * v + h[3] * g * g;
                w -= h[0] * g / (__builtin_sqrtf(v) + h[1]);
              }),
    two_states("Adadelta",
               [](float& w, float g, float& s, float& v, H h) {
                 v = h[2] * v + h[3] * g * g;
                 const float delta = g * __builtin_sqrtf(s + h[1]) / __builtin_sqrtf(v + h[1]);
                 s = h[2] * s + h[3] * delta * delta;
                 w -= h[0] * delta;
               }),
    // h: lr, eps, decay, 1 - decay, momentum
    three_states("RMSpropGraves",
                 [](float& w, float g, float& n, float& a, float& d, H h) {
                   n = h[2] * n + h[3] * g * g;
                   a = h[2] * a + h[3] * g;
                   d = h[4] * d - h[0] * g / __builtin_sqrtf(n - a * a + h[1]);
                   w += d;
                 }),
    // h: corrected alpha, beta1, 1 - beta1, beta2, 1 - beta2, eps, bounds of the rate
    two_states("AdaBound",
               [](float& w, float g, float& m, float& v, H h) {
                 m = h[1] * m + h[2] * g;
                 v = h[3] * v + h[4] * g * g;
                 w -= within(h[0] / (__builtin_sqrtf(v) + h[5]), h[6], h[7]) * m;
               }),
    three_states("AMSBound",
                 [](float& w, float g, float& m, float& v, float& largest, H h) {
                   m = h[1] * m + h[2] * g;
                   v = h[3] * v + h[4] * g * g;
                   largest = larger(largest, v);
                   w -= within(h[0] / (__builtin_sqrtf(largest) + h[5]), h[6], h[7]) * m;
                 }),
    // h: momentum, decay; h[8] is the rate of the parameter
    one_state("Lars",
              [](float& w, float g, float& v, H h) {
                v = h[0] * v + h[8] * (g + h[1] * w);
                w -= v;
              }),
    // h: beta1, 1 - beta1, beta2, 1 - beta2, factors of both means, eps, decay; h[8] is the rate of the parameter
    three_states("LambDirection",
                 [](float& w, float g, float& m, float& v, float& r, H h) {
                   m = h[0] * m + h[1] * g;
                   v = h[2] * v + h[3] * g * g;
                   r = lamb_direction(w, m, v, h);
                 }),
    two_states("Lamb", [](float& w, float, float& m, float& v, H h) { w -= h[8] * lamb_direction(w, m, v, h); }),
    // h: lr, beta1, 1 - beta1, beta2, 1 - beta2, decay
    one_state("Lion",
              [](float& w, float g, float& m, H h) {
                const float mean = h[1] * m + h[2] * g;
                const float sign = mean > 0.0f ? 1.0f : (mean < 0.0f ? -1.0f : mean);
                // mean - mean is NaN where the mean is infinite: its sign would never change again.
                w -= h[0] * (sign + (mean - mean) + h[5] * w);
                m = h[3] * m + h[4] * g;
              }),
};

}  // namespace

UpdateTable updates() { return {kUpdates, static_cast<int>(sizeof(kUpdates) / sizeof(kUpdates[0]))}; }

}  // namespace nn_cpu::NN_ISA
