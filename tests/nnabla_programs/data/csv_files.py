"""A data set described by a CSV file, and caches."""
import os

import numpy as np

from nnabla.utils.data_iterator import data_iterator_csv_dataset

os.makedirs("set", exist_ok=True)
for i in range(4):
    np.savetxt(os.path.join("set", "x%d.csv" % i), np.full((2, 2), i + 0.5), delimiter=",")
with open(os.path.join("set", "data.csv"), "w") as f:
    f.write("x:image,y__0:first,y__1:second,z:number\n")
    for i in range(4):
        f.write("x%d.csv,%d,%d,%g\n" % (i, i, i * 10, i / 4))

it = data_iterator_csv_dataset(os.path.join("set", "data.csv"), 2, shuffle=False, normalize=False, with_memory_cache=False, with_file_cache=False)
print("variables", it.variables, it.size)
for n in range(3):
    batch = dict(zip(it.variables, it.next()))
    print(n, batch["x"].shape, batch["x"][:, 0, 0].tolist(), batch["y"].tolist(), batch["z"].ravel().tolist())
it.close()
it = data_iterator_csv_dataset(os.path.join("set", "data.csv"), 4, shuffle=True, rng=np.random.RandomState(1), normalize=False, with_file_cache=False)
batch = dict(zip(it.variables, it.next()))
order = np.argsort(batch["z"].ravel())
print("shuffled", batch["y"][order].tolist(), sorted(batch["x"][:, 1, 1].tolist()))
it.close()
