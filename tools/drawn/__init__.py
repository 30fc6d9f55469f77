"""Random network texts as the Neural Network Console writes them; see tools/compare_networks.py."""
