"""Matrix products by cuBLAS and cublasLt, and the activations that become part of them."""
