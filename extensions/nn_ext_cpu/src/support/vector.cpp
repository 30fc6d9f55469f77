#include "support/vector.hpp"

#include <atomic>
#include <string>
#include <vector>

#include "support/check.hpp"

namespace nn_cpu {

namespace baseline {
VectorTable table(const char* isa);
}
#ifdef NN_X86
namespace avx2 {
VectorTable table(const char* isa);
}
namespace avx512 {
VectorTable table(const char* isa);
}
#endif

namespace {

/// Tables that this machine can run, narrowest first.
const std::vector<VectorTable>& tables() {
  static const std::vector<VectorTable> found = [] {
    std::vector<VectorTable> list{baseline::table("baseline")};
#ifdef NN_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      list.push_back(avx2::table("avx2"));
      if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        list.push_back(avx512::table("avx512"));
      }
    }
#endif
    return list;
  }();
  return found;
}

std::atomic<const VectorTable*>& selected() {
  static std::atomic<const VectorTable*> table{&tables().back()};
  return table;
}

}  // namespace

const VectorTable& vectors() { return *selected().load(std::memory_order_relaxed); }

template <>
const NumberLoops<float>& number_loops() {
  return vectors();
}

template <>
const NumberLoops<double>& number_loops() {
  return vectors().wide;
}

template <>
const RowLoops<float>& row_loops() {
  return vectors().rows;
}

template <>
const RowLoops<double>& row_loops() {
  return vectors().wide_rows;
}

template <>
const RowLoops<Bf16>& row_loops() {
  return vectors().narrow_rows;
}

void select_isa(const char* isa) {
  for (const VectorTable& table : tables()) {
    if (std::string(table.isa) == isa) {
      selected() = &table;
      return;
    }
  }
  NN_CHECK(false, "instruction set must be one that this machine runs, got " << isa);
}

}  // namespace nn_cpu
