#include "kernels/fusion.hpp"

#include <algorithm>
#include <map>

#include "support/bfloat16.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"

namespace nn_cpu {
namespace {

constexpr int kMaxLocations = 96;
constexpr int64_t kCacheElements = 6144;  // 24 KB: what blocks of all locations may take together

/// An instruction on locations: arrays come first, working blocks after them.
struct Step {
  int function;
  int destination;
  int sources[3];
  float parameters[2];
  bool rounds = false;  // the result counts as an element of an array of bfloat16, and a later step reads it
};

/// Gives every value a place: the array that it is the last to be written to, or a block that is free again after its
/// last use.
class Allocator {
 public:
  explicit Allocator(const std::vector<BoundPointwise>& members) {
    for (size_t k = 0; k < members.size(); ++k) append(members[k], k);
    find_uses();
    place();
  }

  /// An array of bfloat16 has a block of float32 that stands for it; it is `read` if a step sees what it held before.
  struct Array {
    void* pointer;
    bool is_narrow;
    bool read = false, written = false;
  };

  std::vector<Step> steps;
  std::vector<Array> arrays;     // locations 0 .. arrays.size() - 1
  std::vector<Array> constants;  // the next ones: arrays of one element
  int n_blocks = 0;              // the last ones

 private:
  /// A location that instructions read and write before places are given: array pointers, constants, or temporaries of
  /// a member.
  struct Name {
    enum Kind { kArray, kConstant, kTemporary } kind;
    const void* pointer;
    size_t member;
    int reg;
    bool is_narrow;

    bool operator<(const Name& other) const {
      return std::tie(kind, pointer, member, reg) < std::tie(other.kind, other.pointer, other.member, other.reg);
    }
  };
  struct Draft {
    Step step;
    Name destination;
    std::vector<Name> sources;
    std::vector<int> producers;  // the draft that made each source, or -1: it was in memory
    int last_use = -1;
    bool lasts = false;  // its value is what the array holds in the end
  };

  void append(const BoundPointwise& member, size_t number) {
    const auto name = [&](int reg) -> Name {
      if (reg >= static_cast<int>(member.op->arrays().size())) return {Name::kTemporary, nullptr, number, reg, false};
      return {member.op->is_constant(reg) ? Name::kConstant : Name::kArray, member.arrays[reg], 0, 0,
              member.op->is_narrow(reg)};
    };
    const BlockFunction<float>* functions = vectors().pointwise().functions;
    for (const Pointwise::Instruction& instruction : member.op->code()) {
      Draft draft{{instruction.function, 0, {}, {instruction.parameters[0], instruction.parameters[1]}, false},
                  name(instruction.destination),
                  {},
                  {}};
      for (int i = 0; i < functions[instruction.function].arity; ++i)
        draft.sources.push_back(name(instruction.sources[i]));
      drafts_.push_back(draft);
    }
  }

  void find_uses() {
    std::map<Name, int> latest;
    for (size_t k = 0; k < drafts_.size(); ++k) {
      for (const Name& source : drafts_[k].sources) {
        const auto found = latest.find(source);
        drafts_[k].producers.push_back(found == latest.end() ? -1 : found->second);
        if (found != latest.end()) drafts_[found->second].last_use = static_cast<int>(k);
      }
      latest[drafts_[k].destination] = static_cast<int>(k);
    }
    for (const auto& [name, draft] : latest) drafts_[draft].lasts = name.kind == Name::kArray;
  }

  void place() {
    std::map<const void*, int> array_places, constant_places;
    const auto number = [](auto& places, std::vector<Array>& list, const Name& name) {
      const auto [found, fresh] = places.emplace(name.pointer, static_cast<int>(list.size()));
      if (fresh) list.push_back({const_cast<void*>(name.pointer), name.is_narrow});
      return found->second;
    };
    std::vector<int> free_blocks, blocks(drafts_.size(), -1);
    // places are numbered within their kind first: arrays from 0, constants from kConstants, blocks from kBlocks
    constexpr int kConstants = 10'000, kBlocks = 20'000;
    for (size_t k = 0; k < drafts_.size(); ++k) {
      Draft& draft = drafts_[k];
      if (!draft.lasts && draft.last_use < 0) continue;  // overwritten before anybody reads it
      for (size_t i = 0; i < draft.sources.size(); ++i) {
        const int producer = draft.producers[i];
        const Name& source = draft.sources[i];
        if (producer >= 0 && !drafts_[producer].lasts) {
          draft.step.sources[i] = kBlocks + blocks[producer];
        } else if (source.kind == Name::kConstant) {
          draft.step.sources[i] = kConstants + number(constant_places, constants, source);
        } else {
          const int place = draft.step.sources[i] = number(array_places, arrays, source);
          arrays[place].read |= producer < 0;
        }
      }
      for (size_t i = 0; i < draft.sources.size(); ++i) {
        const int producer = draft.producers[i];
        if (producer >= 0 && !drafts_[producer].lasts && drafts_[producer].last_use == static_cast<int>(k) &&
            blocks[producer] >= 0 &&
            std::find(free_blocks.begin(), free_blocks.end(), blocks[producer]) == free_blocks.end()) {
          free_blocks.push_back(blocks[producer]);
        }
      }
      if (draft.lasts) {
        draft.step.destination = number(array_places, arrays, draft.destination);
        arrays[draft.step.destination].written = true;
      } else {
        if (free_blocks.empty()) free_blocks.push_back(n_blocks++);
        blocks[k] = free_blocks.back();
        free_blocks.pop_back();
        draft.step.destination = kBlocks + blocks[k];
      }
      draft.step.rounds = draft.destination.is_narrow && draft.last_use >= 0;
      steps.push_back(draft.step);
    }
    const int n_arrays = static_cast<int>(arrays.size()), n_constants = static_cast<int>(constants.size());
    const auto final_place = [&](int& location) {
      if (location >= kBlocks) {
        location += n_arrays + n_constants - kBlocks;
      } else if (location >= kConstants) {
        location += n_arrays - kConstants;
      }
    };
    for (Step& step : steps) {
      final_place(step.destination);
      for (int& source : step.sources) final_place(source);
    }
  }

  std::vector<Draft> drafts_;
};

class Fused : public Op, public Partial {
 public:
  explicit Fused(const std::vector<BoundPointwise>& members) : plan_(members), size_(members.front().op->size()) {
    double per_element = 0;
    for (const Step& step : plan_.steps) per_element += vectors().pointwise().functions[step.function].cost;
    cost_ = 30 + per_element * static_cast<double>(size_);
    grain_ = std::max<int64_t>(1, static_cast<int64_t>(10000.0 / std::max(per_element, 0.01)));
    for (const Allocator::Array& array : plan_.arrays) n_narrow_ += array.is_narrow;
    const auto locations = static_cast<int64_t>(plan_.arrays.size() + plan_.constants.size()) + plan_.n_blocks;
    block_ = std::clamp<int64_t>(kCacheElements / locations / 64 * 64, 256, 1024);
  }

  bool fits() const { return plan_.arrays.size() + plan_.constants.size() + plan_.n_blocks <= kMaxLocations; }

  /// The arguments of run(): arrays, then constants.
  std::vector<void*> pointers() const {
    std::vector<void*> all;
    for (const Allocator::Array& array : plan_.arrays) all.push_back(array.pointer);
    for (const Allocator::Array& constant : plan_.constants) all.push_back(constant.pointer);
    return all;
  }

  void run(void* const* arrays) const override {
    const int64_t n_buffers = this->n_buffers();
    const int64_t teams = std::min<int64_t>(num_threads(), size_ / grain_ + 1);
    Scratch scratch(Scratch::bytes<float>(teams * n_buffers * block_));
    auto* buffers = scratch.take<float>(teams * n_buffers * block_);
    parallel_for(
        size_, grain_,
        [&](int64_t begin, int64_t end, int thread) {
          run_range(arrays, begin, end, buffers + thread * n_buffers * block_);
        },
        64);
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return cost_; }

  std::vector<Region> regions() const override {
    std::vector<Region> regions;
    for (const Allocator::Array& array : plan_.arrays) {
      regions.push_back({regions.size(), size_ * (array.is_narrow ? 2 : 4), array.written});
    }
    for (const Allocator::Array& constant : plan_.constants) {
      regions.push_back({regions.size(), constant.is_narrow ? 2 : 4, false});
    }
    return regions;
  }

  void run_part(void* const* arrays, int64_t begin, int64_t end) const override {
    Scratch scratch(Scratch::bytes<float>(n_buffers() * block_));
    run_range(arrays, begin, end, scratch.take<float>(n_buffers() * block_));
  }

 private:
  /// Blocks of working memory that a thread needs.
  int64_t n_buffers() const { return static_cast<int64_t>(plan_.constants.size()) + plan_.n_blocks + n_narrow_; }

  void run_range(void* const* arrays, int64_t begin, int64_t end, float* buffers) const {
    const BlockFunction<float>* functions = vectors().pointwise().functions;
    float* at[kMaxLocations];
    const size_t n_arrays = plan_.arrays.size(), n_constants = plan_.constants.size();
    for (size_t k = 0; k < n_constants + plan_.n_blocks; ++k) at[n_arrays + k] = buffers + k * block_;
    for (size_t k = 0; k < n_constants; ++k) {
      const void* pointer = arrays[n_arrays + k];
      std::fill_n(at[n_arrays + k], block_,
                  plan_.constants[k].is_narrow ? to_float(*static_cast<const Bf16*>(pointer))
                                               : *static_cast<const float*>(pointer));
    }
    float* next = buffers + (n_constants + plan_.n_blocks) * block_;
    for (size_t k = 0; k < n_arrays; ++k) {
      if (!plan_.arrays[k].is_narrow) continue;
      at[k] = next;
      next += block_;
    }
    for (int64_t start = begin; start < end; start += block_) {
      const int64_t n = std::min(block_, end - start);
      for (size_t k = 0; k < n_arrays; ++k) {
        const Allocator::Array& array = plan_.arrays[k];
        if (!array.is_narrow) {
          at[k] = static_cast<float*>(arrays[k]) + start;
        } else if (array.read) {
          vectors().widen(static_cast<const Bf16*>(arrays[k]) + start, n, at[k]);
        }
      }
      for (const Step& step : plan_.steps) {
        const float* in[3] = {at[step.sources[0]], at[step.sources[1]], at[step.sources[2]]};
        functions[step.function].run(n, in, at[step.destination], step.parameters);
        if (step.rounds) vectors().round(n, at[step.destination]);
      }
      for (size_t k = 0; k < n_arrays; ++k) {
        const Allocator::Array& array = plan_.arrays[k];
        if (array.is_narrow && array.written) vectors().narrow(at[k], n, static_cast<Bf16*>(arrays[k]) + start);
      }
    }
  }

  Allocator plan_;
  int64_t size_, block_, grain_;
  int64_t n_narrow_ = 0;
  double cost_;
};

/// Whether two pieces of memory share some bytes without being the same piece.
bool overlap_in_part(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
  const auto *first = static_cast<const char*>(a), *second = static_cast<const char*>(b);
  const bool same = first == second && a_bytes == b_bytes;
  return !same && first < second + b_bytes && second < first + a_bytes;
}

int64_t bytes_of(const ArrayDesc& array) { return array.size() * item_size(array.dtype); }

}  // namespace

bool FusionGroup::add(const BoundPointwise& member) {
  if (!member.op->is_flat() || (!members_.empty() && member.op->size() != members_.front().op->size())) return false;
  std::vector<Piece> pieces = members_.empty() ? std::vector<Piece>() : pieces_;
  for (size_t i = 0; i < member.op->arrays().size(); ++i) {
    if (!member.op->uses(i)) continue;
    const Piece piece{member.arrays[i], bytes_of(*member.op->arrays()[i])};
    if (std::find(pieces.begin(), pieces.end(), piece) != pieces.end()) continue;
    for (const Piece& other : pieces) {
      if (overlap_in_part(piece.first, piece.second, other.first, other.second)) return false;
    }
    pieces.push_back(piece);
  }
  members_.push_back(member);
  // a place in memory and a block for each array, and a block for each temporary, are more than a plan takes
  const int temporaries =
      members_.size() > 1 ? std::max(temporaries_, member.op->n_temporaries()) : member.op->n_temporaries();
  const bool surely_fits = 2 * pieces.size() + static_cast<size_t>(temporaries) < kMaxLocations;
  if (members_.size() > 1 && !surely_fits && !Fused(members_).fits()) {
    members_.pop_back();
    return false;
  }
  pieces_ = std::move(pieces);
  temporaries_ = temporaries;
  return true;
}

std::pair<std::unique_ptr<Op>, std::vector<void*>> FusionGroup::finish() {
  auto fused = std::make_unique<Fused>(members_);
  std::vector<void*> pointers = fused->pointers();
  members_.clear();
  return {std::move(fused), std::move(pointers)};
}

}  // namespace nn_cpu
