"""NNP files for nn_core; users find them through ``nn_core.utils.load``, ``nn_core.utils.save`` and ``nn-core``."""
