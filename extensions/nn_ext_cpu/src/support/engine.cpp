#include "support/engine.hpp"

#ifdef NN_ONEDNN

#include <string_view>
#include <unordered_map>

#include "support/gemm.hpp"
#include "support/parallel.hpp"
#include "support/widen.hpp"

namespace nn_cpu {

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

const dnnl::stream& cpu_stream() {
  thread_local const dnnl::stream stream(cpu_engine());
  return stream;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::memory::desc memory_desc(const ArrayDesc& desc) { return {desc.shape, data_type(desc.dtype), desc.strides}; }

dnnl::memory::desc any_layout(const ArrayDesc& desc) { return any_layout(desc, desc.dtype); }

dnnl::memory::desc any_layout(const ArrayDesc& desc, DType dtype) {
  return {desc.shape, data_type(dtype), dnnl::memory::format_tag::any};
}

dnnl::memory::data_type data_type(DType dtype) {
  return dtype == DType::kBFloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

void require_suitable(const char* implementation) {
  // a name such as "jit:avx2", "x64:gemm:jit" or "conv:any+ref:any"; that of BRGEMM is another method
  const std::string_view name(implementation);
  const auto has_part = [name](std::string_view part) {
    const size_t at = name.find(part);
    return at != std::string_view::npos && (at == 0 || name[at - 1] == ':' || name[at - 1] == '+');
  };
  if (has_part("ref")) throw dnnl::error(dnnl_unimplemented, "an optimized implementation must exist, got ref");
  static const bool moves_stack = dnnl_version()->major == 3 && dnnl_version()->minor < 12;
  if (moves_stack && has_part("gemm:jit"))
    throw dnnl::error(dnnl_unimplemented, "an implementation must leave the stack pointer alone, got gemm:jit");
}

std::unique_ptr<Op> by_onednn(const Signature& signature, Factory factory, size_t first_output) {
  try {
    return multiplies_bfloat16() ? factory(signature) : with_wide_arrays(signature, factory, first_output);
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

Relocation::Relocation(const dnnl::memory::desc& from, const dnnl::memory::desc& to)
    : from_(from), to_(to), packing_(Packing::between(from, to)) {
  if (!packing_) reorder_.emplace(dnnl::reorder::primitive_desc(cpu_engine(), from, cpu_engine(), to));
}

void Relocation::run(const void* from, void* to) const {
  if (packing_) {
    packing_->run(from, to);
    return;
  }
  dnnl::memory source(from_, cpu_engine(), const_cast<void*>(from)), target(to_, cpu_engine(), to);
  reorder_->execute(cpu_stream(), source, target);
}

Primitive::Primitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad)
    : primitive_(primitive),
      scratchpad_(scratchpad),
      bytes_(Scratch::bytes<char>(static_cast<int64_t>(scratchpad.get_size()))) {}

void Primitive::input(int dnnl_arg, int position, const dnnl::memory::desc& array, const dnnl::memory::desc& inner,
                      bool cached) {
  add(dnnl_arg, position, array, inner, false);
  Operand& operand = operands_.back();
  if (!cached || !operand.relocation) return;
  // the cache counts in units of float32, whatever the elements are
  const auto elements = static_cast<int64_t>(array.get_size() / sizeof(float)),
             packed = static_cast<int64_t>(inner.get_size() / sizeof(float) + 1);
  const std::string from = layout_name(array), to = layout_name(inner);
  if (from.empty() || to.empty()) return;  // a layout that only oneDNN knows is not kept
  operand.cache = std::make_shared<WeightCache>(
      from + '>' + to, elements, packed,
      [relocation = operand.relocation](const float* from, float* to) { relocation->run(from, to); });
}

std::string layout_name(const dnnl::memory::desc& desc) {
  if (desc.get_format_kind() != dnnl::memory::format_kind::blocked) return "";
  std::string name =
      std::to_string(static_cast<int>(desc.get_data_type())) + '@' + std::to_string(desc.get_submemory_offset());
  for (const dnnl::memory::dims& numbers :
       {desc.get_dims(), desc.get_padded_dims(), desc.get_strides(), desc.get_inner_blks(), desc.get_inner_idxs()}) {
    name += ';';
    for (const int64_t number : numbers) name += std::to_string(number) + ',';
  }
  return name;
}

void Primitive::output(int dnnl_arg, int position, const dnnl::memory::desc& array, const dnnl::memory::desc& inner) {
  add(dnnl_arg, position, array, inner, true);
}

void Primitive::add(int dnnl_arg, int position, const dnnl::memory::desc& array, const dnnl::memory::desc& inner,
                    bool is_output) {
  Operand operand{dnnl_arg, position, array, inner, nullptr, is_output, nullptr};
  if (array != inner) {
    const auto& from = is_output ? inner : array;
    const auto& to = is_output ? array : inner;
    operand.relocation = std::make_shared<Relocation>(from, to);
    bytes_ += Scratch::bytes<char>(static_cast<int64_t>(inner.get_size()));
  }
  operands_.push_back(operand);
}

std::string Primitive::implementation() const {
  const char* name = nullptr;
  const auto status = dnnl_primitive_desc_query(primitive_.get_primitive_desc(), dnnl_query_impl_info_str, 0,
                                                static_cast<void*>(&name));
  return status == dnnl_success && name != nullptr ? std::string("oneDNN ") + name : "oneDNN";
}

std::vector<size_t> Primitive::weights() const {
  std::vector<size_t> positions;
  for (const Operand& operand : operands_) {
    if (operand.cache) positions.push_back(static_cast<size_t>(operand.position));
  }
  return positions;
}

void Primitive::run(void* const* arrays) const {
  adopt_num_threads();
  const dnnl::stream& stream = cpu_stream();
  Scratch scratch(bytes_);
  std::unordered_map<int, dnnl::memory> arguments;
  arguments.reserve(operands_.size() + 1);
  std::vector<WeightCache::Packed> kept;
  for (const Operand& operand : operands_) {
    void* data = arrays[operand.position];
    if (operand.cache) {
      if (auto packed = operand.cache->find(static_cast<const float*>(data))) {
        arguments.emplace(operand.dnnl_arg,
                          dnnl::memory(operand.inner, cpu_engine(), const_cast<float*>(packed.get())));
        kept.push_back(std::move(packed));
        continue;
      }
    }
    if (operand.relocation) data = scratch.take<char>(static_cast<int64_t>(operand.inner.get_size()));
    dnnl::memory inner(operand.inner, cpu_engine(), data);
    if (operand.relocation && !operand.is_output) operand.relocation->run(arrays[operand.position], data);
    arguments.emplace(operand.dnnl_arg, inner);
  }
  if (const auto bytes = static_cast<int64_t>(scratchpad_.get_size()); bytes > 0) {
    arguments.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(scratchpad_, cpu_engine(), scratch.take<char>(bytes)));
  }
  primitive_.execute(stream, arguments);
  for (const Operand& operand : operands_) {
    if (!operand.relocation || !operand.is_output) continue;
    operand.relocation->run(arguments.at(operand.dnnl_arg).get_data_handle(), arrays[operand.position]);
  }
}

}  // namespace nn_cpu

#endif
