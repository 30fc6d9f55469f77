"""Substitutes for the parts of NNabla that nn_core does not have under the same name."""

#: Modules of NNabla that are called differently here.
RENAMED = {
    "nnabla._array": "nn_core.engine.arrays.ndarray",
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

_TRACED = "a graph of Variables, of which create_graph_from_variable makes a network"
_FROM_PROTO = "load_parameters of an .nnp or .protobuf file"
_KEYS = "the subscript x[key] itself"
_MODIFY = "modify() of a FunctionModifier"
_STATES = "save_states and load_states of the solver"
_CONVERTERS = "nnabla.experimental.graph_converters"
_FOLDING = f"{_CONVERTERS}.batch_normalization_folding"

#: Modules, and names of modules, that nn_core lacks; an entry speaks for everything inside of it as well.
SUBSTITUTES = {
    "nnabla.ProtoVariable": _TRACED,
    "nnabla.Variable.EXCEPTIONS_AT_DEALLOC": "nothing: exceptions are raised where they happen",
    "nnabla._arithmetic_ops": "the operators of Variable and NdArray",
    "nnabla._dropout_workaround": "nothing: nn_core.functions.dropout draws the same numbers again",
    "nnabla._indexing.basic_getsetitem_prepare": _KEYS,
    "nnabla._indexing.basic_getsetitem_result_shape": _KEYS,
    "nnabla._init.finalize": "nothing: devices are left when the interpreter ends",
    "nnabla._init.print_memory_cache_map": "nn_core.utils.profiler",
    "nnabla._version": "nn_core.__version__",
    "nnabla._variable.Variable.EXCEPTIONS_AT_DEALLOC": "nothing: exceptions are raised where they happen",
    "nnabla.backward_function": "nn_core.grad([y], [x], grad_outputs=[dy]) gives what ConvolutionDataGrad and the like gave, "
    "of every function and to any order; nn_core.backward_functions has convolution_backward and the like",
    "nnabla.autolog": "nn_core.monitor writes losses and images to files",
    "nnabla.context.context_level": "nn_core.context_scope",
    **{
        f"nnabla.core.graph_def.{name}": _TRACED
        for name in (
            "FlatModule",
            "LoopControlFunction",
            "ProtoExecutor",
            "ProtoFunction",
            "ProtoGraph.current_context",
            "ProtoGraph.expand_loop_control",
            "ProtoGraphBuilder",
            "ProtoGraphGenerator",
            "ProtoNetwork.commit",
            "ProtoNetwork.create_function_instance",
            "ProtoNetwork.current_context",
            "ProtoNetwork.expand_loop_control",
            "ProtoNetwork.from_proto",
            "ProtoNetwork.promote",
            "ProtoNetwork.resolve_function_parameters",
            "ProtoNetwork.update_actual_shape_of_reshape",
            "ProtoVariable",
            "RepeatInfo",
            "current_graph_builder",
            "current_module",
            "current_network",
            "get_default_graph",
            "get_default_graph_by_variable",
            "graph",
            "graph_name",
            "module_scope",
            "reset_default_graph",
        )
    },
    "nnabla.core.graph_optimizer": _NETWORKS,
    "nnabla.core.module.MetaClass": "the class Module, which has no metaclass",
    "nnabla.core.variable_batch_size": _NETWORKS,
    "nnabla.dtypes": "the dtypes of NumPy",
    f"{_CONVERTERS}.batch_norm_batchstat.BatchNormBatchStatModifier.connect": _MODIFY,
    f"{_CONVERTERS}.channel_first.ChannelFirstModifier.connect": _MODIFY,
    f"{_CONVERTERS}.channel_last.ChannelLastModifier.connect": _MODIFY,
    f"{_CONVERTERS}.quantize.QuantizeNonQNNToRecordingModifier.share_recorder": _MODIFY,
    f"{_CONVERTERS}.quantize.QuantizeRecordingToTrainingModifier.SimulatedQNN": "the class around it",
    f"{_FOLDING}.AddBiasModifier.connect": _MODIFY,
    f"{_FOLDING}.BatchNormBase": _MODIFY,
    f"{_FOLDING}.BatchNormalizationFoldingModifierInner.connect": _MODIFY,
    f"{_FOLDING}.BatchNormalizationFoldingModifierInner.reshape_bn_parameters": _MODIFY,
    f"{_FOLDING}.BatchNormalizationFoldingOppositeModifierInner.connect": _MODIFY,
    f"{_FOLDING}.BatchNormalizationFoldingOppositeModifierInner.reshape_bn_parameters": _MODIFY,
    "nnabla.experimental.tb_graph_writer": "nn_ext_tensorboard.TensorBoard(graph=loss); pip install nn-ext-tensorboard",
    "nnabla.function.Dummy": "nn_core.PythonFunction",
    "nnabla.function.UnsafeVariable": "nn_core.Variable",
    "nnabla.parameter.set_parameter_from_proto": _FROM_PROTO,
    "nnabla.solver.Solver.set_states_from_protobuf": _STATES,
    "nnabla.solver.Solver.set_states_to_protobuf": _STATES,
    "nnabla.solver.Solver.setup": "set_parameters of the solver",
    "nnabla.utils.load.base_load": "nn_core.utils.load.load",
    "nnabla.utils.load.link_components": "nn_core.utils.load.load",
    "nnabla.utils.load.restore_optimizer_state": "nn_core.utils.load.load, which restores states",
    **{
        f"nnabla.lms.SwapInOutScheduler.{name}": "nn_core.recompute(), or smaller batches"
        for name in (
            "end_scheduling",
            "function_post_hook",
            "function_pre_hook",
            "start_scheduling",
            "update_post_hook",
            "update_pre_hook",
        )
    },
    "nnabla.logger.log_console_format": "logging.basicConfig",
    "nnabla.logger.log_console_level": "setLevel of the logger",
    "nnabla.mlflow_save_load_model": _NETWORKS,
    "nnabla.grad.GradEndFunction": "the function nn_core.grad",
    "nnabla.grad.registry": "nn_core.backward_functions.register",
    "nnabla.utils.cli": "`nn-core run nnabla_cli` takes its commands and options; pip install nn-ext-nnp",
    "nnabla.utils.converter": _NETWORKS,
    "nnabla.utils.get_file_handle": _NETWORKS,
    "nnabla.utils.image_utils.backend_events": "nn_core.utils.image_utils.set_backend",
    "nnabla.utils.load_function": "nn_core.function.Affine(ctx, base_axis=1), and a class for each other function",
    "nnabla.utils.nnabla_pb2": _NETWORKS,
    "nnabla.utils.nvml": "nn_ext_cuda.memory_info() of the package nn-ext-cuda",
    **{
        f"nnabla.utils.progress.{name}": "configure_progress and progress of the module"
        for name in ("cpu_load_backend_ok", "last_state_datetime", "state_callback", "state_file_name")
    },
    "nnabla.utils.py23_compatible": "nothing: Python 3 has what it gives",
    "nnabla.utils.save_function": _NETWORKS,
}


def substitute(name: str) -> str | None:
    """Return the substitute for `name`, a dotted name of NNabla; None when there is nothing to recommend."""
    while name:
        if name in SUBSTITUTES:
            return SUBSTITUTES[name]
        name = name.rpartition(".")[0]
    return None
