"""Commands of ``nn-core`` that are more than a call of the library."""
