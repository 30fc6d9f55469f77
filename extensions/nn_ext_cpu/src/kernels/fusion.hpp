// Runs of element-wise operations that are bound to their arrays, joined into one pass over memory.
//
// Block by block the instructions of all members run in order. What a later instruction overwrites never reaches
// memory: it lives in a block of working memory as long as it is read. So a plan whose intermediates share memory gets
// their traffic for free.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "kernels/pointwise.hpp"

namespace nn_cpu {

/// An element-wise operation and the arrays that it is bound to.
struct BoundPointwise {
  const Pointwise* op;
  void* const* arrays;
};

/// Collects neighbouring operations for as long as they can be joined.
class FusionGroup {
 public:
  /// Takes `member` in; false if it cannot follow the others: other sizes, strided arrays, or memory that overlaps in
  /// part.
  bool add(const BoundPointwise& member);

  size_t count() const { return members_.size(); }

  /// The joined operation and the arrays to run it on, each once; the group is empty afterwards. On other arrays it
  /// computes the same, if their memory is as far apart as that of these.
  std::pair<std::unique_ptr<Op>, std::vector<void*>> finish();

 private:
  using Piece = std::pair<const void*, int64_t>;  // memory and its bytes

  std::vector<BoundPointwise> members_;
  std::vector<Piece> pieces_;  // the memory of all members, each piece once
  int temporaries_ = 0;        // the most that a member has
};

}  // namespace nn_cpu
