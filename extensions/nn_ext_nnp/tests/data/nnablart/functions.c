/* The functions of functions.h. Preparing one allocates memory for it, so that a checker of memory sees what is not freed. */
#include "functions.h"

#include <math.h>
#include <string.h>

#define PREPARED(name)                                                   \
    int allocate_##name##_local_context(rt_function_t *f)                \
    {                                                                    \
        name##_local_context_t *local = f->local_context;                \
        local->data = malloc(16);                                        \
        return local->data ? 0 : 1;                                      \
    }                                                                    \
    int free_##name##_local_context(rt_function_t *f)                    \
    {                                                                    \
        free(((name##_local_context_t *)f->local_context)->data);        \
        return 0;                                                        \
    }

PREPARED(convolution)
PREPARED(max_pooling)
PREPARED(batch_normalization)
PREPARED(relu)
PREPARED(reshape)
PREPARED(affine)
PREPARED(softmax)
PREPARED(add2)

int allocate_tanh_local_context(rt_function_t *f) { return f->local_context != 0; }
int free_tanh_local_context(rt_function_t *f) { return f->local_context != 0; }

static float *in(rt_function_t *f, int i) { return f->inputs[i]->data; }
static float *out(rt_function_t *f) { return f->outputs[0]->data; }
static int length(rt_variable_t *v, int axis) { return v->shape.data[axis]; }

static int count(rt_variable_t *v, int from, int to)
{
    int n = 1;
    for (int i = from; i < to; i++) n *= length(v, i);
    return n;
}

static int size(rt_variable_t *v) { return count(v, 0, v->shape.size); }

int exec_convolution(rt_function_t *f)
{
    convolution_local_context_t *c = f->local_context;
    if (c->base_axis != 1 || c->group != 1 || c->channel_last || f->inputs[0]->shape.size != 4) return 1;
    rt_variable_t *x = f->inputs[0], *w = f->inputs[1], *y = f->outputs[0];
    int channels = length(x, 1), rows = length(x, 2), columns = length(x, 3);
    float *to = out(f);
    for (int n = 0; n < length(y, 0); n++)
        for (int o = 0; o < length(y, 1); o++)
            for (int i = 0; i < length(y, 2); i++)
                for (int j = 0; j < length(y, 3); j++) {
                    float sum = f->num_of_inputs > 2 ? in(f, 2)[o] : 0.0f;
                    const float *weight = in(f, 1) + o * count(w, 1, 4);
                    for (int k = 0; k < channels; k++)
                        for (int a = 0; a < length(w, 2); a++)
                            for (int b = 0; b < length(w, 3); b++, weight++) {
                                int row = i * c->stride.data[0] + a * c->dilation.data[0] - c->pad.data[0];
                                int column = j * c->stride.data[1] + b * c->dilation.data[1] - c->pad.data[1];
                                if (row < 0 || row >= rows || column < 0 || column >= columns) continue;
                                sum += *weight * in(f, 0)[((n * channels + k) * rows + row) * columns + column];
                            }
                    *to++ = sum;
                }
    return 0;
}

int exec_max_pooling(rt_function_t *f)
{
    max_pooling_local_context_t *c = f->local_context;
    rt_variable_t *x = f->inputs[0], *y = f->outputs[0];
    if (!c->ignore_border || c->channel_last || x->shape.size != 4 || c->pad.data[0] || c->pad.data[1]) return 1;
    int rows = length(x, 2), columns = length(x, 3);
    float *to = out(f);
    for (int n = 0; n < count(x, 0, 2); n++)
        for (int i = 0; i < length(y, 2); i++)
            for (int j = 0; j < length(y, 3); j++) {
                float most = -INFINITY;
                for (int a = 0; a < c->kernel.data[0]; a++)
                    for (int b = 0; b < c->kernel.data[1]; b++) {
                        int row = i * c->stride.data[0] + a, column = j * c->stride.data[1] + b;
                        most = fmaxf(most, in(f, 0)[(n * rows + row) * columns + column]);
                    }
                *to++ = most;
            }
    return 0;
}

int exec_batch_normalization(rt_function_t *f)
{
    batch_normalization_local_context_t *c = f->local_context;
    if (c->batch_stat || c->no_scale || c->no_bias || c->axes.size != 1) return 1;
    rt_variable_t *x = f->inputs[0];
    int axis = c->axes.data[0], inner = count(x, axis + 1, x->shape.size);
    for (int i = 0; i < size(x); i++) {
        int k = i / inner % length(x, axis);
        out(f)[i] = (in(f, 0)[i] - in(f, 3)[k]) / sqrtf(in(f, 4)[k] + c->eps) * in(f, 2)[k] + in(f, 1)[k];
    }
    return 0;
}

int exec_relu(rt_function_t *f)
{
    for (int i = 0; i < size(f->outputs[0]); i++) out(f)[i] = fmaxf(in(f, 0)[i], 0.0f);
    return 0;
}

int exec_tanh(rt_function_t *f)
{
    for (int i = 0; i < size(f->outputs[0]); i++) out(f)[i] = tanhf(in(f, 0)[i]);
    return 0;
}

int exec_reshape(rt_function_t *f)
{
    memmove(out(f), in(f, 0), sizeof(float) * (size_t)size(f->outputs[0]));
    return 0;
}

int exec_affine(rt_function_t *f)
{
    affine_local_context_t *c = f->local_context;
    rt_variable_t *x = f->inputs[0], *y = f->outputs[0];
    int n_in = count(x, c->base_axis, x->shape.size), n_out = count(y, c->base_axis, y->shape.size);
    for (int n = 0; n < count(x, 0, c->base_axis); n++)
        for (int o = 0; o < n_out; o++) {
            float sum = f->num_of_inputs > 2 ? in(f, 2)[o] : 0.0f;
            for (int i = 0; i < n_in; i++) sum += in(f, 1)[o * n_in + i] * in(f, 0)[n * n_in + i];
            out(f)[n * n_out + o] = sum;
        }
    return 0;
}

int exec_softmax(rt_function_t *f)
{
    softmax_local_context_t *c = f->local_context;
    rt_variable_t *x = f->inputs[0];
    int n = length(x, c->axis), inner = count(x, c->axis + 1, x->shape.size);
    for (int o = 0; o < count(x, 0, c->axis); o++)
        for (int i = 0; i < inner; i++) {
            float most = -INFINITY, sum = 0.0f;
            const float *from = in(f, 0) + o * n * inner + i;
            float *to = out(f) + o * n * inner + i;
            for (int k = 0; k < n; k++) most = fmaxf(most, from[k * inner]);
            for (int k = 0; k < n; k++) sum += to[k * inner] = expf(from[k * inner] - most);
            for (int k = 0; k < n; k++) to[k * inner] /= sum;
        }
    return 0;
}

int exec_add2(rt_function_t *f)
{
    for (int i = 0; i < size(f->outputs[0]); i++) out(f)[i] = in(f, 0)[i] + in(f, 1)[i];
    return 0;
}
