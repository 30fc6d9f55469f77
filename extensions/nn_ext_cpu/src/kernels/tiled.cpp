#include "kernels/tiled.hpp"

#include <algorithm>

#include "support/parallel.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kTileElements = 16384;  // 64 KB of floats for each array
constexpr int64_t kLine = 16;             // floats of a line of the cache

struct Memory {
  const char* begin;
  int64_t bytes;

  bool operator==(const Memory& other) const { return begin == other.begin && bytes == other.bytes; }
  bool overlaps(const Memory& other) const { return begin < other.begin + other.bytes && other.begin < begin + bytes; }
};

Memory memory_of(const BoundOp& bound, const Partial::Region& region) {
  return {static_cast<const char*>(bound.arrays[region.array]), region.bytes};
}

/// Runs the element-wise work on a tile of the source before it is copied, or of the target after that.
class Tiled : public Op {
 public:
  Tiled(std::shared_ptr<const Op> copy, std::shared_ptr<const Op> work, size_t n_copied, bool work_first)
      : copy_(std::move(copy)),
        work_(std::move(work)),
        transposition_(dynamic_cast<const Transposition*>(copy_.get())),
        partial_(dynamic_cast<const Partial*>(work_.get())),
        matrices_(*transposition_->matrices()),
        n_copied_(n_copied),
        work_first_(work_first) {}

  void run(void* const* arrays) const override {
    const Transposition::Matrices& m = matrices_;
    // tiles are whole lines of what the element-wise work meets
    const int64_t lines = work_first_ ? m.columns : m.rows, line = work_first_ ? m.rows : m.columns;
    const int64_t height = std::max<int64_t>(1, kTileElements / line / kLine) * kLine;
    const int64_t tiles = (lines + height - 1) / height;
    const char* source = static_cast<const char*>(arrays[m.source]) + m.source_offset;
    char* target = static_cast<char*>(arrays[m.target]) + m.target_offset;
    parallel_for(m.count * tiles, std::max<int64_t>(1, 2 * kTileElements / (height * line)),
                 [&](int64_t begin, int64_t end, int) {
                   for (int64_t tile = begin; tile < end; ++tile) {
                     const int64_t start = tile % tiles * height, n = std::min(height, lines - start);
                     const int64_t matrix = tile / tiles * lines * line, first = matrix + start * line;
                     const char* from = source + (matrix + (work_first_ ? start * line : start)) * m.item_bytes;
                     char* to = target + (matrix + (work_first_ ? start : start * line)) * m.item_bytes;
                     if (work_first_) partial_->run_part(arrays + n_copied_, first, first + n * line);
                     transposition_->run_tile(from, m.rows, to, m.columns, work_first_ ? line : n,
                                              work_first_ ? n : line);
                     if (!work_first_) partial_->run_part(arrays + n_copied_, first, first + n * line);
                   }
                 });
  }

  bool independent_of_threads() const override { return true; }
  double cost() const override { return copy_->cost() + work_->cost(); }

 private:
  std::shared_ptr<const Op> copy_, work_;
  const Transposition* transposition_;
  const Partial* partial_;
  Transposition::Matrices matrices_;
  size_t n_copied_;
  bool work_first_;
};

/// Whether tiles can be worked on one after another. No tile may change what a later one reads.
bool can_tile(const BoundOp& copy, const BoundOp& work, bool work_first) {
  const auto* transposition = dynamic_cast<const Transposition*>(copy.op.get());
  const auto* partial = dynamic_cast<const Partial*>(work.op.get());
  if (transposition == nullptr || partial == nullptr) return false;
  const auto m = transposition->matrices();
  if (!m) return false;
  const int64_t bytes = m->count * m->rows * m->columns * m->item_bytes;
  const Memory source{static_cast<const char*>(copy.arrays[m->source]) + m->source_offset, bytes};
  const Memory target{static_cast<const char*>(copy.arrays[m->target]) + m->target_offset, bytes};
  if (source.overlaps(target)) return false;
  const Memory& shared = work_first ? source : target;
  bool meets = false;
  for (const Partial::Region& region : partial->regions()) {
    const Memory memory = memory_of(work, region);
    if (memory == shared) {
      meets |= region.written || !work_first;
    } else if (memory.overlaps(shared)) {
      return false;
    } else if (memory.overlaps(work_first ? target : source) && (work_first || region.written)) {
      return false;
    }
  }
  return meets;
}

}  // namespace

std::optional<std::pair<std::unique_ptr<Op>, std::vector<void*>>> tiled(const BoundOp& first, const BoundOp& second) {
  for (const bool work_first : {false, true}) {
    const BoundOp &copy = work_first ? second : first, &work = work_first ? first : second;
    if (!can_tile(copy, work, work_first)) continue;
    std::vector<void*> arrays = copy.arrays;
    arrays.insert(arrays.end(), work.arrays.begin(), work.arrays.end());
    return {{std::make_unique<Tiled>(copy.op, work.op, copy.arrays.size(), work_first), std::move(arrays)}};
  }
  return std::nullopt;
}

}  // namespace nn_cpu
