// Operations joined into one, and steps joined into one, with neighbouring element-wise work in a single pass.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <numeric>

#include "bindings/types.hpp"
#include "kernels/fusion.hpp"
#include "kernels/tiled.hpp"
#include "support/check.hpp"
#include "support/scratch.hpp"

namespace py = pybind11;

namespace nn_cpu {
namespace {

/// Joins runs of element-wise operations in `work`.
std::vector<Work> fused(const std::vector<Work>& work) {
  std::vector<Work> result;
  FusionGroup group;
  const auto flush = [&](size_t end) {
    if (group.count() > 1) {
      auto joined = std::make_shared<PreparedOp>();
      auto [op, pointers] = group.finish();
      joined->op = std::move(op);
      result.push_back({std::move(joined), std::move(pointers)});
    } else if (group.count() == 1) {
      result.push_back(work[end - 1]);
    }
    group = FusionGroup();
  };
  for (size_t k = 0; k < work.size(); ++k) {
    const auto* op = dynamic_cast<const Pointwise*>(work[k].prepared->op.get());
    const BoundPointwise member{op, work[k].pointers.data()};
    if (op != nullptr && group.add(member)) continue;
    flush(k);
    if (op == nullptr || !group.add(member)) result.push_back(work[k]);
  }
  flush(work.size());
  return result;
}

/// Joins transpositions in `work` with element-wise operations before or after them.
std::vector<Work> with_tiles(const std::vector<Work>& work) {
  const auto bound = [](const Work& item) {
    return BoundOp{std::shared_ptr<const Op>(item.prepared, item.prepared->op.get()), item.pointers};
  };
  std::vector<Work> result;
  for (const Work& item : work) {
    auto pair = result.empty() ? std::nullopt : tiled(bound(result.back()), bound(item));
    if (!pair) {
      result.push_back(item);
      continue;
    }
    auto joined = std::make_shared<PreparedOp>();
    joined->op = std::move(pair->first);
    result.back() = {std::move(joined), std::move(pair->second)};
  }
  return result;
}

/// One piece of content that runs that of several steps: they are copied out, so that running needs a single call.
StepContent joined(const py::sequence& steps) {
  StepContent merged;
  for (const py::handle item : steps) {
    const StepContent& step = content_of_step(item);
    merged.work.insert(merged.work.end(), step.work.begin(), step.work.end());
    merged.keep.insert(merged.keep.end(), step.keep.begin(), step.keep.end());
    merged.cost += step.cost;
  }
  merged.work = with_tiles(fused(merged.work));
  return merged;
}

py::object sequence(const py::sequence& steps) { return new_step(joined(steps)); }

/// The joined steps as a function of some of their arrays.
py::object program(const py::sequence& steps, const std::vector<py::array>& slots) {
  StepContent content = joined(steps);
  std::vector<Slot> places;
  for (const py::array& array : slots) {
    Slot slot{expectation(array), {}};
    for (size_t k = 0; k < content.work.size(); ++k) {
      for (size_t i = 0; i < content.work[k].pointers.size(); ++i) {
        if (content.work[k].pointers[i] == array.data()) slot.uses.emplace_back(k, i);
      }
    }
    places.push_back(std::move(slot));
  }
  const auto is_slot = [&slots](const py::object& kept) {  // what the program gets at each call, it need not keep alive
    return std::any_of(slots.begin(), slots.end(), [&kept](const py::array& slot) {
      return py::isinstance<py::array>(kept) && py::reinterpret_borrow<py::array>(kept).data() == slot.data();
    });
  };
  content.keep.erase(std::remove_if(content.keep.begin(), content.keep.end(), is_slot), content.keep.end());
  return new_program(std::move(content), std::move(places));
}

/// Operations on the same arrays, run in order as one. The last of the arrays may be working memory of the chain.
class Chain : public Op {
 public:
  Chain(std::vector<std::shared_ptr<const PreparedOp>> members, size_t n_working) : members_(std::move(members)) {
    const std::vector<Expected>& arrays = members_.front()->arrays;
    n_given_ = arrays.size() - n_working;
    for (size_t k = n_given_; k < arrays.size(); ++k) {
      int64_t bytes = item_size(arrays[k].dtype);
      for (const Py_ssize_t length : arrays[k].shape) bytes *= length;
      working_bytes_.push_back(bytes);
      total_bytes_ += Scratch::bytes<char>(bytes);
    }
  }

  void run(void* const* arrays) const override {
    Scratch scratch(total_bytes_);
    Pointers all(n_given_ + working_bytes_.size());
    std::copy_n(arrays, n_given_, all.data());
    for (size_t k = 0; k < working_bytes_.size(); ++k) all.data()[n_given_ + k] = scratch.take<char>(working_bytes_[k]);
    for (const auto& member : members_) {
      Pointers arranged(member->places.size());
      for (size_t k = 0; k < member->places.size(); ++k) {
        arranged.data()[k] = member->places[k] < 0 ? nullptr : all.data()[member->places[k]];
      }
      member->op->execute(arranged.data());
    }
  }

  // its members see to themselves
  bool independent_of_threads() const override { return true; }

  std::string implementation() const override {
    std::vector<const Op*> ops;
    for (const auto& member : members_) ops.push_back(member->op.get());
    return implementations_of(ops);
  }

  double cost() const override {
    double total = 0;
    for (const auto& member : members_) total += member->op->cost();
    return total;
  }

 private:
  std::vector<std::shared_ptr<const PreparedOp>> members_;
  size_t n_given_ = 0, total_bytes_ = 0;
  std::vector<int64_t> working_bytes_;
};

py::object chain(const py::sequence& ops, size_t n_working) {
  std::vector<std::shared_ptr<const PreparedOp>> members;
  for (const py::handle item : ops) {
    members.push_back(content_of_op(item));
    NN_CHECK(members.back()->arrays.size() == members.front()->arrays.size(),
             "operations of a chain must be prepared for the same arrays, got others");
  }
  NN_CHECK(!members.empty(), "chain must hold an operation, got none");
  NN_CHECK(n_working <= members.front()->arrays.size(),
           "working must be at most the number of arrays, got " << n_working);
  auto prepared = std::make_shared<PreparedOp>();
  prepared->arrays = members.front()->arrays;
  prepared->arrays.resize(prepared->arrays.size() - n_working);
  prepared->places.resize(prepared->arrays.size());
  std::iota(prepared->places.begin(), prepared->places.end(), 0);
  prepared->op = std::make_unique<Chain>(std::move(members), n_working);
  return new_op(std::move(prepared));
}

}  // namespace

void bind_combine(py::module_& module) {
  module.def("chain", chain, py::arg("ops"), py::arg("working") = 0,
             "Join operations that were prepared for the same arrays into one. The last `working` arrays are no arrays "
             "of the call "
             "but memory for results in between.");
  module.def(
      "program", program, py::arg("steps"), py::arg("slots"),
      "Merge steps into a function that takes arrays to use in place of `slots`, which look alike and do not overlap.");
  module.def("sequence", sequence, py::arg("steps"), "Merge steps into one that runs them in order.");
}

}  // namespace nn_cpu
