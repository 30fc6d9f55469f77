"""The plugin module: the offers of this package to nn_core."""

from nn_core.ext import CommandInfo, FileFormatInfo, KnownOperators, hookimpl

PLUGIN_API = 1
REQUIRES_CORE = ">=0.1,<0.2"
#: The arguments and inputs of operators that are written; calls that set others are refused.
KNOWN_OPERATORS = KnownOperators("0.1")


@hookimpl
def nn_core_file_formats() -> list[FileFormatInfo]:
    """NNP archives, and their members on their own."""
    return [
        FileFormatInfo(
            name=name,
            description=description,
            extensions=extensions,
            read=f"nn_ext_nnp.parameters:read_{name}",
            write=f"nn_ext_nnp.parameters:write_{name}",
            read_network="nn_ext_nnp.loading:load_networks",
            write_network="nn_ext_nnp.saving:save",
        )
        for name, description, extensions in (
            ("nnp", "networks and parameters of NNabla in one archive", (".nnp",)),
            ("nntxt", "networks and parameters of NNabla as text", (".nntxt", ".prototxt")),
            ("protobuf", "parameters of NNabla, binary", (".protobuf",)),
        )
    ]


@hookimpl
def nn_core_commands() -> list[CommandInfo]:
    """Subcommands of ``nn-core`` for files of networks."""
    return [
        CommandInfo(name=name, help=text, target=f"nn_ext_nnp.commands.{module}:{name}")
        for name, module, text in (
            ("dump", "files", "Print what files of networks say."),
            ("convert", "conversion", "Write files of networks in other formats."),
            ("decode_param", "files", "Write parameters as texts."),
            ("encode_param", "files", "Read parameters from texts."),
            ("infer", "inference", "Run a network on raw binary files."),
            ("forward", "inference", "Run a network on the rows of a CSV file."),
            ("train", "training", "Train the networks of a configuration."),
            ("evaluate", "measuring", "Compute the monitors of a configuration."),
            ("profile", "measuring", "Measure the functions of networks."),
            ("compare", "measuring", "Run networks on two backends and compare the values."),
            ("conv_dataset", "datasets", "Copy a data set to a cache."),
            ("create_image_classification_dataset", "datasets", "Make a data set of images in folders."),
            ("plot_series", "drawing", "Plot what MonitorSeries writes."),
            ("plot_timer", "drawing", "Plot what MonitorTimeElapsed writes."),
            ("draw_graph", "drawing", "Draw networks."),
            ("nnb_template", "conversion", "Write settings for NNB files."),
            ("optimize", "obsolete", "Refused: networks are optimized when they run."),
            ("create_object_detection_dataset", "detection", "Make a data set of images with boxes."),
            ("function_info", "information", "List functions of files and formats."),
            ("upload", "obsolete", "Refused: a service of NNabla's."),
            ("create_tar", "obsolete", "Refused: a service of NNabla's."),
        )
    ]
