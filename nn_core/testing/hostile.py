"""Packages that do everything wrong, to see that an installation survives plugins: each must end in a refusal or a message
that names the plugin and what to do, and everything else must keep working.

``for hostile in HOSTILE: install(folder, hostile)`` makes a package that is found once `folder` is on ``sys.path``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nn_core.testing.unclean_imports import UNCLEAN

#: The module of every package starts with this.
HEAD: Final = "from nn_core.ext import *\nPLUGIN_API = 2\nREQUIRES_CORE = '>=0.1'\n"
#: The name of the plugin of every package.
PLUGIN: Final = "hostile"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """One package.

    Attributes:
        does: The fault of the package.
        body: Its module, below `HEAD`.
        stage: Stage of the fault: "load" (import and hooks), "backend" (probe and load), "run" (calling
            ``F.hostile_op`` and differentiating), "target" (loading ``S.HostileSolver``), "process" (it takes the
            interpreter down, so that only ``nn-core doctor`` survives it) or "strict" (NN_CORE_STRICT refuses it).
        message: A regular expression that the refusal matches.
        head: The text that replaces `HEAD`.
    """

    does: str
    body: str
    stage: str
    message: str
    head: str = HEAD


def install(folder: Path, hostile: Hostile, module: str = "nn_ext_hostile") -> None:
    """Write the package into `folder`, as pip would: its module and its metadata."""
    metadata = folder / f"nn_ext_{PLUGIN}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / f"{module}.py").write_text(hostile.head + hostile.body, encoding="utf-8")
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: nn-ext-{PLUGIN}\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(f"[nn_core.extensions]\n{PLUGIN} = {module}\n", encoding="utf-8")


_HOOK: Final = "@hookimpl\ndef nn_core_{hook}():\n    {body}\n"
_BACKEND: Final = """
import numpy as np
class Host:
    name, array_class, kernels = "hostile", "CpuCachedArray", {{}}
    namespace = staticmethod(lambda: np)
    empty = staticmethod(np.empty)
    from_numpy = to_numpy = staticmethod(np.array)
def probe():
    {probe}
def load():
    {load}
@hookimpl
def nn_core_backends():
    return [BackendInfo(name="hostile", array_class="CpuCachedArray", probe=probe, load=load)]
"""
_OPERATOR: Final = """
SPEC = '''
- name: hostile.Op
  api: hostile_op
  topic: activation
  doc: An operator.
  inputs: {{x: {{doc: Input.}}}}
  outputs: {{y: {{doc: Output.}}}}
  shape: {shape}
  backward: {backward}
'''
{rules}
@hookimpl
def nn_core_functions():
    return [FunctionPackage(spec=SPEC, kernels={kernels})]
"""
_KERNEL: Final = "@kernel('hostile.Op')\ndef op(xp, x):\n    {body}\n"
_GRADIENT: Final = "@gradient('hostile.Op')\ndef op_gradient(F, g):\n    {body}\n"
_SHAPE: Final = "@shape_rule('hostile.Op')\ndef op_shape(x):\n    {body}\n"
_SOLVER: Final = "return [SolverInfo(name='HostileSolver', target={target!r})]"


def _hook(body: str, hook: str = "backends") -> str:
    return _HOOK.format(hook=hook, body=body)


def _backend(probe: str = "return None", load: str = "return Host()") -> str:
    return _BACKEND.format(probe=probe, load=load)


def _operator(
    kernel: str = "return x * 1",
    gradient: str = "return g.grad * 1",
    shape_rule: str = "",
    *,
    rules: str = "",
    backward: str = "{needs: [x]}",
    kernels: str = "{}",
) -> str:
    parts = [_KERNEL.format(body=kernel) if kernel else "", _GRADIENT.format(body=gradient) if gradient else ""]
    parts += [_SHAPE.format(body=shape_rule) if shape_rule else "", rules]
    shape = "rule" if shape_rule else "same_as x"
    return _OPERATOR.format(shape=shape, backward=backward, rules="".join(parts), kernels=kernels)


_BOMB: Final = "- &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"- &{name} [{','.join(['*' + before] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def _stage(stage: str, rows: Mapping[str, tuple[str, str]], head: str = HEAD) -> tuple[Hostile, ...]:
    return tuple(
        Hostile(does=does, body=body, stage=stage, message=message, head=head) for does, (body, message) in rows.items()
    )


_IMPORT: Final = _stage(
    "load",
    {
        "exits when it is imported": ("import sys\nsys.exit(3)", "must not end the program, got SystemExit: 3"),
        "exits without a status": ("raise SystemExit", "must not end the program, got SystemExit"),
        "raises KeyboardInterrupt": ("raise KeyboardInterrupt", "must not end the program, got KeyboardInterrupt"),
        "raises GeneratorExit": ("raise GeneratorExit", "must not end the program, got GeneratorExit"),
        "raises a BaseException of its own": (
            "class Doom(BaseException): pass\nraise Doom('now')",
            "must not end the program, got Doom: now",
        ),
        "raises what ends the program when it is printed": (
            "class Doom(Exception):\n    def __str__(self):\n        raise SystemExit(3)\nraise Doom",
            r"got: Doom: \(its message raises SystemExit\)",
        ),
        "runs for ever": ("while True: pass", r"plugin 'hostile': must end within \S+ s, got no end"),
        "sleeps for ever": ("import time\ntime.sleep(1000)", r"must end within \S+ s, got no end"),
        "waits for a lock that it holds": (
            "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()",
            r"must end within \S+ s, got no end",
        ),
        "catches what should stop it": (
            "import time\ntry:\n    time.sleep(1000)\nexcept BaseException: pass",
            r"must end within \S+ s, got no end",
        ),
        "recurses for ever": ("def f(): f()\nf()", "RecursionError"),
        "runs out of memory": ("raise MemoryError", "MemoryError"),
        "needs what is not installed": ("import a_library_that_nobody_has", "ModuleNotFoundError: .*a_library_that"),
        "has a library that does not fit": ("raise OSError('libhostile.so: bad ELF')", "OSError: libhostile.so: bad ELF"),
        "is no Python": ("def (", "SyntaxError"),
        "raises what cannot be printed": (
            "class Mute(Exception):\n    def __str__(self): raise ValueError\nraise Mute",
            r"Mute: \(its message raises ValueError\)",
        ),
        "raises a warning": ("raise UserWarning('careful')", "UserWarning: careful"),
        "has no hooks": ("x = 1", "must have an @hookimpl of a hook of nn_core.ext, got none"),
        "has a hook that nobody knows": (_hook("return []", "toasters"), "unknown hook 'nn_core_toasters'"),
        "has a hook with arguments": ("@hookimpl\ndef nn_core_backends(config):\n    return []\n", "config"),
        "exits in a hook": (_hook("raise SystemExit(1)"), "must not end the program, got SystemExit: 1"),
        "hangs in a hook": (_hook("while True: pass"), r"must end within \S+ s, got no end"),
        "raises in a hook": (_hook("raise ValueError('late')"), "ValueError: late"),
        "returns None from a hook": (_hook("return {}"), r"nn_core_backends must return a list of BackendInfo, got dict"),
        "returns a generator from a hook": (_hook("yield 1"), "must return a list of BackendInfo, got generator"),
        "returns strings from a hook": (_hook("return ['acme']"), "must return a list of BackendInfo, got one with 'acme'"),
        "needs an absent plugin": (
            "REQUIRES_PLUGINS = ('absent_here',)\n" + _hook("return []"),
            "got 'absent_here'\n.*nn-core doctor",
        ),
        "needs itself": (
            "REQUIRES_PLUGINS = ('hostile',)\n" + _hook("return []"),
            "must not be used while it is being loaded, got hostile -> hostile",
        ),
        "needs nonsense": ("REQUIRES_PLUGINS = 3\n" + _hook("return []"), "REQUIRES_PLUGINS must be a tuple of names"),
        "is named as a backend of another": (
            _hook("return [BackendInfo(name='cpu', array_class='', load=None)]"),
            "must be named as its entry point, 'hostile' or 'hostile.\\*', got 'cpu'",
        ),
        "brings a backend twice": (
            _hook("return [BackendInfo(name='hostile', array_class='', load=None)] * 2"),
            "backends must have different names",
        ),
        "replaces an operator of the core": (
            _operator().replace("name: hostile.Op", "name: Tanh"),
            "function 'Tanh': must come from one plugin, got 'nn_core' and 'hostile'",
        ),
        "takes an API name of the core": (
            _operator().replace("api: hostile_op", "api: tanh"),
            "function 'tanh': must come from one plugin, got 'nn_core' and 'hostile'",
        ),
        "names its operator as another plugin's": (
            _operator().replace("hostile.Op", "acme.Op"),
            r"plugin hostile:2: names of functions must start with the name of the plugin, 'hostile.', got 'acme.Op'",
        ),
        "has an API name without its prefix": (
            _operator().replace("api: hostile_op", "api: fancy_op"),
            r"hostile.Op: an API name must start with 'hostile_', got 'fancy_op'\n  hint: call it 'hostile_fancy_op'",
        ),
        "has a composite without its prefix": (
            _hook("return [CompositeInfo(name='fancy', target='a:b')]", "composites"),
            r"function 'fancy' of plugin 'hostile': an API name must start with 'hostile_', got 'fancy'",
        ),
        "has a layer without its prefix": (
            _hook("return [ParametricFunctionInfo(name='fancy', target='a:b')]", "parametric_functions"),
            r"parametric function 'fancy' of plugin 'hostile': an API name must start with 'hostile_', .*VENDOR_NAMESPACE",
        ),
        "has a vendor namespace of another name": (
            "VENDOR_NAMESPACE = 'acme'\n" + _operator(),
            "VENDOR_NAMESPACE must be True or False, got 'acme'",
        ),
        "replaces a kernel of the core": (
            "@kernel('Tanh')\ndef tanh(xp, x): return x\n" + _operator(),
            r"Tanh: the reference kernel must come from nn_core.*overlays",
        ),
        "replaces a gradient of the core": (
            "@gradient('Tanh')\ndef tanh(F, g): return g.grad\n" + _operator(),
            "Tanh: the gradient rule must come from nn_core",
        ),
        "registers a rule for a function of nobody": (
            _operator(rules="@gradient('acme.Other')\ndef other(F, g): return g.grad\n"),
            "a gradient rule must be for a function that plugin 'hostile' specifies, got 'acme.Other'",
        ),
        "registers a kernel twice": (
            _operator(rules=_KERNEL.format(body="return x")),
            "hostile.Op: a function has one reference kernel, got a second one",
        ),
        "has no shape rule": (
            _operator().replace("same_as x", "rule"),
            r"plugin hostile:2: hostile.Op must have a shape rule, got none\n  hint: @shape_rule",
        ),
        "has no gradient": (_operator(gradient=""), "hostile.Op must have a gradient rule, got none\n  hint: @gradient"),
        "has no kernel": (_operator(kernel=""), "hostile.Op must have a kernel, got none\n  hint: @kernel"),
        "fails after it registered": (_operator() + _hook("raise ValueError('late')"), "ValueError: late"),
        "has a specification that explodes": (
            f"@hookimpl\ndef nn_core_functions():\n    return [FunctionPackage(spec={_BOMB!r})]\n",
            "must have at most 500000 values, got more with its aliases",
        ),
        "has a specification of brackets": (
            _hook("return [FunctionPackage(spec='[' * 100_000)]", "functions"),
            "must be nested at most 32 deep, got more",
        ),
        "has a specification of 5 MB": (
            _hook("return [FunctionPackage(spec='x' * 5_000_000)]", "functions"),
            "must have at most 4000000 characters, got 5000000",
        ),
        "has a specification with a typing error": (
            _operator().replace("topic:", "tropic:"),
            r"plugin hostile:\d: hostile.Op: keys must be among .*, got 'tropic'",
        ),
        "has a specification that is not there": (
            "from pathlib import Path\n"
            + _hook("return [FunctionPackage(spec=Path('/nowhere/functions.yaml'))]", "functions"),
            "the specification must be a file, got '.*functions.yaml'",
        ),
        "overlays a function of nobody": (
            _hook("return [FunctionPackage(overlays={'cpu': {'Nothing': 1}})]", "functions"),
            "overlays must be for functions that exist, got 'Nothing' on 'cpu'",
        ),
        "has kernels for functions of others": (
            _operator(kernels="{'cpu': {'Tanh': object()}}"),
            r"kernels for backend 'cpu' must be for functions that the plugin brings .*got 'Tanh'",
        ),
        "offers a name that is none": (
            _hook("return [SolverInfo(name='no name', target='a:b')]", "solvers"),
            "names must be like .*, got 'no name'",
        ),
        "offers a target that is none": (
            _hook("return [SolverInfo(name='X', target='somewhere')]", "solvers"),
            "target must be an object or 'module:attribute', got 'somewhere'",
        ),
        "brings a word of another plugin": (
            _hook("return [WordInfo(name='acme.exact', role='tag')]", "words"),
            r"word 'acme.exact' of plugin 'hostile': names must start with 'hostile\.', got 'acme.exact'",
        ),
        "has a topic of nobody": (
            _operator().replace("topic: activation", "topic: acme.audio"),
            r"plugin hostile:\d: hostile.Op: topic must be one of .*, got 'acme.audio'",
        ),
        "takes a monitor of the core": (
            _hook("return [ViewerInfo(name='MonitorSeries', role='monitor', target='a:b')]", "viewers"),
            "viewer 'MonitorSeries': must come from one place, got 'nn_core' and 'hostile'",
        ),
        "takes a solver of the core": (
            _hook("return [SolverInfo(name='Adam', target='a:b')]", "solvers"),
            "solver 'Adam': must come from one place, got 'nn_core' and 'hostile'",
        ),
        "takes a file format of the core": (
            _hook("return [FileFormatInfo(name='hdf', extensions=('.h5',), read='a:b')]", "file_formats"),
            "file format '.h5': must come from one place, got 'nn_core' and 'hostile'",
        ),
        "takes a command of the core": (
            _hook("return [CommandInfo(name='doctor', help='', target='a:b')]", "commands"),
            "command 'doctor': must come from one place, got 'nn_core' and 'hostile'",
        ),
    },
)
_VERSIONS: Final = (
    Hostile(does="states no API", head="", body="x = 1", stage="load", message="PLUGIN_API must be 1 to 2 .*, got None"),
    Hostile(
        does="was written for another API",
        head="PLUGIN_API = 99\nREQUIRES_CORE = '>=0.1'\n",
        body="",
        stage="load",
        message="PLUGIN_API must be 1 to 2 .*, got 99\n.*pip install --upgrade nn-core",
    ),
    Hostile(
        does="was written for another core",
        head="PLUGIN_API = 2\nREQUIRES_CORE = '>=99'\n",
        body="",
        stage="load",
        message="REQUIRES_CORE must allow nn-core .*, got '>=99'",
    ),
)
_BACKENDS: Final = _stage(
    "backend",
    {
        "exits in probe()": (_backend("raise SystemExit"), r"probe\(\): must not end the program, got SystemExit"),
        "hangs in probe()": (_backend("while True: pass"), r"probe\(\): must end within \S+ s, got no end"),
        "raises in probe()": (_backend("1 / 0"), "ZeroDivisionError"),
        "answers nonsense in probe()": (_backend("return 'no'"), r"probe\(\) must return a Refusal or None, got 'no'"),
        "interrupts in load()": (
            _backend(load="raise KeyboardInterrupt"),
            r"load\(\): must not end the program, got KeyboardInterrupt",
        ),
        "loads nothing": (_backend(load="return None"), "backend 'hostile': must have name, array_class"),
        "loads another backend": (
            _backend(load="Host.array_class = 'Warp'; return Host()"),
            "name and array_class must be as announced",
        ),
        "has kernels for functions that do not exist": (
            _backend(load="Host.kernels = {'Tangens': None}; return Host()"),
            "kernels must be for functions that exist, got Tangens; did you mean '",
        ),
        "has a list of kernels": (
            _backend(load="Host.kernels = []; return Host()"),
            "kernels must be a mapping by name of the function, got a list",
        ),
    },
)
_RUNS: Final = _stage(
    "run",
    {
        "raises in its kernel": (
            _operator("raise ZeroDivisionError('oops')"),
            r"nn_core: in F.hostile_op \(hostile.Op\) of plugin 'hostile', run by backend 'reference', called with \(\(2, 3\)",
        ),
        "returns a result of another shape": (
            _operator("return x[:1]"),
            r"hostile_op: the reference kernel must return the shape \(2, 3\) of the rule, got \(1, 3\)",
        ),
        "returns no result": (_operator("return ()"), "hostile_op: the reference kernel must return 1 results, got 0"),
        "has a gradient of another shape": (
            _operator(gradient="return g.grad[:1]"),
            r"hostile_op: the gradient of an input must have its shape \(2, 3\), got \(1, 3\)",
        ),
        "has too many gradients": (
            _operator(gradient="return g.grad, g.grad"),
            "hostile_op: a gradient rule must return 1 gradients, got 2",
        ),
        "raises in its gradient": (
            _operator(gradient="raise ZeroDivisionError('oops')"),
            "nn_core: in the gradient rule of F.hostile_op .* of plugin 'hostile'",
        ),
        "infers no shape": (
            _operator(shape_rule="return None"),
            "hostile_op: a shape rule must return a shape for each output, got None",
        ),
        "infers a negative shape": (
            _operator(shape_rule="return ((-2, 3),)"),
            r"a shape rule must return a shape for each output, got \(\(-2, 3\),\)",
        ),
        "infers too many shapes": (
            _operator(shape_rule="return (x, x)"),
            r"a shape rule must return 1 shapes, got \(\(2, 3\), \(2, 3\)\)",
        ),
    },
)
_TARGETS: Final = _stage(
    "target",
    {
        "offers what is not there": (_hook(_SOLVER.format(target="nowhere:X"), "solvers"), "must be importable, got: Mod"),
        "offers a name that its module lacks": (_hook(_SOLVER.format(target="math:X"), "solvers"), "AttributeError"),
        "exits where its target is": (
            _hook(_SOLVER.format(target="nn_ext_hostile:Exits.now"), "solvers")
            + "class Meta(type):\n    @property\n    def now(cls): raise SystemExit(2)\nclass Exits(metaclass=Meta): pass\n",
            "must not end the program, got SystemExit: 2",
        ),
    },
)
_PROCESSES: Final = _stage(
    "process",
    {
        "crashes the interpreter": ("import ctypes\nctypes.string_at(0)", "the interpreter died of SIGSEGV"),
        "aborts": ("import os\nos.abort()", "the interpreter died of SIGABRT"),
        "ends the process": ("import os\nos._exit(0)", "the examination ended without a result"),
        "ends the process with a status": ("import os\nos._exit(7)", "the interpreter ended with status 7"),
        "hangs where nothing reaches it": (
            "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\ntime.sleep(1000)",
            "importing, probing and loading must end within .* s, got no end",
        ),
        **{
            f"sends {name} to its parent": (
                f"import os, signal, time\nos.kill(os.getppid(), signal.{name})\ntime.sleep(1000)",
                f"it ended the process that started it by {name}",
            )
            for name in ("SIGHUP", "SIGINT", "SIGKILL", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM")
        },
        "kills its group": ("import os, signal\nos.killpg(0, signal.SIGKILL)", "the interpreter died of SIGKILL"),
        "kills the group of its parent": (
            "import os, signal, time\nos.killpg(os.getpgid(os.getppid()), signal.SIGTERM)\ntime.sleep(1000)",
            "it ended the process that started it by SIGTERM",
        ),
        "kills the session of its parent": (
            "import os, signal, time\nos.killpg(os.getsid(os.getppid()), signal.SIGKILL)\ntime.sleep(1000)",
            "it ended the process that started it by SIGKILL",
        ),
        "stops itself": ("import os, signal\nos.kill(0, signal.SIGSTOP)", "the interpreter was stopped by SIGSTOP"),
        "stops its parent": (
            "import os, signal, time\nos.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(1000)",
            "importing, probing and loading must end within .* s, got no end",
        ),
        "leaves a process that holds its streams": (
            "import os, time\nif not os.fork():\n    os.setsid()\n    time.sleep(30)\n    os._exit(0)\nos._exit(7)",
            "the interpreter ended with status 7",
        ),
        "fills its streams": (
            "import os\nfor _ in range(100):\n    os.write(1, bytes(100_000))\n    os.write(2, bytes(100_000))\nos._exit(7)",
            "the interpreter ended with status 7",
        ),
        "closes all files": ("import os\nos.closerange(0, 1000)\nos._exit(7)", "the interpreter ended with status 7"),
    },
)
_STRICT: Final = _stage("strict", UNCLEAN)
#: All of them.
HOSTILE: Final = (*_IMPORT, *_VERSIONS, *_BACKENDS, *_RUNS, *_TARGETS, *_PROCESSES, *_STRICT)
