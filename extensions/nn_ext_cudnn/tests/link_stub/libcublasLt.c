/* Stands in for cuBLASLt, whose version cuDNN asks for before it makes plans; its engines that use cuBLASLt are left out. */

#include <stddef.h>

#define NOT_SUPPORTED 15 /* CUBLAS_STATUS_NOT_SUPPORTED */
#define ABSENT(name) int name(void) { return NOT_SUPPORTED; }

static const int VERSION[3] = {12, 9, 0};

size_t cublasLtGetVersion(void) { return (size_t)(VERSION[0] * 10000 + VERSION[1] * 100 + VERSION[2]); }

int cublasLtGetProperty(int type, int *value) {
    if (type < 0 || type > 2) return NOT_SUPPORTED;
    *value = VERSION[type];
    return 0;
}

ABSENT(cublasLtCreate)
ABSENT(cublasLtDestroy)
ABSENT(cublasLtGroupedMatrixLayoutCreate)
ABSENT(cublasLtMatmul)
ABSENT(cublasLtMatmulAlgoGetHeuristic)
ABSENT(cublasLtMatmulDescCreate)
ABSENT(cublasLtMatmulDescDestroy)
ABSENT(cublasLtMatmulDescGetAttribute)
ABSENT(cublasLtMatmulDescSetAttribute)
ABSENT(cublasLtMatmulPreferenceCreate)
ABSENT(cublasLtMatmulPreferenceDestroy)
ABSENT(cublasLtMatmulPreferenceSetAttribute)
ABSENT(cublasLtMatrixLayoutCreate)
ABSENT(cublasLtMatrixLayoutDestroy)
ABSENT(cublasLtMatrixLayoutGetAttribute)
ABSENT(cublasLtMatrixLayoutSetAttribute)
ABSENT(cublasLtMatrixTransform)
ABSENT(cublasLtMatrixTransformDescCreate)
ABSENT(cublasLtMatrixTransformDescDestroy)
ABSENT(cublasLtMatrixTransformDescGetAttribute)
ABSENT(cublasLtMatrixTransformDescSetAttribute)
