// Rows of a table chosen by number.
//   embed            indices int64 (M), w (V, D) -> y (M, D) = w[indices]
//   embed_backward   indices, dy (M, D) -> dw (V, D): the rows of dy added up at their indices
// Negative indices count from the end; others outside the table throw. Gradients add in the order of the indices, each
// thread on its own columns, so results repeat. O(M D), and O(V D) to clear dw.
#include <algorithm>
#include <string>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/errors.hpp"
#include "support/parallel.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kGrain = 16384;

struct Table {
  int64_t rows, columns, count;

  Table(const ArrayDesc& indices, const ArrayDesc& w)
      : rows(w.shape.at(0)), columns(rows > 0 ? w.size() / rows : 0), count(indices.size()) {}

  void check(const int64_t* indices) const {
    for (int64_t i = 0; i < count; ++i) {
      if (indices[i] < -rows || indices[i] >= rows) {
        throw ArgumentError("embed: x0 must be in [" + std::to_string(-rows) + ", " + std::to_string(rows) + "), got " +
                            std::to_string(indices[i]));
      }
    }
  }
  int64_t row(int64_t index) const { return (index < 0 ? index + rows : index) * columns; }
};

class Embed : public Op {
 public:
  explicit Embed(const Signature& s) : table_(s.contiguous(0, DType::kInt64), s.contiguous(1)) {
    NN_CHECK(s.contiguous(2).size() == table_.count * table_.columns,
             "y must have a row for each index, got " << to_string(s.array(2).shape));
  }

  void run(void* const* arrays) const override {
    const auto* indices = static_cast<const int64_t*>(arrays[0]);
    const auto* w = static_cast<const float*>(arrays[1]);
    auto* y = static_cast<float*>(arrays[2]);
    table_.check(indices);
    parallel_for(table_.count, kGrain / std::max<int64_t>(table_.columns, 1) + 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        std::copy_n(w + table_.row(indices[i]), table_.columns, y + i * table_.columns);
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + 0.3 * static_cast<double>(table_.count * table_.columns); }

 private:
  Table table_;
};

class EmbedBackward : public Op {
 public:
  explicit EmbedBackward(const Signature& s) : table_(s.contiguous(0, DType::kInt64), s.contiguous(2)) {
    NN_CHECK(s.contiguous(1).size() == table_.count * table_.columns,
             "dy must have a row for each index, got " << to_string(s.array(1).shape));
  }

  void run(void* const* arrays) const override {
    const auto* indices = static_cast<const int64_t*>(arrays[0]);
    const auto* dy = static_cast<const float*>(arrays[1]);
    auto* dw = static_cast<float*>(arrays[2]);
    table_.check(indices);
    parallel_for(table_.rows * table_.columns, 4 * kGrain,
                 [&](int64_t begin, int64_t end, int) { std::fill(dw + begin, dw + end, 0.0f); });
    parallel_for(
        table_.columns, std::max<int64_t>(16, kGrain / std::max<int64_t>(table_.count, 1)),
        [&](int64_t begin, int64_t end, int) {
          for (int64_t i = 0; i < table_.count; ++i) {
            vectors().add_to(dy + i * table_.columns + begin, dw + table_.row(indices[i]) + begin, end - begin);
          }
        },
        16);
  }

  double cost() const override { return 50 + 0.3 * static_cast<double>((table_.count + table_.rows) * table_.columns); }

 private:
  Table table_;
};

}  // namespace

void register_indexing(Registry& registry) {
  registry.add("embed", make<Embed>, 2);
  registry.add("embed_backward", make<EmbedBackward>, 2);
}

}  // namespace nn_cpu
