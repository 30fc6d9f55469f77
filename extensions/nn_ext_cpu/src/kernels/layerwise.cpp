// Updates whose step depends on the norm of each parameter and of its direction:
//   layerwise   hyper, then w, g, states ... of each parameter   setting `rule`: Lars or Lamb; changes w and states
// A parameter is passed over twice: for the norms, and for the step. Norms are sums over blocks, added up in their
// order, so that they do not depend on the number of threads.
#include <array>
#include <cmath>
#include <string>

#include "kernels/parameter_group.hpp"
#include "kernels/register.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kBlock = 4096;     // elements: a direction of this length stays in the first cache
constexpr int64_t kLarge = 1 << 20;  // elements from which on a parameter is shared between threads
constexpr int kScale = 8;            // place of the number that follows from the norms

/// The numbers of both loops, the last of which is set for each parameter.
using Numbers = std::array<float, kScale + 1>;

struct LayerRule {
  const char* name;
  int n_states;
  const char* direction;  // leaves the direction in one state more; null: the direction is the gradient
  const char* step;
  Numbers (*derive)(const double* hyper);
  double (*scale)(const double* hyper, double w_norm, double direction_norm);
};

// hyper: lr, momentum, coefficient, eps, decay, t
Numbers lars_numbers(const double* h) { return {static_cast<float>(h[1]), static_cast<float>(h[4])}; }

double lars_scale(const double* h, double w_norm, double g_norm) {
  const double eps = h[3], divisor = g_norm + h[4] * w_norm;
  if (w_norm < eps) return h[0];
  return h[0] * h[2] * w_norm / (divisor < eps ? divisor + eps : divisor);
}

// hyper: eta, beta1, beta2, gamma_l, gamma_u, eps, bias_correction, decay, t
Numbers lamb_numbers(const double* h) {
  const auto f = [](double value) { return static_cast<float>(value); };
  const bool corrects = h[6] != 0.0;
  const double mean = corrects ? 1 / (1 - std::pow(h[1], h[8])) : 1.0;
  const double square = corrects ? 1 / (1 - std::pow(h[2], h[8])) : 1.0;
  return {f(h[1]), f(1 - h[1]), f(h[2]), f(1 - h[2]), f(mean), f(square), f(h[5]), f(h[7])};
}

double lamb_scale(const double* h, double w_norm, double r_norm) {
  if (r_norm == 0.0) return 0.0;
  const double raised = h[3] > w_norm ? h[3] : w_norm;  // NaN stays
  return h[0] * (h[4] < raised ? h[4] : raised) / r_norm;
}

const LayerRule kRules[] = {
    {"Lars", 1, nullptr, "Lars", lars_numbers, lars_scale},
    {"Lamb", 2, "LambDirection", "Lamb", lamb_numbers, lamb_scale},
};

/// Squares of a parameter and of its direction, summed up.
struct Norms {
  double w = 0.0, direction = 0.0;
};

class Layerwise final : public Op {
 public:
  explicit Layerwise(const Signature& s)
      : rule_(rule_named(kRules, s.args.get<std::string>("rule"))),
        direction_(rule_.direction == nullptr ? -1 : find_update_loop(rule_.direction)),
        step_(find_update_loop(rule_.step)),
        group_(s, 2 + rule_.n_states) {}

  void run(void* const* arrays) const override {
    const auto* hyper = static_cast<const double*>(arrays[0]);
    const Numbers numbers = rule_.derive(hyper);
    parallel_for(group_.size(), Group::kGrain, [&](int64_t begin, int64_t end, int) {
      for (size_t k = 0; k < group_.count(); ++k) {
        const bool is_mine = begin <= group_.start(k) && group_.start(k) < end;
        if (is_mine && group_.size(k) < kLarge) update(arrays, k, hyper, numbers);
      }
    });
    for (size_t k = 0; k < group_.count(); ++k) {
      if (group_.size(k) >= kLarge) update(arrays, k, hyper, numbers);
    }
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 100 + 1.0 * static_cast<double>(group_.size()); }

 private:
  /// Both passes over a parameter; on several threads where it is large and the caller is one thread.
  void update(void* const* arrays, size_t parameter, const double* hyper, Numbers numbers) const {
    const int64_t size = group_.size(parameter), n_blocks = (size + kBlock - 1) / kBlock;
    std::vector<Norms> squares(n_blocks);
    const auto each = [&](const auto& body) {
      parallel_for(n_blocks, kLarge / kBlock / 2, [&](int64_t begin, int64_t end, int) {
        for (int64_t block = begin; block < end; ++block) {
          const int64_t offset = block * kBlock;
          body(block, offset, std::min(kBlock, size - offset));
        }
      });
    };
    each([&](int64_t block, int64_t offset, int64_t n) {
      squares[block] = directed(arrays, parameter, offset, n, numbers);
    });
    Norms sums;
    for (const Norms& block : squares) {
      sums.w += block.w;
      sums.direction += block.direction;
    }
    numbers[kScale] = static_cast<float>(rule_.scale(hyper, std::sqrt(sums.w), std::sqrt(sums.direction)));
    each([&](int64_t, int64_t offset, int64_t n) {
      std::array<float*, 3> states = states_of(arrays, parameter, offset);
      run_loop(step_, arrays, parameter, offset, n, states, numbers);
    });
  }

  /// Moves the means of a block, and returns the squares of its direction.
  Norms directed(void* const* arrays, size_t parameter, int64_t offset, int64_t n, const Numbers& numbers) const {
    float buffer[kBlock];
    const float* direction = group_.array(arrays, parameter, 1) + offset;
    const double squares = squares_of(group_.array(arrays, parameter, 0) + offset, n);
    if (direction_ >= 0) {
      std::array<float*, 3> states = states_of(arrays, parameter, offset);
      states[rule_.n_states] = buffer;
      run_loop(direction_, arrays, parameter, offset, n, states, numbers);
      direction = buffer;
    }
    return {squares, squares_of(direction, n)};
  }

  std::array<float*, 3> states_of(void* const* arrays, size_t parameter, int64_t offset) const {
    std::array<float*, 3> states{};
    for (int k = 0; k < rule_.n_states; ++k) states[k] = group_.array(arrays, parameter, 2 + k) + offset;
    return states;
  }

  void run_loop(int loop, void* const* arrays, size_t parameter, int64_t offset, int64_t n,
                const std::array<float*, 3>& states, const Numbers& numbers) const {
    vectors().updates().functions[loop].run(n, group_.array(arrays, parameter, 0) + offset,
                                            group_.array(arrays, parameter, 1) + offset, states.data(), numbers.data());
  }

  const LayerRule& rule_;
  int direction_, step_;
  Group group_;
};

}  // namespace

void register_layerwise(Registry& registry) { registry.add("layerwise", make<Layerwise>); }

}  // namespace nn_cpu
