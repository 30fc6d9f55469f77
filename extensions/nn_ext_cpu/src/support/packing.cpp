#include "support/packing.hpp"

#ifdef NN_ONEDNN

#include <algorithm>
#include <cstdint>

#include "support/parallel.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

using dnnl::memory;

constexpr int64_t kGrain = 16384;  // elements a thread

/// A blocked layout, axis by axis.
struct Blocks {
  memory::dims length;                     // of a block
  std::vector<std::vector<int64_t>> step;  // step[axis][i]: distance of element i of a block from its start

  explicit Blocks(const memory::desc& desc) : length(desc.get_ndims(), 1), step(desc.get_ndims()) {
    const memory::dims blocks = desc.get_inner_blks(), axes = desc.get_inner_idxs();
    for (const int64_t axis : axes) length[axis] = 1;
    for (size_t k = 0; k < axes.size(); ++k) length[axes[k]] *= blocks[k];
    for (size_t axis = 0; axis < length.size(); ++axis) {
      for (int64_t i = 0; i < length[axis]; ++i)
        step[axis].push_back(distance(static_cast<int64_t>(axis), i, blocks, axes));
    }
  }

 private:
  /// Inner blocks are stored outermost first; the last one of an axis is its fastest.
  static int64_t distance(int64_t axis, int64_t place, const memory::dims& blocks, const memory::dims& axes) {
    int64_t stride = 1, total = 0;
    for (size_t k = axes.size(); k-- > 0; stride *= blocks[k]) {
      if (axes[k] != axis) continue;
      total += place % blocks[k] * stride;
      place /= blocks[k];
    }
    return total;
  }
};

bool is_plain(const memory::desc& desc) {
  return desc.get_format_kind() == memory::format_kind::blocked && desc.get_inner_nblks() == 0 &&
         desc.get_data_type() == memory::data_type::f32;
}

bool is_blocked(const memory::desc& desc) {
  return desc.get_format_kind() == memory::format_kind::blocked && desc.get_inner_nblks() > 0 &&
         desc.get_padded_dims() == desc.get_dims() && desc.get_submemory_offset() == 0;
}

/// The first axis that falls into blocks.
size_t first_axis(const Blocks& blocks) {
  size_t axis = 0;
  while (blocks.length[axis] == 1) ++axis;
  return axis;
}

/// Whether the elements of the axes after `axis` are adjacent in memory.
bool has_rows(const memory::desc& plain, size_t axis) {
  const memory::dims shape = plain.get_dims(), strides = plain.get_strides();
  int64_t expected = 1;
  for (size_t k = shape.size(); k-- > axis + 1;) {
    if (strides[k] != expected) return false;
    expected *= shape[k];
  }
  return axis + 1 < shape.size();
}

/// Calls body(index) for all indices of `shape`, the last axis fastest.
template <class Body>
void for_each_index(const memory::dims& shape, const Body& body) {
  memory::dims index(shape.size(), 0);
  for (;;) {
    body(index);
    size_t axis = shape.size();
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

/// The same with the indices of `axis` in groups: a group runs fastest.
template <class Body>
void for_each_start(const memory::dims& shape, size_t axis, int64_t group, const Body& body) {
  memory::dims groups = shape;
  groups[axis] /= group;
  for_each_index(groups, [&](memory::dims index) {
    const int64_t first = index[axis] * group;
    for (int64_t i = 0; i < group; ++i) {
      index[axis] = first + i;
      body(index);
    }
  });
}

}  // namespace

std::optional<Packing> Packing::between(const memory::desc& from, const memory::desc& to) {
  constexpr int64_t kMost = INT32_MAX;  // places are counted in 32 bits
  if (static_cast<int64_t>(from.get_size()) > kMost || static_cast<int64_t>(to.get_size()) > kMost) return std::nullopt;
  const auto type = to.get_data_type();
  if (is_plain(from) && is_blocked(to) && (type == memory::data_type::f32 || type == memory::data_type::bf16))
    return Packing(from, to, true);
  if (is_plain(to) && is_blocked(from) && from.get_data_type() == memory::data_type::f32 &&
      has_rows(to, first_axis(Blocks(from)))) {
    return Packing(to, from, false);
  }
  return std::nullopt;
}

Packing::Packing(const memory::desc& plain, const memory::desc& blocked, bool packs)
    : packs_(packs), narrow_(blocked.get_data_type() == memory::data_type::bf16) {
  const memory::dims shape = plain.get_dims(), near = plain.get_strides(), far = blocked.get_strides();
  const Blocks blocks(blocked);
  const size_t axes = shape.size(), first = first_axis(blocks);
  // an axis falls into `count` pieces of `length` elements; a row takes whole axes where there are no blocks
  memory::dims count(axes), length = blocks.length;
  if (!packs) {
    for (size_t axis = first + 1; axis < axes; ++axis) {
      if (length[axis] == 1) length[axis] = shape[axis];
    }
    length[first] = 1;
  }
  for (size_t axis = 0; axis < axes; ++axis) count[axis] = shape[axis] / length[axis];
  // distance of element i of an axis from the first one, in blocks
  const auto place = [&](size_t axis, int64_t i) {
    return i / blocks.length[axis] * far[axis] + blocks.step[axis][i % blocks.length[axis]];
  };
  // rows of one block follow each other, so that it is read while it is in cache
  const auto in_order = [&](const memory::dims& index) {
    Start start{0, 0};
    for (size_t axis = 0; axis < axes; ++axis) {
      start.plain += index[axis] * length[axis] * near[axis];
      start.blocked += place(axis, index[axis] * length[axis]);
    }
    starts_.push_back(start);
  };
  for_each_start(count, first, packs ? 1 : blocks.length[first], in_order);
  for_each_index(length, [&](const memory::dims&) { ++run_; });
  places_.resize(run_);
  int64_t element = 0;
  for_each_index(length, [&](const memory::dims& index) {
    int64_t in_plain = 0, in_blocks = 0;
    for (size_t axis = 0; axis < axes; ++axis) {
      in_plain += index[axis] * near[axis];
      in_blocks += place(axis, index[axis]);
    }
    if (packs) places_[in_blocks] = static_cast<int32_t>(in_plain);
    if (!packs) places_[element++] = static_cast<int32_t>(in_blocks);
  });
}

void Packing::run(const void* from, void* to) const { packs_ ? pack(from, to) : unpack(from, to); }

void Packing::pack(const void* from, void* to) const {
  const auto* x = static_cast<const float*>(from);
  parallel_for(
      static_cast<int64_t>(starts_.size()), std::max<int64_t>(1, kGrain / run_), [&](int64_t begin, int64_t end, int) {
        for (int64_t k = begin; k < end; ++k) {
          const Start& start = starts_[k];
          if (narrow_) {
            vectors().narrow_places(x + start.plain, places_.data(), run_, static_cast<Bf16*>(to) + start.blocked);
          } else {
            vectors().copy_places(x + start.plain, places_.data(), run_, static_cast<float*>(to) + start.blocked);
          }
        }
      });
}

void Packing::unpack(const void* from, void* to) const {
  const auto* x = static_cast<const float*>(from);
  auto* y = static_cast<float*>(to);
  parallel_for(static_cast<int64_t>(starts_.size()), std::max<int64_t>(1, kGrain / run_),
               [&](int64_t begin, int64_t end, int) {
                 for (int64_t k = begin; k < end; ++k)
                   vectors().copy_places(x + starts_[k].blocked, places_.data(), run_, y + starts_[k].plain);
               });
}

}  // namespace nn_cpu

#endif
