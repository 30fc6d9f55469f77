/* CTC loss and its slope in float32, for one batch.

   x and slope (T, B, K); target (B, L); lengths (B), or NULL; loss (B); all in C order. nn_ext_contrib/operators/ctc.py says
   what is computed; here it is done with probabilities instead of logarithms, so that a step costs additions and
   multiplications only. Every position has an exponent of its own, set anew every WINDOW steps: no position underflows beside
   a likelier one, however far apart they are. A probability below SMALLEST would leave the range of double within a window;
   such calls are given back to the caller, as are wrong labels and lengths, infinities and NaN.

   Time O(B T (K + L)), memory O(T L), for one sample at a time.
   Graves et al. (2006), Connectionist temporal classification, section 4.1. */
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#define restrict __restrict
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { DONE = 0, GIVEN_BACK = 1 };

#define WINDOW 4
#define SMALLEST 1e-35f
#define HIGHEST 1000   /* exponents of double that leave room for sums */
#define LOWEST -500    /* and for products without denormal numbers, which are slow */
#define PADDING 2      /* places before and after the positions, always zero */
#define TOLERANCE 1e-4 /* how far the shares of a step may be from 1 in all: proves that nothing left the range */

/* 2**n for LOWEST <= n <= HIGHEST, and 0 beyond: below, it is lost beside what it is added to; above, it belongs to zeros. */
static double power_of_two(int n) {
  const uint64_t bits = (uint64_t)(n + 1023) << 52;
  double value;
  memcpy(&value, &bits, sizeof value);
  return n < LOWEST || n > HIGHEST ? 0.0 : value;
}

/* exp(x) for -87 <= x <= 0, and 0 below: reduction to |r| <= log(2) / 2 and a polynomial (Cephes, expf). */
static inline float power_of_e(float x) {
  const float shifted = x * 1.44269504f + 12582912.0f; /* 1.5 * 2**23: the last bits are the nearest whole number */
  const float n = shifted - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 127u) << 23;
  float scale;
  memcpy(&scale, &bits, sizeof scale);
  return x < -87.0f ? 0.0f : p * scale;
}

/* p = softmax(x); LANES partial results, which a compiler keeps in vectors. */
static void softmax(const float *restrict x, int64_t n_classes, float *restrict p) {
  enum { LANES = 8 };
  const int64_t whole = n_classes - n_classes % LANES;
  float best[LANES], sums[LANES] = {0.0f};
  for (int64_t j = 0; j < LANES; ++j) best[j] = x[0];
  for (int64_t k = 0; k < whole; k += LANES)
    for (int64_t j = 0; j < LANES; ++j) best[j] = x[k + j] > best[j] ? x[k + j] : best[j];
  float highest = best[0], total = 0.0f;
  for (int64_t j = 1; j < LANES; ++j) highest = best[j] > highest ? best[j] : highest;
  for (int64_t k = whole; k < n_classes; ++k) highest = x[k] > highest ? x[k] : highest;
  for (int64_t k = 0; k < n_classes; ++k) p[k] = power_of_e(x[k] - highest);
  for (int64_t k = 0; k < whole; k += LANES)
    for (int64_t j = 0; j < LANES; ++j) sums[j] += p[k + j];
  for (int64_t k = whole; k < n_classes; ++k) total += p[k];
  for (int64_t j = 0; j < LANES; ++j) total += sums[j];
  const float factor = 1.0f / total;
  for (int64_t k = 0; k < n_classes; ++k) p[k] *= factor;
}

/* One direction of one sample: `value` are mantissas at the beginning of a window, `from_one` and `from_two` the factors for what
   comes from one and from two positions before. */
typedef struct {
  double *value, *from_one, *from_two;
  const double *may_jump;
  int32_t *exponent;
} Direction;

/* Begin a window with mantissas in [0.5, 1); the exponent of an unreached position is that of the one before. `d` is 1 or -1. */
static inline void begin_window(Direction way, const double *reached, int64_t n, int d) {
  int64_t s = d > 0 ? 0 : n - 1;
  for (int64_t i = 0; i < n; ++i, s += d) {
    uint64_t bits;
    memcpy(&bits, &reached[s], sizeof bits);
    if (bits) {
      way.exponent[s] += (int32_t)(bits >> 52) - 1022;
      bits = (bits & 0x000FFFFFFFFFFFFFu) | ((uint64_t)1022 << 52);
    } else {
      way.exponent[s] = way.exponent[s - d];
    }
    memcpy(&way.value[s], &bits, sizeof bits);
    way.from_one[s] = power_of_two(way.exponent[s - d] - way.exponent[s]);
    way.from_two[s] = way.may_jump[s] * power_of_two(way.exponent[s - 2 * d] - way.exponent[s]);
  }
}

/* Memory for one sample of the batch. Arrays begin PADDING places before the first position. */
typedef struct {
  double *value, *from_one, *from_two, *may_jump, *e, *factor, *share, *reached, *spare;
  double *ahead; /* (T, places): probabilities of the beginnings of paths, as mantissas */
  int32_t *exponent, *exponents; /* (places), (windows, places) */
  int64_t n_places;
} Room;

static void *make_room(Room *room, int64_t n_steps, int64_t n_labels) {
  enum { PARTS = 9 };
  const size_t places = (size_t)(2 * n_labels + 1 + 2 * PADDING), windows = (size_t)(n_steps / WINDOW + 1);
  const size_t doubles = places * ((size_t)n_steps + PARTS);
  double *memory = calloc(1, doubles * sizeof(double) + places * (windows + 1) * sizeof(int32_t));
  if (!memory) return NULL;
  double **parts[PARTS] = {&room->value,  &room->from_one, &room->from_two, &room->may_jump, &room->e,
                           &room->factor, &room->share,    &room->reached,  &room->spare};
  for (size_t i = 0; i < PARTS; ++i) *parts[i] = memory + i * places + PADDING;
  room->ahead = memory + PARTS * places + PADDING;
  room->exponent = (int32_t *)(memory + doubles) + PADDING;
  room->exponents = room->exponent + places;
  room->n_places = (int64_t)places;
  return memory;
}

/* One sample: what the functions below share. */
typedef struct {
  float *slope;   /* of the first step; at first the softmax */
  int64_t stride; /* from step to step */
  const int64_t *labels;
  int64_t n_labels, blank, n_steps;
} Sample;

/* Probabilities of what the positions emit at a step; blanks have even numbers. */
static void emissions(const Sample *sample, int64_t t, double *e) {
  const float *p = sample->slope + t * sample->stride;
  const double of_blank = p[sample->blank];
  for (int64_t i = 0; i < sample->n_labels; ++i) {
    e[2 * i] = of_blank;
    e[2 * i + 1] = p[sample->labels[i]];
  }
  e[2 * sample->n_labels] = of_blank;
}

/* Forget the last sample, and start before the first step at position `s`: to stay and to move on lead to the two first ones. */
static void stand_at(const Room *room, int64_t s) {
  const size_t size = (size_t)room->n_places;
  double *const parts[] = {room->value, room->reached, room->spare};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) memset(parts[i] - PADDING, 0, size * sizeof(double));
  memset(room->exponent - PADDING, 0, size * sizeof(int32_t));
  room->reached[s] = 1.0;
}

/* The probability of the labels, as mantissa and exponent; fills room->ahead and room->exponents. */
static double run_ahead(const Room *room, const Sample *sample, int32_t *exponent) {
  const int64_t n = 2 * sample->n_labels + 1;
  const Direction way = {room->value, room->from_one, room->from_two, room->may_jump, room->exponent};
  const double *restrict e = room->e, *restrict one = way.from_one, *restrict two = way.from_two;
  stand_at(room, 0);
  const double *v = room->reached;
  for (int64_t t = 0; t < sample->n_steps; ++t) {
    if (t % WINDOW == 0) {
      begin_window(way, v, n, 1);
      memcpy(room->exponents + t / WINDOW * room->n_places, way.exponent, (size_t)n * sizeof(int32_t));
      v = way.value;
    }
    double *restrict next = room->ahead + t * room->n_places;
    emissions(sample, t, room->e);
    for (int64_t s = 0; s < n; ++s) next[s] = (v[s] + one[s] * v[s - 1] + two[s] * v[s - 2]) * e[s];
    v = next;
  }
  const int32_t last = way.exponent[n - 1], other = v[n - 2] > 0.0 ? way.exponent[n - 2] : last;
  *exponent = other > last || v[n - 1] == 0.0 ? other : last;
  return v[n - 1] * power_of_two(last - *exponent) + v[n - 2] * power_of_two(other - *exponent);
}

/* Subtract from the softmax what the paths emit at each step. */
static int run_back(const Room *room, const Sample *sample, double total, int32_t exponent) {
  const int64_t n = 2 * sample->n_labels + 1, last = sample->n_steps - 1;
  const Direction way = {room->value, room->from_one, room->from_two, room->may_jump + 2, room->exponent};
  const double *restrict e = room->e, *restrict one = way.from_one, *restrict two = way.from_two;
  double *restrict share = room->share, *restrict factor = room->factor;
  stand_at(room, n - 1);
  const double *v = room->reached;
  for (int64_t t = last; t >= 0; --t) {
    if (t == last || t % WINDOW == WINDOW - 1) {
      const int32_t *ahead = room->exponents + t / WINDOW * room->n_places;
      begin_window(way, v, n, -1);
      for (int64_t s = 0; s < n; ++s) factor[s] = power_of_two(ahead[s] + way.exponent[s] - exponent) / total;
      v = way.value;
    }
    const double *restrict ahead = room->ahead + t * room->n_places;
    double *restrict next = v == room->spare ? room->reached : room->spare;
    emissions(sample, t, room->e);
    for (int64_t s = 0; s < n; ++s) {
      const double sum = v[s] + one[s] * v[s + 1] + two[s] * v[s + 2];
      share[s] = ahead[s] * sum * factor[s];
      next[s] = sum * e[s];
    }
    float *p = sample->slope + t * sample->stride;
    double of_blank = share[n - 1], of_labels = 0.0;
    for (int64_t i = 0; i < sample->n_labels; ++i) {
      of_blank += share[2 * i];
      of_labels += share[2 * i + 1];
      p[sample->labels[i]] -= (float)share[2 * i + 1];
    }
    p[sample->blank] -= (float)of_blank;
    if (!(fabs(of_blank + of_labels - 1.0) < TOLERANCE)) return GIVEN_BACK;
    v = next;
  }
  return DONE;
}

/* Softmax of all steps; says whether the probabilities of labels are in the range that is computed with. */
static int prepare(const Room *room, const Sample *sample, const float *x, int64_t n_classes) {
  for (int64_t t = 0; t < sample->n_steps; ++t, x += sample->stride) {
    float *p = sample->slope + t * sample->stride;
    softmax(x, n_classes, p);
    int is_far = p[sample->blank] < SMALLEST && x[sample->blank] != -INFINITY;
    for (int64_t i = 0; i < sample->n_labels; ++i)
      is_far |= p[sample->labels[i]] < SMALLEST && x[sample->labels[i]] != -INFINITY;
    if (is_far) return GIVEN_BACK;
  }
  memset(room->may_jump - PADDING, 0, (size_t)room->n_places * sizeof(double));
  for (int64_t i = 1; i < sample->n_labels; ++i)
    room->may_jump[2 * i + 1] = sample->labels[i] != sample->labels[i - 1] && sample->labels[i] != sample->blank;
  return DONE;
}

static void fill(const Sample *sample, int64_t first, int64_t n_steps, int64_t n_classes) {
  for (int64_t t = first; t < n_steps; ++t) memset(sample->slope + t * sample->stride, 0, (size_t)n_classes * sizeof(float));
}

static int are_in_range(const int64_t *values, int64_t n, int64_t end) {
  for (int64_t i = 0; i < n; ++i)
    if (values[i] < 0 || values[i] >= end) return 0;
  return 1;
}

/* 0: done; else the caller has to compute all of it. */
EXPORT int nn_ext_contrib_ctc(const float *x, const int64_t *target, const int64_t *input_length, const int64_t *target_length,
                              int64_t n_steps, int64_t n_samples, int64_t n_classes, int64_t n_labels, int64_t blank,
                              float *loss, float *slope) {
  if ((input_length && !are_in_range(input_length, n_samples, n_steps + 1)) ||
      (target_length && !are_in_range(target_length, n_samples, n_labels + 1)))
    return GIVEN_BACK;
  Room room;
  void *memory = make_room(&room, n_steps, n_labels);
  int status = memory ? DONE : GIVEN_BACK;
  for (int64_t b = 0; b < n_samples && status == DONE; ++b) {
    const Sample sample = {slope + b * n_classes,
                           n_samples * n_classes,
                           target + b * n_labels,
                           target_length ? target_length[b] : n_labels,
                           blank,
                           input_length ? input_length[b] : n_steps};
    double total = sample.n_labels == 0; /* without steps */
    int32_t exponent = 0;
    if (!are_in_range(sample.labels, sample.n_labels, n_classes) || prepare(&room, &sample, x + b * n_classes, n_classes)) {
      status = GIVEN_BACK;
      break;
    }
    if (sample.n_steps) total = run_ahead(&room, &sample, &exponent);
    if (total > 0.0) status = run_back(&room, &sample, total, exponent);
    loss[b] = total > 0.0 ? (float)-(log(total) + exponent * 0.693147180559945309) : INFINITY;
    if (!isfinite(total)) status = GIVEN_BACK;
    fill(&sample, total > 0.0 ? sample.n_steps : 0, n_steps, n_classes);
  }
  free(memory);
  return status;
}

/* The library is found as an extension module, and called by ctypes. */
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", NULL, 0, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&module); }
