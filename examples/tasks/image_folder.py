"""Train on a folder of images with a folder for each class."""

from pathlib import Path

from PIL import Image

import nn_core as nn
from nn_core import PF, F, S
from nn_core.data import ImageFolderDataSource, data_iterator

for name, brightness in (("dark", 40), ("light", 200)):
    Path("images", name).mkdir(parents=True)
    for i in range(8):
        Image.new("RGB", (12, 12), (brightness + i,) * 3).save(f"images/{name}/{i}.png")

source = ImageFolderDataSource("images", size=(8, 8), shuffle=True)
x, t = nn.Variable((4, 3, 8, 8)), nn.Variable((4, 1))
loss = F.mean(F.softmax_cross_entropy(PF.affine(x / 255, len(source.classes)), t))
solver = S.Adam(0.01)
with data_iterator(source, batch_size=4) as data:
    for _ in range(200):
        x.d, t.d = data.next()
        solver.minimize(loss)
assert loss.item() < 0.3
