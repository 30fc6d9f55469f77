// Updates of many parameters at once. All operations take hyper (float64, read at each run), then for each parameter
// the arrays of the rule, all float32 or all float64, and contiguous:
//   update          w, g, states ...     setting `rule`: a solver of vector/update.cpp; changes w and states
//   weight_decay    w, g                 hyper: rate;   g += rate w
//   scale_grad      w, g                 hyper: scale;  g *= scale
//   clip_grad       w, g                 hyper: norm;   g *= norm / |g| where |g| > norm
// The elements of all parameters are one long range that is split between threads. O(elements), one pass over memory.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "kernels/parameter_group.hpp"
#include "kernels/register.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

using Numbers = std::array<double, 8>;

/// The numbers `h` of a solver's loop, from its hyper-parameters in the order that the solver documents.
using Derive = Numbers (*)(const double* hyper);

double corrected(double alpha, double beta1, double beta2, double t) {
  return alpha * std::sqrt(1.0 - std::pow(beta2, t)) / (1.0 - std::pow(beta1, t));
}

/// beta1, 1 - beta1, beta2, 1 - beta2, eps, preceded by a step size.
Numbers adam_numbers(double alpha, const double* h, double decay = 0.0) {
  return {alpha, h[1], 1 - h[1], h[2], 1 - h[2], h[3], decay};
}

/// Those of Adam and the bounds of the rate, which close in on final_lr as far as alpha was scheduled.
Numbers bounded(double alpha, const double* h, double scheduled, double t) {
  Numbers numbers = adam_numbers(alpha, h);
  const double final_lr = h[4] * scheduled, gamma = h[5];
  numbers[6] = final_lr * (1 - 1 / (gamma * t + 1));
  numbers[7] = final_lr * (1 + 1 / (gamma * t));
  return numbers;
}

Numbers plain(std::initializer_list<double> values) {
  Numbers numbers{};
  std::copy(values.begin(), values.end(), numbers.begin());
  return numbers;
}

struct Rule {
  const char* name;
  const char* loop;
  Derive derive;
};

const Rule kRules[] = {
    {"Sgd", "Sgd", [](const double* h) { return plain({h[0]}); }},
    {"Momentum", "Momentum", [](const double* h) { return plain({h[0], h[1]}); }},
    {"Nesterov", "Nesterov", [](const double* h) { return plain({h[0], h[1]}); }},
    {"SgdW", "SgdW", [](const double* h) { return plain({h[0], h[1], h[0] / h[3] * h[2]}); }},
    {"Adam", "Adam", [](const double* h) { return adam_numbers(corrected(h[0], h[1], h[2], h[4]), h); }},
    {"AdamW", "AdamW",
     [](const double* h) { return adam_numbers(corrected(h[0], h[1], h[2], h[6]), h, h[0] / h[5] * h[4]); }},
    {"AMSGRAD", "AMSGRAD",
     [](const double* h) { return adam_numbers(h[4] != 0.0 ? corrected(h[0], h[1], h[2], h[5]) : h[0], h); }},
    {"Adamax", "Adamax", [](const double* h) { return adam_numbers(h[0] / (1.0 - std::pow(h[1], h[4])), h); }},
    {"Adagrad", "Adagrad", [](const double* h) { return plain({h[0], h[1]}); }},
    {"RMSprop", "RMSprop", [](const double* h) { return plain({h[0], h[2], h[1], 1 - h[1]}); }},
    {"Adadelta", "Adadelta", [](const double* h) { return plain({h[0], h[2], h[1], 1 - h[1]}); }},
    {"RMSpropGraves", "RMSpropGraves", [](const double* h) { return plain({h[0], h[3], h[1], 1 - h[1], h[2]}); }},
    {"AdaBound", "AdaBound",
     [](const double* h) { return bounded(corrected(h[0], h[1], h[2], h[7]), h, h[0] / h[6], h[7]); }},
    {"AMSBound", "AMSBound",
     [](const double* h) {
       return bounded(h[6] != 0.0 ? corrected(h[0], h[1], h[2], h[8]) : h[0], h, h[0] / h[7], h[8]);
     }},
    {"Lion", "Lion", [](const double* h) { return plain({h[0], h[1], 1 - h[1], h[2], 1 - h[2], h[3]}); }},
};

template <class T>
class Update : public Op {
 public:
  explicit Update(const Signature& s)
      : rule_(rule_named(kRules, s.args.get<std::string>("rule"))),
        loop_(find_update_loop(rule_.loop)),
        n_states_(number_loops<T>().updates().functions[loop_].n_states),
        group_(s, 2 + n_states_) {}

  void run(void* const* arrays) const override {
    const Numbers derived = rule_.derive(static_cast<const double*>(arrays[0]));
    std::array<T, 8> numbers;
    std::transform(derived.begin(), derived.end(), numbers.begin(), [](double value) { return static_cast<T>(value); });
    const UpdateLoop<T> loop = number_loops<T>().updates().functions[loop_].run;
    group_.visit([&](size_t parameter, int64_t offset, int64_t n) {
      T* states[3];
      for (int k = 0; k < n_states_; ++k) states[k] = group_.array(arrays, parameter, 2 + k) + offset;
      loop(n, group_.array(arrays, parameter, 0) + offset, group_.array(arrays, parameter, 1) + offset, states,
           numbers.data());
    });
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 100 + 0.5 * static_cast<double>(group_.size()); }

 private:
  const Rule& rule_;
  int loop_;
  int n_states_;
  GroupOf<T> group_;
};

/// The common part of the operations on gradients.
template <class T>
class ChangeGrad : public Op {
 public:
  ChangeGrad(const Signature& s) : group_(s, 2) {}
  bool independent_of_threads() const override { return true; }

  double cost() const override { return 100 + 0.3 * static_cast<double>(group_.size()); }

 protected:
  GroupOf<T> group_;
};

template <class T>
class WeightDecay final : public ChangeGrad<T> {
 public:
  using ChangeGrad<T>::ChangeGrad;
  using ChangeGrad<T>::group_;
  void run(void* const* arrays) const override {
    const auto rate = static_cast<T>(*static_cast<const double*>(arrays[0]));
    group_.visit([&](size_t parameter, int64_t offset, int64_t n) {
      number_loops<T>().axpy(rate, group_.array(arrays, parameter, 0) + offset,
                             group_.array(arrays, parameter, 1) + offset, n);
    });
  }
};

template <class T>
class ScaleGrad final : public ChangeGrad<T> {
 public:
  using ChangeGrad<T>::ChangeGrad;
  using ChangeGrad<T>::group_;
  void run(void* const* arrays) const override {
    const auto scale = static_cast<T>(*static_cast<const double*>(arrays[0]));
    group_.visit([&](size_t parameter, int64_t offset, int64_t n) {
      T* g = group_.array(arrays, parameter, 1) + offset;
      number_loops<T>().scale(g, n, scale, g);
    });
  }
};

template <class T>
class ClipGrad final : public ChangeGrad<T> {
 public:
  using ChangeGrad<T>::ChangeGrad;
  using ChangeGrad<T>::group_;
  void run(void* const* arrays) const override {
    const double limit = *static_cast<const double*>(arrays[0]);
    const auto grain = static_cast<int64_t>(group_.size() < GroupOf<T>::kGrain ? group_.count() : 1);
    parallel_for(static_cast<int64_t>(group_.count()), grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t parameter = begin; parameter < end; ++parameter) {
        T* g = group_.array(arrays, parameter, 1);
        const double norm = std::sqrt(squares_of(g, group_.size(parameter)));
        if (norm > limit) number_loops<T>().scale(g, group_.size(parameter), static_cast<T>(limit / norm), g);
      }
    });
  }
};

/// The operation for float, or for double; hyper-parameters are float64 anyway.
template <template <class> class OpOf>
std::unique_ptr<Op> make_for_parameters(const Signature& s) {
  if (is_wide(s, 1)) return std::make_unique<OpOf<double>>(s);
  return std::make_unique<OpOf<float>>(s);
}

}  // namespace

int find_update_loop(const char* name) {
  const UpdateTable<float> table = vectors().updates();
  for (int i = 0; i < table.count; ++i) {
    if (std::string(table.functions[i].name) == name) return i;
  }
  throw std::logic_error("every rule has a loop");
}

double squares_of(const float* x, int64_t n) {
  double sum = vectors().sum_of_squares(x, n);
  if (std::isinf(sum)) {
    sum = 0.0;
    for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  }
  return sum;
}

double squares_of(const double* x, int64_t n) { return vectors().wide.sum_of_squares(x, n); }

void register_update(Registry& registry) {
  registry.add("update", make_for_parameters<Update>);
  registry.add("weight_decay", make_for_parameters<WeightDecay>);
  registry.add("scale_grad", make_for_parameters<ScaleGrad>);
  registry.add("clip_grad", make_for_parameters<ClipGrad>);
}

std::vector<std::string> update_names() {
  std::vector<std::string> names;
  for (const Rule& rule : kRules) names.emplace_back(rule.name);
  return names;
}

}  // namespace nn_cpu
