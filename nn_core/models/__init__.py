"""Known networks, built from code: image classification, detection, segmentation, transformers. Weights come from files."""
