// Element-wise functions on blocks of contiguous floats or doubles, by name: the instruction set of
// kernels/pointwise.cpp. Each row: name, number of inputs, number of parameters p, nanoseconds per element (rough), the
// function of one element. Functions get a copy of both parameters: a load that only some elements need would keep a
// loop from becoming vector code.
#include "support/vector.hpp"
#include "vector/angles.hpp"
#include "vector/power.hpp"
#include "vector/wide_math.hpp"

// All tables are constant expressions: code that made them at load would run on machines without the instruction set.
namespace nn_cpu::NN_ISA {
namespace {

constexpr float kCheap = 0.06f, kDivide = 0.15f, kExponential = 0.35f, kPower = 1.0f;

/// A function of angles; those beyond `limit` go through the C library, and leave the bits of others alone.
template <class T, class Near, class Far>
void of_angles(int64_t n, const T* x, T* out, T limit, Near near, Far far) {
  int beyond = 0;
#pragma omp simd reduction(| : beyond)
  for (int64_t i = 0; i < n; ++i) beyond |= !(absolute(x[i]) <= limit);
  if (beyond) {
    for (int64_t i = 0; i < n; ++i) out[i] = absolute(x[i]) <= limit ? near(x[i]) : far(x[i]);
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) out[i] = near(x[i]);
}

void sines(int64_t n, const float* const* in, float* out, const float*) {
  of_angles(
      n, in[0], out, kMaxAngle, [](float x) { return x == 0.0f ? x : sine(x, 0); },
      [](float x) { return __builtin_sinf(x); });
}
void sines(int64_t n, const double* const* in, double* out, const double*) {
  of_angles(
      n, in[0], out, kMaxAngleDouble, [](double x) { return x == 0.0 ? x : sine(x, uint64_t{0}); },
      [](double x) { return __builtin_sin(x); });
}
void cosines(int64_t n, const float* const* in, float* out, const float*) {
  of_angles(n, in[0], out, kMaxAngle, [](float x) { return sine(x, 1); }, [](float x) { return __builtin_cosf(x); });
}
void cosines(int64_t n, const double* const* in, double* out, const double*) {
  of_angles(
      n, in[0], out, kMaxAngleDouble, [](double x) { return sine(x, uint64_t{1}); },
      [](double x) { return __builtin_cos(x); });
}
void tangents(int64_t n, const float* const* in, float* out, const float*) {
  of_angles(
      n, in[0], out, kMaxTangentAngle, [](float x) { return tangent(x); }, [](float x) { return __builtin_tanf(x); });
}
void tangents(int64_t n, const double* const* in, double* out, const double*) {
  of_angles(
      n, in[0], out, kMaxAngleDouble, [](double x) { return x == 0.0 ? x : tangent(x); },
      [](double x) { return __builtin_tan(x); });
}

/// Powers of one base, whose logarithm is taken once.
void powers_of_one(int64_t n, const float* const* in, float* out, const float* p) {
  const float* x = in[0];
  const float base = p[0];
  if (!(base > 0.0f && base < kInfinity) || base == 1.0f) {
    for (int64_t i = 0; i < n; ++i) out[i] = power(base, x[i]);
    return;
  }
  const double logarithm = log2_of(base);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) out[i] = exp2_of(static_cast<double>(x[i]) * logarithm);
}
void powers_of_one(int64_t n, const double* const* in, double* out, const double* p) {
  for (int64_t i = 0; i < n; ++i) out[i] = power(p[0], in[0][i]);
}

template <class T>
void gradients_of_powers_of_one(int64_t n, const T* const* in, T* out, const T* p) {
  const T *dy = in[0], *y = in[1];
  const bool zero = p[0] == 0.0f;
  const T logarithm = log(p[0]);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) out[i] = dy[i] * (zero ? T{0} : y[i] * logarithm);
}

/// The smallest argument of a logarithm, and what gradients divide by in the place of 0 (operators/rules/loss.py).
constexpr float kSmallest = 0x1p-126f, kSmallestDivisor = 0x1p-24f;
template <class T>
inline T not_zero(T x) {
  return x == 0.0f ? kSmallestDivisor : x;
}

/// a b + c, rounded once where machines can. Where c is a product as well, compilers would choose which of the two is
/// not rounded, and not the same for vectors and for the elements that are left of them.
template <class T>
inline T fused(T a, T b, T c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  if constexpr (sizeof(T) == sizeof(float)) return __builtin_fmaf(a, b, c);
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

/// The rows of the table for T.
template <class T>
struct Functions {
  using P = const T*;

  template <class F>
  static constexpr BlockFunction<T> nullary(const char* name, float cost, F) {
    return {name, 0, 1, cost, [](int64_t n, const T* const*, T* out, const T* p) {
              for (int64_t i = 0; i < n; ++i) out[i] = F{}(p);
            }};
  }

  template <class F>
  static constexpr BlockFunction<T> unary(const char* name, int n_parameters, float cost, F) {
    return {name, 1, n_parameters, cost, [](int64_t n, const T* const* in, T* out, const T* p) {
              const T* a = in[0];
              const T own[] = {p[0], p[1]};
#pragma omp simd
              for (int64_t i = 0; i < n; ++i) out[i] = F{}(a[i], own);
            }};
  }

  template <class F>
  static constexpr BlockFunction<T> binary(const char* name, int n_parameters, float cost, F) {
    return {name, 2, n_parameters, cost, [](int64_t n, const T* const* in, T* out, const T* p) {
              const T *a = in[0], *b = in[1];
              const T own[] = {p[0], p[1]};
#pragma omp simd
              for (int64_t i = 0; i < n; ++i) out[i] = F{}(a[i], b[i], own);
            }};
  }

  template <class F>
  static constexpr BlockFunction<T> ternary(const char* name, int n_parameters, float cost, F) {
    return {name, 3, n_parameters, cost, [](int64_t n, const T* const* in, T* out, const T* p) {
              const T *a = in[0], *b = in[1], *c = in[2];
              const T own[] = {p[0], p[1]};
#pragma omp simd
              for (int64_t i = 0; i < n; ++i) out[i] = F{}(a[i], b[i], c[i], own);
            }};
  }

  static BlockTable<T> arithmetic() {
    static constexpr BlockFunction<T> rows[] = {
        nullary("fill", kCheap, [](P p) { return p[0]; }),
        unary("copy", 0, kCheap, [](T x, P) { return x; }),
        unary("negative", 0, kCheap, [](T x, P) { return -x; }),
        unary("add_scalar", 1, kCheap, [](T x, P p) { return x + p[0]; }),
        unary("mul_scalar", 1, kCheap, [](T x, P p) { return x * p[0]; }),
        unary("div_scalar", 1, kDivide, [](T x, P p) { return x / p[0]; }),
        unary("rsub_scalar", 1, kCheap, [](T x, P p) { return p[0] - x; }),
        unary("rdiv_scalar", 1, kDivide, [](T x, P p) { return p[0] / x; }),
        unary("pow_scalar", 1, kPower, [](T x, P p) { return power(x, p[0]); }),
        {"rpow_scalar", 1, 1, kPower, &powers_of_one},
        unary("maximum_scalar", 1, kCheap, [](T x, P p) { return larger(x, p[0]); }),
        unary("minimum_scalar", 1, kCheap, [](T x, P p) { return smaller(x, p[0]); }),
        unary("equal_scalar", 1, kCheap, [](T x, P p) { return x == p[0] ? 1.0f : 0.0f; }),
        unary("not_equal_scalar", 1, kCheap, [](T x, P p) { return x != p[0] ? 1.0f : 0.0f; }),
        unary("greater_scalar", 1, kCheap, [](T x, P p) { return x > p[0] ? 1.0f : 0.0f; }),
        unary("greater_equal_scalar", 1, kCheap, [](T x, P p) { return x >= p[0] ? 1.0f : 0.0f; }),
        unary("less_scalar", 1, kCheap, [](T x, P p) { return x < p[0] ? 1.0f : 0.0f; }),
        unary("less_equal_scalar", 1, kCheap, [](T x, P p) { return x <= p[0] ? 1.0f : 0.0f; }),
        unary("axpb", 2, kCheap, [](T x, P p) { return p[0] * x + p[1]; }),
        binary("add", 0, kCheap, [](T a, T b, P) { return a + b; }),
        binary("sub", 0, kCheap, [](T a, T b, P) { return a - b; }),
        binary("mul", 0, kCheap, [](T a, T b, P) { return a * b; }),
        binary("div", 0, kDivide, [](T a, T b, P) { return a / b; }),
        binary("pow", 0, kPower, [](T a, T b, P) { return power(a, b); }),
        binary("maximum", 0, kCheap, [](T a, T b, P) { return larger(a, b); }),
        binary("minimum", 0, kCheap, [](T a, T b, P) { return smaller(a, b); }),
        binary("equal", 0, kCheap, [](T a, T b, P) { return a == b ? 1.0f : 0.0f; }),
        binary("not_equal", 0, kCheap, [](T a, T b, P) { return a != b ? 1.0f : 0.0f; }),
        binary("greater", 0, kCheap, [](T a, T b, P) { return a > b ? 1.0f : 0.0f; }),
        binary("greater_equal", 0, kCheap, [](T a, T b, P) { return a >= b ? 1.0f : 0.0f; }),
        binary("less", 0, kCheap, [](T a, T b, P) { return a < b ? 1.0f : 0.0f; }),
        binary("less_equal", 0, kCheap, [](T a, T b, P) { return a <= b ? 1.0f : 0.0f; }),
        binary("logical_and", 0, kCheap, [](T a, T b, P) { return (a != 0.0f) & (b != 0.0f) ? 1.0f : 0.0f; }),
        binary("logical_or", 0, kCheap, [](T a, T b, P) { return (a != 0.0f) | (b != 0.0f) ? 1.0f : 0.0f; }),
        binary("logical_xor", 0, kCheap, [](T a, T b, P) { return (a != 0.0f) != (b != 0.0f) ? 1.0f : 0.0f; }),
        ternary("select", 0, kCheap, [](T c, T a, T b, P) { return c != 0.0f ? a : b; }),
        ternary("fma", 0, kCheap, [](T a, T b, T c, P) { return a * b + c; }),
        // gradients
        binary("neg_mul", 0, kCheap, [](T a, T b, P) { return -a * b; }),
        ternary("div_grad", 0, kDivide, [](T dy, T y, T b, P) { return -dy * y / b; }),
        binary("rdiv_scalar_grad", 1, kDivide, [](T dy, T x, P p) { return -dy * p[0] / (x * x); }),
        binary("pow_scalar_grad", 1, kPower,
               [](T dy, T x, P p) { return p[0] == 0.0f ? dy * 0.0f : dy * p[0] * power(x, p[0] - 1.0f); }),
        {"rpow_scalar_grad", 2, 1, kCheap, &gradients_of_powers_of_one<T>},
        ternary("pow_grad", 0, kPower,
                [](T dy, T a, T b, P) {
                  const T slope = b * power(a, b - 1.0f);
                  return dy * ((a == 0.0f) & (b == 0.0f) ? 0.0f : slope);
                }),
        unary("log_or_zero", 0, kExponential, [](T x, P) { return x == 0.0f ? 0.0f : log(x); }),
        binary("mask_nonzero", 0, kCheap, [](T dy, T c, P) { return c != 0.0f ? dy : 0.0f; }),
        binary("mask_zero", 0, kCheap, [](T dy, T c, P) { return c == 0.0f ? dy : 0.0f; }),
        // where `larger` takes a, where it takes b, and the same for `smaller`
        ternary("mask_larger", 0, kCheap, [](T dy, T a, T b, P) { return (a > b) | (a != a) ? dy : 0.0f; }),
        ternary("mask_not_larger", 0, kCheap, [](T dy, T a, T b, P) { return (a > b) | (a != a) ? 0.0f : dy; }),
        ternary("mask_smaller", 0, kCheap, [](T dy, T a, T b, P) { return (a < b) | (a != a) ? dy : 0.0f; }),
        ternary("mask_not_smaller", 0, kCheap, [](T dy, T a, T b, P) { return (a < b) | (a != a) ? 0.0f : dy; }),
        binary("mask_gt_scalar", 1, kCheap, [](T dy, T x, P p) { return x > p[0] ? dy : 0.0f; }),
        binary("mask_lt_scalar", 1, kCheap, [](T dy, T x, P p) { return x < p[0] ? dy : 0.0f; }),
        binary("mask_ge_scalar", 1, kCheap, [](T dy, T x, P p) { return x >= p[0] ? dy : 0.0f; }),
        binary("mask_le_scalar", 1, kCheap, [](T dy, T x, P p) { return x <= p[0] ? dy : 0.0f; }),
        binary("squared_error", 0, kCheap, [](T a, T b, P) { return (a - b) * (a - b); }),
        ternary("squared_error_grad", 1, kCheap, [](T dy, T a, T b, P p) { return p[0] * dy * (a - b); }),
        ternary("absolute_error_grad", 1, kCheap, [](T dy, T a, T b, P p) { return p[0] * (a > b ? dy : -dy); }),
        binary("huber_loss", 1, kCheap,
               [](T a, T b, P p) {
                 const T d = absolute(a - b);
                 return d < p[0] ? d * d : p[0] * (2.0f * d - p[0]);
               }),
        ternary("huber_loss_grad", 2, kCheap,
                [](T dy, T a, T b, P p) {  // p[1] is the sign of the operand
                  const T d = a - b;
                  return 2.0f * p[1] * dy * (d > p[0] ? p[0] : (d < -p[0] ? -p[0] : d));
                }),
        binary("absolute_error", 0, kCheap, [](T a, T b, P) { return absolute(a - b); }),
    };
    return {rows, static_cast<int>(sizeof(rows) / sizeof(rows[0]))};
  }

  static BlockTable<T> elementary() {
    static constexpr BlockFunction<T> rows[] = {
        unary("abs", 0, kCheap, [](T x, P) { return absolute(x); }),
        binary("abs_grad", 0, kCheap, [](T dy, T x, P) { return x < 0.0f ? -dy : dy; }),
        unary("square", 0, kCheap, [](T x, P) { return x * x; }),
        binary("square_grad", 0, kCheap, [](T dy, T x, P) { return 2.0f * x * dy; }),
        unary("sqrt", 0, kDivide, [](T x, P) { return root(x); }),
        binary("tan_grad", 0, kCheap, [](T dy, T y, P) { return dy * (1.0f + y * y); }),
        binary("acos_grad", 0, kDivide, [](T dy, T x, P) { return -dy / root((1.0f - x) * (1.0f + x)); }),
        binary("asin_grad", 0, kDivide, [](T dy, T x, P) { return dy / root((1.0f - x) * (1.0f + x)); }),
        binary("atan_grad", 0, kDivide, [](T dy, T x, P) { return dy / (1.0f + x * x); }),
        binary("acosh_grad", 0, kDivide, [](T dy, T x, P) { return dy / root((x - 1.0f) * (x + 1.0f)); }),
        binary("asinh_grad", 0, kDivide, [](T dy, T x, P) { return dy / root(x * x + 1.0f); }),
        binary("atanh_grad", 0, kDivide, [](T dy, T x, P) { return dy / ((1.0f - x) * (1.0f + x)); }),
        binary("erf_grad", 0, kExponential, [](T dy, T x, P) { return dy * exp(-x * x) * T(1.1283791670955126); }),
        unary("reciprocal_sqrt", 0, kDivide, [](T x, P) { return 1.0f / root(x + 0.0f); }),  // -0 gives inf, too
        binary("sqrt_grad", 0, kDivide, [](T dy, T y, P) { return 0.5f * dy / y; }),
        unary("reciprocal", 0, kDivide, [](T x, P) { return 1.0f / x; }),
        unary("exp", 0, kExponential, [](T x, P) { return exp(x); }),
        unary("expm1", 0, kExponential, [](T x, P) { return expm1(x); }),
        unary("log", 0, kExponential, [](T x, P) { return log(x); }),
        unary("log1p", 0, kExponential, [](T x, P) { return log1p(x); }),
        unary("erf", 0, kExponential, [](T x, P) { return erf(x); }),
        {"sin", 1, 0, kExponential, &sines},
        {"cos", 1, 0, kExponential, &cosines},
        {"tan", 1, 0, kExponential, &tangents},
        unary("asin", 0, kExponential, [](T x, P) { return arcsine(x); }),
        unary("acos", 0, kExponential, [](T x, P) { return arccosine(x); }),
        unary("atan", 0, kExponential, [](T x, P) { return arctangent(x); }),
        unary("sinh", 0, kExponential,
              [](T x, P) {
                const T e = expm1(absolute(x) *
                                  0.5f);  // sinh x = 2 s c with s, c of the half angle: no overflow before the result
                const T s = 0.5f * (e + (e < 1e30f ? e / (e + 1.0f) : 1.0f)), c = 0.5f * (e + 1.0f) + 0.5f / (e + 1.0f);
                return copy_sign(2.0f * s * c, x);
              }),
        unary("cosh", 0, kExponential,
              [](T x, P) {
                const T e = exp(absolute(x) * 0.5f);
                const T s = 0.5f * e - 0.5f / e;
                return 1.0f + 2.0f * s * s;
              }),
        unary("asinh", 0, 2 * kExponential, [](T x, P) { return area_sine(x); }),
        unary("acosh", 0, 2 * kExponential, [](T x, P) { return area_cosine(x); }),
        unary("atanh", 0, 2 * kExponential, [](T x, P) { return area_tangent(x); }),
        unary("isnan", 0, kCheap, [](T x, P) { return x != x ? 1.0f : 0.0f; }),
        unary("isinf", 0, kCheap, [](T x, P) { return absolute(x) == kInfinity ? 1.0f : 0.0f; }),
        unary("reset_nan", 1, kCheap, [](T x, P p) { return x != x ? p[0] : x; }),
        unary("reset_inf", 1, kCheap, [](T x, P p) { return absolute(x) == kInfinity ? p[0] : x; }),
        binary("mask_nan", 0, kCheap, [](T dy, T x, P) { return x != x ? 0.0f : dy; }),
        binary("mask_inf", 0, kCheap, [](T dy, T x, P) { return absolute(x) == kInfinity ? 0.0f : dy; }),
        unary("round", 0, kCheap,
              [](T x, P) {  // halves away from zero
                const T towards_zero = truncated(x);
                const T away = towards_zero + copy_sign(T{1}, x);
                return absolute(x - towards_zero) >= 0.5f ? away : towards_zero;
              }),
        unary("ceil", 0, kCheap, [](T x, P) { return ceiling(x); }),
        unary("floor", 0, kCheap, [](T x, P) { return floored(x); }),
        unary("sign", 1, kCheap,
              [](T x, P p) { return x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : (x == 0.0f ? p[0] : x)); }),
    };
    return {rows, static_cast<int>(sizeof(rows) / sizeof(rows[0]))};
  }

  static BlockTable<T> activation() {
    static constexpr BlockFunction<T> rows[] = {
        unary("relu", 0, kCheap, [](T x, P) { return rectified(x); }),
        binary("relu_grad", 0, kCheap, [](T dy, T y, P) { return y > 0.0f ? dy : 0.0f; }),
        unary("leaky_relu", 1, kCheap, [](T x, P p) { return x > 0.0f ? x : p[0] * x; }),
        binary("leaky_relu_grad", 1, kCheap, [](T dy, T x, P p) { return x > 0.0f ? dy : p[0] * dy; }),
        unary("relu6", 0, kCheap, [](T x, P) { return x > 6.0f ? 6.0f : rectified(x); }),
        binary("relu6_grad", 0, kCheap, [](T dy, T x, P) { return (x > 0.0f) & (x < 6.0f) ? dy : 0.0f; }),
        unary("elu", 1, kExponential, [](T x, P p) { return x >= 0.0f ? x : p[0] * expm1(x); }),
        binary("elu_grad", 1, kExponential, [](T dy, T x, P p) { return x >= 0.0f ? dy : dy * p[0] * exp(x); }),
        unary("selu", 2, kExponential, [](T x, P p) { return p[0] * (x >= 0.0f ? x : p[1] * expm1(x)); }),
        binary("selu_grad", 2, kExponential,
               [](T dy, T x, P p) { return dy * p[0] * (x > 0.0f ? 1.0f : p[1] * exp(x)); }),
        unary("sigmoid", 0, kExponential, [](T x, P) { return sigmoid(x); }),
        binary("sigmoid_grad", 0, kCheap, [](T dy, T y, P) { return dy * y * (1.0f - y); }),
        unary("tanh", 0, kExponential, [](T x, P) { return tanh(x); }),
        binary("tanh_grad", 0, kCheap, [](T dy, T y, P) { return dy * (1.0f - y * y); }),
        unary("swish", 0, kExponential, [](T x, P) { return x * sigmoid(x); }),
        binary("swish_grad", 0, kExponential,
               [](T dy, T x, P) {
                 const T s = sigmoid(x);
                 return dy * s * (1.0f + x * (1.0f - s));
               }),
        unary("gelu", 0, kExponential,
              [](T x, P) { return 0.5f * x * (1.0f + tanh(T(0.79788456080286536) * (x + T(0.044715) * x * x * x))); }),
        binary("gelu_grad", 0, kExponential,
               [](T dy, T x, P) {
                 const T t = tanh(T(0.79788456080286536) * (x + T(0.044715) * x * x * x));
                 x = smaller(larger(x, T{-20}), T{20});  // t is 1 or -1 from there on, and squares must not overflow
                 return dy * 0.5f *
                        ((1.0f + t) + x * (1.0f - t * t) * T(0.79788456080286536) * (1.0f + T(0.134145) * x * x));
               }),
        unary("softplus", 1, 2 * kExponential, [](T x, P p) { return softplus(p[0] * x) / p[0]; }),
        binary("softplus_grad", 1, kExponential, [](T dy, T x, P p) { return dy * sigmoid(p[0] * x); }),
        unary("softsign", 0, kDivide, [](T x, P) { return x / (1.0f + absolute(x)); }),
        binary("softsign_grad", 0, kDivide,
               [](T dy, T x, P) {
                 const T d = 1.0f + absolute(x);
                 return dy / (d * d);
               }),
        unary("hard_sigmoid", 0, kCheap,
              [](T x, P) {
                const T y = T(0.2) * x + 0.5f;
                return y < 0.0f ? 0.0f : (y > 1.0f ? 1.0f : y);
              }),
        binary("hard_sigmoid_grad", 0, kCheap,
               [](T dy, T x, P) { return (x >= -2.5f) & (x <= 2.5f) ? T(0.2) * dy : 0.0f; }),
        unary("hard_tanh", 0, kCheap, [](T x, P) { return x < -1.0f ? -1.0f : (x > 1.0f ? 1.0f : x); }),
        binary("hard_tanh_grad", 0, kCheap, [](T dy, T x, P) { return (x >= -1.0f) & (x <= 1.0f) ? dy : 0.0f; }),
        unary("log_sigmoid", 0, 2 * kExponential, [](T x, P) { return -softplus(-x); }),
        binary("log_sigmoid_grad", 0, kExponential, [](T dy, T x, P) { return dy * sigmoid(-x); }),
        unary("mish", 0, 3 * kExponential, [](T x, P) { return x * tanh(softplus(x)); }),
        binary("mish_grad", 0, 3 * kExponential,
               [](T dy, T x, P) {
                 const T t = tanh(softplus(x));
                 return dy * (t + x * sigmoid(x) * (1.0f - t * t));
               }),
        binary("tanh_shrink_grad", 0, kExponential,
               [](T dy, T x, P) {
                 const T t = tanh(x);
                 return dy * t * t;
               }),
        unary("tanh_shrink", 0, kExponential, [](T x, P) { return x - tanh(x); }),
        unary("clip", 2, kCheap, [](T x, P p) { return x < p[0] ? p[0] : (x > p[1] ? p[1] : x); }),
        binary("prelu", 0, kCheap, [](T x, T a, P) { return x >= 0.0f ? x : a * x; }),
        ternary("prelu_grad", 0, kCheap, [](T dy, T x, T a, P) { return x >= 0.0f ? dy : a * dy; }),
        binary("prelu_slope_grad", 0, kCheap, [](T dy, T x, P) { return x >= 0.0f ? 0.0f : dy * x; }),
        // losses of logits x or probabilities x against targets t
        binary("sigmoid_cross_entropy", 0, 2 * kExponential, [](T x, T t, P) { return softplus(x) - x * t; }),
        ternary("sigmoid_cross_entropy_grad", 0, kExponential, [](T dy, T x, T t, P) { return dy * (sigmoid(x) - t); }),
        binary("binary_cross_entropy", 0, 2 * kExponential,
               [](T x, T t, P) {
                 const T present = t * log(larger(x, T{kSmallest}));
                 return -fused(1.0f - t, log(larger(1.0f - x, T{kSmallest})), present);
               }),
        ternary("binary_cross_entropy_grad", 0, 2 * kDivide,
                [](T dy, T x, T t, P) { return dy * ((1.0f - t) / not_zero(1.0f - x) - t / not_zero(x)); }),
        binary("log_odds", 0, 2 * kExponential,
               [](T dy, T x, P) { return -dy * (log(not_zero(x)) - log(not_zero(1.0f - x))); }),
        binary("epsilon_insensitive", 1, kCheap, [](T a, T b, P p) { return larger(absolute(a - b) - p[0], T{0}); }),
        ternary("epsilon_insensitive_grad", 2, kCheap,
                [](T dy, T a, T b, P p) {  // p[1] is the sign of the operand
                  const T d = a - b;
                  return p[1] * (d > p[0] ? dy : (d < -p[0] ? -dy : 0.0f));
                }),
        binary("binary_error", 0, kCheap, [](T x, T t, P) { return (x >= 0.5f) != (t >= 0.5f) ? 1.0f : 0.0f; }),
    };
    return {rows, static_cast<int>(sizeof(rows) / sizeof(rows[0]))};
  }
};

template <class T>
void append(BlockFunction<T>* all, int& count, BlockTable<T> some) {
  for (int i = 0; i < some.count; ++i) all[count++] = some.functions[i];
}

}  // namespace

template <class T>
BlockTable<T> pointwise() {
  static BlockFunction<T> all[256];
  static int count = 0;
  if (count == 0) {
    append(all, count, Functions<T>::arithmetic());
    append(all, count, Functions<T>::elementary());
    append(all, count, Functions<T>::activation());
  }
  return {all, count};
}

template BlockTable<float> pointwise<float>();
template BlockTable<double> pointwise<double>();

}  // namespace nn_cpu::NN_ISA
