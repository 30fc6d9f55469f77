// The arrays of many parameters, for operations that update all of them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "support/check.hpp"
#include "support/op.hpp"
#include "support/parallel.hpp"

namespace nn_cpu {

/// Arrays of many parameters, `width` each after the hyper-parameters, as one range of elements.
template <class T>
class GroupOf {
 public:
  static constexpr int64_t kGrain = 65536;  // elements a thread: an update takes less than waking a thread below this

  GroupOf(const Signature& s, size_t width) : width_(width), ends_{0} {
    NN_CHECK((s.arrays.size() - 1) % width == 0,
             "arrays must be " << width << " for each parameter, got " << s.arrays.size() - 1);
    s.contiguous(0, DType::kFloat64);
    for (size_t first = 1; first < s.arrays.size(); first += width) {
      const int64_t size = s.contiguous(first, kDTypeOf<T>).size();
      for (size_t k = 1; k < width; ++k) {
        NN_CHECK(s.contiguous(first + k, kDTypeOf<T>).size() == size, "arrays of a parameter must be alike, got "
                                                                          << s.array(first + k, kDTypeOf<T>).size()
                                                                          << " and " << size);
      }
      ends_.push_back(ends_.back() + size);
    }
  }

  int64_t size() const { return ends_.back(); }
  size_t count() const { return ends_.size() - 1; }
  int64_t start(size_t parameter) const { return ends_[parameter]; }
  int64_t size(size_t parameter) const { return ends_[parameter + 1] - ends_[parameter]; }
  T* array(void* const* arrays, size_t parameter, size_t k) const {
    return static_cast<T*>(arrays[1 + parameter * width_ + k]);
  }

  /// Calls body(parameter, offset, n) for pieces that cover all parameters.
  template <class Body>
  void visit(const Body& body) const {
    parallel_for(
        size(), kGrain,
        [&](int64_t begin, int64_t end, int) {
          size_t k = std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin() - 1;
          for (; begin < end; ++k) {
            const int64_t stop = std::min(end, ends_[k + 1]);
            if (stop > begin) body(k, begin - ends_[k], stop - begin);
            begin = std::max(begin, stop);
          }
        },
        16);
  }

 private:
  size_t width_;
  std::vector<int64_t> ends_;
};

using Group = GroupOf<float>;

/// The row called `name` of a table of rules.
template <class Rule, size_t N>
const Rule& rule_named(const Rule (&rules)[N], const std::string& name) {
  const auto* found =
      std::find_if(std::begin(rules), std::end(rules), [&](const Rule& rule) { return rule.name == name; });
  NN_CHECK(found != std::end(rules), "rule must be that of a solver with a native kernel, got " << name);
  return *found;
}

/// The place of the loop called `name` in the table of vector/update.cpp.
int find_update_loop(const char* name);

/// The sum of the squares of x; squares that overflow float32 are summed up once more in float64.
double squares_of(const float* x, int64_t n);
double squares_of(const double* x, int64_t n);

}  // namespace nn_cpu
