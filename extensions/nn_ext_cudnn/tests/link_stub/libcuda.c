/* Stands in for the CUDA driver when cuDNN is linked: it makes plans for a described device without ever calling these. */

#define NOT_FOUND 500 /* CUDA_ERROR_NOT_FOUND */
#define ABSENT(name) int name(void) { return NOT_FOUND; }

ABSENT(cuGetErrorString)
ABSENT(cuModuleGetFunction)
ABSENT(cuModuleLoadData)
ABSENT(cuModuleUnload)
ABSENT(cuTensorMapEncodeIm2col)
ABSENT(cuTensorMapEncodeTiled)
