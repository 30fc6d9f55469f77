#include "kernels/pointwise.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <unordered_map>

#include "kernels/register.hpp"
#include "support/bfloat16.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"

namespace nn_cpu {
namespace {

constexpr int kMaxRegisters = 64;
constexpr int64_t kBlock = 1024;
constexpr int64_t kShortLine = 128;  // elements

/// Index of a block function in the tables (the same in all of them).
int find_function(const std::string& name) {
  static const auto index = [] {
    std::unordered_map<std::string, int> map;
    const BlockTable<float> table = vectors().pointwise();
    for (int i = 0; i < table.count; ++i) map.emplace(table.functions[i].name, i);
    return map;
  }();
  const auto found = index.find(name);
  NN_CHECK(found != index.end(), "instruction must name an element-wise function, got " << name);
  return found->second;
}

Dims common_shape(const std::vector<std::optional<ArrayDesc>>& arrays) {
  Dims shape;
  for (const auto& desc : arrays) {
    if (!desc) continue;
    const Dims& other = desc->shape;
    if (other.size() > shape.size()) shape.insert(shape.begin(), other.size() - shape.size(), 1);
    for (size_t i = 0; i < other.size(); ++i) {
      int64_t& length = shape[shape.size() - 1 - i];
      if (length == 1) length = other[other.size() - 1 - i];
    }
  }
  return shape;
}

template <class T>
T element(const void* array, bool is_narrow) {
  return is_narrow ? to_float(*static_cast<const Bf16*>(array)) : *static_cast<const T*>(array);
}

template <class T>
void set_element(void* array, int64_t place, T x, bool is_narrow) {
  if (is_narrow) {
    static_cast<Bf16*>(array)[place] = to_bfloat16(static_cast<float>(x));
  } else {
    static_cast<T*>(array)[place] = x;
  }
}

// Between arrays of bfloat16 and blocks of float; double has no such arrays beside it.
void widen(const Bf16* x, int64_t n, float* y) { vectors().widen(x, n, y); }
void widen(const Bf16*, int64_t, double*) { throw std::logic_error("bfloat16 is widened to float"); }
void narrow(const float* x, int64_t n, Bf16* y) { vectors().narrow(x, n, y); }
void narrow(const double*, int64_t, Bf16*) { throw std::logic_error("bfloat16 is rounded from float"); }
void round_block(int64_t n, float* x) { vectors().round(n, x); }
void round_block(int64_t, double*) { throw std::logic_error("bfloat16 is rounded from float"); }

/// The description of array k, which must hold T, or bfloat16 beside float.
template <class T>
void check_dtype(const Signature& signature, size_t k) {
  if (std::is_same_v<T, double>) {
    signature.array(k, DType::kFloat64);
  } else {
    signature.floating(k);
  }
}

}  // namespace

template <class T>
PointwiseOf<T>::PointwiseOf(const Signature& signature)
    : arrays_(signature.arrays), walk_index_(signature.arrays.size(), -1) {
  compile(signature.args.get<std::vector<InstructionSpec>>("program"));
  const Dims shape = common_shape(arrays_);
  std::vector<Dims> strides;
  size_t leader = 0;
  for (size_t k = 0; k < arrays_.size(); ++k) {
    if (registers_[k].access == Access::kNone) continue;
    check_dtype<T>(signature, k);
    walk_index_[k] = static_cast<int>(strides.size());
    strides.push_back(broadcast_strides(*arrays_[k], shape));
    if (arrays_[k]->size() == count(shape)) leader = strides.size() - 1;  // the last one is an output
  }
  walk_.emplace(shape, strides, leader);
  for (size_t k = 0; k < arrays_.size(); ++k) {
    Register& reg = registers_[k];
    if (reg.access == Access::kNone) continue;
    if (reg.written && arrays_[k]->size() != walk_->size) {
      NN_CHECK(arrays_[k]->dense() && !reg.read, "array " << k << " must be dense to receive sums, got another layout");
      reg.access = Access::kReduced;
      reduced_.push_back(static_cast<int>(k));
      sum_elements_ += arrays_[k]->size();
    } else if (walk_->dense(walk_index_[k])) {
      reg.access = Access::kDense;
    } else {
      reg.access = walk_->constant(walk_index_[k]) ? Access::kConstant : Access::kStrided;
    }
  }
  for (size_t r = 0; r < registers_.size(); ++r) {
    const bool temporary = r >= arrays_.size();
    if (temporary ||
        (registers_[r].access != Access::kNone && (registers_[r].access != Access::kDense || is_narrow(r)))) {
      buffered_.push_back(static_cast<int>(r));
    }
  }
  block_ = buffered_.empty() && code_.size() == 1 ? walk_->size : kBlock;
  cut_at_lines();
  cut_at_sums();
}

/// Blocks do not cross the lines of the last axis if these are long and a broadcast array follows them: it is read in
/// place then.
template <class T>
void PointwiseOf<T>::cut_at_lines() {
  constexpr int64_t kShortest = 256;
  const int64_t line = walk_->shape.empty() ? 0 : walk_->shape.back();
  if (line < kShortest) return;
  for (size_t k = 0; k < arrays_.size(); ++k) {
    Register& reg = registers_[k];
    if (reg.access != Access::kStrided || reg.written || is_narrow(k)) continue;
    const int64_t step = walk_->strides[walk_index_[k]].back();
    if (step != 0 && step != 1) continue;
    reg.access = Access::kFollowed;
    line_ = line;
  }
  const int64_t pieces = (line_ + kBlock - 1) / kBlock;
  if (line_ > 0) block_ = (line_ + pieces - 1) / pieces;
}

/// Blocks hold whole lines of the last axis, or parts of one, if lines are summed: equal lines have equal sums then, at
/// whatever place of the array they are.
template <class T>
void PointwiseOf<T>::cut_at_sums() {
  const int64_t line = walk_->shape.empty() ? 0 : walk_->shape.back();
  const bool sums_lines = std::any_of(reduced_.begin(), reduced_.end(), [this](int k) {
    return walk_->strides[walk_index_[static_cast<size_t>(k)]].back() == 0;
  });
  const bool sums_columns = std::any_of(reduced_.begin(), reduced_.end(), [this](int k) { return is_row(k); });
  if ((!sums_lines && !sums_columns) || line_ > 0 || line == 0) return;
  if (line > kBlock) {
    line_ = line;
  } else {
    align_ = line;
    block_ = kBlock / line * line;
  }
}

/// Whether array k is a short row that all lines of the last axis are added to.
template <class T>
bool PointwiseOf<T>::is_row(size_t k) const {
  const Dims& strides = walk_->strides[walk_index_[k]];
  return strides.size() == 2 && strides[0] == 0 && strides[1] == 1 && walk_->shape[1] <= kMaxLanes;
}

template <class T>
bool PointwiseOf<T>::is_flat() const {
  return std::all_of(registers_.begin(), registers_.begin() + static_cast<int64_t>(arrays_.size()),
                     [](const Register& reg) {
                       return reg.access == Access::kNone || reg.access == Access::kDense ||
                              (reg.access == Access::kConstant && !reg.written);
                     });
}

template <class T>
void PointwiseOf<T>::compile(const std::vector<InstructionSpec>& program) {
  size_t n_registers = arrays_.size();
  for (const InstructionSpec& spec : program) n_registers = std::max<size_t>(n_registers, spec.destination + 1);
  NN_CHECK(n_registers <= kMaxRegisters,
           "program must use at most " << kMaxRegisters << " registers, got " << n_registers);
  registers_.resize(n_registers);
  const BlockTable<T> table = number_loops<T>().pointwise();
  double per_element = 0;
  const auto use = [this](int64_t r) {
    NN_CHECK(r >= 0 && r < static_cast<int64_t>(registers_.size()), "register must exist, got " << r);
    const bool array = r < static_cast<int64_t>(arrays_.size());
    NN_CHECK(!array || arrays_[r], "array " << r << " must be given, got none");
    if (array) registers_[r].access = Access::kDense;
  };
  for (const InstructionSpec& spec : program) {
    Instruction instruction{find_function(spec.function), static_cast<int>(spec.destination), {}, {}};
    for (const int64_t source : spec.sources) {
      for (Instruction& earlier : code_) earlier.rounds |= is_narrow(source) && earlier.destination == source;
    }
    const BlockFunction<T>& function = table.functions[instruction.function];
    NN_CHECK(static_cast<int>(spec.sources.size()) == function.arity &&
                 (spec.parameters.empty() ? 0 : static_cast<int>(spec.parameters.size())) == function.n_parameters,
             spec.function << " must have " << function.arity << " sources and " << function.n_parameters
                           << " parameters, got " << spec.sources.size() << " and " << spec.parameters.size());
    for (size_t i = 0; i < spec.sources.size(); ++i) {
      use(spec.sources[i]);
      Register& source = registers_[spec.sources[i]];
      if (!source.written) source.read = true;
      instruction.sources[i] = static_cast<int>(spec.sources[i]);
    }
    for (size_t i = 0; i < spec.parameters.size(); ++i) instruction.parameters[i] = static_cast<T>(spec.parameters[i]);
    use(spec.destination);
    registers_[spec.destination].written = true;
    code_.push_back(instruction);
    per_element += function.cost;
  }
  const double elements = static_cast<double>(count(common_shape(arrays_)));
  cost_ = 30 + elements * per_element;
  grain_ = std::max<int64_t>(1, static_cast<int64_t>(10000.0 / std::max(per_element, 0.01)));
}

template <class T>
void PointwiseOf<T>::run(void* const* arrays) const {
  const int64_t n = walk_->size;
  const int64_t teams = std::min<int64_t>(num_threads(), n / grain_ + 1);
  const int64_t buffer_elements = static_cast<int64_t>(buffered_.size()) * kBlock;
  if (buffered_.empty()) {
    parallel_for(
        n, grain_, [&](int64_t begin, int64_t end, int) { run_range(arrays, begin, end, nullptr, nullptr); }, 64);
    return;
  }
  Scratch scratch(Scratch::bytes<T>(buffer_elements * teams) + Scratch::bytes<double>(sum_elements_ * teams));
  T* buffers = scratch.take<T>(buffer_elements * teams);
  double* sums = scratch.take<double>(sum_elements_ * teams);
  std::fill_n(sums, sum_elements_ * teams, 0.0);
  parallel_for(
      n, grain_,
      [&](int64_t begin, int64_t end, int thread) {
        double* own[kMaxRegisters];
        double* next = sums + thread * sum_elements_;
        for (int k : reduced_) {
          own[k] = next;
          next += arrays_[k]->size();
        }
        run_range(arrays, begin, end, buffers + thread * buffer_elements, own);
      },
      align_);
  if (!reduced_.empty()) finish_sums(arrays, sums, teams);
}

template <class T>
std::vector<Partial::Region> PointwiseOf<T>::regions() const {
  std::vector<Region> regions;
  if (!is_flat()) return regions;
  for (size_t k = 0; k < arrays_.size(); ++k) {
    if (uses(k)) regions.push_back({k, arrays_[k]->size() * item_size(arrays_[k]->dtype), registers_[k].written});
  }
  return regions;
}

template <class T>
void PointwiseOf<T>::run_part(void* const* arrays, int64_t begin, int64_t end) const {
  const int64_t buffer_elements = static_cast<int64_t>(buffered_.size()) * kBlock;
  Scratch scratch(Scratch::bytes<T>(buffer_elements));
  run_range(arrays, begin, end, scratch.take<T>(buffer_elements), nullptr);
}

template <class T>
void PointwiseOf<T>::run_range(void* const* arrays, int64_t begin, int64_t end, T* buffers, double* const* sums) const {
  const BlockFunction<T>* functions = number_loops<T>().pointwise().functions;
  T* at[kMaxRegisters];
  for (size_t i = 0; i < buffered_.size(); ++i) at[buffered_[i]] = buffers + i * kBlock;
  const int n_arrays = static_cast<int>(arrays_.size());
  for (int k = 0; k < n_arrays; ++k) {
    if (registers_[k].access == Access::kConstant) std::fill_n(at[k], kBlock, element<T>(arrays[k], is_narrow(k)));
  }
  const T* filled[kMaxRegisters] = {};
  for (int64_t start = begin, n = 0; start < end; start += n) {
    n = std::min(block_, end - start);
    if (line_ > 0) {
      const int64_t place = start % line_;
      n = std::min({n, line_ - place, block_ - place % block_});
    }
    for (int k = 0; k < n_arrays; ++k) {
      const Register& reg = registers_[k];
      if (reg.access == Access::kDense && !is_narrow(k)) {
        at[k] = static_cast<T*>(arrays[k]) + start;
      } else if (reg.access == Access::kFollowed) {
        const T* first = static_cast<const T*>(arrays[k]) + offset_of(k, start);
        if (walk_->strides[walk_index_[k]].back() == 1) {
          at[k] = const_cast<T*>(first);  // nobody writes it
        } else if (filled[k] != first) {
          std::fill_n(at[k], block_, *first);
          filled[k] = first;
        }
      } else if (reg.read && (reg.access == Access::kDense || reg.access == Access::kStrided)) {
        load(k, arrays[k], start, n, at[k]);
      }
    }
    for (const Instruction& step : code_) {
      const T* in[3] = {at[step.sources[0]], at[step.sources[1]], at[step.sources[2]]};
      functions[step.function].run(n, in, at[step.destination], step.parameters);
      if (step.rounds) round_block(n, at[step.destination]);
    }
    for (int k = 0; k < n_arrays; ++k) {
      const Register& reg = registers_[k];
      if (!reg.written || (reg.access == Access::kDense && !is_narrow(k))) continue;
      if (reg.access == Access::kReduced) {
        add_up(k, at[k], start, n, sums[k]);
      } else {
        store(k, at[k], start, n, arrays[k]);
      }
    }
  }
}

/// Offset in array k of the element of the iteration space at `position`.
template <class T>
int64_t PointwiseOf<T>::offset_of(size_t k, int64_t position) const {
  const Dims& strides = walk_->strides[walk_index_[k]];
  int64_t offset = 0;
  for (size_t axis = walk_->shape.size(); axis-- > 0; position /= walk_->shape[axis])
    offset += position % walk_->shape[axis] * strides[axis];
  return offset;
}

template <class T>
void PointwiseOf<T>::load(size_t k, const void* array, int64_t start, int64_t n, T* block) const {
  const Dims& strides = walk_->strides[walk_index_[k]];
  if (!is_narrow(k)) {
    gather(walk_->shape, strides, static_cast<const T*>(array), start, n, block);
    return;
  }
  const auto* x = static_cast<const Bf16*>(array);
  if (registers_[k].access == Access::kDense) {
    widen(x + start, n, block);
    return;
  }
  Bf16 halves[kBlock];
  gather(walk_->shape, strides, x, start, n, halves);
  widen(halves, n, block);
}

template <class T>
void PointwiseOf<T>::store(size_t k, const T* block, int64_t start, int64_t n, void* array) const {
  const Dims& strides = walk_->strides[walk_index_[k]];
  if (!is_narrow(k)) {
    scatter(walk_->shape, strides, block, start, n, static_cast<T*>(array));
    return;
  }
  auto* y = static_cast<Bf16*>(array);
  if (registers_[k].access == Access::kDense) {
    narrow(block, n, y + start);
    return;
  }
  Bf16 halves[kBlock];
  narrow(block, n, halves);
  scatter(walk_->shape, strides, halves, start, n, y);
}

template <class T>
void PointwiseOf<T>::add_up(size_t k, const T* block, int64_t start, int64_t n, double* sums) const {
  const Dims& strides = walk_->strides[walk_index_[k]];
  const NumberLoops<T>& table = number_loops<T>();
  const int64_t step = strides.back(), line = walk_->shape.back();
  T some[kBlock];  // sums of short lines, all of which lie in the block
  if (align_ == line && line <= kShortLine && step == 0) {
    table.row_sums(block, n / line, line, 1.0, some);
    for_each_run(walk_->shape, strides, start, n,
                 [&](int64_t offset, int64_t position, int64_t) { sums[offset] += some[position / line]; });
    return;
  }
  // in deterministic mode as in a batch, whose samples have sums of their own
  if (align_ == line && is_row(k) && !deterministic()) {
    table.lane_sums(block, n / line, line, line, 1.0, some);
    table.add_to_double(some, sums, line);
    return;
  }
  for_each_run(walk_->shape, strides, start, n, [&](int64_t offset, int64_t position, int64_t length) {
    const T* values = block + position;
    double* total = sums + offset;
    if (step == 0) {
      *total += table.sum(values, length);
    } else if (step == 1) {
      table.add_to_double(values, total, length);
    } else {
      for (int64_t i = 0; i < length; ++i) total[i * step] += values[i];
    }
  });
}

template <class T>
void PointwiseOf<T>::finish_sums(void* const* arrays, double* sums, int64_t teams) const {
  int64_t first = 0;
  for (int k : reduced_) {
    for (int64_t i = 0; i < arrays_[k]->size(); ++i) {
      double total = 0;
      for (int64_t team = 0; team < teams; ++team) total += sums[team * sum_elements_ + first + i];
      set_element(arrays[k], i, static_cast<T>(total), is_narrow(k));
    }
    first += arrays_[k]->size();
  }
}

template class PointwiseOf<float>;
template class PointwiseOf<double>;

void register_pointwise(Registry& registry) { registry.add("pointwise", make_for_numbers<PointwiseOf>); }

}  // namespace nn_cpu
