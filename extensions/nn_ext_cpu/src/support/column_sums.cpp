#include "support/column_sums.hpp"

#include <algorithm>

#include "support/parallel.hpp"
#include "support/scratch.hpp"

namespace nn_cpu {
namespace {

template <class T>
const T* widened(const T* x, int64_t, T*) {
  return x;
}

const float* widened(const Bf16* x, int64_t n, float* memory) {
  vectors().widen(x, n, memory);
  return memory;
}

template <class T, class Out>
void add_rows(const T* x, int64_t rows, int64_t columns, int64_t ld, Out* out, bool accumulate) {
  const NumberLoops<Out>& table = number_loops<Out>();
  parallel_for(
      columns, std::max<int64_t>(64, 65536 / std::max<int64_t>(rows, 1)),
      [&](int64_t begin, int64_t end, int) {
        const int64_t n = end - begin;
        Scratch scratch(Scratch::bytes<double>(n) + Scratch::bytes<Out>(n));
        auto* sums = scratch.take<double>(n);
        auto* memory = scratch.take<Out>(n);
        std::fill_n(sums, n, 0.0);
        for (int64_t row = 0; row < rows; ++row) table.add_to_double(widened(x + row * ld + begin, n, memory), sums, n);
        for (int64_t j = begin; j < end; ++j)
          out[j] = (accumulate ? out[j] : Out{0}) + static_cast<Out>(sums[j - begin]);
      },
      16);
}

}  // namespace

void column_sums(const float* x, int64_t rows, int64_t columns, float* out, bool accumulate) {
  add_rows(x, rows, columns, columns, out, accumulate);
}

void column_sums(const double* x, int64_t rows, int64_t columns, double* out, bool accumulate) {
  add_rows(x, rows, columns, columns, out, accumulate);
}

void column_sums(const Bf16* x, int64_t rows, int64_t columns, float* out, bool accumulate) {
  add_rows(x, rows, columns, columns, out, accumulate);
}

void column_sums(const float* x, int64_t rows, int64_t columns, int64_t ld, float* out) {
  add_rows(x, rows, columns, ld, out, false);
}

}  // namespace nn_cpu
