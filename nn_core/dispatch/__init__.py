"""Who runs a function: installed plugins, what they registered, and the choice along the context's priority list."""
