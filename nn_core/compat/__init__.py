"""Programs written for other packages, run on nn_core as they are."""
