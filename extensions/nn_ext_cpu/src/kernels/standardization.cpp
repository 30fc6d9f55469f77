// Layer, group and instance normalization (Ba et al., 2016; Wu and He, 2018; Ulyanov et al., 2016): each row of a
// matrix is standardized by its own mean and biased variance.
//   standardize           arrays x, beta, gamma, y, mean, variance
//   standardize_backward  arrays x, -, gamma, -, mean, variance, dy, dx, dbeta, dgamma
// x, y, dy, dx are (rows, n), contiguous; mean and variance have an element a row. A row falls into runs of `run`
// elements that share one element of beta and gamma (run 1: each has its own). Rows take them one after another, and
// begin again when all are used up. beta, gamma and gradients that nobody wants may be absent. Settings: rows, run,
// eps. Moments are taken in two passes, in float32 blocks that add up in double. Gradients of parameters add up 64 rows
// in float32, then in double, for each thread; so results repeat. O(rows n).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/register.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/scratch.hpp"
#include "support/vector.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kGrain = 16384;  // elements a thread
constexpr int64_t kRows = 64;      // rows whose gradients of parameters add up in float32

template <class T>
const T* input(void* const* arrays, int position) {
  return static_cast<const T*>(arrays[position]);
}
template <class T>
T* output(void* const* arrays, int position) {
  return static_cast<T*>(arrays[position]);
}
template <class T>
const T* at(const T* array, int64_t start) {
  return array != nullptr ? array + start : nullptr;
}

template <class T>
struct Rows {
  int64_t rows, n, run;
  int64_t per_row;  // parameters that a row uses
  T eps;

  explicit Rows(const Signature& s)
      : rows(s.args.integer("rows")), n(0), run(s.args.integer("run")), eps(static_cast<T>(s.args.get<double>("eps"))) {
    const int64_t size = s.contiguous(0, kDTypeOf<T>).size();
    NN_CHECK(rows > 0 && size > 0 && size % rows == 0, "x must hold " << rows << " rows, got " << size << " elements");
    n = size / rows;
    NN_CHECK(run > 0 && n % run == 0, "rows must consist of whole runs, got " << n << " elements and runs of " << run);
    per_row = n / run;
    for (const size_t position : {4, 5})
      NN_CHECK(s.contiguous(position, kDTypeOf<T>).size() == rows, "statistics must have an element a row, got others");
  }

  /// How many rows go by until parameters repeat.
  int64_t period(const Signature& s, size_t position) const {
    if (!s.has(position)) return 1;
    const int64_t size = s.contiguous(position, kDTypeOf<T>).size();
    NN_CHECK(size % per_row == 0 && size > 0, "parameters must serve whole rows, got " << size << " for " << per_row);
    return size / per_row;
  }

  /// Whether a row with an element of the parameters for each of its own fits in a few vectors.
  bool is_short() const { return run == 1 && n <= kShortRow<T>; }
  int64_t grain() const { return std::max<int64_t>(1, kGrain / n); }
  double size() const { return static_cast<double>(rows) * static_cast<double>(n); }
};

template <class T>
void check_images(const Signature& s, std::initializer_list<size_t> positions) {
  for (const size_t position : positions) {
    NN_CHECK(!s.has(position) || s.contiguous(position, kDTypeOf<T>).size() == s.array(0, kDTypeOf<T>).size(),
             "array " << position << " must have the size of x, got another");
  }
}

template <class T>
class Standardize : public Op {
 public:
  explicit Standardize(const Signature& s)
      : size_(s), beta_period_(size_.period(s, 1)), gamma_period_(size_.period(s, 2)) {
    check_images<T>(s, {3});
  }

  void run(void* const* arrays) const override {
    const T *x = input<T>(arrays, 0), *beta = input<T>(arrays, 1), *gamma = input<T>(arrays, 2);
    T *y = output<T>(arrays, 3), *mean = output<T>(arrays, 4), *variance = output<T>(arrays, 5);
    const auto [rows, n, run, per_row, eps] = size_;
    const NumberLoops<T>& table = number_loops<T>();
    if (size_.is_short() && beta_period_ == 1 && gamma_period_ == 1) {
      parallel_for(rows, size_.grain(), [&, n = n, eps = eps](int64_t begin, int64_t end, int) {
        table.standardize_short(x + begin * n, end - begin, n, eps, gamma, beta, y + begin * n, mean + begin,
                                variance + begin);
      });
      return;
    }
    parallel_for(rows, size_.grain(),
                 [&, n = n, run = run, per_row = per_row, eps = eps](int64_t begin, int64_t end, int) {
                   for (int64_t row = begin; row < end; ++row) {
                     const T* from = x + row * n;
                     T* to = y + row * n;
                     take_moments(from, mean[row], variance[row]);
                     const double precise = 1.0 / std::sqrt(static_cast<double>(variance[row]) + eps);
                     const T rate = static_cast<T>(precise);
                     const T* shifts = at(beta, row % beta_period_ * per_row);
                     const T* scales = at(gamma, row % gamma_period_ * per_row);
                     if (run == 1 && (shifts != nullptr || scales != nullptr)) {
                       table.standardize_each(from, n, mean[row], rate, scales, shifts, to);
                       continue;
                     }
                     for (int64_t k = 0; k < per_row; ++k) {
                       const T scale = scales != nullptr ? static_cast<T>(precise * scales[k]) : rate;
                       table.standardize(from + k * run, run, mean[row], scale, shifts != nullptr ? shifts[k] : T{0},
                                         to + k * run);
                     }
                   }
                 });
  }

  double cost() const override { return 100 + 0.4 * size_.size(); }

 private:
  /// The second pass also sums how far the elements are from the rounded mean, and corrects it by that: the mean of
  /// equal elements is that element.
  void take_moments(const T* x, T& mean, T& variance) const {
    const double count = static_cast<double>(size_.n);
    mean = static_cast<T>(number_loops<T>().sum(x, size_.n) / count);
    double distances = 0.0, squares = 0.0;
    row_loops<T>().row_moments(x, size_.n, mean, &distances, &squares);
    const double offset = distances / count;
    variance = static_cast<T>(std::max(squares / count - offset * offset, 0.0));
    if (std::isfinite(offset)) {
      mean = static_cast<T>(mean + offset);
    } else {
      variance = std::numeric_limits<T>::quiet_NaN();
    }
  }

  Rows<T> size_;
  int64_t beta_period_, gamma_period_;
};

/// Gradients of beta and gamma that one thread adds up.
template <class T>
class Totals {
 public:
  Totals(Scratch& scratch, int64_t size, bool in_blocks)
      : size_(size), in_blocks_(in_blocks), totals_(scratch.take<double>(2 * size)) {
    blocks_ = in_blocks ? scratch.take<T>(2 * size) : nullptr;
    std::fill_n(totals_, 2 * size, 0.0);
    if (in_blocks) std::fill_n(blocks_, 2 * size, T{0});
  }
  static size_t bytes(int64_t size, bool in_blocks) {
    return Scratch::bytes<double>(2 * size) + (in_blocks ? Scratch::bytes<T>(2 * size) : 0);
  }

  double* beta() { return totals_; }
  double* gamma() { return totals_ + size_; }
  T* beta_block() { return blocks_; }
  T* gamma_block() { return blocks_ + size_; }

  /// Moves what the blocks hold into the totals.
  void flush() {
    if (!in_blocks_) return;
    number_loops<T>().add_to_double(blocks_, totals_, 2 * size_);
    std::fill_n(blocks_, 2 * size_, T{0});
  }

 private:
  int64_t size_;
  bool in_blocks_;
  double* totals_;
  T* blocks_;
};

template <class T>
class StandardizeBackward : public Op {
 public:
  explicit StandardizeBackward(const Signature& s)
      : size_(s),
        gamma_period_(size_.period(s, 2)),
        dbeta_period_(size_.period(s, 8)),
        dgamma_period_(size_.period(s, 9)) {
    check_images<T>(s, {6, 7});
    if (s.has(8)) n_totals_ = dbeta_period_ * size_.per_row;
    if (s.has(9)) n_totals_ = std::max(n_totals_, dgamma_period_ * size_.per_row);
  }

  void run(void* const* arrays) const override {
    T *dbeta = output<T>(arrays, 8), *dgamma = output<T>(arrays, 9);
    const bool in_blocks = size_.run == 1;
    const int teams = num_threads();
    Scratch scratch(teams * Totals<T>::bytes(n_totals_, in_blocks));
    std::vector<Totals<T>> totals;
    for (int team = 0; team < teams; ++team) totals.emplace_back(scratch, n_totals_, in_blocks);
    parallel_for(size_.rows, size_.grain(), [&](int64_t begin, int64_t end, int thread) {
      for (int64_t row = begin; row < end; row += kRows) {
        some_rows(arrays, row, std::min(end, row + kRows), totals[thread]);
        totals[thread].flush();
      }
    });
    const auto write = [&](T* gradient, int64_t count, double* (Totals<T>::*part)()) {
      for (int64_t i = 0; i < count && gradient != nullptr; ++i) {
        double total = 0.0;
        for (Totals<T>& team : totals) total += (team.*part)()[i];
        gradient[i] = static_cast<T>(total);
      }
    };
    write(dbeta, dbeta_period_ * size_.per_row, &Totals<T>::beta);
    write(dgamma, dgamma_period_ * size_.per_row, &Totals<T>::gamma);
  }

  double cost() const override { return 100 + 0.8 * size_.size(); }

 private:
  void some_rows(void* const* arrays, int64_t begin, int64_t end, Totals<T>& totals) const {
    if (!size_.is_short() || gamma_period_ > 1 || dbeta_period_ > 1 || dgamma_period_ > 1) {
      for (int64_t row = begin; row < end; ++row) one_row(arrays, row, totals);
      return;
    }
    const int64_t n = size_.n;
    T* dx = output<T>(arrays, 7);
    number_loops<T>().standardize_short_gradient(
        input<T>(arrays, 6) + begin * n, input<T>(arrays, 2), input<T>(arrays, 0) + begin * n, end - begin, n,
        size_.eps, input<T>(arrays, 4) + begin, input<T>(arrays, 5) + begin, dx != nullptr ? dx + begin * n : nullptr,
        arrays[8] != nullptr ? totals.beta_block() : nullptr, arrays[9] != nullptr ? totals.gamma_block() : nullptr);
  }

  void one_row(void* const* arrays, int64_t row, Totals<T>& totals) const {
    const auto [rows, n, run, per_row, eps] = size_;
    const T *x = input<T>(arrays, 0) + row * n, *dy = input<T>(arrays, 6) + row * n;
    const T* scales = at(input<T>(arrays, 2), row % gamma_period_ * per_row);
    const T mean = input<T>(arrays, 4)[row];
    const double rate = 1.0 / std::sqrt(static_cast<double>(input<T>(arrays, 5)[row]) + eps);
    const bool wants_beta = arrays[8] != nullptr, wants_gamma = arrays[9] != nullptr;
    const int64_t beta_start = row % dbeta_period_ * per_row, gamma_start = row % dgamma_period_ * per_row;
    const NumberLoops<T>& table = number_loops<T>();
    double sum = 0.0, product = 0.0;
    if (run == 1) {
      if (wants_beta) table.add_to(dy, totals.beta_block() + beta_start, n);
      if (wants_gamma) table.add_standardized(dy, x, n, mean, static_cast<T>(rate), totals.gamma_block() + gamma_start);
      if (scales != nullptr) {
        table.standardize_products(dy, scales, x, n, mean, &sum, &product);
      } else {
        row_loops<T>().row_products(dy, nullptr, x, n, mean, &sum, &product);
      }
    } else {
      for (int64_t k = 0; k < per_row; ++k) {
        double s1 = 0.0, s2 = 0.0;
        row_loops<T>().row_products(dy + k * run, nullptr, x + k * run, run, mean, &s1, &s2);
        if (wants_beta) totals.beta()[beta_start + k] += s1;
        if (wants_gamma) totals.gamma()[gamma_start + k] += s2 * rate;
        const double scale = scales != nullptr ? scales[k] : 1.0;
        sum += scale * s1;
        product += scale * s2;
      }
    }
    if (arrays[7] == nullptr) return;
    T* dx = output<T>(arrays, 7) + row * n;
    const double count = static_cast<double>(n);
    const auto p = static_cast<T>(rate), q = static_cast<T>(-rate * rate * product / count);
    const auto r = static_cast<T>(-sum / count);
    if (run == 1 || scales == nullptr) {
      table.standardize_gradient(dy, scales, T{1}, x, n, mean, p, q, r, dx);
      return;
    }
    for (int64_t k = 0; k < per_row; ++k) {
      table.standardize_gradient(dy + k * run, nullptr, scales[k], x + k * run, run, mean, p, q, r, dx + k * run);
    }
  }

  Rows<T> size_;
  int64_t gamma_period_, dbeta_period_, dgamma_period_;
  int64_t n_totals_ = 0;
};

}  // namespace

void register_standardization(Registry& registry) {
  registry.add("standardize", make_for_numbers<Standardize>, 3);
  registry.add("standardize_backward", make_for_numbers<StandardizeBackward>, 7);
}

}  // namespace nn_cpu
