"""The MPI engine of nn_core's communicators, and the command ``nn-core launch``.

    nn-core launch -n 2 train.py

runs the script once for each rank.
"""
