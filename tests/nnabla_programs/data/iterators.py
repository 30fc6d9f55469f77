"""Data iterators over functions, data sources, and epochs."""
import numpy as np

from nnabla.utils.data_iterator import data_iterator, data_iterator_simple, data_iterator_concat_datasets
from nnabla.utils.data_source import DataSource


def load(i):
    return np.full((2,), i, np.float32), np.array([i % 3])


with data_iterator_simple(load, 10, 4, shuffle=False) as it:
    print("size", it.size, it.batch_size, it.epoch)
    for n in range(5):
        x, t = it.next()
        print(n, x.shape, x[:, 0].tolist(), t.ravel().tolist(), it.epoch)

it = data_iterator_simple(load, 10, 5, shuffle=True, rng=np.random.RandomState(3))
seen = [v for _ in range(2) for v in it.next()[0][:, 0].astype(int).tolist()]
print("one epoch", sorted(seen))
it.close()

again = data_iterator_simple(load, 10, 10, shuffle=True, rng=np.random.RandomState(3))
print("permutation", sorted(again.next()[0][:, 0].astype(int).tolist()))
again.close()


class Squares(DataSource):
    def __init__(self, n, shuffle=False, rng=None):
        super(Squares, self).__init__(shuffle=shuffle, rng=rng)
        self._size = n
        self._variables = ("x", "y")
        self.reset()

    def reset(self):
        self._indexes = self._rng.permutation(self._size) if self._shuffle else np.arange(self._size)
        super(Squares, self).reset()

    def _get_data(self, position):
        i = self._indexes[position]
        return np.array([i], np.float32), np.array([i * i], np.float32)


source = Squares(6)
it = data_iterator(source, 3, with_memory_cache=False, with_file_cache=False)
print("variables", it.variables)
for _ in range(3):
    x, y = it.next()
    print(x.ravel().tolist(), y.ravel().tolist())
it.close()

part = data_iterator(Squares(6), 2, with_memory_cache=True, with_file_cache=False)
s = part.slice(rng=None, num_of_slices=2, slice_pos=1)
print("slice", s.size, s.next()[0].ravel().tolist())
part.close()
count = 0
ends = []
it = data_iterator_simple(load, 6, 3, shuffle=False, epoch_end_callbacks=[lambda e: ends.append(e)])
for _ in range(5):
    it.next()
    count += 1
print("callbacks", ends, count)
it.close()
total = 0
it = data_iterator_simple(load, 7, 2, shuffle=False, stop_exhausted=True)
for x, t in it:
    total += x.shape[0]
print("until exhausted", total)
