"""Plugins whose import does what it must not, each with the remark of strict mode and of ``nn-core doctor``."""

from typing import Final

#: By what the plugin does: its code, and a regular expression that the remark matches.
UNCLEAN: Final = {
    "prints": ("print('Welcome!')", "prints 'Welcome!'"),
    "configures logging": ("import logging\nlogging.getLogger().setLevel(1)", "changes the configuration of logging"),
    "changes warning filters": ("import warnings\nwarnings.simplefilter('ignore')", "changes warning filters"),
    "changes np.seterr": ("import numpy\nnumpy.seterr(over='ignore', divide='raise')", "changes np.seterr"),
    "handles signals": ("import signal\nsignal.signal(signal.SIGTERM, print)", "changes signal handlers"),
    "changes sys.path": ("import sys\nsys.path.append('/nowhere')", "changes sys.path"),
    "changes os.environ": ("import os\nos.environ['HOSTILE'] = '1'", "changes os.environ"),
    "starts threads": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(3,), daemon=True).start()",
        "changes threads",
    ),
    "switches auto_forward": ("import nn_core\nnn_core.set_auto_forward(True)", "changes modes and contexts of nn_core"),
    "sets the number of threads": ("import nn_core\nnn_core.set_num_threads(7)", "changes settings of nn_core"),
    "seeds Python": ("import random\nrandom.seed(1)", "changes random states"),
    "seeds NumPy": ("import numpy\nnumpy.random.seed(1)", "changes random states"),
    "seeds nn_core": ("import nn_core\nnn_core.seed(1)", "changes random states"),
    "patches NumPy": ("import numpy\nnumpy.exp = numpy.log", "replaces numpy.exp"),
    "patches builtins": ("import builtins\nbuiltins.sorted = builtins.isinstance = len", "replaces builtins.sorted"),
    "adds builtins": ("import builtins\nbuiltins.hostile = 1", "replaces builtins.hostile"),
    "ignores Ctrl-C": ("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)", "changes signal handlers"),
    "blocks signals": (
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])",
        "changes blocked signals",
    ),
    "traces threads": ("import threading\nthreading.settrace(lambda *_: None)", "changes the trace function of threads"),
    "profiles threads": (
        "import threading\nthreading.setprofile(lambda *_: None)",
        "changes the profile function of threads",
    ),
    "changes a constant": ("import nn_core.files.paths as p\np._MAX_BYTES = 9", "replaces nn_core.files.paths._MAX_BYTES"),
    "limits processors": ("import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})", "changes the processors"),
    "changes the version": ("import nn_core\nnn_core.__version__ = '9'", "replaces nn_core.__version__"),
    "replaces a module": ("import sys, json\nsys.modules['json'] = sys", "replaces sys.modules\\['json'\\]"),
    "sets print options": ("import numpy\nnumpy.set_printoptions(precision=1)", "changes print options of NumPy"),
    "changes the directory": ("import os\nos.chdir('/')", "changes the current directory"),
    "changes the umask": ("import os\nos.umask(0o177)", "changes the umask"),
    "starts a timer": ("import signal\nsignal.setitimer(signal.ITIMER_VIRTUAL, 9999)", "changes timers"),
    "hooks exceptions": ("import sys\nsys.excepthook = print", "changes hooks of the interpreter"),
    "hooks exceptions of threads": ("import threading\nthreading.excepthook = print", "changes threading.excepthook"),
    "hooks imports": ("import sys\nsys.meta_path.insert(0, sys.meta_path[-1])", "changes sys.meta_path"),
    "waits for the exit": ("import atexit\natexit.register(int)", "changes functions to call at exit"),
    "profiles": ("import sys\nsys.setprofile(lambda *_: None)", "changes the profile function"),
    "raises the recursion limit": ("import sys\nsys.setrecursionlimit(54321)", "changes the recursion limit"),
    "stops the collector": ("import gc\ngc.disable()", "changes the garbage collector"),
    "takes stdout": ("import sys, io\nsys.stdout = io.StringIO()", "changes sys.stdout"),
    "takes descriptor 0": ("import os\nos.dup2(os.pipe()[0], 0)", "changes file descriptor 0"),
    "limits files": (
        "import resource as r\nr.setrlimit(r.RLIMIT_NOFILE, (200, r.getrlimit(r.RLIMIT_NOFILE)[1]))",
        "changes resource limits",
    ),
    "chooses how processes start": (
        "import multiprocessing\nmultiprocessing.set_start_method('spawn', force=True)",
        "changes the start method of multiprocessing",
    ),
    "starts a process": (
        "import os, sys\nos.spawnl(os.P_NOWAIT, sys.executable, 'python', '-c', 'import time; time.sleep(2)')",
        "changes child processes",
    ),
    "patches nn_core": (
        "import nn_core.context\nnn_core.context.get_current_context = lambda: None",
        "replaces nn_core.context.get_current_context",
    ),
    "sets the default context": (
        "import nn_core\nnn_core.set_default_context(nn_core.Context(['reference:double']))",
        "changes modes and contexts of nn_core",
    ),
    "chooses a locale": (
        "import locale as l\nl.setlocale(l.LC_CTYPE, 'C' if l.setlocale(l.LC_CTYPE) != 'C' else 'C.UTF-8')",
        "changes the locale",
    ),
    "hooks paths": ("import sys\nsys.path_hooks.insert(0, print)", "changes sys.path_hooks"),
    "traces": ("import sys\nsys.settrace(lambda *_: None)", "changes the trace function"),
    "shows values": ("import sys\nsys.displayhook = print", "changes hooks of the interpreter"),
    "takes breakpoints": ("import sys\nsys.breakpointhook = print", "changes hooks of the interpreter"),
    "takes stdin": ("import sys, io\nsys.stdin = io.StringIO()", "changes sys.stdin"),
    "takes stderr": ("import sys, io\nsys.stderr = io.StringIO()", "changes sys.stderr"),
    "takes descriptor 1": ("import os\nos.dup2(os.pipe()[1], 1)", "changes file descriptor 1"),
    "closes descriptor 2": ("import os\nos.close(2)", "changes file descriptor 2"),
    "forgets files of the interpreter": ("import sys\nsys.__stdout__ = None", "changes files of the interpreter"),
    "patches norms of NumPy": ("import numpy\nnumpy.linalg.norm = len", "replaces numpy.linalg.norm"),
    "patches strides of NumPy": (
        "import numpy.lib.stride_tricks as tricks\ntricks.as_strided = len",
        "replaces numpy.lib.stride_tricks.as_strided",
    ),
    "changes a number of NumPy": ("import numpy\nnumpy.pi = 3.0", "replaces numpy.pi"),
    "removes a function of NumPy": ("import numpy\ndel numpy.exp", "replaces numpy.exp"),
    "sets buffers of NumPy": ("import numpy\nnumpy.setbufsize(1600)", "changes the buffer size of NumPy"),
    "patches imports": (
        "import builtins\nold = builtins.__import__\nbuiltins.__import__ = lambda *a, **k: old(*a, **k)",
        "replaces builtins.__import__",
    ),
    "removes builtins": ("import builtins\ndel builtins.hash", "replaces builtins.hash"),
    "patches a method of nn_core": (
        "import nn_core\nnn_core.Variable.forward = print",
        "replaces nn_core.variable.Variable.forward",
    ),
    "hides a property of nn_core": ("import nn_core\nnn_core.Variable.shape = 3", "replaces nn_core.variable.Variable.shape"),
    "replaces a kernel of nn_core": (
        "from nn_core.operators.reference.registry import KERNELS\nKERNELS['ReLU'] = KERNELS['Tanh']",
        r"replaces nn_core.operators.reference.registry.KERNELS\['ReLU'\]",
    ),
    "patches the library": ("import json\njson.loads = len", "replaces json.loads"),
    "stops the clock": ("import time\ntime.time = lambda: 0", "replaces time.time"),
    "removes a module": ("import sys, json\ndel sys.modules['json']", r"replaces sys.modules\['json'\]"),
    "invents a module": (
        "import sys, types\nsys.modules['hostile_invention'] = types.ModuleType('hostile_invention')",
        r"replaces sys.modules\['hostile_invention'\]",
    ),
    "collects more often": ("import gc\ngc.set_threshold(1, 1, 1)", "changes the garbage collector"),
    "watches the collector": ("import gc\ngc.callbacks.append(lambda *_: None)", "changes the garbage collector"),
    "keeps garbage": ("import gc\ngc.set_debug(gc.DEBUG_SAVEALL)", "changes the garbage collector"),
    "freezes objects": ("import gc\ngc.freeze()", "changes the garbage collector"),
    "removes a variable": ("import os\ndel os.environ['PATH']", "changes os.environ"),
    "replaces the environment": ("import os\nos.environ = dict(os.environ)", "changes os.environ"),
    "sets an alarm": ("import signal\nsignal.alarm(9999)", "changes timers"),
    "profiles by a timer": ("import signal\nsignal.setitimer(signal.ITIMER_PROF, 9999)", "changes timers"),
    "writes signals to a file": (
        "import signal, os\nfile = os.pipe()[1]\nos.set_blocking(file, False)\nsignal.set_wakeup_fd(file)",
        "changes the descriptor that signals are written to",
    ),
    "starts the thread of a timer": (
        "import threading\ntimer = threading.Timer(3, int)\ntimer.daemon = True\ntimer.start()",
        "changes threads",
    ),
    "starts a nameless thread": (
        (
            "import _thread, time\nrun = []\n_thread.start_new_thread(lambda: (run.append(1), time.sleep(3)), ())\n"
            "while not run:\n    time.sleep(0.01)"
        ),
        "changes threads",
    ),
    "sets the stack of threads": ("import threading\nthreading.stack_size(1 << 20)", "changes the stack size of threads"),
    "forks": ("import os, time\nif os.fork() == 0:\n    time.sleep(2)\n    os._exit(0)", "changes child processes"),
    "limits the stack": (
        "import resource as r\nr.setrlimit(r.RLIMIT_STACK, (4 << 20, r.getrlimit(r.RLIMIT_STACK)[1]))",
        "changes resource limits",
    ),
    "takes small numbers for zero": (
        (
            "import ctypes, platform\nplace, bits = (7, 0x8040) if platform.machine() == 'x86_64' else (0, 1 << 24)\n"
            "registers = (ctypes.c_uint * 64)()\nlibrary = ctypes.CDLL(None)\nlibrary.fegetenv(registers)\n"
            "registers[place] |= bits\nlibrary.fesetenv(registers)"
        ),
        "changes floating-point arithmetic",
    ),
    "rounds up": (
        "import ctypes, platform\nctypes.CDLL(None).fesetround(0x800 if platform.machine() == 'x86_64' else 0x400000)",
        "changes floating-point arithmetic",
    ),
    "rounds decimals": ("import decimal\ndecimal.getcontext().prec = 3", "changes decimal arithmetic"),
    "takes arguments": ("import sys\nsys.argv[:] = ['x']", "changes sys.argv"),
    "watches asynchronous generators": (
        "import sys\nsys.set_asyncgen_hooks(firstiter=print)",
        "changes hooks of asynchronous generators",
    ),
    "loads libraries for all": (
        "import sys, os\nsys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)",
        "changes the flags of the dynamic loader",
    ),
    "limits sockets": ("import socket\nsocket.setdefaulttimeout(0.001)", "changes the default timeout of sockets"),
    "silences nn_core": ("import logging\nlogging.getLogger('nn_core').setLevel(99)", "changes the configuration of logging"),
    "sets a variable of C": ("import os\nos.putenv('HOSTILE', '1')", "changes the environment of libraries in C"),
    "exchanges code": (
        "import nn_core.context\nnn_core.context.get_current_context.__code__ = (lambda: None).__code__",
        "replaces the code of nn_core.context.get_current_context",
    ),
    "exchanges defaults": (
        "import nn_core.functions\nnn_core.functions.relu.__defaults__ = (True,)",
        "replaces the code of nn_core.functions.activation.relu",
    ),
    "exchanges a default in its place": (
        "import nn_core.files.atomic as a\na.atomic_writer.__kwdefaults__ = {'durable': False, 'hostile': 1}",
        "replaces the code of nn_core.files.atomic.atomic_writer",
    ),
    "shows another function in the place of one that loads late": (
        "import nn_core\nnn_core.load_parameters = nn_core.save_parameters = print",
        "replaces nn_core.load_parameters",
    ),
    "patches a class of the library": (
        "import json\njson.JSONEncoder.encode = len",
        "replaces json.encoder.JSONEncoder.encode",
    ),
    "lowers the priority": ("import os\nos.nice(1)", "changes the priority of the process"),
    "lets signals restart calls": (
        "import signal\nsignal.siginterrupt(signal.SIGUSR1, False)",
        "changes what the system does at signals",
    ),
    "handles crashes": (
        ("import sys, faulthandler as f\nif f.is_enabled():\n    f.disable()\nelse:\n    f.enable(sys.__stderr__)"),
        "changes the faulthandler",
    ),
    "handles signals in C": (
        ("import sys, signal, faulthandler as f\nf.unregister(signal.SIGUSR2)\nf.register(signal.SIGUSR2, sys.__stderr__)"),
        "changes what the system does at signals",
    ),
    "chooses event loops": (
        "import asyncio.events as e\ne._event_loop_policy = object()",
        "changes the policy of event loops",
    ),
    "moves temporary files": ("import tempfile\ntempfile.tempdir = '/nowhere'", "changes the folder of temporary files"),
    "loses what cannot be encoded": (
        "import codecs\ncodecs.register_error('strict', codecs.ignore_errors)",
        "changes how texts that do not fit are encoded",
    ),
    "moves to another time zone": (
        "import os, time\nos.putenv('TZ', 'HST10')\ntime.tzset()",
        "changes the time zone",
    ),
    "writes no compiled files": (
        "import sys\nsys.dont_write_bytecode = not sys.dont_write_bytecode",
        "changes settings of the interpreter",
    ),
}
