// Functions that narrow the search for the k first elements of a row; see kernels/order.cpp. The rank of an element is
// x, -x, |x| or -|x|: the highest comes first.
#include "support/vector.hpp"
#include "vector/lanes.hpp"
#include "vector/math.hpp"

namespace nn_cpu::NN_ISA {
namespace {

template <bool Absolute, bool Negative>
inline float rank(float x) {
  const float magnitude = Absolute ? absolute(x) : x;
  return Negative ? -magnitude : magnitude;
}

/// The higher rank: NaN is the highest, or the lowest where ranks are negative.
template <bool Negative>
inline float higher(float rank, float best) {
  return Negative ? (rank > best ? rank : best) : larger(rank, best);
}

template <bool Absolute, bool Negative>
void highest(const float* x, int64_t n, int64_t groups, float* ranks) {
  for (int64_t g = 0; g < groups; ++g) ranks[g] = -kInfinity;
  int64_t first = 0;
  for (; first + groups <= n; first += groups) {
#pragma omp simd
    for (int64_t g = 0; g < groups; ++g) {
      const float r = rank<Absolute, Negative>(x[first + g]);
      ranks[g] = higher<Negative>(r, ranks[g]);
    }
  }
  for (int64_t g = 0; first + g < n; ++g) {
    const float r = rank<Absolute, Negative>(x[first + g]);
    ranks[g] = higher<Negative>(r, ranks[g]);
  }
}

template <bool Absolute, bool Negative>
int64_t reaching(const float* x, int64_t n, float limit, int64_t room, int32_t* places) {
  int64_t count = 0, i = 0;
#ifdef __AVX512F__
  const __m512 least = _mm512_set1_ps(limit);
  const __m512i sign = _mm512_set1_epi32(static_cast<int32_t>(0x80000000));
  __m512i place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (; i + 16 <= n && count + 16 <= room; i += 16, place = _mm512_add_epi32(place, _mm512_set1_epi32(16))) {
    __m512i bits = _mm512_loadu_si512(x + i);
    if (Absolute) bits = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
    if (Negative) bits = _mm512_xor_si512(sign, bits);
    const __mmask16 found = _mm512_cmp_ps_mask(_mm512_castsi512_ps(bits), least, _CMP_GE_OQ);
    if (found == 0) continue;
    _mm512_storeu_si512(places + count, _mm512_maskz_compress_epi32(found, place));
    count += __builtin_popcount(found);
  }
#else
  constexpr int64_t kTogether = 16;
  for (; i + kTogether <= n && count + kTogether <= room; i += kTogether) {
    int any = 0;
#pragma omp simd reduction(| : any)
    for (int64_t k = 0; k < kTogether; ++k) any |= rank<Absolute, Negative>(x[i + k]) >= limit;
    for (int64_t k = i; any != 0 && k < i + kTogether; ++k) {
      places[count] = static_cast<int32_t>(k);
      count += rank<Absolute, Negative>(x[k]) >= limit;
    }
  }
#endif
  for (; i < n; ++i) {
    if (!(rank<Absolute, Negative>(x[i]) >= limit)) continue;
    if (count == room) return room + 1;
    places[count++] = static_cast<int32_t>(i);
  }
  return count;
}

}  // namespace

/// The highest rank of each of some groups: element i belongs to group i % groups. NaN is the highest, and counts for
/// nothing where ranks are `negative`; an empty group has -inf.
void highest_ranks(bool absolute, bool negative, const float* x, int64_t n, int64_t groups, float* ranks) {
  const auto loop = absolute ? (negative ? highest<true, true> : highest<true, false>)
                             : (negative ? highest<false, true> : highest<false, false>);
  loop(x, n, groups, ranks);
}

/// The places of all elements whose rank is at least `limit`, and their number; room + 1 if there are more than `room`.
int64_t places_reaching(bool absolute, bool negative, const float* x, int64_t n, float limit, int64_t room,
                        int32_t* places) {
  const auto loop = absolute ? (negative ? reaching<true, true> : reaching<true, false>)
                             : (negative ? reaching<false, true> : reaching<false, false>);
  return loop(x, n, limit, room, places);
}

}  // namespace nn_cpu::NN_ISA
