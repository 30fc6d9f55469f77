"""Dispatch: installed plugins, their registrations, and the choice of a kernel along the context's priority list."""
