"""The plugin module: the offers of this package to nn_core."""

from nn_core.ext import FileFormatInfo, hookimpl

PLUGIN_API = 1
REQUIRES_CORE = ">=0.1,<0.2"


@hookimpl
def nn_core_file_formats() -> list[FileFormatInfo]:
    """Return the format of files of Caffe that have a network and its weights."""
    return [
        FileFormatInfo(
            name="caffe",
            description="networks with their parameters, as Caffe keeps them",
            extensions=(".caffemodel",),
            read_network="nn_ext_caffe:load",
        )
    ]
