"""Every row of docs/differences.md has a test; this table names it."""

import pytest

from tests.integration.named_tests import ROOT, require_test

CALLS = "tests/integration/test_nnabla_calls.py"
FACTS = "tests/integration/test_nnabla_behaviour.py"
BY_VALUE = "tests/unit/graph/test_shapes_from_values.py"
SWITCHES = "tests/integration/test_switches.py"
HERE = "tests/integration/test_differences.py"
INTERFACE = "tests/unit/graph/test_function_interface.py"
RESHAPE = "tests/unit/graph/test_reshape.py"
READ = "tests/properties/test_shapes_that_are_read.py"
COLLECTED = "tests/integration/test_collected_views.py"
CHECKPOINTS = "tests/unit/graph/test_checkpoints.py"
PLANS = "tests/unit/graph/test_plans.py"
PASSES = "tests/unit/graph/test_passes.py"
MEMBERS = "tests/unit/test_module_members.py"
LOADING = "tests/unit/io/test_strict_loading.py"
OPERATORS = "tests/unit/operators"
LAYERS = "tests/unit/parametric_functions/test_layers.py"
SPECIALS = "tests/integration/test_special_values.py"
CONVERTERS = "tests/unit/experimental/test_graph_converters.py"
QUANTIZATION = "tests/unit/experimental/test_quantization.py"
CPU = "extensions/nn_ext_cpu/tests"
NETWORKS = "extensions/nn_ext_nnp/tests/test_networks.py"
WRITTEN_NETWORKS = "extensions/nn_ext_nnp/tests/test_written_networks.py"
NETWORK_CHANGES = "extensions/nn_ext_nnp/tests/test_network_changes.py"
COMMUNICATORS = "tests/unit/communicators/test_communicator.py"
COMMANDS = "extensions/nn_ext_nnp/tests/test_commands.py"
LOOPS = "extensions/nn_ext_nnp/tests/test_loops.py"
C_SOURCE = "extensions/nn_ext_nnp/tests/test_c_source.py"
NNB = "extensions/nn_ext_nnp/tests/test_nnb.py"
TRAINING = "extensions/nn_ext_nnp/tests/test_training.py"
CODEC = "extensions/nn_ext_nnp/tests/test_codec.py"
CONTRIB = "extensions/nn_ext_contrib/tests"

#: The first words of a row, and the test that holds it to what it says.
TESTS = {
    "`NanInfTracer(trace_nan=False": "tests/unit/utils/test_inspection.py::test_what_is_looked_for",
    "`.d` of the places": f"{COLLECTED}::test_choices_that_a_program_collects_stay_what_they_were",
    "`TimeProfiler`": "tests/unit/utils/test_inspection.py::test_results_of_all_scopes",
    "boolean `additive_mask`": f"{OPERATORS}/test_attention.py::test_boolean_masks_of_several_heads",
    "gradient of an offset of": f"{OPERATORS}/test_convolution.py::test_the_gradient_of_offsets_at_the_border",
    "`name` of a Module without": "tests/unit/test_module_members.py::test_a_root_has_no_name",
    "`Module.get_parameters`, `zero_grad`,": "tests/unit/test_module_members.py::test_a_parameter_must_be_a_variable",
    "`auread` of 8-bit sounds": "tests/unit/data/test_sound.py::test_numbers_of_one_byte_are_those_in_the_file",
    "`auread` of a file called": "tests/unit/data/test_sound.py::test_a_file_without_a_header_is_read_as_it_is_described",
    "`auresize` to a length": "tests/unit/data/test_sound.py::test_a_resized_sound_has_the_length_that_was_asked_for",
    "a missing file in `auread`": "tests/unit/data/test_sound.py::test_wrong_sounds_are_refused",
    "a `decay_rate` outside of": "tests/unit/rules/test_ranges.py::test_values_outside_are_refused",
    "`softplus(x, beta=0)`": "tests/unit/rules/test_ranges.py::test_values_outside_are_refused",
    "a sequence of length 0 in": "tests/unit/operators/test_recurrent.py::test_packing_refuses",
    "folding before a sign": f"{SWITCHES}::test_no_normalization_is_folded_into_a_convolution_before_a_jump",
    "losses of nn-ext-contrib": f"{CONTRIB}/test_functions.py::test_hinge_loss",
    "`ctc_loss`": f"{CONTRIB}/test_paths.py::test_ctc_is_the_sum_over_all_paths",
    "`crf1d`": f"{CONTRIB}/test_paths.py::test_crf_sums_and_maximizes_over_all_paths",
    "`n_step_lstm`": f"{CONTRIB}/test_layers.py::test_sequences_are_taken_in_any_order_and_alone_give_the_same",
    "`stateless_slstm`": f"{CONTRIB}/test_recurrent.py::test_a_step_of_an_lstm_over_a_tree",
    "`negative_sampling`": f"{CONTRIB}/test_layers.py::test_losses_over_sampled_words",
    "`roi_pooling_2d`": f"{CONTRIB}/test_pooling.py::test_pooling_of_regions",
    "`split_axis`": f"{CONTRIB}/test_functions.py::test_splits",
    "recurrent layers: states": f"{CONTRIB}/test_layers.py::test_no_state_is_a_state_of_zeros",
    "`num_layers` of": f"{LAYERS}::test_recurrent_layers_have_as_many_layers_as_their_states",
    "pooling with a window": f"{OPERATORS}/test_pooling.py::test_a_window_that_is_longer_by_a_stride_is_refused",
    "one integer for": "tests/unit/functions/test_ints_for_tuples.py::test_an_int_of_several_meanings_is_refused",
    "a leaf gets another shape: lengths that": "tests/properties/test_lengths.py::test_values_follow",
    "several `spectral_norm`": f"{HERE}::test_backward_leaves_the_state_of_spectral_norm_as_forward_has_left_it",
    "contexts": f"{HERE}::test_the_current_context_cannot_be_assigned_to",
    "default context": f"{HERE}::test_the_default_context_ends_in_the_reference",
    "device id of": "tests/unit/test_ext_utils.py::test_the_cpu_is_one_device_for_all_ranks",
    "device of": f"{HERE}::test_the_cpu_context_names_device_0",
    "`context_scope`": f"{HERE}::test_a_context_scope_belongs_to_its_thread",
    "unknown keyword of": f"{HERE}::test_unknown_keywords_of_a_context_are_refused",
    "missing extension": f"{HERE}::test_a_missing_extension_is_named_beside_those_that_are_installed",
    "running below": "tests/unit/dispatch/test_resolve.py::test_strict_mode_refuses_to_leave_the_device_family",
    "new backend or operator": "tests/unit/dispatch/test_plugins.py::test_operators_are_found_by_api_and_by_name",
    "values of a new variable": f"{HERE}::test_new_values_are_zero",
    "reading a value whose memory": f"{HERE}::test_reading_a_cleared_value_is_an_error",
    "`backward()` after `forward(clear_buffer=True)`": f"{HERE}::test_backward_needs_what_inference_cleared",
    "reading the value or the gradient": f"{HERE}::test_reading_what_was_never_computed_is_an_error",
    "`.shape` behind a leaf": f"{READ}::test_readers",
    "shapes that follow from values": f"{BY_VALUE}::test_the_mask_is_computed_by_the_forward_pass",
    "reading a value that was computed": f"{READ}::test_values_of_another_shape_are_refused_until_they_are_computed",
    "`backward()` without": f"{HERE}::test_reading_what_was_never_computed_is_an_error",
    "a variable unlinked from": "tests/unit/graph/test_uncomputed.py::test_an_unlinked_variable_is_computed_with_the_graph",
    "`outputs=` with the data": f"{FACTS}::test_a_sum_in_the_memory_of_an_operand",
    "`get_number_of_references`": f"{CALLS}::test_references_are_counted_by_the_functions_that_take_a_variable",
    "values of y in a pass over": f"{CALLS}::test_gradients_alone_compute_what_they_read",
    "gradient of the target of": f"{CALLS}::test_targets_have_gradients_in_each_way",
    "`zeroing` of a part": f"{FACTS}::test_a_part_of_zeros_is_zeroing",
    "`arguments` of `x[1:3]`": f"{FACTS}::test_an_index_has_the_arguments_of_the_same_slice",
    "`fused_convolution` with `nonlinearity": f"{FACTS}::test_what_fused_convolution_refuses",
    "gradient of `pow_scalar(x, 0)` at 0": f"{FACTS}::test_a_power_of_exponent_zero_has_no_slope_at_zero",
    "`clip_grad_by_value` with a minimum": f"{FACTS}::test_gradients_are_clipped_to_the_maximum_last",
    "`bool_gather` of a mask": f"{FACTS}::test_each_number_but_zero_in_a_mask_takes_one_row",
    "running statistics of `batch_normalization`": f"{FACTS}::test_gradients_alone_leave_running_statistics",
    "second gradients: `prelu`": f"{FACTS}::test_second_gradients_are_exact",
    "`AMSBound`: upper bound": f"{FACTS}::test_the_bounds_of_a_rate_draw_closer_step_by_step",
    "`Lamb`: an update": f"{FACTS}::test_lamb_compares_norms_however_small_the_update_is",
    "a fraction where": f"{FACTS}::test_samples_between_two_numbers_are_a_whole_number",
    "`indicator_fixedweights`": f"{FACTS}::test_indicators_of_incremental_quantization_count_passes",
    "gradients through `nn.recompute(False)`": f"{FACTS}::test_recomputed_parts_inside_of_kept_ones",
    "`PolynomialScheduler` after": f"{FACTS}::test_a_polynomial_rate_stays_zero_after_its_end",
    "`SimpleDataSource.reset()`": f"{FACTS}::test_orders_of_a_source_that_is_read_without_an_iterator",
    "modules `nnabla.backward_function`": f"{FACTS}::test_modules_of_gradient_functions_are_refused_with_what_to_use",
    "`eps` of `norm_normalization`": f"{FACTS}::test_the_normal_of_zeros_is_zero",
    "`kl_multinomial` with": f"{FACTS}::test_divergence_over_all_axes",
    "`F.shape` of no axis": f"{FACTS}::test_lengths_of_no_axis_are_none",
    "gradient of `r_pow_scalar": f"{FACTS}::test_a_power_of_zero_has_no_slope",
    "`F.sink` of a leaf": "tests/unit/graph/test_uncomputed.py::test_a_sink_adds_to_the_gradient_of_a_leaf",
    "a Variable that was not computed": f"{HERE}::test_reading_what_was_never_computed_is_an_error",
    "the truth value": f"{HERE}::test_comparisons_are_no_truth_values",
    "`float()` and": f"{HERE}::test_an_array_of_one_element_is_a_number",
    "NumPy array as": f"{HERE}::test_a_numpy_array_is_refused_with_a_hint",
    "arrays with different": f"{HERE}::test_arrays_with_different_numbers_of_axes_are_broadcast",
    "`cast` of numbers": "tests/unit/test_array.py::test_numbers_that_whole_numbers_do_not_reach_are_refused",
    "`-0.0` as an argument": "tests/unit/graph/test_call.py::test_a_negative_zero_is_zero_whoever_comes_first",
    "a leaf gets another shape: `-1`": f"{RESHAPE}::test_dynamic_graphs_follow_shapes_that_no_number_fixes",
    "a leaf gets another shape: what": f"{RESHAPE}::test_shapes_that_dynamic_graphs_have_found_are_refused_with_a_hint",
    "results inside `nn.no_grad()`": f"{HERE}::test_dynamic_functions_inside_no_grad_stay_in_the_graph_without_gradients",
    "a comparison of Variables": "tests/unit/test_indexing.py::test_masks_and_indices_of_the_graph",
    "gradient of what": f"{HERE}::test_what_an_assignment_overwrites_has_no_gradient",
    "name of a `PythonFunction`": f"{HERE}::test_hooks_see_python_functions_by_their_names",
    "`name` of the parent": f"{INTERFACE}::test_a_python_function_has_a_function_in_the_graph",
    "`repr` of a function": f"{HERE}::test_a_function_shows_its_settings_and_str_gives_its_name",
    "arguments that are numbers": f"{HERE}::test_a_function_shows_its_settings_and_str_gives_its_name",
    "inputs and outputs that a function": f"{INTERFACE}::test_places_that_do_not_exist_are_refused",
    "clear flags of a pass with hooks": f"{PASSES}::test_a_pass_with_hooks_frees_nothing",
    "values that `backward()` has": f"{PASSES}::test_values_that_a_backward_pass_has_recomputed_are_given_up_again",
    "`x.data = array`": f"{PASSES}::test_views_follow_data_that_is_exchanged",
    "`need_grad` of functions": f"{HERE}::test_the_gradients_of_functions_without_one_stop_quietly",
    "`prefer_cached_array`": "tests/unit/test_names.py::test_the_order_of_array_classes_can_be_changed",
    "`nn.grad`": f"{HERE}::test_gradients_as_graphs_are_those_of_backward_for_functions_that_nnabla_registers_none_for",
    "exceptions": f"{HERE}::test_exceptions_have_one_root",
    "NaN in `relu`": f"{SPECIALS}::test_functions_of_one_element",
    "NaN in `sort`": f"{SPECIALS}::test_nan_is_the_largest_in_order",
    "gradient of `max`": f"{SPECIALS}::test_the_gradient_of_an_extreme_goes_to_the_first_nan",
    "`-0.0` in `relu`": f"{SPECIALS}::test_functions_of_one_element",
    "`pow_scalar` and": f"{SPECIALS}::test_functions_of_one_element",
    "values in `nn.recompute()`": f"{CHECKPOINTS}::test_a_whole_network_takes_the_memory_of_its_segments",
    "comparisons of integers": "tests/unit/graph/test_integers_compared.py::test_two_arrays",
    "indices of": f"{HERE}::test_indices_are_int64",
    "gradients of `prod`": f"{HERE}::test_gradients_of_products_are_exact_at_zeros",
    "gradient of `norm`": f"{HERE}::test_the_gradient_of_a_norm_at_zero_is_zero",
    "`sigmoid_cross_entropy`": f"{HERE}::test_sigmoid_cross_entropy_takes_probabilities",
    "gradients of cross": f"{HERE}::test_gradients_of_cross_entropies_are_bounded",
    "`pow2`": f"{HERE}::test_gradients_of_powers_of_zero_are_zero",
    "gradient of `mod2`": f"{HERE}::test_the_remainder_has_gradients",
    "labels and indices": f"{HERE}::test_labels_and_indices_out_of_range_are_refused",
    "gradient of indices": f"{PLANS}::test_gradients_of_indices_are_zeros",
    "integers in a leaf": f"{PLANS}::test_leaves_of_whole_numbers_have_floating_gradients",
    "`x.d = 0.5`": f"{PLANS}::test_a_fraction_that_fills_whole_numbers_is_kept",
    "reading what a pass": f"{PLANS}::test_values_that_were_given_up_are_refused_by_every_reader",
    "a second `backward": f"{PLANS}::test_a_second_backward_after_the_values_were_given_up_is_refused",
    "`outputs=` or": f"{PLANS}::test_circles_are_refused",
    "one gradient array": f"{HERE}::test_one_gradient_array_for_an_intermediate_variable_and_another_is_refused",
    "pooling": f"{HERE}::test_ranks_that_nnabla_refuses",
    "`global_average_pooling`": f"{HERE}::test_ranks_that_nnabla_refuses",
    "`depthwise_convolution`": f"{HERE}::test_ranks_that_nnabla_refuses",
    "`batch_matmul`": f"{HERE}::test_ranks_that_nnabla_refuses",
    "`batch_cholesky`": f"{OPERATORS}/test_linear.py::test_batch_cholesky",
    "`batch_normalization` of a single": f"{HERE}::test_batch_normalization_takes_in_a_single_element",
    "gradient of `mean_subtraction`": f"{OPERATORS}/test_normalization.py::test_mean_subtraction",
    "gradient of `sort`": f"{HERE}::test_gradients_of_sort_go_to_the_elements_that_were_moved",
    "gradient of `spectral_norm": f"{HERE}::test_the_gradient_of_spectral_norm_in_tests_is_finite",
    "`istft`": f"{OPERATORS}/test_image.py::test_istft_rebuilds_the_signal",
    "`affine_grid`": f"{HERE}::test_affine_grid_over_an_axis_of_length_1_is_zero",
    "gradients of `quantize_linear`": f"{HERE}::test_quantization_has_gradients_of_scale_and_zero_point",
    "mean and variance of": f"{HERE}::test_statistics_need_a_gradient_as_their_inputs_do",
    "`parent` of the mean": "tests/unit/graph/test_outputs.py::test_statistics_are_outputs_through_which_gradients_flow",
    "`inputs` of `batch_normalization`": "tests/unit/graph/test_outputs.py::test_statistics_that_were_not_given_are_no_inputs",
    "`inq_affine`": f"{OPERATORS}/test_quantization.py::test_inq_layers_give_no_gradient_to_fixed_weights",
    "random numbers": f"{OPERATORS}/test_random.py::test_philox_gives_the_published_words",
    "formats of": f"{HERE}::test_formats_of_parameters",
    "extension of `Module": f"{MEMBERS}::test_the_extension_decides_the_format",
    "`load_parameters`": f"{LOADING}::test_strict_says_everything_and_changes_nothing",
    "an attribute of a Module": f"{MEMBERS}::test_an_attribute_that_is_replaced_or_deleted_leaves",
    "modules and parameters": f"{MEMBERS}::test_a_plain_list_and_a_module_list_give_the_same_names",
    "saving": f"{HERE}::test_a_new_file_takes_the_place_when_it_is_complete",
    "a damaged file": f"{HERE}::test_a_damaged_file_changes_nothing",
    "`need_grad = False` set": "tests/unit/solvers/test_frozen.py::test_a_frozen_parameter_is_left_alone_and_goes_on_later",
    "`save_parameters` and": "tests/unit/training/test_nothing.py::test_saving_nothing_names_the_module",
    "`Module.training`": "tests/unit/core/test_training_flag.py::test_what_does_not_follow_is_told_once",
    "a loss of (N, 1) beside (N,)": "tests/unit/graph/test_likely_mistakes.py::test_a_loss_of_all_pairs_is_told_once",
    "a frozen parameter": "tests/unit/parametric_functions/test_freezing.py::test_frozen_parameters_stay_as_they_are",
    "a parameter whose gradient": "tests/unit/solvers/test_solver.py::test_zero_grad_and_parameters_without_gradient",
    "`update()` without": "tests/unit/solvers/test_frozen.py::test_freezing_everything_is_no_reason_for_a_warning",
    "`AdamW`, `SgdW`,": "tests/unit/solvers/test_rate_zero.py::test_a_warm_up_from_zero_is_one_from_its_first_other_rate",
    "`Lion` and a gradient": "tests/unit/solvers/test_non_finite.py::test_the_parameter_shows_it_and_no_other_one_does",
    "`pickle` and": "tests/unit/test_pickling.py::test_the_values_of_a_graph_are_copied_and_not_the_graph",
    "hyperparameters of": "tests/unit/solvers/test_numbers.py::test_every_number_is_an_attribute_that_reads_and_assigns",
    "`position` and `epoch`": f"{HERE}::test_a_new_data_iterator_is_at_its_start",
    "parameter scopes": f"{HERE}::test_a_parameter_scope_belongs_to_its_thread",
    "a leaf gets another shape: graphs of": f"{RESHAPE}::test_gradient_graph_alternates_without_compiling",
    "a leaf gets another shape, then": f"{HERE}::test_backward_without_forward_in_a_new_shape_is_refused",
    "`grad_depends_input_data`": f"{HERE}::test_what_gradients_depend_on_is_what_their_rules_read",
    "`recompute` of a random": f"{HERE}::test_recomputed_random_numbers_are_the_same",
    "`inplace_data`": f"{HERE}::test_only_views_work_in_place",
    "`batch_normalization` with `batch_stat=False`": f"{HERE}::test_frozen_statistics_have_gradients",
    "`fused_convolution` with": f"{OPERATORS}/test_convolution.py::test_fused_convolution_pads_and_normalizes",
    "`onnx_resize` with": f"{OPERATORS}/test_image.py::test_onnx_resize_by_sizes_and_several_axes",
    "gradient of `broadcast_to`": f"{HERE}::test_gradients_of_what_is_placed_and_repeated",
    "`rnn`, `lstm`, `gru`": f"{CPU}/test_recurrent.py::test_dropout_between_layers_draws_the_bits_of_the_reference",
    "`pad_packed_sequence`": f"{HERE}::test_packed_sequences_are_padded_with_the_value",
    "`Module.load_parameters` with": "tests/unit/test_module.py::test_loading_into_another_network_is_refused",
    "hyperparameters in files of": "tests/unit/solvers/test_solver_state.py::test_files_keep_the_numbers",
    "state of random": "tests/unit/test_random.py::test_a_state_brings_both_sources_back",
    "kinds of containers": f"{FACTS}::test_kinds_of_containers",
    "steps that go back": "tests/unit/test_monitor.py::test_a_line_is_due_an_interval_after_the_last_one",
    "`top_n_error` of a": f"{OPERATORS}/test_loss.py::test_top_n_error_counts_no_mistake_for_a_negative_label",
    "a `MonitorSeries`": "tests/unit/test_monitor.py::test_a_new_series_starts_a_new_file",
    "a step of `DynamicLossScalingUpdater`": "tests/unit/experimental/test_mixed_precision_training.py::test_steps",
    "an exception of a load": "tests/unit/data/test_iterator_state.py::test_a_failing_sample_is_raised_once_and_passed_over",
    "`opposite=True`": f"{CONVERTERS}::test_shifts_are_not_moved_across_borders",
    "`FusedBatchNormalizationModifier`": f"{CONVERTERS}::test_converted_graphs_compute_what_the_original_does",
    "`ChannelLastModifier`": f"{CONVERTERS}::test_channels_move_to_the_end_and_back",
    "`IdentityModifier": f"{CONVERTERS}::test_identity_puts_other_inputs_in_every_place",
    "`RemoveFunctionModifier`": f"{CONVERTERS}::test_functions_that_change_shapes_stay",
    "`utils.qnn`: gradients": f"{QUANTIZATION}::test_recorders_note_the_range_and_pass_values_and_gradients_on",
    "`utils.qnn`: the learning rate": f"{QUANTIZATION}::test_training_and_evaluation_share_folded_weights",
    "`utils.qnn`: ranges": f"{QUANTIZATION}::test_training_and_evaluation_share_folded_weights",
    "`utils.qnn`: inputs of": f"{QUANTIZATION}::test_what_is_recorded",
    "`utils.qnn`: `QNN`": f"{QUANTIZATION}::test_what_a_scheduler_refuses",
    "a graph that works for one": f"{WRITTEN_NETWORKS}::test_graphs_for_one_number_of_samples_are_refused",
    "the number of samples": f"{NETWORKS}::test_the_number_of_samples_must_be_known",
    "hyperparameters of solvers": f"{WRITTEN_NETWORKS}::test_solvers_survive_with_all_numbers_and_states",
    "a syntax error": f"{CODEC}::test_wrong_texts_are_refused_with_their_place",
    "archives with": f"{CODEC}::test_members_that_leave_the_folder_are_refused",
    "a variable that is neither": f"{NETWORKS}::test_odd_networks_are_refused",
    "numbers in files, such": f"{CODEC}::test_texts_with_parameters_are_printed_as_nnabla_does",
    "`global_config.default_context`": f"{NETWORKS}::test_everything_about_training_is_read",
    "`NnpNetworkPass": f"{NETWORK_CHANGES}::test_variables_and_functions_are_offered_to_callbacks",
    "`patch_correlation`": f"{WRITTEN_NETWORKS}::test_functions_without_a_place_in_files_are_refused",
    "communicators: gradients": f"{COMMUNICATORS}::test_gradients_are_added_up_during_backward",
    "communicators: `reduce`": f"{COMMUNICATORS}::test_reduce_leaves_the_others_alone",
    "communicators: ranks": f"{COMMUNICATORS}::test_sizes_and_calls_must_agree",
    "communicators: order": f"{COMMUNICATORS}::test_halves_are_added_up_in_float32",
    "communicators: a process": f"{COMMUNICATORS}::test_one_process_is_a_world_without_an_engine",
    "`DataParallelCommunicator`": f"{COMMUNICATORS}::test_threads_with_devices_are_refused",
    "operands of different ranks": f"{WRITTEN_NETWORKS}::test_operands_of_different_ranks_are_reshaped",
    "`load`: a parameter that": f"{CODEC}::test_frozen_parameters_of_a_text_stay_frozen",
    "`nnabla_cli train`: an input": f"{TRAINING}::test_inputs_that_nothing_is_said_of_are_refused",
    "`nnabla_cli train": f"{TRAINING}::test_costs_are_those_of_nnabla",
    "states of solvers": f"{TRAINING}::test_resuming_gives_the_same_bits",
    "the cost becomes": f"{TRAINING}::test_what_cannot_be_trained_ends_with_1",
    "`nnabla_cli infer`": f"{COMMANDS}::test_infer_computes_each_sample",
    "NNB files: API": f"{NNB}::test_a_network_with_parameters_has_the_bytes_of_nnabla",
    "NNB files: functions": f"{NNB}::test_few_functions_are_refused",
    "C source: parameters": f"{C_SOURCE}::test_several_networks_in_a_program_and_parameters_that_the_context_owns",
    "a loop in a network with": f"{LOOPS}::test_the_number_of_steps_may_be_in_the_functions_alone",
    "`load`: the initializer of a Buffer": f"{LOOPS}::test_a_delay_starts_from_the_initializer_of_its_buffer",
    "`NnpLoader.get_network`: names": f"{LOOPS}::test_names_may_have_any_letters",
    "RecurrentInput and Split": f"{LOOPS}::test_a_sequence_of_one_step",
    "an executor that reads two": f"{LOOPS}::test_an_executor_reads_two_ends_of_a_loop",
    "`create_object": "extensions/nn_ext_nnp/tests/test_detection.py::test_boxes_are_in_the_cell_of_their_centre",
    "`forward`: results": f"{COMMANDS}::test_forward_adds_columns",
    "what `load` returns: variables": "extensions/nn_ext_nnp/tests/test_loaded.py::test_variables_stand_for_themselves",
    "what `load` returns: `inputs`": "extensions/nn_ext_nnp/tests/test_loaded.py::test_functions_of_networks",
    "`save`: contents": "extensions/nn_ext_nnp/tests/test_contents.py::test_values_of_another_kind_are_named",
    "`core.graph_def`": "extensions/nn_ext_nnp/tests/test_graph_def.py::test_networks_are_called_like_functions",
    "`experimental.framework.Trainer`": (
        "tests/unit/experimental/test_framework.py::test_training_ends_after_max_epoch_epochs_in_all"
    ),
    "names of parameters of a `parametric_function_class`": (
        "tests/unit/experimental/test_parametric_function_class.py::test_parameters_and_modules_are_listed_by_path"
    ),
    "folding with": f"{CONVERTERS}::test_normalizations_by_batch_are_not_folded",
    "folding batch": f"{CONVERTERS}::test_normalizations_before_inner_products_are_folded",
}


def rows():
    """The first cell of each row of the tables."""
    text = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    found = [line[2:].split(" | ")[0].strip() for line in text.splitlines() if line.startswith("| ")]
    return [row for row in found if row != "subject"]


@pytest.mark.parametrize("row", rows())
def test_a_row_has_its_test(row):
    places = [TESTS[start] for start in TESTS if row.startswith(start)]
    assert places, f"TESTS must name the test of this row of docs/differences.md: {row}"
    for place in places:
        require_test(place)


@pytest.mark.parametrize("start", TESTS)
def test_no_row_of_the_table_is_stale(start):
    assert any(row.startswith(start) for row in rows()), "docs/differences.md has no row that starts so"
