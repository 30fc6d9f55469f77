"""Modules that NNabla's package has under this name."""
