"""Parts that NNabla calls experimental."""
