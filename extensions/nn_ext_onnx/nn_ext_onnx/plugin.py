"""The plugin module: the offers of this package to nn_core."""

from nn_core.ext import FileFormatInfo, KnownOperators, hookimpl

PLUGIN_API = 1
REQUIRES_CORE = ">=0.1,<0.2"
#: The arguments and inputs of operators that are written; calls that set others are refused.
KNOWN_OPERATORS = KnownOperators("0.1")


@hookimpl
def nn_core_file_formats() -> list[FileFormatInfo]:
    """Files of ONNX."""
    return [
        FileFormatInfo(
            name="onnx",
            description="networks with their parameters, for other frameworks and runtimes",
            extensions=(".onnx",),
            read_network="nn_ext_onnx:load",
            write_network="nn_ext_onnx:export",
        )
    ]
