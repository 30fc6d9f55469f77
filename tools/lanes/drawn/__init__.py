"""Random network texts as the Neural Network Console writes them; see tools/nnabla/compare_networks.py."""
