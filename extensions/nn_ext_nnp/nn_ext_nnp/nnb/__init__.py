"""NNB files: one network with its parameters, as small devices read it."""
