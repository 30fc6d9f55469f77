"""Operators of Chainer's that NNabla lacks, for nn_core."""
