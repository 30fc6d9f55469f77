// Normalization of rows in one launch (see rows.cuh): x to (x - mean) / sqrt(variance + eps), times gamma, plus beta.
//
// A row is `length` neighbouring elements. Element k of row r has the parameters number
//   r % period * stride + k / run,
// which covers parameters for each element (layer normalization), for each row (instance) and for each run of a row
// (group). Statistics are taken in two passes in R, the mean around the first element: so the mean of equal elements is
// that element. KEEP elements of a row are held in registers by each thread, so that memory is read once; 0: rows are too
// long for that and are read again. With SUMS, which needs KEEP, x is the sum of two arrays, which is written too; of
// gradients, that of x is added to another array.

#define PARAMETER(k) (parameter + (k) / run)
#if KEEP
#define FOR_ROW for (int j = 0; j < KEEP; ++j) if (const int64 k = LANE + j * int64(LANES); k < length)
#define HELD(name, array) R name[KEEP]; FOR_ROW name[j] = live ? R(load(array[start + k])) : R(0);
#define X kept_x[j]
#define DY kept_dy[j]
#else
#define FOR_ROW if (live) for (int64 k = LANE; k < length; k += LANES)
#define HELD(name, array)
#define X R(load(x[start + k]))
#define DY R(load(dy[start + k]))
#endif

extern "C" __global__ void normalize_rows(
    int64 n_rows, int64 length, int64 period, int64 stride, int64 run, R eps, const T* x, const T* beta, const T* gamma,
    T* y, R* means, R* variances
#if SUMS
    , const T* other, T* sum
#endif
) {
  extern __shared__ R shared[];
  const bool live = ROW < n_rows;
  const int64 start = ROW * length, parameter = ROW % period * stride;
  HELD(kept_x, x)
  R origin = live ? R(load(x[start])) : R(0);
#if SUMS
  if (live) {
    T first;
    store(first, origin + R(load(other[start])));
    origin = R(load(first));
  }
  __syncthreads();  // the sum may take the place of one of the two
  FOR_ROW if (live) {
    T total;  // as others read it
    store(total, kept_x[j] + R(load(other[start + k])));
    sum[start + k] = total;
    kept_x[j] = R(load(total));
  }
#endif
  if (!(origin - origin == R(0))) origin = 0;
  R a = 0;
  FOR_ROW a += X - origin;
  const R mean = origin + combined(a, shared, Sum()) / length;
  a = 0;
  FOR_ROW { const R d = X - mean; a += d * d; }
  const R variance = combined(a, shared, Sum()) / length, scale = 1 / sqrt(variance + eps);
  if (!live) return;
  if (LANE == 0 && means) means[ROW] = mean, variances[ROW] = variance;
  FOR_ROW {
    R value = (X - mean) * scale;
    if (gamma) value *= R(load(gamma[PARAMETER(k)]));
    if (beta) value += R(load(beta[PARAMETER(k)]));
    store(y[start + k], value);
  }
}

extern "C" __global__ void normalize_rows_backward(
    int64 n_rows, int64 length, int64 period, int64 stride, int64 run, R eps, const T* x, const T* gamma,
    const R* means, const R* variances, const T* dy, T* dx) {
  extern __shared__ R shared[];
  const bool live = ROW < n_rows;
  const int64 start = ROW * length, parameter = ROW % period * stride;
  HELD(kept_x, x)
  HELD(kept_dy, dy)
  const R mean = live ? means[ROW] : R(0), scale = live ? 1 / sqrt(variances[ROW] + eps) : R(0);
  R shift = 0, stretch = 0;
  FOR_ROW {
    const R g = DY * (gamma && live ? R(load(gamma[PARAMETER(k)])) : R(1));
    shift += g;
    stretch += g * (X - mean);
  }
  shift = combined(shift, shared, Sum()) / length;
  stretch = combined(stretch, shared, Sum()) * scale * scale / length;
  if (!live) return;
  FOR_ROW {
    const R g = DY * (gamma ? R(load(gamma[PARAMETER(k)])) : R(1));
    store(dx[start + k], (g - shift - (X - mean) * stretch) * scale);
  }
}

#if KEEP
// The gradients with parameters for each element, by one reading. A block goes through rows that are as far apart as the rows of
// all blocks. Each of its rows of threads writes what it has summed of dy, and of dy times the standardized values, to a row of
// `beta_parts` and `gamma_parts`.
extern "C" __global__ void normalize_rows_gradients(
    int64 n_rows, int64 length, R eps, const T* x, const T* gamma, const R* means, const R* variances, const T* dy, T* dx,
    R* beta_parts, R* gamma_parts
#if SUMS
    , const T* other
#endif
) {
  extern __shared__ R shared[];
  R beta_sums[KEEP] = {}, gamma_sums[KEEP] = {};
  const int64 n_parallel = int64(gridDim.x) * blockDim.y;
  for (int64 first = blockIdx.x * int64(blockDim.y); first < n_rows; first += n_parallel) {
    const int64 row = first + ROW_OF_BLOCK, start = row * length;
    const bool live = row < n_rows;
    HELD(kept_x, x)
    HELD(kept_dy, dy)
    const R mean = live ? means[row] : R(0), scale = live ? 1 / sqrt(variances[row] + eps) : R(0);
    R shift = 0, stretch = 0;
    FOR_ROW {
      const R g = DY * (gamma ? R(load(gamma[k])) : R(1));
      shift += g;
      stretch += g * (X - mean);
      beta_sums[j] += DY;
      gamma_sums[j] += DY * ((X - mean) * scale);
    }
    shift = combined(shift, shared, Sum()) / length;
    stretch = combined(stretch, shared, Sum()) * scale * scale / length;
    FOR_ROW if (live) {
      R value = (DY * (gamma ? R(load(gamma[k])) : R(1)) - shift - (X - mean) * stretch) * scale;
#if SUMS
      value += R(load(other[start + k]));
#endif
      store(dx[start + k], value);
    }
  }
  const int64 own = (blockIdx.x * int64(blockDim.y) + ROW_OF_BLOCK) * length;
  FOR_ROW {
    if (beta_parts) beta_parts[own + k] = beta_sums[j];
    if (gamma_parts) gamma_parts[own + k] = gamma_sums[j];
  }
}
#endif
