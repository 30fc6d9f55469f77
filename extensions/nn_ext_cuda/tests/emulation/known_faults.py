"""One launch that a sanitizer must object to, by name: ``python known_faults.py beyond_an_array``."""

import sys

import fake_cupy
import machine
import numpy as np

#: The body of a kernel that reads x and writes y, both 64 elements in the middle of others, with 128 bytes of dynamic shared
#: memory.
FAULTS = {
    "none": "y[threadIdx.x] = x[threadIdx.x];",
    "beyond_an_array": "y[threadIdx.x] = x[threadIdx.x + 1];",
    "before_an_array": "y[int(threadIdx.x) - 1] = 0;",
    "beyond_dynamic_shared_memory": "extern __shared__ R shared[]; y[threadIdx.x] = shared[threadIdx.x];",
    "beyond_static_shared_memory": "__shared__ R held[63]; R* const all = held; all[threadIdx.x] = 0;",
    "beyond_registers": "R held[4]; for (int k = 0; k <= n; ++k) held[k] = x[k]; y[threadIdx.x] = held[n - 1];",
    "misaligned": "((Pack*)(x + 1))->item[0] = 0;",
    "overflow": "y[threadIdx.x] = (n + 2147483600) * 100;",
    "shift": "y[threadIdx.x] = 1 << (n + 40);",
    "conversion": "y[threadIdx.x] = int((x[threadIdx.x] + 1) * 1e20f);",
}
SOURCE = """\
typedef float R;
struct alignas(16) Pack {{ R item[4]; }};
extern "C" __global__ void kernel(R* x, R* y, int n) {{ {} }}
"""

if __name__ == "__main__":
    x, y = (fake_cupy.asarray(np.zeros(192, np.float32))[64:128] for _ in range(2))
    machine.compile_source(SOURCE.format(FAULTS[sys.argv[1]]), "kernel")((1,), (64,), (x, y, np.int32(4)), shared_mem=128)
