// Normalization of rows in one launch (see rows.cuh): x to (x - mean) / sqrt(variance + eps), times gamma, plus beta.
//
// A row is `length` neighbouring elements. Element k of row r has the parameters number
//   r % period * stride + k / run,
// which covers parameters for each element (layer normalization), for each row (instance) and for each run of a row
// (group). Statistics are taken in two passes in R. KEEP elements of a row are held in registers by each thread, so that
// memory is read once; 0: rows are too long for that and are read again.

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
    T* y, R* means, R* variances) {
  extern __shared__ R shared[];
  const bool live = ROW < n_rows;
  const int64 start = ROW * length, parameter = ROW % period * stride;
  HELD(kept_x, x)
  R a = 0;
  FOR_ROW a += X;
  const R mean = combined(a, shared, Sum()) / length;
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
