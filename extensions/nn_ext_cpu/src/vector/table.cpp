// Collects the loops of one instruction set into a table.
#include "support/vector.hpp"

namespace nn_cpu::NN_ISA {

template <class T>
BlockTable<T> pointwise();
template <class T>
UpdateTable<T> updates();
template <class T>
double sum(const T*, int64_t);
template <class T>
double sum_of_squares(const T*, int64_t);
template <class T>
double dot(const T*, const T*, int64_t);
template <class T>
T max(const T*, int64_t);
template <class T>
T min(const T*, int64_t);
template <class T>
void add_to_double(const T*, double*, int64_t);
template <class T>
void scale_row(const T*, int64_t, T, T*);
template <class T>
void row_sums(const T*, int64_t, int64_t, double, T*);
template <class T>
void lane_sums(const T*, int64_t, int64_t, int64_t, double, T*);
template <class T>
double exp_sum(const T*, T, T*, int64_t);
template <class T>
int64_t tile_columns();
template <class T>
void pack_rows(const T*, int64_t, bool, int64_t, int64_t, T*);
template <class T>
void pack_columns(const T*, int64_t, bool, int64_t, int64_t, T*);
template <class T>
void block_product(int64_t, int64_t, int64_t, const T*, const T*, bool, const T*, T*, int64_t);
template <class T>
void max_pool(const PoolShape&, const T*, T*, int64_t);
template <class T>
void max_pool_backward(const PoolShape&, const T*, const T*, T*, int64_t);
template <class T>
void sum_pool(const PoolShape&, const T*, T*, int64_t);
template <class T>
void sum_pool_backward(const PoolShape&, const T*, T*, int64_t);
template <class T>
void softmax_lanes(bool, const T*, int64_t, int64_t, int64_t, T*);
template <class T>
void softmax_lanes_gradient(bool, const T*, const T*, int64_t, int64_t, int64_t, T*);
template <class T>
void axpy(T, const T*, T*, int64_t);
template <class T>
void add_to(const T*, T*, int64_t);
template <class T>
void standardize(const T*, int64_t, T, T, T, T*);
template <class T>
void standardize_each(const T*, int64_t, T, T, const T*, const T*, T*);
template <class T>
void standardize_products(const T*, const T*, const T*, int64_t, T, double*, double*);
template <class T>
void standardize_gradient(const T*, const T*, T, const T*, int64_t, T, T, T, T, T*);
template <class T>
void add_standardized(const T*, const T*, int64_t, T, T, T*);
template <class T>
void standardize_short(const T*, int64_t, int64_t, T, const T*, const T*, T*, T*, T*);
template <class T>
void standardize_short_gradient(const T*, const T*, const T*, int64_t, int64_t, T, const T*, const T*, T*, T*, T*);
extern const int64_t kTileRows;
template <class T>
RowLoops<T> row_loops();
CellTable cells();
void philox(uint64_t, uint64_t, uint64_t, int64_t, uint32_t*);
void drop(const float*, const uint32_t*, uint32_t, float, int64_t, float*, float*);
void draw_uniform(const uint32_t*, double, double, int64_t, float*);
void draw_normal(const uint32_t*, double, double, int64_t, float*);
void draw_below(const uint32_t*, int64_t, uint64_t, int64_t, int64_t*);
void product(int64_t, int64_t, int64_t, const float*, int64_t, int64_t, const float*, int64_t, bool, const float*,
             float*, int64_t);
template <class T>
void streamed_product(int64_t, int64_t, int64_t, const T*, int64_t, int64_t, const T*, int64_t, T*, int64_t);
void panel_product(int64_t, int64_t, int64_t, const float*, int64_t, const float*, bool, float*, int64_t);
template <class T>
void dot_product(int64_t, int64_t, int64_t, const T*, int64_t, const T*, int64_t, bool, T*, int64_t);
template <class T>
void slide(const SlideShape&, const T*, const T*, T*);
template <class T>
void slide_gradient(const SlideShape&, const T*, const T*, double*);
template <class T>
void transpose(const T*, int64_t, int64_t, int64_t, T*, int64_t);
const IntegerLoops& integers();
WinogradLoops winograd4();
WinogradLoops winograd2();
void extremum(bool, const float*, int64_t, int64_t, int64_t, float*, int32_t*);
void extremum_gradient(const float*, const float*, const float*, int64_t, int64_t, int64_t, float*);
void running_sum(bool, bool, const float*, int64_t, int64_t, int64_t, float*);
void running_product(bool, bool, const float*, int64_t, int64_t, int64_t, float*);
void running_product_gradient(bool, bool, const float*, const float*, int64_t, int64_t, int64_t, float*);
void product_of(const float*, int64_t, int64_t, int64_t, float*);
void product_gradient(const float*, const float*, int64_t, int64_t, int64_t, float*);
int32_t count_reaching(const float*, int64_t, float);
void counts_reaching(const float*, int64_t, int64_t, int64_t, const float*, int32_t*);
template <class T>
void softmax_row_gradient(bool, const T*, const T*, T, int64_t, T*);
void highest_ranks(bool, bool, const float*, int64_t, int64_t, float*);
int64_t places_reaching(bool, bool, const float*, int64_t, float, int64_t, int32_t*);
void fourier_stage(int64_t, int64_t, int64_t, const float*, const float*, const float*, const float*, float*, float*);
void resample_row(const float*, int64_t, const int32_t*, const float*, int64_t, float*);
void sample_row(const float*, int64_t, const int32_t*, const float*, int64_t, float*);
void add_sampled_products(const float*, const int32_t*, const float*, int64_t, float*);
void mix_rows(const float*, float, const float*, float, int64_t, float*);
uint64_t checksum(const float*, int64_t, uint64_t);
void widen(const Bf16*, int64_t, float*);
void narrow(const float*, int64_t, Bf16*);
void round(int64_t, float*);
void copy_places(const float*, const int32_t*, int64_t, float*);
void narrow_places(const float*, const int32_t*, int64_t, Bf16*);

namespace {

template <class T>
NumberLoops<T> number_loops() {
  NumberLoops<T> loops{};
  loops.pointwise = pointwise<T>;
  loops.updates = updates<T>;
  loops.sum = sum<T>;
  loops.sum_of_squares = sum_of_squares<T>;
  loops.dot = dot<T>;
  loops.max = max<T>;
  loops.min = min<T>;
  loops.add_to_double = add_to_double<T>;
  loops.scale = scale_row<T>;
  loops.row_sums = row_sums<T>;
  loops.lane_sums = lane_sums<T>;
  loops.exp_sum = exp_sum<T>;
  loops.max_pool = max_pool<T>;
  loops.max_pool_backward = max_pool_backward<T>;
  loops.sum_pool = sum_pool<T>;
  loops.sum_pool_backward = sum_pool_backward<T>;
  loops.softmax_lanes = softmax_lanes<T>;
  loops.softmax_lanes_gradient = softmax_lanes_gradient<T>;
  loops.axpy = axpy<T>;
  loops.softmax_row_gradient = softmax_row_gradient<T>;
  loops.standardize_short = standardize_short<T>;
  loops.standardize_short_gradient = standardize_short_gradient<T>;
  loops.slide = slide<T>;
  loops.slide_gradient = slide_gradient<T>;
  loops.transpose = transpose<T>;
  loops.streamed_product = streamed_product<T>;
  loops.dot_product = dot_product<T>;
  loops.add_to = add_to<T>;
  loops.standardize = standardize<T>;
  loops.standardize_each = standardize_each<T>;
  loops.standardize_products = standardize_products<T>;
  loops.standardize_gradient = standardize_gradient<T>;
  loops.add_standardized = add_standardized<T>;
  loops.tile_rows = kTileRows;
  loops.tile_columns = tile_columns<T>();
  loops.pack_rows = pack_rows<T>;
  loops.pack_columns = pack_columns<T>;
  loops.block_product = block_product<T>;
  return loops;
}

}  // namespace

VectorTable table(const char* isa) {
  VectorTable table{};
  static_cast<NumberLoops<float>&>(table) = number_loops<float>();
  table.wide = number_loops<double>();
  table.isa = isa;
  table.rows = row_loops<float>();
  table.narrow_rows = row_loops<Bf16>();
  table.wide_rows = row_loops<double>();
  table.cells = cells;
  table.philox = philox;
  table.drop = drop;
  table.draw_uniform = draw_uniform;
  table.draw_normal = draw_normal;
  table.draw_below = draw_below;
  table.product = product;
  table.panel_product = panel_product;
  table.integers = &integers();
  table.winograd4 = winograd4();
  table.winograd2 = winograd2();
  table.extremum = extremum;
  table.extremum_gradient = extremum_gradient;
  table.running_sum = running_sum;
  table.running_product = running_product;
  table.running_product_gradient = running_product_gradient;
  table.product_of = product_of;
  table.product_gradient = product_gradient;
  table.count_reaching = count_reaching;
  table.counts_reaching = counts_reaching;
  table.highest_ranks = highest_ranks;
  table.places_reaching = places_reaching;
  table.fourier_stage = fourier_stage;
  table.resample_row = resample_row;
  table.sample_row = sample_row;
  table.add_sampled_products = add_sampled_products;
  table.mix_rows = mix_rows;
  table.checksum = checksum;
  table.widen = widen;
  table.narrow = narrow;
  table.round = round;
  table.copy_places = copy_places;
  table.narrow_places = narrow_places;
  return table;
}

}  // namespace nn_cpu::NN_ISA
