// Elementary functions that are more than one expression, and their derivatives. R is float or double.

// x where it is not below 0; NaN and -0 stay.
__device__ __forceinline__ R rectified(R x) { return x < 0 ? R(0) : x; }
// Whether `larger` and `smaller` take their first argument.
__device__ __forceinline__ bool takes_larger(R a, R b) { return a != a || a > b; }
__device__ __forceinline__ bool takes_smaller(R a, R b) { return a != a || a < b; }
// x^p; -inf to a power that is not whole is NaN, as its square root.
__device__ __forceinline__ R power(R x, R p) { return x == -infinity() && floor(p) != p ? x - x : pow(x, p); }

__device__ __forceinline__ R sigmoid(R x) {
  const R small = exp(-fabs(x));
  return (x >= 0 ? R(1) : small) / (1 + small);
}

__device__ __forceinline__ R softplus(R x) { return larger(x, R(0)) + log1p(exp(-fabs(x))); }

__device__ __forceinline__ R elu(R x, R alpha) { return x > 0 ? x : alpha * expm1(x); }
__device__ __forceinline__ R elu_slope(R x, R alpha) { return x >= 0 ? R(1) : alpha * exp(x); }

// The tanh form of GELU (Hendrycks and Gimpel, 2016).
__device__ __forceinline__ R gelu_argument(R x) { return R(0.7978845608028654) * (x + R(0.044715) * x * x * x); }
__device__ __forceinline__ R gelu(R x) { return R(0.5) * x * (1 + tanh(gelu_argument(x))); }
__device__ __forceinline__ R gelu_slope(R x) {
  const R t = tanh(gelu_argument(x));
  const R near = smaller(larger(x, R(-20)), R(20));  // t is 1 or -1 from there on, and 0 * inf would be NaN
  const R bell = (1 - t * t) * near;
  return R(0.5) * (1 + t + bell * R(0.7978845608028654) + bell * near * near * R(0.10703222440890037));
}

__device__ __forceinline__ R mish(R x) { return x * tanh(softplus(x)); }
__device__ __forceinline__ R mish_slope(R x) {
  const R t = tanh(softplus(x));
  return t + (1 - t * t) * x * sigmoid(x);
}

__device__ __forceinline__ R swish_slope(R x) {
  const R s = sigmoid(x);
  return s + s * (1 - s) * x;
}

__device__ __forceinline__ R sinc(R x) { return x == 0 ? R(1) : sin(x) / x; }
// (cos x - sinc x) / x; near 0, where the difference cancels, its Taylor series.
__device__ __forceinline__ R sinc_slope(R x) {
  const R s = x * x;
  if (fabs(x) < R(0.1)) return x * (s * (s * (s * R(1.0 / 45360) - R(1.0 / 840)) + R(1.0 / 30)) - R(1.0 / 3));
  return (cos(x) - sinc(x)) / x;
}

__device__ __forceinline__ R sign_or(R x, R at_zero) { return x == 0 ? at_zero : x != x ? x : x > 0 ? R(1) : R(-1); }
__device__ __forceinline__ R square(R x) { return x * x; }
// The logarithm of a probability, which is at least the smallest normal number of float32.
__device__ __forceinline__ R log_of(R p) { return log(larger(p, R(1.1754943508222875e-38))); }
// x where it can be divided by; the smallest number of half precision in the place of 0.
__device__ __forceinline__ R divisor(R x) { return x == 0 ? R(5.9604644775390625e-08) : x; }
// Derivatives of x^p by x and by p, without 0 * inf at 0.
__device__ __forceinline__ R power_slope(R x, R p) { return p == 0 ? R(0) : p == 1 ? R(1) : p * power(x, p - 1); }
__device__ __forceinline__ R exponent_slope(R x, R y) { return y * log(x == 0 ? R(1) : x); }
