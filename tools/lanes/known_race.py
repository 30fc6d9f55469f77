"""Two threads that write to one array: the thread sanitizer must end this program, else it would not see other races either.

make sanitize-threads runs it first.
"""

import threading

import numpy as np

import nn_core as nn
import nn_core.functions as F

N_ELEMENTS, N_CALLS = 2**20, 50


def main() -> None:
    """Let two threads compute into the same array."""
    x = nn.NdArray.from_numpy_array(np.ones(N_ELEMENTS, np.float32))
    y = nn.NdArray.from_numpy_array(np.ones(N_ELEMENTS, np.float32))

    def work() -> None:
        with nn.context_scope(nn.Context(["cpu"])):
            for _ in range(N_CALLS):
                F.exp(x, outputs=[y])

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
