"""Memory of a device: arrays, small blocks, workspaces, and weights in other layouts."""
