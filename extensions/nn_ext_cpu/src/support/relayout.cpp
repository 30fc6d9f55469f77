#include "support/relayout.hpp"

#include "support/scratch.hpp"
#include "support/vector.hpp"
#include "support/walk.hpp"

namespace nn_cpu {
namespace {

/// An image in another layout than the operation wants.
struct Image {
  size_t position;
  bool is_output;
  int64_t size;
  Walk walk;  // in the order of the operation's layout; strides[0]: the operation's, strides[1]: the array's
};

template <class T>
class Relayout : public Op {
 public:
  Relayout(std::unique_ptr<Op> inner, size_t n_arrays, std::vector<Image> images)
      : inner_(std::move(inner)), n_arrays_(n_arrays), images_(std::move(images)) {
    for (const Image& image : images_) bytes_ += Scratch::bytes<T>(image.size);
  }

  void run(void* const* arrays) const override {
    Scratch scratch(bytes_);
    std::vector<void*> inner(arrays, arrays + n_arrays_);
    for (const Image& image : images_) {
      auto* copy = scratch.take<T>(image.size);
      inner[image.position] = copy;
      if (image.is_output || image.size == 0) continue;
      gather(image.walk.shape, image.walk.strides[1], static_cast<const T*>(arrays[image.position]), 0, image.size,
             copy);
    }
    inner_->run(inner.data());
    for (const Image& image : images_) {
      if (!image.is_output || image.size == 0) continue;
      scatter(image.walk.shape, image.walk.strides[1], static_cast<const T*>(inner[image.position]), 0, image.size,
              static_cast<T*>(arrays[image.position]));
    }
  }

  bool independent_of_threads() const override { return true; }

  std::string implementation() const override { return inner_->implementation(); }

  double cost() const override { return inner_->cost() + static_cast<double>(bytes_); }

 private:
  std::unique_ptr<Op> inner_;
  size_t n_arrays_;
  std::vector<Image> images_;
  size_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<Op> with_alike_images(const Signature& signature, Factory factory, std::initializer_list<size_t> inputs,
                                      std::initializer_list<size_t> outputs) {
  bool all_contiguous = true, all_channels_last = true;
  for (const auto& positions : {inputs, outputs}) {
    for (const size_t position : positions) {
      if (!signature.has(position)) continue;
      all_contiguous &= signature.arrays[position]->contiguous();
      all_channels_last &= signature.arrays[position]->channels_last();
    }
  }
  if (all_contiguous || all_channels_last) return factory(signature);
  Signature alike = signature;
  std::vector<Image> images;
  DType dtype = DType::kFloat32;  // all images have one
  const auto convert = [&](size_t position, bool is_output) {
    if (!signature.has(position) || signature.arrays[position]->channels_last()) return;
    const ArrayDesc& desc = *signature.arrays[position];
    dtype = desc.dtype;
    alike.arrays[position]->strides = channels_last_strides(desc.shape);
    images.push_back(
        {position, is_output, desc.size(), Walk(desc.shape, {alike.arrays[position]->strides, desc.strides}, 0)});
  };
  for (const size_t position : inputs) convert(position, false);
  for (const size_t position : outputs) convert(position, true);
  auto op = factory(alike);
  if (dtype == DType::kBFloat16)
    return std::make_unique<Relayout<Bf16>>(std::move(op), signature.arrays.size(), std::move(images));
  if (dtype == DType::kFloat64)
    return std::make_unique<Relayout<double>>(std::move(op), signature.arrays.size(), std::move(images));
  return std::make_unique<Relayout<float>>(std::move(op), signature.arrays.size(), std::move(images));
}

}  // namespace nn_cpu
