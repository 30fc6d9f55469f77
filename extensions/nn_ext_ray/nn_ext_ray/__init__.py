"""Data-parallel training on a Ray cluster: placement, restarts and worker counts that follow the cluster.

    from nn_ext_ray import train

    train(program, (folder,), workers=(1, 4), shards=4)

runs `program(folder)` on one to four workers.
"""

from nn_ext_ray.training import train as train

__all__ = ["train"]
