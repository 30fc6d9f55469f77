"""``nn-core bench``: the speed of this machine in nn_core, and in the frameworks that are installed beside it."""
