// Settings of an operation: a few named numbers, texts and lists, as Python gave them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "support/array.hpp"
#include "support/check.hpp"

namespace nn_cpu {

/// One instruction of an element-wise program: function, destination, sources, parameters (see kernels/pointwise.hpp).
struct InstructionSpec {
  std::string function;
  int64_t destination = 0;
  std::vector<int64_t> sources;
  std::vector<double> parameters;
};

using ArgValue =
    std::variant<bool, int64_t, double, std::string, Dims, std::vector<double>, std::vector<InstructionSpec>>;

class Args {
 public:
  void set(const std::string& name, ArgValue value) { values_[name] = std::move(value); }

  template <class T>
  const T& get(const std::string& name) const {
    const auto found = values_.find(name);
    NN_CHECK(found != values_.end(), "argument must be given, got no " << name);
    const T* value = std::get_if<T>(&found->second);
    NN_CHECK(value != nullptr, "argument must have the type of the operation, got another one for " << name);
    return *value;
  }

  bool flag(const std::string& name) const { return get<bool>(name); }
  int64_t integer(const std::string& name) const { return get<int64_t>(name); }
  float real(const std::string& name) const { return static_cast<float>(get<double>(name)); }
  const Dims& dims(const std::string& name) const { return get<Dims>(name); }

 private:
  std::map<std::string, ArgValue> values_;
};

}  // namespace nn_cpu
