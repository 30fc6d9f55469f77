// An operation: prepared once from descriptions of its arrays, run many times on raw pointers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "support/args.hpp"
#include "support/array.hpp"
#include "support/parallel.hpp"

namespace nn_cpu {

/// Descriptions of all arrays in the order of the call (nothing where an array is absent), and the settings.
struct Signature {
  std::vector<std::optional<ArrayDesc>> arrays;
  Args args;

  bool has(size_t position) const { return position < arrays.size() && arrays[position].has_value(); }

  /// The description at `position`; throws if it is absent or not of `dtype`.
  const ArrayDesc& array(size_t position, DType dtype = DType::kFloat32) const;

  /// The same, and the array must be C-contiguous.
  const ArrayDesc& contiguous(size_t position, DType dtype = DType::kFloat32) const;

  /// The description at `position`, of float32 or bfloat16; throws if it is absent or neither.
  const ArrayDesc& floating(size_t position) const;

  /// The same, and the array must be C-contiguous.
  const ArrayDesc& contiguous_floating(size_t position) const;
};

/// Names that are not empty, each once, joined by " + ".
std::string joined(const std::vector<std::string>& names);

class Op {
 public:
  virtual ~Op() = default;

  /// Computes on one pointer for each description (nullptr where it is absent). Safe to call from several threads.
  virtual void run(void* const* arrays) const = 0;

  /// Whether results are the same to the last bit on any number of threads: no sum is cut into parts by their number.
  /// Operations that say no run on one thread in deterministic mode.
  virtual bool independent_of_threads() const { return false; }

  /// run(), on one thread where deterministic() asks for it.
  void execute(void* const* arrays) const {
    const Serial serial(deterministic() && !independent_of_threads());
    run(arrays);
  }

  /// Positions of the arrays of which it keeps packed copies; see support/weight_cache.hpp.
  virtual std::vector<size_t> weights() const { return {}; }

  /// What computes it, for those who ask, where there is a choice: a primitive of oneDNN, or a method of our own.
  virtual std::string implementation() const { return ""; }

  /// Rough duration in nanoseconds; decides whether the interpreter lock is worth releasing.
  virtual double cost() const = 0;

  /// The same operation, adding to the arrays at `positions` instead of overwriting them; nothing where it cannot.
  virtual std::unique_ptr<Op> adding(const std::vector<size_t>& positions) const {
    static_cast<void>(positions);
    return nullptr;
  }
};

using Factory = std::unique_ptr<Op> (*)(const Signature&);

/// The table of operations by name; each topic adds its own in `register_<topic>`.
class Registry {
  static constexpr size_t kTakesAll = SIZE_MAX;

 public:
  /// Arrays of an operation with a `first_output` may be bfloat16 too: the operation itself is prepared for float32
  /// then, and those from `first_output` on are rounded after it, the others widened before. One without takes what it
  /// is given.
  void add(const std::string& name, Factory factory, size_t first_output = kTakesAll);
  std::unique_ptr<Op> prepare(const std::string& name, const Signature& signature) const;
  std::vector<std::string> names() const;

  static Registry& instance();

 private:
  struct Entry {
    Factory factory;
    size_t first_output;
  };
  std::map<std::string, Entry> entries_;
};

/// Whether an array of the call holds float64; `first` of them may anyway.
inline bool is_wide(const Signature& signature, size_t first = 0) {
  return std::any_of(signature.arrays.begin() + static_cast<int64_t>(std::min(first, signature.arrays.size())),
                     signature.arrays.end(), [](const auto& desc) { return desc && desc->dtype == DType::kFloat64; });
}

/// The dtype of arrays of T.
template <class T>
inline constexpr DType kDTypeOf = std::is_same_v<T, double> ? DType::kFloat64 : DType::kFloat32;

/// A factory of the operation for float, or for double where an array holds float64.
template <template <class> class OpOf>
std::unique_ptr<Op> make_for_numbers(const Signature& signature) {
  if (is_wide(signature)) return std::make_unique<OpOf<double>>(signature);
  return std::make_unique<OpOf<float>>(signature);
}

/// Shorthand for factories of operations whose constructor takes the signature.
template <class T>
std::unique_ptr<Op> make(const Signature& signature) {
  return std::make_unique<T>(signature);
}

}  // namespace nn_cpu
