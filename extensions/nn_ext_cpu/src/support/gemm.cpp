#include "support/gemm.hpp"

#include <stdexcept>

#include "support/parallel.hpp"

#ifdef NN_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

namespace nn_cpu {

#ifdef NN_ONEDNN

bool has_gemm() { return true; }

void gemm(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, float beta, float* c, int64_t ldc) {
  adopt_num_threads();
  const dnnl_status_t status = dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0f, a.data, a.ld,
                                          b.data, b.ld, beta, c, ldc);
  if (status != dnnl_success) throw std::runtime_error("dnnl_sgemm must succeed, got status " + std::to_string(status));
}

#else

bool has_gemm() { return false; }

void gemm(int64_t, int64_t, int64_t, Matrix, Matrix, float, float*, int64_t) {
  throw std::runtime_error("matrix products need oneDNN, got a build without it");
}

#endif

}  // namespace nn_cpu
