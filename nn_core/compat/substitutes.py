"""Substitutes for the parts of NNabla that nn_core does not have under the same name."""

#: Modules of NNabla that are called differently here.
RENAMED = {
    "nnabla._array": "nn_core.arrays.ndarray",
    "nnabla.config": "nn_core.compat.config",
    "nnabla.contrib": "nn_core.compat.contrib",
    "nnabla.contrib.context": "nn_core.compat.contrib.context",
    "nnabla.experimental.parametric_function_classes": "nn_core.compat.parametric_function_classes",
    "nnabla.graph_def": "nn_core.core.graph_def",
    "nnabla.lms": "nn_core.compat.lms",
}

#: Modules that NNabla's programs find as attributes of the package.
ATTRIBUTES = ("_array", "_computation_graph", "_indexing", "_init", "_nd_array", "_variable", "config", "graph_def")

_NETWORKS = "nn_core.utils.save, utils.load and utils.nnp_graph read and write networks; pip install nn-ext-nnp"

#: Modules, and names of modules, that nn_core lacks; an entry speaks for everything inside of it as well.
SUBSTITUTES = {
    "nnabla.ProtoVariable": _NETWORKS,
    "nnabla.backward_function": "nn_core.grad(y, x) makes gradients as parts of a graph, of every function and any order",
    "nnabla.autolog": "nn_core.monitor writes losses and images to files",
    "nnabla.core.graph_optimizer": _NETWORKS,
    "nnabla.core.variable_batch_size": _NETWORKS,
    "nnabla.dtypes": "the dtypes of NumPy",
    "nnabla.experimental.tb_graph_writer": "nn_ext_tensorboard.TensorBoard(graph=loss); pip install nn-ext-tensorboard",
    "nnabla.mlflow_save_load_model": _NETWORKS,
    "nnabla.grad.GradEndFunction": "the function nn_core.grad",
    "nnabla.utils.cli": "`nn-core run nnabla_cli` takes its commands and options; pip install nn-ext-nnp",
    "nnabla.utils.converter": _NETWORKS,
    "nnabla.utils.get_file_handle": _NETWORKS,
    "nnabla.utils.load_function": _NETWORKS,
    "nnabla.utils.nnabla_pb2": _NETWORKS,
    "nnabla.utils.nvml": "nn_ext_cuda.memory_info() of the package nn-ext-cuda",
}


def substitute(name: str) -> str | None:
    """The substitute for `name`, a dotted name of NNabla; None when there is nothing to recommend."""
    while name:
        if name in SUBSTITUTES:
            return SUBSTITUTES[name]
        name = name.rpartition(".")[0]
    return None
