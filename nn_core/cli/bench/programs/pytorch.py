"""The workloads in PyTorch, eager."""

import torch

from nn_core.cli.bench.workloads import DEMO_CLASSES, DEMO_MAPS, DROPOUT, LEARNING_RATE, Programs, Sizes, Step


def programs(package: str, sizes: Sizes) -> Programs:
    """Inference without gradients."""
    torch.set_num_threads(sizes.threads)

    def matmul() -> Step:
        a, b = map(torch.from_numpy, sizes.matrices())
        return torch.inference_mode()(lambda: a @ b)

    def convolution() -> Step:
        x, w = map(torch.from_numpy, sizes.convolution())
        return torch.inference_mode()(lambda: torch.nn.functional.conv2d(x, w, padding=1))

    def inference() -> Step:
        images, _ = sizes.digits()
        x, network = torch.from_numpy(images), _network().eval()
        return torch.inference_mode()(lambda: torch.softmax(network(x), 1))

    def training() -> Step:
        images, labels = sizes.digits()
        x, t = torch.from_numpy(images), torch.from_numpy(labels[:, 0])
        network = _network()
        optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)

        def step() -> object:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(network(x), t)
            loss.backward()
            optimizer.step()
            return loss

        return step

    return {"matmul": matmul, "convolution": convolution, "training": training, "inference": inference}


def _network() -> torch.nn.Sequential:
    layers: list[torch.nn.Module] = []
    inputs = 1
    for i, maps in enumerate(DEMO_MAPS):
        layers += [torch.nn.Conv2d(inputs, maps, 3, padding=1, bias=False), torch.nn.BatchNorm2d(maps), torch.nn.ReLU()]
        layers += [torch.nn.MaxPool2d(2)] if i > 0 else []
        inputs = maps
    layers += [torch.nn.Flatten(), torch.nn.Dropout(DROPOUT), torch.nn.Linear(inputs * 4, DEMO_CLASSES)]
    return torch.nn.Sequential(*layers)
