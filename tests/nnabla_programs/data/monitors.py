"""Monitors: files of series, times and images."""
import os

import numpy as np

import nnabla as nn
from nnabla.monitor import Monitor, MonitorImage, MonitorImageTile, MonitorSeries, MonitorTimeElapsed, tile_images

monitor = Monitor("logs")
series = MonitorSeries("loss", monitor, interval=2, verbose=False)
for i in range(7):
    series.add(i, 10.0 / (i + 1))
with open(os.path.join("logs", "loss.series.txt")) as f:
    print("series", [[float(word) for word in line.split()] for line in f])
both = MonitorSeries("pair", monitor, interval=1, verbose=False)
both.add(0, np.float32(0.5))
both.add(1, 0.25)
with open(os.path.join("logs", "pair.series.txt")) as f:
    print("pair", f.read().split())
time = MonitorTimeElapsed("time", monitor, interval=2, verbose=False)
for i in range(5):
    time.add(i)
with open(os.path.join("logs", "time.timer.txt")) as f:
    rows = [line.split() for line in f]
print("time", len(rows), [row[0] for row in rows], all(float(row[1]) >= 0 for row in rows))
images = MonitorImage("images", monitor, interval=1, num_images=2, verbose=False)
images.add(0, np.random.RandomState(0).rand(3, 3, 4, 4).astype(np.float32))
images.add(3, nn.Variable.from_numpy_array(np.zeros((1, 1, 4, 4), np.float32)))
tiles = MonitorImageTile("tiles", monitor, interval=1, num_images=4, verbose=False)
tiles.add(1, np.random.RandomState(0).rand(4, 3, 4, 4).astype(np.float32))
print("images", sorted(os.listdir(os.path.join("logs", "images"))))
print("tiles", sorted(os.listdir(os.path.join("logs", "tiles"))))
grid = tile_images(np.arange(2 * 3 * 2 * 2).reshape(2, 3, 2, 2).astype(np.float32))
print("tile", grid.shape, float(grid.sum()))
print("files", sorted(os.listdir("logs")))
loud = MonitorSeries("loud", interval=3, verbose=False)
loud.add(0, 1.0)
print("end")
