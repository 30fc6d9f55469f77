"""NNabla's configuration: programs may read and write it, and nn_core follows none of it."""

from configparser import ConfigParser
from typing import Any, Final

from nn_core.logger import logger

__all__ = ["nnabla_config"]

#: Sections with the names and values that programs find.
_VALUES: Final = {
    "DATA_ITERATOR": {
        "cache_file_format": ".npy",
        "data_source_file_cache_num_of_threads": "10",
        "cache_file_cache_num_of_threads": "4",
        "data_source_file_cache_size": "100",
        "data_source_file_cache_location": "",
        "data_source_buffer_max_size": "1073741824",
    },
    "LOG": {"log_file_name": "", "log_file_level": "DEBUG", "log_console_level": "INFO"},
    "MISC": {"misc_show_progress": "True", "nnp_param_format": ".h5"},
    "CALLBACK": {"util_callback_module": ""},
    "CHECKPOINT": {"optimizer_interval": "5"},
    "MULTINODE": {},
}


class _Configuration(ConfigParser):
    """A configuration that says once for each value that it has no effect."""

    def __init__(self) -> None:
        super().__init__(interpolation=None)
        self._told: set[tuple[str, str]] | None = None
        self.read_dict(_VALUES)  # by `set`
        self._told = set()

    def set(self, section: str, option: str, value: Any = None) -> None:
        """Change a value, and log a warning: the settings of nn_core are arguments and environment variables."""
        super().set(section, option, value)
        if self._told is not None and (section, option) not in self._told:
            self._told.add((section, option))
            text = "nnabla_config.set: %s of %s has no effect in nn_core; docs/api/settings.md lists the settings"
            logger.warning(text, option, section)


nnabla_config: Final = _Configuration()
