// Weights between the user's layout and the blocked ones that primitives like.
#pragma once

#ifdef NN_ONEDNN

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <vector>

namespace nn_cpu {

/// Packs float32 weights into blocks of float32 or bfloat16, or unpacks blocks of float32. oneDNN's own reorders do
/// this too, at a quarter of the speed. O(elements).
class Packing {
 public:
  /// Nothing where the layouts are others, or blocks have to be filled up with zeros.
  static std::optional<Packing> between(const dnnl::memory::desc& from, const dnnl::memory::desc& to);

  void run(const void* from, void* to) const;

 private:
  Packing(const dnnl::memory::desc& plain, const dnnl::memory::desc& blocked, bool packs);
  void pack(const void* from, void* to) const;
  void unpack(const void* from, void* to) const;

  /// The beginning of a block: in the user's layout, and in that of blocks.
  struct Start {
    int64_t plain, blocked;
  };

  bool packs_, narrow_ = false;
  int64_t run_ = 0;            // elements that one table covers: a block, or a row of the user's layout within a block
  std::vector<Start> starts_;  // of blocks, or of rows
  std::vector<int32_t> places_;  // places of the elements of a run in the other layout, from its start
};

}  // namespace nn_cpu

#endif
