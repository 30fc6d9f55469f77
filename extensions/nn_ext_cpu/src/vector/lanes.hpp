// A vector of as many floats as the instruction set has lanes, as GCC's vector extension, and loads and stores of parts
// of one.
#pragma once

#include <cstdint>

#ifdef __AVX__
#include <immintrin.h>
#endif

namespace nn_cpu::NN_ISA {

#if defined(__AVX512F__)
constexpr int kWidth = 16;
#elif defined(__AVX__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif

using Lanes = float __attribute__((vector_size(kWidth * 4)));
using WideLanes = double __attribute__((vector_size(kWidth * 4)));

/// A vector of T, and the number of its lanes.
template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  using Type = Lanes;
};
template <>
struct VectorOf<double> {
  using Type = WideLanes;
};
template <class T>
using LanesOf = typename VectorOf<T>::Type;
template <class T>
constexpr int kWidthOf = kWidth * 4 / static_cast<int>(sizeof(T));

/// The elements at p, of any alignment: copies of a known size become one instruction.
inline Lanes load(const float* p) {
  Lanes v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
inline WideLanes load(const double* p) {
  WideLanes v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
inline void store(float* p, Lanes v) { __builtin_memcpy(p, &v, sizeof(v)); }
inline void store(double* p, WideLanes v) { __builtin_memcpy(p, &v, sizeof(v)); }
inline WideLanes splat(double x) { return x - WideLanes{}; }
inline Lanes splat(float x) { return x - Lanes{}; }  // x + 0 would lose the sign of -0 and so costs an addition

/// The first n < kWidth elements; 0 in the other lanes.
inline Lanes load_part(const float* p, int n) {
#if defined(__AVX512F__)
  return reinterpret_cast<Lanes>(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p));
#elif defined(__AVX2__)
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return reinterpret_cast<Lanes>(_mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(n), index)));
#else
  Lanes v{};
  for (int i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}

inline void store_part(float* p, Lanes v, int n) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), reinterpret_cast<__m512>(v));
#elif defined(__AVX2__)
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  _mm256_maskstore_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(n), index), reinterpret_cast<__m256>(v));
#else
  for (int i = 0; i < n; ++i) p[i] = v[i];
#endif
}

inline WideLanes load_part(const double* p, int n) {
  WideLanes v{};
  for (int i = 0; i < n; ++i) v[i] = p[i];
  return v;
}

inline void store_part(double* p, WideLanes v, int n) {
  for (int i = 0; i < n; ++i) p[i] = v[i];
}

inline double sum_of_lanes(WideLanes v) {
  double total = 0.0;
  for (int i = 0; i < kWidthOf<double>; ++i) total += v[i];
  return total;
}

/// The sum of all lanes, halves first.
inline float sum_of_lanes(Lanes v) {
  using Four = float __attribute__((vector_size(16)));
  Four part[kWidth / 4];
  __builtin_memcpy(part, &v, sizeof(v));
  for (int half = kWidth / 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) part[i] += part[i + half];
  }
  return (part[0][0] + part[0][2]) + (part[0][1] + part[0][3]);
}

}  // namespace nn_cpu::NN_ISA
