"""Doors to what NNabla keeps under `utils`; what is here is mostly imported from where it belongs."""
