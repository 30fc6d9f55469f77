"""Style transfer: the gradient of an image through a fixed network and Gram matrices."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(5)


def features(x):
    found = []
    with nn.parameter_scope("vgg"):
        h = x
        for i, maps in enumerate((4, 6, 8)):
            h = F.relu(PF.convolution(h, maps, (3, 3), pad=(1, 1), fix_parameters=True, name="conv%d" % i))
            found.append(h)
            h = F.average_pooling(h, (2, 2))
    return found


def gram(h):
    n, c, height, width = h.shape
    flat = F.reshape(h, (n, c, height * width))
    return F.batch_matmul(flat, flat, transpose_b=True) / (c * height * width)


def variation(x):
    return F.mean(F.abs(x[:, :, 1:, :] - x[:, :, :-1, :])) + F.mean(F.abs(x[:, :, :, 1:] - x[:, :, :, :-1]))


content = nn.Variable.from_numpy_array(rng.rand(1, 3, 12, 12).astype(np.float32))
style = nn.Variable.from_numpy_array(rng.rand(1, 3, 12, 12).astype(np.float32))
of_content, of_style = features(content)[-1], [gram(h) for h in features(style)]
for name, p in sorted(nn.get_parameters(grad_only=False).items()):
    p.d = rng.randn(*p.shape) * 0.3
with nn.no_grad():
    nn.forward_all([of_content] + of_style)
targets = [v.unlinked() for v in of_style]
target = of_content.get_unlinked_variable(need_grad=False)

image = nn.parameter.get_parameter_or_create("image", (1, 3, 12, 12), initializer=np.zeros((1, 3, 12, 12)))
image.d = content.d + 0.05 * rng.randn(*image.shape)
mine = features(image)
content_loss = F.mean(F.squared_error(mine[-1], target))
style_loss = sum(F.sum(F.squared_error(gram(h), t)) for h, t in zip(mine, targets))
content_loss.persistent = style_loss.persistent = True
loss = content_loss + 50.0 * style_loss + 0.1 * variation(image)
print("trainable", sorted(nn.get_parameters()))
solver = S.Momentum(0.05, 0.9)
solver.set_parameters(nn.get_parameters())
for step in range(8):
    solver.zero_grad()
    nn.forward_all([loss, content_loss, style_loss])
    loss.backward(clear_buffer=True)
    print("step", step, "%.6f %.6f %.6f" % (loss.d, content_loss.d, style_loss.d), "%.5f" % np.abs(image.g).sum())
    solver.update()
print("image", np.round(image.d[0, 1, 3], 4).tolist())
