"""Check that objects compiled for one instruction set hold nothing that a machine without it could run.

    python check_vector_objects.py NM OBJDUMP OBJECT...

Code that runs at load would meet machines of all kinds, and the linker may take a weak symbol of such an object for the
whole library. The exit status is 1, and each object is named, if there is either.
"""

import re
import subprocess
import sys
from pathlib import Path

#: Sections of constructors, and of the functions that they name.
AT_LOAD = re.compile(r"\s(\.init_array\S*|\.ctors\S*|\.text\.startup\S*)\s")
#: Symbols that another object may bring too; those of the instruction set's own namespace are its own, and DW.ref is the
#: address of a function of the runtime library, which unoptimized code reads.
WEAK = re.compile(r"^[0-9a-f]+ [WwVu] (?!.*\bnn_cpu::(?:avx2|avx512)::|DW\.ref\.)(.*)$", re.MULTILINE)


def faults(nm, objdump, path):
    """Yield the faults of one object, in words."""

    def output(*command):
        return subprocess.run([*command, path], check=True, capture_output=True, text=True).stdout

    yield from (f"{section} holds code that runs at load" for section in AT_LOAD.findall(output(objdump, "-h")))
    yield from (f"{name} is weak" for name in WEAK.findall(output(nm, "-C")))


def main():
    """Check the objects of the command line."""
    nm, objdump, *objects = sys.argv[1:]
    found = [f"{Path(path).name}: {fault}" for path in objects for fault in faults(nm, objdump, path)]
    sys.exit("\n".join(found) or None)


if __name__ == "__main__":
    main()
