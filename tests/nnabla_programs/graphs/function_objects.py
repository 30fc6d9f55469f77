"""The functions of a graph: names, inputs, outputs, arguments, and calling them by hand."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.function as function

x = nn.Variable.from_numpy_array(np.array([[1.0, -2.0], [3.0, 0.5]], np.float32), need_grad=True)
w = nn.Variable.from_numpy_array(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), need_grad=True)
y = F.affine(x, w, base_axis=1)
f = y.parent
print(f.name, len(f.inputs), len(f.outputs), f.inputs[0] == x, f.outputs[0] == y)
print(f.info.type_name, sorted(f.info.args.items()), f.arguments["base_axis"])
p = F.max_pooling(nn.Variable((1, 1, 4, 4)), (2, 2))
print(p.parent.name, [(k, np.array(p.parent.info.args[k]).tolist()) for k in ("kernel", "stride", "ignore_border", "pad")])
print(F.leaky_relu(x, alpha=0.3).parent.arguments["alpha"], list(F.sum(x, axis=1).parent.arguments["axes"]))
print("rank", y.rank, F.relu(y).rank, f.rank, F.relu(y).parent.rank, f.need_grad)

print("depends", f.grad_depends_output_data(0, 0), f.grad_depends_input_data(0, 1), F.exp(x).parent.grad_depends_output_data(0, 0))
print("in place", F.relu(x, inplace=True).parent.inplace_data(0), F.exp(x).parent.inplace_data(0))
print("outputs", f.min_outputs(), F.split(x, axis=0)[0].parent.min_outputs())

out = nn.Variable((2, 2))
f.setup([x, w], [out])
f.forward([x, w], [out])
print("forward", out.d.tolist())
x.g, w.g, out.g = 1, 0, 2
f.backward([x, w], [out], accum=[True, False])
print("backward", x.g.tolist(), w.g.tolist())
f.backward([x, w], [out])
print("accumulated", x.g.tolist(), w.g.tolist())

ctx = nn.Context()
add = function.Add2(ctx, False)
z = add(x, w)
z.forward()
print("class", z.d.tolist(), add.name)
names = []
loss = F.mean(F.tanh(F.affine(F.relu(y), w)) + y)
loss.visit(lambda g: names.append(g.name))
print("visit", names)
print("check", loss.visit_check(lambda g: g.name == "Tanh"), loss.visit_check(lambda g: g.name == "Sigmoid"))
print("references", sorted(g.name for g in y.function_references))
