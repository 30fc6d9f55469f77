// A transposition and the element-wise work beside it, tile by tile: what one writes is still in the cache when the
// other reads it.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "support/op.hpp"

namespace nn_cpu {

/// Element-wise work that can run on some of its elements. An operation that is no such work now has no regions.
class Partial {
 public:
  virtual ~Partial() = default;

  /// The memory of an array of run(), all of whose elements it meets in order, or a single one.
  struct Region {
    size_t array;
    int64_t bytes;
    bool written;
  };
  virtual std::vector<Region> regions() const = 0;
  virtual void run_part(void* const* arrays, int64_t begin, int64_t end) const = 0;
};

/// Copies of matrices that lie one after another, each transposed: target (rows, columns) from source (columns, rows).
class Transposition {
 public:
  virtual ~Transposition() = default;

  struct Matrices {
    int64_t count, rows, columns, item_bytes;
    size_t source, target;                 // arrays of run()
    int64_t source_offset, target_offset;  // bytes
  };
  /// Nothing where it copies something else.
  virtual std::optional<Matrices> matrices() const = 0;

  /// Transposes some rows and columns of one matrix; the distances are those of lines, in elements.
  virtual void run_tile(const void* source, int64_t source_line, void* target, int64_t target_line, int64_t rows,
                        int64_t columns) const = 0;
};

/// An operation and its arrays.
struct BoundOp {
  std::shared_ptr<const Op> op;
  std::vector<void*> arrays;
};

/// Two operations that follow each other as one, and its arrays, or nothing. One of them is a Transposition, which
/// reads what the other writes, or the reverse. On other arrays it computes the same, if their memory is as far apart
/// as that of these.
std::optional<std::pair<std::unique_ptr<Op>, std::vector<void*>>> tiled(const BoundOp& first, const BoundOp& second);

}  // namespace nn_cpu
