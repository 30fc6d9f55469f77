"""Statistics."""

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF

x = nn.Variable((8, 3))
normal: nn.Variable = F.layer_normalization(x, None, None)
y, mean, variance = PF.batch_normalization(x, output_stat=True)
largest: nn.Variable = F.max(x, axis=1)
values, places = F.max(x, axis=1, with_index=True)
index: nn.Variable = F.argmax(x, axis=1)
order, ranks = F.sort(x, with_index=True)
total: nn.Variable = F.logsumexp(F.sort(x), axis=1) + F.var(x, 1) + F.std(x, axis=(1,))
