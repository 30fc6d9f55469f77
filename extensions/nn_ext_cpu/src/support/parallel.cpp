#include "support/parallel.hpp"

#include <atomic>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "support/check.hpp"

namespace nn_cpu {
namespace {

/// Number of distinct (package, core) pairs of Linux, or 0 where that cannot be read.
int physical_cores() {
  std::set<std::pair<int, int>> cores;
  const unsigned logical = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned cpu = 0; cpu < logical; ++cpu) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    int package = 0, core = 0;
    if (!(std::ifstream(folder + "physical_package_id") >> package) || !(std::ifstream(folder + "core_id") >> core)) {
      return 0;
    }
    cores.emplace(package, core);
  }
  return static_cast<int>(cores.size());
}

/// OpenMP knows OMP_NUM_THREADS and the CPUs this process may use; hyper-threads beyond the cores do not help.
int initial_threads() {
  const int allowed = std::max(1, omp_get_max_threads());
  const int cores = physical_cores();
  return cores > 0 ? std::min(allowed, cores) : allowed;
}

std::atomic<int>& threads() {
  static std::atomic<int> count{initial_threads()};
  return count;
}

}  // namespace

int num_threads() { return threads().load(std::memory_order_relaxed); }

void set_num_threads(int count) {
  NN_CHECK(count >= 1, "number of threads must be at least 1, got " << count);
  threads().store(count, std::memory_order_relaxed);
}

void adopt_num_threads() {
  if (omp_get_max_threads() != num_threads()) omp_set_num_threads(num_threads());
}

}  // namespace nn_cpu
