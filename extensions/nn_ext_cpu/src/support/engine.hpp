// oneDNN wrapped in one class: a primitive together with the reorders between the layouts of the arrays and its own.
#pragma once

#ifdef NN_ONEDNN

#include <oneapi/dnnl/dnnl.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/array.hpp"
#include "support/op.hpp"
#include "support/packing.hpp"
#include "support/scratch.hpp"
#include "support/weight_cache.hpp"

namespace nn_cpu {

const dnnl::engine& cpu_engine();

/// The stream of the calling thread.
const dnnl::stream& cpu_stream();

/// Attributes that leave working memory to the caller, so that one primitive serves several threads.
dnnl::primitive_attr user_scratchpad();

dnnl::memory::desc memory_desc(const ArrayDesc& desc);

/// The same shape, in whatever layout the primitive likes best.
dnnl::memory::desc any_layout(const ArrayDesc& desc);

/// The same for elements of another type.
dnnl::memory::desc any_layout(const ArrayDesc& desc, DType dtype);

dnnl::memory::data_type data_type(DType dtype);

/// Throws dnnl::error for an implementation of oneDNN that must not run: the loops called "ref", which are for tests
/// and up to a hundred times slower, and those on the "gemm:jit" of versions before 3.12, which move the stack pointer
/// to the heap, so that a signal overwrites what is there (issue 4845 of oneDNN).
void require_suitable(const char* implementation);

/// The description of a primitive. This is the only place that makes one: where oneDNN has none, or one that is not
/// suitable, it throws dnnl::error, and `by_onednn` takes another kernel.
template <class Desc, class... Arguments>
Desc described(const Arguments&... arguments) {
  const Desc desc(cpu_engine(), arguments...);
  require_suitable(desc.impl_info_str());
  return desc;
}

/// What `factory` makes, or nullptr where that needs a primitive that does not exist. Without products of bfloat16 it
/// gets float32 copies of such arrays; those from `first_output` on are results.
std::unique_ptr<Op> by_onednn(const Signature& signature, Factory factory, size_t first_output);

/// A copy from one layout to another, by Packing where it can, else by a reorder of oneDNN.
class Relocation {
 public:
  Relocation(const dnnl::memory::desc& from, const dnnl::memory::desc& to);
  void run(const void* from, void* to) const;

 private:
  dnnl::memory::desc from_, to_;
  std::optional<Packing> packing_;
  std::optional<dnnl::reorder> reorder_;
};

/// A text that is equal for equal layouts; empty for those that are not blocks of strides.
std::string layout_name(const dnnl::memory::desc& desc);

/// A primitive that runs on the arrays of an operation.
class Primitive {
 public:
  Primitive() = default;
  Primitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad);

  /// Array `position` of the operation is argument `dnnl_arg`; the primitive wants it as `inner`. If the array has
  /// another layout it is reordered before an input is read or after an output is written. `cached`: these are weights,
  /// which fill one piece of memory, and their reordered copy is kept for as long as they do not change.
  void input(int dnnl_arg, int position, const dnnl::memory::desc& array, const dnnl::memory::desc& inner,
             bool cached = false);
  void output(int dnnl_arg, int position, const dnnl::memory::desc& array, const dnnl::memory::desc& inner);

  void run(void* const* arrays) const;

  /// The name that oneDNN has for it.
  std::string implementation() const;

  /// Positions of the arrays of which it keeps reordered copies.
  std::vector<size_t> weights() const;

 private:
  struct Operand {
    int dnnl_arg, position;
    dnnl::memory::desc array, inner;
    std::shared_ptr<const Relocation> relocation;  // between the array and `inner`, where they differ
    bool is_output;
    std::shared_ptr<const WeightCache> cache;
  };
  void add(int dnnl_arg, int position, const dnnl::memory::desc& array, const dnnl::memory::desc& inner,
           bool is_output);

  dnnl::primitive primitive_;
  dnnl::memory::desc scratchpad_;
  std::vector<Operand> operands_;
  size_t bytes_ = 0;
};

}  // namespace nn_cpu

#endif
