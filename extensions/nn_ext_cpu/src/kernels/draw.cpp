// Random numbers that every backend draws alike: element e of C order has lane e % 4 of Philox block e // 4.
//   draw   -> y, then the key, uint64 (2,) = seed, counter, read at each run. Settings: distribution, and its numbers
//          `parameters`:
//     uniform   low, range         float32: low + range u, u in [0, 1) a multiple of 2^-24
//     normal    mu, sigma          float32: mu + sigma z
//     below     low, range         int64: a whole number in [low, low + range)
//     steps     c_0 <= c_1 ...     float32: how many of the numbers do not exceed u, the inversion of a discrete
//               distribution
//     gamma     k, theta           float32
//     beta      alpha, beta        float32: a / (a + b) of two gamma samples, the second one from streams 2^20 on
// Gamma samples: rejection method of Marsaglia and Tsang (2000), "A simple method for generating gamma variables".
// Attempt t for element e uses block e of stream t: lanes 0 and 1 for a normal number, lane 2 for the rejection, lane 3
// for the step from k + 1 to k. Computed in double and rounded once. O(n), of expected duration where numbers are
// rejected.
#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr double kUnit = 1.0 / 16777216.0;
constexpr double kPi = 3.14159265358979323846;
constexpr int64_t kBlocks = 128;                       // Philox blocks drawn at a time
constexpr uint64_t kStreamBlocks = uint64_t{1} << 38;  // blocks of a stream
constexpr uint64_t kSecondSample = uint64_t{1} << 20;  // first stream of the second sample of `beta`

struct Key {
  uint64_t seed, counter;
};

double uniform(uint32_t word) { return static_cast<double>(word >> 8) * kUnit; }

/// The logarithm of the gamma sample of shape k and scale 1 for element `e`.
double log_gamma_sample(const Key& key, uint64_t e, double k, uint64_t stream) {
  const double d = (k >= 1 ? k : k + 1) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;; ++stream) {
    uint32_t words[4];
    vectors().philox(key.seed, key.counter, e + stream * kStreamBlocks, 1, words);
    const double x = std::sqrt(-2 * std::log(uniform(words[0]) + kUnit)) * std::cos(2 * kPi * uniform(words[1]));
    const double root = std::max(1 + c * x, 0.0), v = root * root * root;
    if (v <= 0) continue;
    const double log_v = std::log(v);
    if (std::log(uniform(words[2]) + kUnit) >= x * x / 2 + d * (1 - v + log_v)) continue;
    return std::log(d) + log_v + (k < 1 ? std::log(uniform(words[3]) + kUnit) / k : 0.0);
  }
}

using Numbers = std::vector<double>;

/// Writes `n` elements from `words`, of which a multiple of four is given; `n` is even unless the elements end.
using FromWords = void (*)(const uint32_t* words, const Numbers& p, int64_t n, void* y);
/// The value of element `e`.
using ByElement = float (*)(const Key& key, uint64_t e, const Numbers& p);

struct Distribution {
  const char* name;
  size_t n_parameters;  // 0: any number
  DType dtype;
  FromWords from_words;
  ByElement by_element;
  double cost;  // rough nanoseconds an element
};

void draw_normal(const uint32_t* words, const Numbers& p, int64_t n, void* y) {
  auto* out = static_cast<float*>(y);
  vectors().draw_normal(words, p[0], p[1], n / 2, out);
  if (n % 2 == 0) return;
  float last[2];
  vectors().draw_normal(words + n - 1, p[0], p[1], 1, last);
  out[n - 1] = last[0];
}

void draw_steps(const uint32_t* words, const Numbers& p, int64_t n, void* y) {
  for (int64_t i = 0; i < n; ++i) {
    static_cast<float*>(y)[i] = static_cast<float>(std::upper_bound(p.begin(), p.end(), uniform(words[i])) - p.begin());
  }
}

const Distribution kDistributions[] = {
    {"uniform", 2, DType::kFloat32,
     [](const uint32_t* words, const Numbers& p, int64_t n, void* y) {
       vectors().draw_uniform(words, p[0], p[1], n, static_cast<float*>(y));
     },
     nullptr, 1},
    {"normal", 2, DType::kFloat32, draw_normal, nullptr, 5},
    {"below", 2, DType::kInt64,
     [](const uint32_t* words, const Numbers& p, int64_t n, void* y) {
       vectors().draw_below(words, static_cast<int64_t>(p[0]), static_cast<uint64_t>(p[1]), n,
                            static_cast<int64_t*>(y));
     },
     nullptr, 1},
    {"steps", 0, DType::kFloat32, draw_steps, nullptr, 10},
    {"gamma", 2, DType::kFloat32, nullptr,
     [](const Key& key, uint64_t e, const Numbers& p) {
       return static_cast<float>(p[1] * std::exp(log_gamma_sample(key, e, p[0], 0)));
     },
     100},
    {"beta", 2, DType::kFloat32, nullptr,
     [](const Key& key, uint64_t e, const Numbers& p) {
       const double log_a = log_gamma_sample(key, e, p[0], 0), log_b = log_gamma_sample(key, e, p[1], kSecondSample);
       return static_cast<float>(1 / (1 + std::exp(log_b - log_a)));
     },
     200},
};

const Distribution& distribution_called(const std::string& name) {
  for (const Distribution& row : kDistributions) {
    if (name == row.name) return row;
  }
  NN_CHECK(false, "distribution must be one that draw knows, got " << name);
  return kDistributions[0];
}

class Draw : public Op {
 public:
  explicit Draw(const Signature& s)
      : distribution_(distribution_called(s.args.get<std::string>("distribution"))),
        parameters_(s.args.get<Numbers>("parameters")),
        size_(s.contiguous(0, distribution_.dtype).size()) {
    const size_t n = distribution_.n_parameters;
    NN_CHECK(n == 0 || parameters_.size() == n,
             distribution_.name << " must have " << n << " parameters, got " << parameters_.size());
    NN_CHECK(s.contiguous(1, DType::kUInt64).size() == 2,
             "key must have two elements, got " << s.array(1, DType::kUInt64).size());
  }

  void run(void* const* arrays) const override {
    auto* y = static_cast<char*>(arrays[0]);
    const auto* words = static_cast<const uint64_t*>(arrays[1]);
    const Key key{words[0], words[1]};
    const int64_t grain = std::max<int64_t>(64, static_cast<int64_t>(10000 / distribution_.cost));
    parallel_for(
        size_, grain,
        [&](int64_t begin, int64_t end, int) {
          if (distribution_.by_element != nullptr) {
            for (int64_t e = begin; e < end; ++e)
              reinterpret_cast<float*>(y)[e] = distribution_.by_element(key, static_cast<uint64_t>(e), parameters_);
            return;
          }
          uint32_t drawn[4 * kBlocks];
          for (int64_t start = begin; start < end; start += 4 * kBlocks) {
            const int64_t n = std::min(end - start, 4 * kBlocks);
            vectors().philox(key.seed, key.counter, static_cast<uint64_t>(start / 4), (n + 3) / 4, drawn);
            distribution_.from_words(drawn, parameters_, n, y + start * item_size(distribution_.dtype));
          }
        },
        4);
  }

  bool independent_of_threads() const override { return true; }

  double cost() const override { return 50 + distribution_.cost * static_cast<double>(size_); }

 private:
  const Distribution& distribution_;
  Numbers parameters_;
  int64_t size_;
};

}  // namespace

void register_draw(Registry& registry) { registry.add("draw", make<Draw>, 0); }

}  // namespace nn_cpu
