// Collects the loops of one instruction set into a table.
#include "support/vector.hpp"

namespace nn_cpu::NN_ISA {

BlockTable pointwise();
UpdateTable updates();
CellTable cells();
double sum(const float*, int64_t);
double sum_of_squares(const float*, int64_t);
double dot(const float*, const float*, int64_t);
double centered_squares(const float*, float, int64_t);
float max(const float*, int64_t);
float min(const float*, int64_t);
void add_to_double(const float*, double*, int64_t);
void axpy(float, const float*, float*, int64_t);
void add_to(const float*, float*, int64_t);
void column_moments(const float*, int64_t, int64_t, const float*, double*, double*);
void row_moments(const float*, int64_t, float, double*, double*);
void column_products(const float*, const float*, const float*, int64_t, int64_t, const float*, double*, double*);
void row_products(const float*, const float*, const float*, int64_t, float, double*, double*);
void column_affine(const float*, const float*, int64_t, int64_t, const float*, const float*, bool, float*);
void row_affine(const float*, const float*, int64_t, float, float, bool, float*);
void column_gradient(const float*, const float*, const float*, int64_t, int64_t, const float*, const float*, const float*, float*);
void row_gradient(const float*, const float*, const float*, int64_t, float, float, float, float*);
void philox(uint64_t, uint64_t, uint64_t, int64_t, uint32_t*);
void drop(const float*, const uint32_t*, uint32_t, float, int64_t, float*, float*);
void max_pool(const PoolShape&, const float*, float*, int64_t);
void max_pool_backward(const PoolShape&, const float*, const float*, float*, int64_t);
void sum_pool(const PoolShape&, const float*, float*, int64_t);
void sum_pool_backward(const PoolShape&, const float*, float*, int64_t);
void product(int64_t, int64_t, int64_t, const float*, int64_t, int64_t, const float*, int64_t, bool, const float*, float*, int64_t);
void dot_product(int64_t, int64_t, int64_t, const float*, int64_t, const float*, int64_t, bool, float*, int64_t);
void transpose(const float*, int64_t, int64_t, int64_t, float*, int64_t);
void winograd_input(const float* const*, int64_t, float*, int64_t);
void winograd_filter(const float* const*, int64_t, float*, int64_t, int64_t);
void winograd_output(const float*, int64_t, int64_t, const float*, float* const*);
void winograd_gradient(const float* const*, int64_t, float*, int64_t, int64_t);
void winograd_weight(const float*, int64_t, int64_t, int64_t, float* const*);
void extremum(bool, const float*, int64_t, int64_t, int64_t, float*, int32_t*);
void extremum_gradient(const float*, const float*, const float*, int64_t, int64_t, int64_t, float*);
void running_sum(bool, bool, const float*, int64_t, int64_t, int64_t, float*);
void running_product(bool, bool, const float*, int64_t, int64_t, int64_t, float*);
void product_of(const float*, int64_t, int64_t, int64_t, float*);
void product_gradient(const float*, const float*, int64_t, int64_t, int64_t, float*);
void standardize(const float*, int64_t, float, float, float, float*);
void standardize_each(const float*, int64_t, float, float, const float*, const float*, float*);
void standardize_products(const float*, const float*, const float*, int64_t, float, double*, double*);
void standardize_gradient(const float*, const float*, float, const float*, int64_t, float, float, float, float, float*);
void add_standardized(const float*, const float*, int64_t, float, float, float*);
uint64_t checksum(const float*, int64_t, uint64_t);
double exp_sum(const float*, float, float*, int64_t);

VectorTable table(const char* isa) {
  VectorTable table{};
  table.isa = isa;
  table.pointwise = pointwise;
  table.updates = updates;
  table.cells = cells;
  table.sum = sum;
  table.sum_of_squares = sum_of_squares;
  table.dot = dot;
  table.centered_squares = centered_squares;
  table.max = max;
  table.min = min;
  table.add_to_double = add_to_double;
  table.axpy = axpy;
  table.add_to = add_to;
  table.column_moments = column_moments;
  table.row_moments = row_moments;
  table.column_products = column_products;
  table.row_products = row_products;
  table.column_affine = column_affine;
  table.row_affine = row_affine;
  table.column_gradient = column_gradient;
  table.row_gradient = row_gradient;
  table.philox = philox;
  table.drop = drop;
  table.max_pool = max_pool;
  table.max_pool_backward = max_pool_backward;
  table.sum_pool = sum_pool;
  table.sum_pool_backward = sum_pool_backward;
  table.product = product;
  table.dot_product = dot_product;
  table.transpose = transpose;
  table.winograd_input = winograd_input;
  table.winograd_filter = winograd_filter;
  table.winograd_output = winograd_output;
  table.winograd_gradient = winograd_gradient;
  table.winograd_weight = winograd_weight;
  table.extremum = extremum;
  table.extremum_gradient = extremum_gradient;
  table.running_sum = running_sum;
  table.running_product = running_product;
  table.product_of = product_of;
  table.product_gradient = product_gradient;
  table.standardize = standardize;
  table.standardize_each = standardize_each;
  table.standardize_products = standardize_products;
  table.standardize_gradient = standardize_gradient;
  table.add_standardized = add_standardized;
  table.checksum = checksum;
  table.exp_sum = exp_sum;
  return table;
}

}  // namespace nn_cpu::NN_ISA
