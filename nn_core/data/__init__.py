"""Data for training: sources that give one sample at a time, and iterators that make batches of them."""
