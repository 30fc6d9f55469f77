#include "support/column_sums.hpp"

#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {

void column_sums(const float* x, int64_t rows, int64_t columns, float* out, bool accumulate) {
  const VectorTable& table = vectors();
  parallel_for(
      columns, std::max<int64_t>(64, 65536 / std::max<int64_t>(rows, 1)),
      [&](int64_t begin, int64_t end, int) {
        Scratch scratch(Scratch::bytes<double>(end - begin));
        auto* sums = scratch.take<double>(end - begin);
        std::fill_n(sums, end - begin, 0.0);
        for (int64_t row = 0; row < rows; ++row) table.add_to_double(x + row * columns + begin, sums, end - begin);
        for (int64_t j = begin; j < end; ++j) out[j] = (accumulate ? out[j] : 0.0f) + static_cast<float>(sums[j - begin]);
      },
      16);
}

}  // namespace nn_cpu
