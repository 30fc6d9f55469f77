"""Data iterators: simple, concatenated, sliced, with_context, epochs and callbacks."""
import numpy as np

from nnabla.utils.data_iterator import (data_iterator, data_iterator_concat_datasets, data_iterator_simple)
from nnabla.utils.data_source import DataSource
from nnabla.utils.data_source_implements import SimpleDataSource


def load(i):
    return np.full((2,), i, np.float32), np.array([i % 3], np.int32)


it = data_iterator_simple(load, 10, 4, shuffle=False, with_memory_cache=True, with_file_cache=False)
print("size", it.size, it.batch_size, list(it.variables), it.epoch)
for _ in range(5):
    x, t = it.next()
    print(x[:, 0].tolist(), t.ravel().tolist(), it.epoch, x.dtype, t.dtype)
it.close()


class Squares(DataSource):
    def __init__(self, n, shuffle=False, rng=None):
        super().__init__(shuffle=shuffle, rng=rng)
        self._size = n
        self._variables = ("x", "y", "index")
        self.reset()

    def reset(self):
        self._order = self._rng.permutation(self._size) if self._shuffle else np.arange(self._size)
        super().reset()

    def _get_data(self, position):
        i = self._order[position]
        return np.array([i * i], np.float32), np.array([-i], np.float32), int(i)


with data_iterator(Squares(7), 3, with_memory_cache=False, use_thread=False) as it:
    seen = []
    it.register_epoch_end_callback(lambda epoch: seen.append(epoch))
    for i, batch in zip(range(6), it):
        print(i, [b.tolist() for b in batch], it.epoch)
    print("callbacks", seen, it.variables)
a = data_iterator(Squares(8), 2, with_memory_cache=False)
for rank in range(3):
    part = a.slice(rng=None, num_of_slices=3, slice_pos=rank)
    print("slice", rank, part.size, sorted(int(part.next()[2][0]) for _ in range(part.size)))
    part.close()
b = data_iterator(Squares(3), 2, with_memory_cache=False)
c = data_iterator_concat_datasets([Squares(3), Squares(2)], 5, shuffle=False, with_memory_cache=False)
print("concat", c.size, c.next()[0].ravel().tolist())
for it in (a, b, c):
    it.close()
source = SimpleDataSource(load, shuffle=True, num_examples=6, rng=np.random.RandomState(3))
with data_iterator(source, 6, with_memory_cache=False) as it:
    orders = [it.next()[1].ravel().tolist() for _ in range(2)]
print("shuffled", [sorted(order) for order in orders])
try:
    data_iterator_simple(load, 10, 4, shuffle=False, stop_exhausted=True)
    it = data_iterator_simple(load, 10, 4, shuffle=False, stop_exhausted=True)
    print("stops", [len(batch[0]) for batch in it])
except TypeError as error:
    print("TypeError", type(error).__name__)
