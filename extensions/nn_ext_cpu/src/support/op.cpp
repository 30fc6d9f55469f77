#include "support/op.hpp"

#include "support/check.hpp"
#include "support/widen.hpp"

namespace nn_cpu {

std::string joined(const std::vector<std::string>& names) {
  std::vector<std::string> distinct;
  for (const std::string& name : names) {
    if (!name.empty() && std::find(distinct.begin(), distinct.end(), name) == distinct.end()) distinct.push_back(name);
  }
  std::string all;
  for (const std::string& name : distinct) all += (all.empty() ? "" : " + ") + name;
  return all;
}

const ArrayDesc& Signature::array(size_t position, DType dtype) const {
  NN_CHECK(has(position), "array " << position << " must be given, got none");
  NN_CHECK(arrays[position]->dtype == dtype,
           "array " << position << " must have the dtype of the operation, got another");
  return *arrays[position];
}

const ArrayDesc& Signature::contiguous(size_t position, DType dtype) const {
  const ArrayDesc& desc = array(position, dtype);
  NN_CHECK(desc.contiguous(), "array " << position << " must be C-contiguous, got strides " << to_string(desc.strides));
  return desc;
}

const ArrayDesc& Signature::floating(size_t position) const {
  return array(position,
               has(position) && arrays[position]->dtype == DType::kBFloat16 ? DType::kBFloat16 : DType::kFloat32);
}

const ArrayDesc& Signature::contiguous_floating(size_t position) const {
  return contiguous(position, floating(position).dtype);
}

void Registry::add(const std::string& name, Factory factory, size_t first_output) {
  entries_[name] = {factory, first_output};
}

std::unique_ptr<Op> Registry::prepare(const std::string& name, const Signature& signature) const {
  const auto found = entries_.find(name);
  NN_CHECK(found != entries_.end(), "operation must be one of nn_ext_cpu._native.operations(), got " << name);
  const auto [factory, first_output] = found->second;
  return first_output == kTakesAll ? factory(signature) : with_wide_arrays(signature, factory, first_output);
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> names;
  for (const auto& entry : entries_) names.push_back(entry.first);
  return names;
}

Registry& Registry::instance() {
  static Registry registry;
  return registry;
}

}  // namespace nn_cpu
