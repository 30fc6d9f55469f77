// The head of every source of this package: number types and how they are read and written. No header of CUDA is
// needed, so that a driver and NVRTC are enough. `R` is the type that a source computes in (float or double); arrays of
// half_t and bfloat_t are read and written through float, rounded to nearest even.
typedef long long int64;
typedef unsigned int uint32;
typedef unsigned long long uint64;
typedef unsigned char uint8;

struct half_t { unsigned short bits; };
struct bfloat_t { unsigned short bits; };

#ifndef NN_HOST
__device__ __forceinline__ float float_of_bits(uint32 bits) { return __uint_as_float(bits); }
__device__ __forceinline__ uint32 bits_of_float(float x) { return __float_as_uint(x); }
__device__ __forceinline__ float load(half_t x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ __forceinline__ void store(half_t& y, float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); }
#endif

__device__ __forceinline__ float infinity() { return float_of_bits(0x7f800000); }

__device__ __forceinline__ float load(bfloat_t x) { return float_of_bits(uint32(x.bits) << 16); }
__device__ __forceinline__ float load(float x) { return x; }
__device__ __forceinline__ double load(double x) { return x; }
__device__ __forceinline__ int64 load(int64 x) { return x; }
__device__ __forceinline__ int load(int x) { return x; }
__device__ __forceinline__ uint8 load(uint8 x) { return x; }
__device__ __forceinline__ bool load(bool x) { return x; }

__device__ __forceinline__ void store(bfloat_t& y, float x) {
  const uint32 bits = bits_of_float(x);
  y.bits = x != x ? 0x7fc0 : (unsigned short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
__device__ __forceinline__ void store(half_t& y, double x) { store(y, float(x)); }
__device__ __forceinline__ void store(bfloat_t& y, double x) { store(y, float(x)); }
template <class V>
__device__ __forceinline__ void store(float& y, V x) { y = float(x); }
template <class V>
__device__ __forceinline__ void store(double& y, V x) { y = double(x); }
template <class V>
__device__ __forceinline__ void store(int64& y, V x) { y = int64(x); }

// Of two numbers the larger and the smaller one; NaN where one of them is.
template <class V>
__device__ __forceinline__ V larger(V a, V b) { return a != a || a > b ? a : b; }
template <class V>
__device__ __forceinline__ V smaller(V a, V b) { return a != a || a < b ? a : b; }

// n / d for n < 2^31, by the numbers that `layout.divider` makes of d (Granlund and Montgomery, 1994): a product and a
// shift, where a division takes some 20 instructions.
__device__ __forceinline__ uint32 divided(uint32 n, uint32 factor, uint32 shift) {
  return (__umulhi(n, factor) + n) >> shift;
}

// Elements that one instruction reads or writes.
template <class V, int n>
struct alignas(sizeof(V) * n) Pack { V item[n]; };
