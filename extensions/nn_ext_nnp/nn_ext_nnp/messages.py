"""The messages of NNP files (proto3, no package), without those of functions and solvers.

One message a line: ``Name: field=number type``. Types: s string, i int64, u uint32, b bool, f float, d double, or the name of
a message; * stands for repeated, {Name} for a map from strings. A line that starts with a space continues the one before.
"""

from typing import Final

MESSAGES: Final = """
Shape: dim=1 i*
Communicator:
Context: backends=1 s*, array_class=2 s, device_id=3 s, backend=4 s, compute_backend=5 s
NNablaProtoBuf: version=1 s, global_config=2 GlobalConfig, training_config=10 TrainingConfig, network=100 Network*,
  parameter=200 Parameter*, dataset=300 Dataset*, optimizer=400 Optimizer*, monitor=500 Monitor*, executor=600 Executor*
GlobalConfig: default_context=1 Context
TrainingConfig: max_epoch=1 i, iter_per_epoch=2 i, save_best=100 b, monitor_interval=200 i
Network: name=1 s, batch_size=10 i, repeat_info=11 RepeatInfo*, variable=100 Variable*, function=200 Function*
RepeatInfo: id=1 s, times=2 i
RepeatParameter: repeat_id=1 s, times=2 i
RecurrentParameter: repeat_id=1 s, length=2 i, axis=3 i
Variable: name=1 s, type=2 s, repeat_id=3 s*, shape=20 Shape, initializer=100 Initializer
Initializer: type=2 s, multiplier=10 f
Parameter: variable_name=1 s, shape=20 Shape, data=100 f*, need_grad=101 b
Dataset: name=1 s, type=2 s, uri=10 s, batch_size=20 i, cache_dir=30 s, overwrite_cache=31 b, create_cache_explicitly=32 b,
  shuffle=100 b, no_image_normalization=101 b, variable=200 s*
Optimizer: name=1 s, order=3 i, network_name=10 s, dataset_name=20 s*, solver=30 Solver, update_interval=40 i,
  data_variable=50 DataVariable*, generator_variable=60 GeneratorVariable*, loss_variable=70 LossVariable*,
  parameter_variable=80 ParameterVariable*, start_iter=100 i, end_iter=101 i
SolverStateParameter: shape=20 Shape, data=100 f*
SolverState: t=1 u, state_parameter=2 {SolverStateParameter}
Solver: type=2 s, context=10 Context, weight_decay=20 f, lr_decay=30 f, lr_decay_interval=31 i, states=40 {SolverState},
  lr_scheduler_type=200 s, polynomial_scheduler_param=210 PolynomialSchedulerParameter,
  cosine_scheduler_param=211 CosineSchedulerParameter, exponential_scheduler_param=212 ExponentialSchedulerParameter,
  step_scheduler_param=213 StepSchedulerParameter, custom_scheduler_param=299 CustomSchedulerParameter,
  lr_warmup_scheduler_type=300 s, linear_warmup_scheduler_param=310 LinearWarmupSchedulerParameter
PolynomialSchedulerParameter: max_iter=1 f, power=2 f
CosineSchedulerParameter: max_iter=1 f
ExponentialSchedulerParameter: gamma=1 f, iter_interval=2 i
StepSchedulerParameter: gamma=1 f, iter_steps=2 i*
CustomSchedulerParameter: max_iter=1 f, network_name=10 s, data_variable=50 DataVariable*, output_variable=80 OutputVariable*
LinearWarmupSchedulerParameter: warmup_iter=1 i
DataVariable: variable_name=1 s, data_name=3 s
GeneratorVariable: variable_name=1 s, type=2 s, multiplier=3 f
LossVariable: variable_name=1 s
ParameterVariable: variable_name=1 s, learning_rate_multiplier=2 f
Monitor: name=1 s, network_name=10 s, dataset_name=20 s*, data_variable=50 DataVariable*,
  generator_variable=60 GeneratorVariable*, monitor_variable=70 MonitorVariable*
MonitorVariable: variable_name=1 s, type=2 s, data_name=3 s, multiplier=100 f
Executor: name=1 s, network_name=10 s, num_evaluations=20 i, repeat_evaluation_type=21 s, need_back_propagation=30 b,
  data_variable=50 DataVariable*, generator_variable=60 GeneratorVariable*, loss_variable=70 LossVariable*,
  output_variable=80 OutputVariable*, parameter_variable=90 ParameterVariable*, no_image_normalization=101 b
OutputVariable: variable_name=1 s, type=2 s, data_name=3 s
Function: name=1 s, type=2 s, repeat_id=3 s*, context=10 Context, input=20 s*, output=30 s*,
  repeat_param=100 RepeatParameter, recurrent_param=101 RecurrentParameter
"""

#: ``Name stem: hyperparameters``; the parameter field of row n (from 0) has the number 100 + n. Floats, or marked.
SOLVERS: Final = """
Sgd sgd: lr:f
SgdW sgdw: lr:f momentum:f wd:f
Momentum momentum: lr:f momentum:f
Lars lars: lr:f momentum:f coefficient:f eps:f
Nesterov nesterov: lr:f momentum:f
Adadelta adadelta: lr:f decay:f eps:f
Adagrad adagrad: lr:f eps:f
AdaBelief adabelief: alpha:f beta1:f beta2:f eps:f wd:f amsgrad:b weight_decouple:b fixed_decay:b rectify:b
RMSprop rmsprop: lr:f decay:f eps:f
RMSpropGraves rmsprop_graves: lr:f decay:f momentum:f eps:f
Adam adam: alpha:f beta1:f beta2:f eps:f
AdamW adamw: alpha:f beta1:f beta2:f eps:f wd:f
AdaBound adabound: alpha:f beta1:f beta2:f eps:f final_lr:f gamma:f
Adamax adamax: alpha:f beta1:f beta2:f eps:f
AMSGRAD amsgrad: alpha:f beta1:f beta2:f eps:f bias_correction:b
AMSBound amsbound: alpha:f beta1:f beta2:f eps:f final_lr:f gamma:f bias_correction:b
Lamb lamb: eta:f beta1:f beta2:f gamma_l:f gamma_u:f eps:f bias_correction:b
Lion lion: lr:f beta1:f beta2:f
"""
