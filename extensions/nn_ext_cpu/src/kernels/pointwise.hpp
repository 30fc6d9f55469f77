// Element-wise programs: straight-line code of block functions (vector/pointwise.cpp) over registers, run block by
// block so that what flows between instructions stays in the first-level cache. One function is a program of one
// instruction; a fused chain is a longer one.
//
// Registers 0 .. A-1 are the arrays of the call, further ones are temporaries. Arrays may be strided or broadcast; an
// array that is written and has fewer elements than the iteration space receives the sum over what is broadcast, which
// is what gradients of broadcast inputs need. Sums are kept in double. Arrays of bfloat16 are widened block by block
// when they are read, and what is written to one is rounded before anybody reads it again, as if it had been in memory.
// Time O(elements * instructions).
#pragma once

#include <string>
#include <vector>

#include "kernels/tiled.hpp"
#include "support/op.hpp"
#include "support/vector.hpp"
#include "support/walk.hpp"

namespace nn_cpu {

/// On arrays of T: float, beside which bfloat16 may stand, or double.
template <class T>
class PointwiseOf : public Op, public Partial {
 public:
  /// Setting `program`: a list of InstructionSpec.
  explicit PointwiseOf(const Signature& signature);

  void run(void* const* arrays) const override;
  bool independent_of_threads() const override { return reduced_.empty(); }
  double cost() const override { return cost_; }
  std::vector<Region> regions() const override;
  void run_part(void* const* arrays, int64_t begin, int64_t end) const override;

  struct Instruction {
    int function;
    int destination;
    int sources[3];
    T parameters[2];
    bool rounds = false;  // the result goes to an array of bfloat16, and a later instruction reads it there
  };
  const std::vector<std::optional<ArrayDesc>>& arrays() const { return arrays_; }
  const std::vector<Instruction>& code() const { return code_; }
  int n_temporaries() const { return static_cast<int>(registers_.size() - arrays_.size()); }
  /// Number of elements of the iteration space.
  int64_t size() const { return walk_->size; }
  /// Whether every array is met element after element in memory, or has a single one.
  bool is_flat() const;
  bool is_constant(size_t k) const { return registers_[k].access == Access::kConstant; }
  bool is_narrow(size_t k) const { return k < arrays_.size() && arrays_[k] && arrays_[k]->dtype == DType::kBFloat16; }
  bool uses(size_t k) const { return registers_[k].access != Access::kNone; }

 private:
  enum class Access {
    kNone,
    kDense,
    kConstant,
    kStrided,
    kFollowed,
    kReduced
  };  // kFollowed: strided, and read in place line by line
  struct Register {
    Access access = Access::kNone;
    bool read = false;     // an instruction reads it before writing it
    bool written = false;  // an instruction writes it
  };

  void compile(const std::vector<InstructionSpec>& program);
  void cut_at_lines();
  void cut_at_sums();
  bool is_row(size_t k) const;
  int64_t offset_of(size_t k, int64_t position) const;
  void run_range(void* const* arrays, int64_t begin, int64_t end, T* buffers, double* const* sums) const;
  void load(size_t k, const void* array, int64_t start, int64_t n, T* block) const;
  void store(size_t k, const T* block, int64_t start, int64_t n, void* array) const;
  void add_up(size_t k, const T* block, int64_t start, int64_t n, double* sums) const;
  void finish_sums(void* const* arrays, double* sums, int64_t teams) const;

  std::vector<std::optional<ArrayDesc>> arrays_;
  std::vector<Instruction> code_;
  std::vector<Register> registers_;
  std::vector<int> buffered_;  // registers that need a block of memory of their own
  std::vector<int> reduced_;   // arrays that receive sums
  std::optional<Walk> walk_;
  std::vector<int> walk_index_;  // position of each array in walk_
  int64_t block_ = 0;
  int64_t line_ = 0;    // elements of a line that blocks do not cross; 0: they may
  int64_t align_ = 64;  // threads begin at its multiples
  int64_t sum_elements_ = 0;
  int64_t grain_ = 0;
  double cost_ = 0;
};

using Pointwise = PointwiseOf<float>;

}  // namespace nn_cpu
