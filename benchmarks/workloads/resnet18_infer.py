"""ResNet-18 with its running statistics on one image of 3 x 224 x 224; a static graph."""

import numpy as np

from benchmarks.threads import threads
from benchmarks.workloads.resnet18_train import network, torch_network


def data():
    """One image."""
    return np.random.RandomState(0).randn(1, 3, 224, 224).astype(np.float32)


def nn_core():
    """Build a static graph."""
    import nn_core as nn
    import nn_core.functions as F
    import nn_core.parametric_functions as PF

    return _static(nn, F, PF)


def nnabla():
    """Build a static graph."""
    import nnabla as nn
    import nnabla.functions as F
    import nnabla.parametric_functions as PF

    return _static(nn, F, PF)


def _static(nn, F, PF):
    image = data()
    x = nn.Variable(image.shape)
    y = network(nn, F, PF, x, batch_stat=False)

    def step():
        x.d = image
        y.forward(clear_buffer=True)
        return y

    return step


def torch():
    """Eager."""
    import torch as th

    return _torch(th, lambda net: net)


def torch_compile():
    """Compile the network."""
    import torch as th

    return _torch(th, th.compile)


def _torch(th, prepare):
    net = prepare(torch_network(th).eval())
    x = th.from_numpy(data())

    def step():
        with th.inference_mode():
            return net(x)

    return step


def jax():
    """Jitted."""
    import jax as jx
    import jax.numpy as jnp

    from benchmarks.peers.jax_resnet18 import apply, start

    parameters, statistics = start()
    x = jnp.asarray(data().transpose(0, 2, 3, 1))
    compiled = jx.jit(lambda x: apply(parameters, statistics, x, batch_stat=False)[0])

    def step():
        return jx.block_until_ready(compiled(x))

    return step


def onnxruntime():
    """Return the network as an ONNX model."""
    import onnxruntime as ort

    from benchmarks.peers.resnet18_onnx import resnet18

    image = data()
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads(), 1
    session = ort.InferenceSession(resnet18(image.shape[2]), options, providers=["CPUExecutionProvider"])

    def step():
        return session.run(None, {"x": image})[0]

    return step


def openvino():
    """Return the same model, in float32."""
    import openvino as ov

    from benchmarks.peers.resnet18_onnx import resnet18

    image = data()
    settings = {
        "INFERENCE_NUM_THREADS": threads(),
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    core = ov.Core()
    model = core.read_model(resnet18(image.shape[2]), b"")
    request = core.compile_model(model, "CPU", settings).create_infer_request()

    def step():
        return request.infer({0: image})[0]

    return step
