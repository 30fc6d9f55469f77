#include "kernels/pointwise.hpp"

#include <algorithm>
#include <cstring>
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

/// Index of a block function in the tables (the same in all of them).
int find_function(const std::string& name) {
  static const auto index = [] {
    std::unordered_map<std::string, int> map;
    const BlockTable table = vectors().pointwise();
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

float element(const void* array, bool is_narrow) {
  return is_narrow ? to_float(*static_cast<const Bf16*>(array)) : *static_cast<const float*>(array);
}

void set_element(void* array, int64_t place, float x, bool is_narrow) {
  if (is_narrow) {
    static_cast<Bf16*>(array)[place] = to_bfloat16(x);
  } else {
    static_cast<float*>(array)[place] = x;
  }
}

}  // namespace

Pointwise::Pointwise(const Signature& signature) : arrays_(signature.arrays), walk_index_(signature.arrays.size(), -1) {
  compile(signature.args.get<std::vector<InstructionSpec>>("program"));
  const Dims shape = common_shape(arrays_);
  std::vector<Dims> strides;
  size_t leader = 0;
  for (size_t k = 0; k < arrays_.size(); ++k) {
    if (registers_[k].access == Access::kNone) continue;
    signature.floating(k);
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
void Pointwise::cut_at_lines() {
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
void Pointwise::cut_at_sums() {
  const int64_t line = walk_->shape.empty() ? 0 : walk_->shape.back();
  const bool sums_lines = std::any_of(reduced_.begin(), reduced_.end(), [this](int k) {
    return walk_->strides[walk_index_[static_cast<size_t>(k)]].back() == 0;
  });
  if (!sums_lines || line_ > 0 || line == 0) return;
  if (line > kBlock) {
    line_ = line;
  } else {
    align_ = line;
    block_ = kBlock / line * line;
  }
}

bool Pointwise::is_flat() const {
  return std::all_of(registers_.begin(), registers_.begin() + static_cast<int64_t>(arrays_.size()),
                     [](const Register& reg) {
                       return reg.access == Access::kNone || reg.access == Access::kDense ||
                              (reg.access == Access::kConstant && !reg.written);
                     });
}

void Pointwise::compile(const std::vector<InstructionSpec>& program) {
  size_t n_registers = arrays_.size();
  for (const InstructionSpec& spec : program) n_registers = std::max<size_t>(n_registers, spec.destination + 1);
  NN_CHECK(n_registers <= kMaxRegisters,
           "program must use at most " << kMaxRegisters << " registers, got " << n_registers);
  registers_.resize(n_registers);
  const BlockTable table = vectors().pointwise();
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
    const BlockFunction& function = table.functions[instruction.function];
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
    for (size_t i = 0; i < spec.parameters.size(); ++i)
      instruction.parameters[i] = static_cast<float>(spec.parameters[i]);
    use(spec.destination);
    registers_[spec.destination].written = true;
    code_.push_back(instruction);
    per_element += function.cost;
  }
  const double elements = static_cast<double>(count(common_shape(arrays_)));
  cost_ = 30 + elements * per_element;
  grain_ = std::max<int64_t>(1, static_cast<int64_t>(10000.0 / std::max(per_element, 0.01)));
}

void Pointwise::run(void* const* arrays) const {
  const int64_t n = walk_->size;
  const int64_t teams = std::min<int64_t>(num_threads(), n / grain_ + 1);
  const int64_t buffer_elements = static_cast<int64_t>(buffered_.size()) * kBlock;
  if (buffered_.empty()) {
    parallel_for(
        n, grain_, [&](int64_t begin, int64_t end, int) { run_range(arrays, begin, end, nullptr, nullptr); }, 64);
    return;
  }
  Scratch scratch(Scratch::bytes<float>(buffer_elements * teams) + Scratch::bytes<double>(sum_elements_ * teams));
  float* buffers = scratch.take<float>(buffer_elements * teams);
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

void Pointwise::run_range(void* const* arrays, int64_t begin, int64_t end, float* buffers, double* const* sums) const {
  const BlockFunction* functions = vectors().pointwise().functions;
  float* at[kMaxRegisters];
  for (size_t i = 0; i < buffered_.size(); ++i) at[buffered_[i]] = buffers + i * kBlock;
  const int n_arrays = static_cast<int>(arrays_.size());
  for (int k = 0; k < n_arrays; ++k) {
    if (registers_[k].access == Access::kConstant) std::fill_n(at[k], kBlock, element(arrays[k], is_narrow(k)));
  }
  const float* filled[kMaxRegisters] = {};
  for (int64_t start = begin, n = 0; start < end; start += n) {
    n = std::min(block_, end - start);
    if (line_ > 0) {
      const int64_t place = start % line_;
      n = std::min({n, line_ - place, block_ - place % block_});
    }
    for (int k = 0; k < n_arrays; ++k) {
      const Register& reg = registers_[k];
      if (reg.access == Access::kDense && !is_narrow(k)) {
        at[k] = static_cast<float*>(arrays[k]) + start;
      } else if (reg.access == Access::kFollowed) {
        const float* first = static_cast<const float*>(arrays[k]) + offset_of(k, start);
        if (walk_->strides[walk_index_[k]].back() == 1) {
          at[k] = const_cast<float*>(first);  // nobody writes it
        } else if (filled[k] != first) {
          std::fill_n(at[k], block_, *first);
          filled[k] = first;
        }
      } else if (reg.read && (reg.access == Access::kDense || reg.access == Access::kStrided)) {
        load(k, arrays[k], start, n, at[k]);
      }
    }
    for (const Instruction& step : code_) {
      const float* in[3] = {at[step.sources[0]], at[step.sources[1]], at[step.sources[2]]};
      functions[step.function].run(n, in, at[step.destination], step.parameters);
      if (step.rounds) vectors().round(n, at[step.destination]);
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
int64_t Pointwise::offset_of(size_t k, int64_t position) const {
  const Dims& strides = walk_->strides[walk_index_[k]];
  int64_t offset = 0;
  for (size_t axis = walk_->shape.size(); axis-- > 0; position /= walk_->shape[axis])
    offset += position % walk_->shape[axis] * strides[axis];
  return offset;
}

void Pointwise::load(size_t k, const void* array, int64_t start, int64_t n, float* block) const {
  const Dims& strides = walk_->strides[walk_index_[k]];
  if (!is_narrow(k)) {
    gather(walk_->shape, strides, static_cast<const float*>(array), start, n, block);
    return;
  }
  const auto* x = static_cast<const Bf16*>(array);
  if (registers_[k].access == Access::kDense) {
    vectors().widen(x + start, n, block);
    return;
  }
  Bf16 narrow[kBlock];
  gather(walk_->shape, strides, x, start, n, narrow);
  vectors().widen(narrow, n, block);
}

void Pointwise::store(size_t k, const float* block, int64_t start, int64_t n, void* array) const {
  const Dims& strides = walk_->strides[walk_index_[k]];
  if (!is_narrow(k)) {
    scatter(walk_->shape, strides, block, start, n, static_cast<float*>(array));
    return;
  }
  auto* y = static_cast<Bf16*>(array);
  if (registers_[k].access == Access::kDense) {
    vectors().narrow(block, n, y + start);
    return;
  }
  Bf16 narrow[kBlock];
  vectors().narrow(block, n, narrow);
  scatter(walk_->shape, strides, narrow, start, n, y);
}

void Pointwise::add_up(size_t k, const float* block, int64_t start, int64_t n, double* sums) const {
  const Dims& strides = walk_->strides[walk_index_[k]];
  const VectorTable& table = vectors();
  const int64_t step = strides.back();
  for_each_run(walk_->shape, strides, start, n, [&](int64_t offset, int64_t position, int64_t length) {
    const float* values = block + position;
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

void Pointwise::finish_sums(void* const* arrays, double* sums, int64_t teams) const {
  int64_t first = 0;
  for (int k : reduced_) {
    for (int64_t i = 0; i < arrays_[k]->size(); ++i) {
      double total = 0;
      for (int64_t team = 0; team < teams; ++team) total += sums[team * sum_elements_ + first + i];
      set_element(arrays[k], i, static_cast<float>(total), is_narrow(k));
    }
    first += arrays_[k]->size();
  }
}

void register_pointwise(Registry& registry) { registry.add("pointwise", make<Pointwise>); }

}  // namespace nn_cpu
