#include "support/widen.hpp"

#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kGrain = 32768;  // elements a thread

struct Narrow {
  size_t position;
  bool is_output;
  int64_t extent;
};

class Widened : public Op {
 public:
  Widened(std::unique_ptr<Op> inner, size_t n_arrays, std::vector<Narrow> narrow)
      : inner_(std::move(inner)), n_arrays_(n_arrays), narrow_(std::move(narrow)) {
    for (const Narrow& array : narrow_) {
      bytes_ += Scratch::bytes<float>(array.extent);
      cost_ += 0.1 * static_cast<double>(array.extent);
    }
  }

  void run(void* const* arrays) const override {
    Scratch scratch(bytes_);
    std::vector<void*> inner(arrays, arrays + n_arrays_);
    for (const Narrow& array : narrow_) {
      auto* wide = scratch.take<float>(array.extent);
      inner[array.position] = wide;
      if (array.is_output) continue;
      const auto* x = static_cast<const Bf16*>(arrays[array.position]);
      parallel_for(array.extent, kGrain,
                   [&](int64_t begin, int64_t end, int) { vectors().widen(x + begin, end - begin, wide + begin); });
    }
    inner_->execute(inner.data());
    for (const Narrow& array : narrow_) {
      if (!array.is_output) continue;
      const auto* wide = static_cast<const float*>(inner[array.position]);
      auto* y = static_cast<Bf16*>(arrays[array.position]);
      parallel_for(array.extent, kGrain,
                   [&](int64_t begin, int64_t end, int) { vectors().narrow(wide + begin, end - begin, y + begin); });
    }
  }

  // its members see to themselves
  bool independent_of_threads() const override { return true; }

  std::string implementation() const override { return inner_->implementation(); }

  double cost() const override { return inner_->cost() + cost_; }

 private:
  std::unique_ptr<Op> inner_;
  size_t n_arrays_;
  std::vector<Narrow> narrow_;
  size_t bytes_ = 0;
  double cost_ = 0;
};

}  // namespace

std::unique_ptr<Op> with_wide_arrays(const Signature& signature, Factory factory, size_t first_output) {
  Signature wide = signature;
  std::vector<Narrow> narrow;
  for (size_t position = 0; position < signature.arrays.size(); ++position) {
    if (!signature.has(position) || signature.arrays[position]->dtype != DType::kBFloat16) continue;
    wide.arrays[position]->dtype = DType::kFloat32;
    narrow.push_back({position, position >= first_output, signature.arrays[position]->extent()});
  }
  if (narrow.empty()) return factory(signature);
  return std::make_unique<Widened>(factory(wide), signature.arrays.size(), std::move(narrow));
}

}  // namespace nn_cpu
