// Working memory of one thread: operations run one after another, so all of them share one block.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nn_cpu {

/// Hands out 64-byte aligned pieces of a block that belongs to the calling thread and only grows.
/// Pieces live until the Scratch that gave them is destroyed; a Scratch is made once per run of an operation.
class Scratch {
 public:
  explicit Scratch(size_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  template <class T>
  T* take(int64_t elements) {
    return static_cast<T*>(take_bytes(static_cast<size_t>(elements) * sizeof(T)));
  }

  /// Bytes that a piece of `elements` occupies; sum these for the constructor.
  template <class T>
  static size_t bytes(int64_t elements) {
    return (static_cast<size_t>(elements) * sizeof(T) + 63) / 64 * 64;
  }

 private:
  void* take_bytes(size_t bytes);
  size_t start_;
  size_t end_;
};

}  // namespace nn_cpu
