#include "support/op.hpp"

#include "support/check.hpp"

namespace nn_cpu {

const ArrayDesc& Signature::array(size_t position, DType dtype) const {
  NN_CHECK(has(position), "array " << position << " must be given, got none");
  NN_CHECK(arrays[position]->dtype == dtype, "array " << position << " must have the dtype of the operation, got another");
  return *arrays[position];
}

const ArrayDesc& Signature::contiguous(size_t position, DType dtype) const {
  const ArrayDesc& desc = array(position, dtype);
  NN_CHECK(desc.contiguous(), "array " << position << " must be C-contiguous, got strides " << to_string(desc.strides));
  return desc;
}

void Registry::add(const std::string& name, Factory factory) { factories_[name] = factory; }

std::unique_ptr<Op> Registry::prepare(const std::string& name, const Signature& signature) const {
  const auto found = factories_.find(name);
  NN_CHECK(found != factories_.end(), "operation must be one of nn_ext_cpu._native.operations(), got " << name);
  return found->second(signature);
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> names;
  for (const auto& entry : factories_) names.push_back(entry.first);
  return names;
}

Registry& Registry::instance() {
  static Registry registry;
  return registry;
}

}  // namespace nn_cpu
