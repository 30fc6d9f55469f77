// Copies between strided views: what transposing, slicing, joining, repeating and padding are made of.
//   copies   any arrays of one item size; settings:
//     fills    places of arrays that are set to `value` first
//     copies   for each copy: source place, source offset, target place, target offset, rank, shape, source strides,
//              target strides (in elements; a source stride may be 0 or negative)
// O(elements); transposed planes are copied in square tiles so that both sides use whole cache lines.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/register.hpp"
#include "kernels/tiled.hpp"
#include "support/bfloat16.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/vector.hpp"
#include "support/walk.hpp"

namespace nn_cpu {
namespace {

constexpr int64_t kGrain = 32768;  // elements a thread

/// Elements along an axis that are transposed together; vectors take more, so that lines of cache follow one another.
template <class T>
constexpr int64_t kTileOf = sizeof(T) >= 4 ? 64 : 16;

struct Copy {
  int64_t source, source_offset, target, target_offset;
  Walk walk;  // strides[0]: target, strides[1]: source
};

/// Reads one copy from `numbers` at `next`, which moves past it.
Copy read_copy(const Dims& numbers, size_t& next) {
  NN_CHECK(next + 5 <= numbers.size(), "copies must be complete, got " << numbers.size() << " numbers");
  const auto take = [&](int64_t n) {
    NN_CHECK(next + n <= numbers.size(), "copies must be complete, got " << numbers.size() << " numbers");
    const Dims part(numbers.begin() + static_cast<int64_t>(next), numbers.begin() + static_cast<int64_t>(next) + n);
    next += n;
    return part;
  };
  const Dims head = take(5);
  const Dims shape = take(head[4]), source = take(head[4]), target = take(head[4]);
  return {head[0], head[1], head[2], head[3], Walk(shape, {target, source}, 0)};
}

/// An axis along which the source is contiguous while the target is along the last one, or -1.
int64_t transposed_axis(const Walk& walk) {
  const Dims &target = walk.strides[0], &source = walk.strides[1];
  const size_t last = walk.shape.size() - 1;
  if (last == 0 || target[last] != 1 || source[last] == 1 || source[last] == 0) return -1;
  for (size_t axis = 0; axis < last; ++axis) {
    if (source[axis] == 1) return static_cast<int64_t>(axis);
  }
  return -1;
}

template <class T>
void copy_runs(const Walk& walk, const T* source, T* target) {
  const int64_t to_step = walk.strides[0].back(), from_step = walk.strides[1].back();
  parallel_for(walk.size, kGrain, [&](int64_t begin, int64_t end, int) {
    for_each_run_of<2>(walk.shape, {&walk.strides[0], &walk.strides[1]}, begin, end - begin,
                       [&](const auto& offsets, int64_t, int64_t length) {
                         T* y = target + offsets[0];
                         const T* x = source + offsets[1];
                         if (to_step == 1 && from_step == 1) {
                           std::memcpy(y, x, length * sizeof(T));
                         } else if (to_step == 1 && from_step == 0) {
                           std::fill_n(y, length, *x);
                         } else if (to_step == 1 && from_step == -1) {
                           std::reverse_copy(x - length + 1, x + 1, y);
                         } else {
                           for (int64_t i = 0; i < length; ++i) y[i * to_step] = x[i * from_step];
                         }
                       });
  });
}

/// Copies source (columns, rows) to target (rows, columns); the distances are those of lines.
template <class T>
void copy_tile(const T* source, int64_t source_line, T* target, int64_t target_line, int64_t rows, int64_t columns) {
  if constexpr (sizeof(T) >= 4) {
    if (std::min(rows, columns) >= 8) {                                  // parts of vectors are written slowly
      using Number = std::conditional_t<sizeof(T) == 4, float, double>;  // of which only the bits are moved
      number_loops<Number>().transpose(reinterpret_cast<const Number*>(source), columns, rows, source_line,
                                       reinterpret_cast<Number*>(target), target_line);
      return;
    }
  }
  for (int64_t column = 0; column < columns; column += kTileOf<T>) {
    const int64_t stop = std::min(columns, column + kTileOf<T>);
    for (int64_t row = 0; row < rows; ++row) {
      T* y = target + row * target_line;
      const T* x = source + row;
      for (int64_t i = column; i < stop; ++i) y[i] = x[i * source_line];
    }
  }
}

template <class T>
void copy_tiles(const Walk& walk, int64_t axis, const T* source, T* target) {
  constexpr int64_t kTile = kTileOf<T>;
  const int64_t last = static_cast<int64_t>(walk.shape.size()) - 1;
  const Dims &to = walk.strides[0], &from = walk.strides[1];
  const int64_t rows = walk.shape[axis], columns = walk.shape[last];
  const int64_t tiles = (rows + kTile - 1) / kTile;
  const int64_t planes = walk.size / (rows * columns);
  parallel_for(planes * tiles, std::max<int64_t>(1, kGrain / (kTile * columns)), [&](int64_t begin, int64_t end, int) {
    for (int64_t item = begin; item < end; ++item) {
      int64_t plane = item / tiles, to_plane = 0, from_plane = 0;
      for (int64_t k = last - 1; k >= 0; --k) {
        if (k == axis) continue;
        to_plane += plane % walk.shape[k] * to[k];
        from_plane += plane % walk.shape[k] * from[k];
        plane /= walk.shape[k];
      }
      const int64_t first = item % tiles * kTile, stop = std::min(rows, first + kTile);
      copy_tile(source + from_plane + first, from[last], target + to_plane + first * to[axis], to[axis], stop - first,
                columns);
    }
  });
}

template <class T>
T number(double value) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return to_bfloat16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
class Copies : public Op, public Transposition {
 public:
  explicit Copies(const Signature& s) : value_(number<T>(s.args.get<double>("value"))) {
    for (const int64_t place : s.args.dims("fills")) {
      NN_CHECK(s.has(place) && s.arrays[place]->dense(),
               "array " << place << " must be dense to be filled, got another layout");
      fills_.emplace_back(place, s.arrays[place]->size());
      size_ += fills_.back().second;
    }
    const Dims& numbers = s.args.dims("copies");
    for (size_t next = 0; next < numbers.size();) {
      copies_.push_back(read_copy(numbers, next));
      NN_CHECK(s.has(copies_.back().source) && s.has(copies_.back().target),
               "arrays of a copy must be given, got none");
      size_ += copies_.back().walk.size;
    }
  }

  void run(void* const* arrays) const override {
    for (const auto& [place, size] : fills_) std::fill_n(static_cast<T*>(arrays[place]), size, value_);
    for (const Copy& copy : copies_) {
      if (copy.walk.size == 0) continue;
      const T* source = static_cast<const T*>(arrays[copy.source]) + copy.source_offset;
      T* target = static_cast<T*>(arrays[copy.target]) + copy.target_offset;
      const int64_t axis = transposed_axis(copy.walk);
      if (axis >= 0) {
        copy_tiles(copy.walk, axis, source, target);
      } else {
        copy_runs(copy.walk, source, target);
      }
    }
  }

  bool independent_of_threads() const override { return true; }

  std::optional<Matrices> matrices() const override {
    if (copies_.size() != 1 || !fills_.empty()) return std::nullopt;
    const Copy& copy = copies_.front();
    const Dims &shape = copy.walk.shape, &to = copy.walk.strides[0], &from = copy.walk.strides[1];
    const size_t n = shape.size();
    if ((n != 2 && n != 3) || copy.walk.size == 0) return std::nullopt;
    const int64_t rows = shape[n - 2], columns = shape[n - 1];
    if (to[n - 1] != 1 || to[n - 2] != columns || from[n - 2] != 1 || from[n - 1] != rows) return std::nullopt;
    if (n == 3 && (to[0] != rows * columns || from[0] != rows * columns)) return std::nullopt;
    const auto bytes = static_cast<int64_t>(sizeof(T));
    return Matrices{n == 3 ? shape[0] : 1,
                    rows,
                    columns,
                    bytes,
                    static_cast<size_t>(copy.source),
                    static_cast<size_t>(copy.target),
                    copy.source_offset * bytes,
                    copy.target_offset * bytes};
  }

  void run_tile(const void* source, int64_t source_line, void* target, int64_t target_line, int64_t rows,
                int64_t columns) const override {
    copy_tile(static_cast<const T*>(source), source_line, static_cast<T*>(target), target_line, rows, columns);
  }

  double cost() const override { return 50 + 0.4 * static_cast<double>(size_); }

 private:
  T value_;
  std::vector<std::pair<int64_t, int64_t>> fills_;
  std::vector<Copy> copies_;
  int64_t size_ = 0;
};

/// Picks the class by the item size of the arrays, which is all that a copy has to know.
std::unique_ptr<Op> make_copies(const Signature& s) {
  int64_t bytes = 0;
  bool floating = false;
  for (const auto& desc : s.arrays) {
    if (!desc) continue;
    NN_CHECK(bytes == 0 || bytes == item_size(desc->dtype), "arrays must have one item size, got several");
    bytes = item_size(desc->dtype);
    floating = desc->dtype == DType::kFloat32 || desc->dtype == DType::kFloat64;
  }
  if (bytes == 8) return floating ? make<Copies<double>>(s) : make<Copies<int64_t>>(s);
  if (bytes == 4) return floating ? make<Copies<float>>(s) : make<Copies<int32_t>>(s);
  if (bytes == 2) return make<Copies<Bf16>>(s);
  return make<Copies<uint8_t>>(s);
}

}  // namespace

void register_copy(Registry& registry) { registry.add("copies", make_copies); }

}  // namespace nn_cpu
