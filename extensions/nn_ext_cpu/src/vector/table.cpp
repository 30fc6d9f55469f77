// Collects the loops of one instruction set into a table.
#include "support/vector.hpp"

namespace nn_cpu::NN_ISA {

BlockTable pointwise();
double sum(const float*, int64_t);
double sum_of_squares(const float*, int64_t);
double dot(const float*, const float*, int64_t);
double centered_squares(const float*, float, int64_t);
float max(const float*, int64_t);
float min(const float*, int64_t);
void add_to_double(const float*, double*, int64_t);
void add_to(const float*, float*, int64_t);
double exp_sum(const float*, float, float*, int64_t);

VectorTable table(const char* isa) {
  return {isa, pointwise, sum, sum_of_squares, dot, centered_squares, max, min, add_to_double, add_to, exp_sum};
}

}  // namespace nn_cpu::NN_ISA
