/* Stands in for the CUDA driver when cuDNN is linked: it makes plans for a described device, and loads the code of some of them.
 *
 * Code is taken without a look at it, and one object stands for every library, kernel and context; launches fail. */

#include <stddef.h>

#define FINE(name) int name(void) { return 0; } /* CUDA_SUCCESS */
#define ABSENT(name) int name(void) { return 500; } /* CUDA_ERROR_NOT_FOUND */

static char object;

static int give(void **target) {
    *target = &object;
    return 0;
}

static int tell(int *target, int value) {
    *target = value;
    return 0;
}

int cuGetErrorName(int status, const char **text) { return *text = "CUDA_ERROR_NOT_FOUND", 0; }
int cuGetErrorString(int status, const char **text) { return *text = "there is no driver", 0; }

int cuDriverGetVersion(int *version) { return tell(version, 13000); }
int cuDeviceGetCount(int *count) { return tell(count, 1); }
int cuDeviceGet(int *device, int number) { return tell(device, number); }
int cuCtxGetCurrent(void **context) { return give(context); }
int cuStreamGetCtx(void *stream, void **context) { return give(context); }
int cuCtxGetLimit(size_t *value, int limit) { return *value = 1024, 0; }
FINE(cuCtxPopCurrent)
FINE(cuCtxPushCurrent)

int cuModuleLoadData(void **module, const void *code) { return give(module); }
int cuModuleGetFunction(void **function, void *module, const char *name) { return give(function); }
int cuLibraryLoadData(void **library, const void *code) { return give(library); }
int cuLibraryGetKernel(void **kernel, void *library, const char *name) { return give(kernel); }
int cuKernelGetFunction(void **function, void *kernel) { return give(function); }
int cuKernelGetAttribute(int *value) { return tell(value, 0); }
int cuOccupancyMaxPotentialClusterSize(int *size) { return tell(size, 8); }
FINE(cuModuleUnload)
FINE(cuLibraryUnload)
FINE(cuKernelSetAttribute)

ABSENT(cuLaunchCooperativeKernel)
ABSENT(cuLaunchKernel)
ABSENT(cuLaunchKernelEx)
ABSENT(cuLibraryLoadFromFile)
ABSENT(cuLinkAddData)
ABSENT(cuLinkComplete)
ABSENT(cuLinkCreate)
ABSENT(cuLinkDestroy)
ABSENT(cuTensorMapEncodeIm2col)
ABSENT(cuTensorMapEncodeTiled)
