"""Public functions whose signature differs from their operator, in NumPy's or NNabla's terms; one file per topic."""
