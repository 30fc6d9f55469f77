/* A small stand-in for NNabla's C runtime: the types and functions that source for it uses, for float32 without groups. */
#ifndef NNABLART_FUNCTIONS_H
#define NNABLART_FUNCTIONS_H

#include <stdint.h>
#include <stdlib.h>

#define NN_ERROR_CODE_NOERROR 0

typedef enum { NN_DATA_TYPE_FLOAT } nn_data_type_t;
typedef enum { RT_BUFFER_ALLOCATE_TYPE_MALLOC, RT_BUFFER_ALLOCATE_TYPE_ALLOCATED } rt_buffer_allocate_type_t;

typedef struct {
    int size;
    int *data;
} rt_list_t;

typedef struct {
    nn_data_type_t type;
    rt_list_t shape;
    void *data;
} rt_variable_t;

typedef struct {
    int num_of_inputs;
    rt_variable_t **inputs;
    int num_of_outputs;
    rt_variable_t **outputs;
    void *local_context;
} rt_function_t;

extern void *(*rt_variable_malloc_func)(size_t size);
extern void (*rt_variable_free_func)(void *ptr);
extern void *(*rt_malloc_func)(size_t size);
extern void (*rt_free_func)(void *ptr);

typedef struct {
    int32_t base_axis;
    rt_list_t pad, stride, dilation;
    int32_t group;
    uint8_t channel_last;
    void *data;
} convolution_local_context_t;

typedef struct {
    rt_list_t kernel, stride;
    uint8_t ignore_border;
    rt_list_t pad;
    uint8_t channel_last;
    void *data;
} max_pooling_local_context_t;

typedef struct {
    rt_list_t axes;
    float decay_rate, eps;
    uint8_t batch_stat, no_scale, no_bias;
    void *data;
} batch_normalization_local_context_t;

typedef struct {
    uint8_t inplace;
    void *data;
} relu_local_context_t;

typedef struct {
    rt_list_t shape;
    uint8_t inplace;
    void *data;
} reshape_local_context_t;

typedef struct {
    int32_t base_axis;
    void *data;
} affine_local_context_t;

typedef struct {
    int32_t axis;
    void *data;
} softmax_local_context_t;

typedef struct {
    uint8_t inplace;
    void *data;
} add2_local_context_t;

#define RUNTIME_FUNCTION(name)                        \
    int allocate_##name##_local_context(rt_function_t *f); \
    int free_##name##_local_context(rt_function_t *f);     \
    int exec_##name(rt_function_t *f);

RUNTIME_FUNCTION(convolution)
RUNTIME_FUNCTION(max_pooling)
RUNTIME_FUNCTION(batch_normalization)
RUNTIME_FUNCTION(relu)
RUNTIME_FUNCTION(tanh)
RUNTIME_FUNCTION(reshape)
RUNTIME_FUNCTION(affine)
RUNTIME_FUNCTION(softmax)
RUNTIME_FUNCTION(add2)

#endif
