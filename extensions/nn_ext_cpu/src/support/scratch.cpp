#include "support/scratch.hpp"

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "support/pages.hpp"

namespace nn_cpu {
namespace {

struct Release {
  void operator()(char* memory) const { std::free(memory); }
};

struct Arena {
  std::unique_ptr<char, Release> memory;
  size_t capacity = 0;
  size_t used = 0;
  std::vector<std::unique_ptr<char, Release>> outgrown;  // still referenced by an enclosing Scratch

  void reserve(size_t bytes) {
    if (bytes <= capacity) return;
    const size_t rounded = (bytes + bytes / 4 + 4095) / 4096 * 4096;
    auto* fresh = static_cast<char*>(allocate_pages(rounded));
    if (fresh == nullptr) throw std::bad_alloc();
    if (used > 0) outgrown.push_back(std::move(memory));
    memory.reset(fresh);
    capacity = rounded;
  }
};

Arena& arena() {
  thread_local Arena instance;
  return instance;
}

}  // namespace

Scratch::Scratch(size_t bytes) : start_(arena().used), end_(start_ + bytes) {
  arena().reserve(end_);
  arena().used = end_;
  end_ = start_;
}

Scratch::~Scratch() {
  arena().used = start_;
  if (start_ == 0) arena().outgrown.clear();
}

void* Scratch::take_bytes(size_t bytes) {
  void* piece = arena().memory.get() + end_;
  end_ += (bytes + 63) / 64 * 64;
  return piece;
}

}  // namespace nn_cpu
