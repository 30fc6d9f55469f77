"""Profilers and inspection: names of rows, counts and files."""
import os

import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.utils.inspection import NanInfTracer, pprint
from nnabla.utils.profiler import GraphProfiler, GraphProfilerCsvWriter

x = nn.Variable.from_numpy_array(np.ones((2, 3, 8, 8), np.float32))
y = F.mean(F.relu(PF.convolution(x, 4, (3, 3))))
solver = S.Sgd(0.1)
solver.set_parameters(nn.get_parameters())
profiler = GraphProfiler(y, solver=solver, device_id="0", ext_name="cpu", n_run=3, max_measure_execution_time=1, time_scale="m", backward_accum=False)
profiler.run()
with open("result.csv", "w") as f:
    GraphProfilerCsvWriter(profiler, file=f).write()
rows = [line.rstrip("\n").split(",") for line in open("result.csv")]
print(len(rows) > 5, rows[0][:2])
for key in ("forward", "backward"):
    print(key, [(r.function_name) for r in profiler.result[key]])
print(sorted(profiler.result)[:3])
tracer = NanInfTracer(trace_inf=True, trace_nan=True, need_details=True)
with tracer.trace():
    y.forward(function_post_hook=tracer.forward_post_hook)
    y.backward(function_post_hook=tracer.backward_post_hook)
tracer.check()
print("clean")
bad = F.log(nn.Variable.from_numpy_array(np.array([-1.0, 1.0], np.float32)))
bad.forward()
print(np.isnan(bad.d).tolist())
