// The loops that are compiled once for each vector width (src/vector), reached through one table that is chosen when
// the library is loaded. Sources of src/vector include nothing but this file and each other, so that no inline function
// of the standard library is ever emitted for an instruction set that the machine may lack.
#pragma once

#include <cstdint>
#include <type_traits>

namespace nn_cpu {

/// A number of type bfloat16: the upper half of a float32.
struct Bf16 {
  uint16_t bits;
};

/// out[i] = f(in[0][i], in[1][i], ..., parameters) for n elements; `out` may be one of the inputs.
template <class T>
using BlockLoop = void (*)(int64_t n, const T* const* in, T* out, const T* parameters);

template <class T>
struct BlockFunction {
  const char* name;
  int arity;
  int n_parameters;
  float cost;  // rough nanoseconds per element
  BlockLoop<T> run;
};

template <class T>
struct BlockTable {
  const BlockFunction<T>* functions;
  int count;
};

/// One step of a solver on n elements; see vector/update.cpp.
template <class T>
using UpdateLoop = void (*)(int64_t n, T* w, const T* g, T* const* states, const T* h);

template <class T>
struct UpdateFunction {
  const char* name;
  int n_states;
  UpdateLoop<T> run;
};

template <class T>
struct UpdateTable {
  const UpdateFunction<T>* functions;
  int count;
};

/// One image of a pooling and its windows, in three dimensions (unused ones have length 1); see vector/pooling.cpp.
struct PoolShape {
  int64_t lanes;
  int64_t in[3], out[3], kernel[3], stride[3], pad[3];
  bool mean, counts_pad;
};

/// A plane of results (rows, columns), a kernel (kh, kw) whose taps are dh rows and dw columns apart, and the elements
/// between rows of what is read and of the results; see vector/slide.cpp.
struct SlideShape {
  int64_t rows, columns, kh, kw, dh, dw, ldx, ldy;
};

/// Columns of a panel: a matrix is cut into panels so that each of them is one piece of memory; see vector/gemm.cpp.
constexpr int64_t kPanelColumns = 32;

/// Products are sums of pieces along k, all of about the same depth: each piece from zero in the order of k, then piece
/// after piece, then what was in c, then the bias. All methods cut alike, so that an element has the same bits whatever
/// else is computed beside it; `dot_product` alone adds up in lanes.
constexpr int64_t kMaxDepth = 320;  // a panel of b of this depth stays in the first-level cache
static inline int64_t depth_of_pieces(int64_t k) {
  const int64_t pieces = k > kMaxDepth ? (k + kMaxDepth - 1) / kMaxDepth : 1;
  return ((k + pieces - 1) / pieces + 7) / 8 * 8;
}

/// The rows that `streamed_product` takes at most; see vector/gemm.cpp.
constexpr int64_t kStreamedRows = 8;

/// One step of a recurrent network for one sample: what its row of the trace holds, and its two loops; see
/// vector/recurrent.cpp.
struct CellFunction {
  const char* name;
  int64_t n_gates, n_saved;
  bool has_memory;   // there is a state c beside h
  bool has_product;  // the products of the gates with the state are kept apart from those with the input
  void (*forward)(int64_t n, float* row, const float* product, const float* h, const float* c);
  void (*backward)(int64_t n, const float* row, const float* h, const float* c, float* dh, float* dc, float* dtotal,
                   float* dproduct);
};

struct CellTable {
  const CellFunction* functions;
  int count;
};

/// Numbers of a row that the loops for short rows take at most.
template <class T>
constexpr int64_t kShortRow = 256 / static_cast<int64_t>(sizeof(T));

/// The loops of vector/along.cpp treat at most this many lanes at a time.
constexpr int64_t kMaxLanes = 128;

/// The type of parameters and statistics beside elements of T.
template <class T>
using ParameterOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Matrices (rows, columns) of T, float, Bf16 or double, and numbers for each column or row; see vector/rows.cpp.
template <class T>
struct RowLoops {
  using Number = ParameterOf<T>;
  void (*column_moments)(const T* x, int64_t rows, int64_t columns, const Number* shift, double* s1, double* s2);
  void (*row_moments)(const T* x, int64_t n, Number shift, double* s1, double* s2);
  void (*column_products)(const T* dy, const T* y, const T* x, int64_t rows, int64_t columns, const Number* shift,
                          double* s1, double* s2);
  void (*row_products)(const T* dy, const T* y, const T* x, int64_t n, Number shift, double* s1, double* s2);
  void (*column_standardize)(const T* x, const T* z, int64_t rows, int64_t columns, const Number* mean,
                             const Number* scale, const Number* shift, bool relu, T* y);
  void (*row_standardize)(const T* x, const T* z, int64_t n, Number mean, Number scale, Number shift, bool relu, T* y);
  void (*row_scale)(const T* x, int64_t n, Number a, T* y);
  void (*column_gradient)(const T* dy, const T* y, const T* x, int64_t rows, int64_t columns, const Number* mean,
                          const Number* p, const Number* q, const Number* r, T* dx);
  void (*row_gradient)(const T* dy, const T* y, const T* x, int64_t n, Number mean, Number p, Number q, Number r,
                       T* dx);
};

/// Transforms of Winograd's convolution; pixels and filters are given by pointers. Those for gradients may be missing;
/// see vector/winograd.cpp.
struct WinogradLoops {
  void (*input)(const float* const* d, int64_t n, float* v, int64_t stride);
  void (*filter)(const float* const* g, int64_t n, float* u, int64_t stride, int64_t panel_stride);
  void (*output)(const float* m, int64_t stride, int64_t n, const float* scale, const float* shift,
                 const float* const* addends, bool relu, float* const* y);
  void (*gradient)(const float* const* dy, int64_t n, float* m, int64_t stride, int64_t panel_stride);
  void (*weight)(const float* u, int64_t stride, int64_t panel_stride, int64_t n, float* const* dg);
};

struct IntegerLoops;  // support/integer_loops.hpp

/// The loops that there are for float and for double; each is described where it is defined (src/vector).
template <class T>
struct NumberLoops {
  BlockTable<T> (*pointwise)();
  UpdateTable<T> (*updates)();
  // reductions of a contiguous row; sums keep partial sums of blocks in double
  double (*sum)(const T* x, int64_t n);
  double (*sum_of_squares)(const T* x, int64_t n);
  double (*dot)(const T* x, const T* y, int64_t n);
  T (*max)(const T* x, int64_t n);
  T (*min)(const T* x, int64_t n);
  // y[i] += ..., rows added into a vector
  void (*add_to_double)(const T* x, double* y, int64_t n);
  void (*add_to)(const T* x, T* y, int64_t n);
  // y = a x, y += a x
  void (*scale)(const T* x, int64_t n, T a, T* y);
  void (*axpy)(T a, const T* x, T* y, int64_t n);
  // rows that are standardized, see vector/standardize.cpp
  void (*standardize)(const T* x, int64_t n, T mean, T scale, T shift, T* y);
  void (*standardize_each)(const T* x, int64_t n, T mean, T rate, const T* gamma, const T* beta, T* y);
  void (*standardize_products)(const T* dy, const T* gamma, const T* x, int64_t n, T mean, double* s1, double* s2);
  void (*standardize_gradient)(const T* dy, const T* gamma, T scale, const T* x, int64_t n, T mean, T p, T q, T r,
                               T* dx);
  void (*add_standardized)(const T* dy, const T* x, int64_t n, T mean, T rate, T* y);
  void (*standardize_short)(const T* x, int64_t rows, int64_t n, T eps, const T* gamma, const T* beta, T* y, T* mean,
                            T* variance);
  void (*standardize_short_gradient)(const T* dy, const T* gamma, const T* x, int64_t rows, int64_t n, T eps,
                                     const T* mean, const T* variance, T* dx, T* dbeta, T* dgamma);
  // sums along an axis, see vector/sums.cpp
  void (*row_sums)(const T* x, int64_t rows, int64_t n, double scale, T* y);
  void (*lane_sums)(const T* x, int64_t count, int64_t stride, int64_t lanes, double scale, T* y);
  // y = exp(x - shift), returns the sum; log-sum-exp and softmax are made of it
  double (*exp_sum)(const T* x, T shift, T* y, int64_t n);
  // softmax for neighbouring lanes, and its gradient for a row in one piece, see vector/softmax.cpp
  void (*softmax_lanes)(bool log_too, const T* x, int64_t count, int64_t stride, int64_t lanes, T* y);
  void (*softmax_lanes_gradient)(bool log_too, const T* y, const T* dy, int64_t count, int64_t stride, int64_t lanes,
                                 T* dx);
  void (*softmax_row_gradient)(bool log_too, const T* y, const T* dy, T total, int64_t n, T* dx);
  void (*max_pool)(const PoolShape& shape, const T* x, T* y, int64_t lanes);
  void (*max_pool_backward)(const PoolShape& shape, const T* x, const T* dy, T* dx, int64_t lanes);
  void (*sum_pool)(const PoolShape& shape, const T* x, T* y, int64_t lanes);
  void (*sum_pool_backward)(const PoolShape& shape, const T* dy, T* dx, int64_t lanes);
  void (*transpose)(const T* x, int64_t rows, int64_t columns, int64_t ldx, T* y, int64_t ldy);
  // a kernel slid over a plane, see vector/slide.cpp
  void (*slide)(const SlideShape& shape, const T* x, const T* w, T* y);
  void (*slide_gradient)(const SlideShape& shape, const T* x, const T* dy, double* sums);
  // products of few rows, see vector/gemm.cpp
  void (*streamed_product)(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b,
                           int64_t ldb, T* c, int64_t ldc);
  void (*dot_product)(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb,
                      bool accumulate, T* c, int64_t ldc);
  // blocks of large products, see vector/blocks.cpp
  int64_t tile_rows, tile_columns;
  void (*pack_rows)(const T* a, int64_t ld, bool transposed, int64_t rows, int64_t depth, T* to);
  void (*pack_columns)(const T* b, int64_t ld, bool transposed, int64_t columns, int64_t depth, T* to);
  void (*block_product)(int64_t m, int64_t n, int64_t k, const T* a, const T* b, bool accumulate, const T* bias, T* c,
                        int64_t ldc);
};

/// Loops of one instruction set; each is described where it is defined (src/vector).
struct VectorTable : NumberLoops<float> {
  const char* isa;
  NumberLoops<double> wide;
  CellTable (*cells)();
  RowLoops<float> rows;
  RowLoops<Bf16> narrow_rows;
  RowLoops<double> wide_rows;
  void (*philox)(uint64_t seed, uint64_t counter, uint64_t first, int64_t n_blocks, uint32_t* words);
  void (*drop)(const float* x, const uint32_t* words, uint32_t threshold, float scale, int64_t n, float* y,
               float* mask);
  // random words as numbers, see vector/draw.cpp
  void (*draw_uniform)(const uint32_t* words, double low, double range, int64_t n, float* y);
  void (*draw_normal)(const uint32_t* words, double mu, double sigma, int64_t pairs, float* y);
  void (*draw_below)(const uint32_t* words, int64_t low, uint64_t range, int64_t n, int64_t* y);
  void (*product)(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_row, int64_t a_col, const float* b,
                  int64_t ldb, bool accumulate, const float* bias, float* c, int64_t ldc);
  void (*panel_product)(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, bool accumulate,
                        float* c, int64_t ldc);
  const IntegerLoops* integers;
  WinogradLoops winograd4, winograd2;  // for tiles of 4 x 4 and of 2 x 2 outputs
  // one axis for neighbouring lanes, see vector/along.cpp
  void (*extremum)(bool largest, const float* x, int64_t count, int64_t stride, int64_t lanes, float* y,
                   int32_t* index);
  void (*extremum_gradient)(const float* x, const float* y, const float* dy, int64_t count, int64_t stride,
                            int64_t lanes, float* dx);
  void (*running_sum)(bool exclusive, bool reverse, const float* x, int64_t count, int64_t stride, int64_t lanes,
                      float* y);
  void (*running_product)(bool exclusive, bool reverse, const float* x, int64_t count, int64_t stride, int64_t lanes,
                          float* y);
  void (*running_product_gradient)(bool exclusive, bool reverse, const float* x, const float* dy, int64_t count,
                                   int64_t stride, int64_t lanes, float* dx);
  void (*product_of)(const float* x, int64_t count, int64_t stride, int64_t lanes, float* y);
  void (*product_gradient)(const float* x, const float* dy, int64_t count, int64_t stride, int64_t lanes, float* dx);
  int32_t (*count_reaching)(const float* x, int64_t n, float limit);
  void (*counts_reaching)(const float* x, int64_t count, int64_t stride, int64_t lanes, const float* limits,
                          int32_t* counts);
  // a stage of Fourier transforms, see vector/fourier.cpp
  void (*fourier_stage)(int64_t radix, int64_t parts, int64_t n, const float* twiddles, const float* roots,
                        const float* re, const float* im, float* y_re, float* y_im);

  // the first elements of a row, see vector/order.cpp
  void (*highest_ranks)(bool absolute, bool negative, const float* x, int64_t n, int64_t groups, float* ranks);
  int64_t (*places_reaching)(bool absolute, bool negative, const float* x, int64_t n, float limit, int64_t room,
                             int32_t* places);

  // weighted sums of elements of a row, and of two rows, see vector/resample.cpp
  void (*resample_row)(const float* x, int64_t n, const int32_t* indices, const float* weights, int64_t taps, float* y);
  void (*sample_row)(const float* x, int64_t n, const int32_t* indices, const float* weights, int64_t taps, float* y);
  void (*add_sampled_products)(const float* x, const int32_t* indices, const float* y, int64_t n, float* total);
  void (*mix_rows)(const float* x0, float a, const float* x1, float b, int64_t n, float* y);
  uint64_t (*checksum)(const float* x, int64_t n, uint64_t seed);
  // between float32 and bfloat16; rounds to nearest, halves to even
  void (*widen)(const Bf16* x, int64_t n, float* y);
  void (*narrow)(const float* x, int64_t n, Bf16* y);
  void (*round)(int64_t n, float* x);
  void (*copy_places)(const float* x, const int32_t* places, int64_t n, float* y);
  void (*narrow_places)(const float* x, const int32_t* places, int64_t n, Bf16* y);
};

/// The table in use; the widest that this machine can run unless select_isa chose another.
const VectorTable& vectors();

/// The loops for T, float or double, in use.
template <class T>
const NumberLoops<T>& number_loops();

/// The loops over matrices of T in use.
template <class T>
const RowLoops<T>& row_loops();

/// Uses the table called `isa` (tests compare widths); throws if this machine cannot run it.
void select_isa(const char* isa);

}  // namespace nn_cpu
