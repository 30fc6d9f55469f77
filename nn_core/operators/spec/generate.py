"""Write ``nn_core.operators.spec.builtin`` (the specifications as data) and ``nn_core.functions`` (the public functions).

Both are committed, so that nothing reads YAML when a program runs. Each fact is in one of them: the data has what programs
read, the docstrings have the prose. ``python -m nn_core.operators.spec`` calls `generate`.
"""

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature
from itertools import chain, groupby
from pathlib import Path
from textwrap import indent
from typing import Any

from nn_core.operators.spec.load import load
from nn_core.operators.spec.model import TOPICS, FunctionSpec
from nn_core.operators.spec.signature import docstring, flags_of_results, signature

_WIDTH = 120
_PLAIN = Parameter.POSITIONAL_OR_KEYWORD
_NOTICE = "Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost."
_BUILTIN = f'''"""Every specification of function_spec.yaml, by name and by API name.

{_NOTICE}
"""

from collections.abc import Mapping
from typing import Final

{{imports}}
from nn_core.operators.spec.model import FunctionSpec

SPECS: Final[tuple[FunctionSpec, ...]] = (
{{specs}}
)

#: "Affine" -> specification.
BY_NAME: Final[Mapping[str, FunctionSpec]] = {{{{spec.name: spec for spec in SPECS}}}}

#: "affine" -> specification.
BY_API: Final[Mapping[str, FunctionSpec]] = {{{{spec.api: spec for spec in SPECS}}}}
'''
_FUNCTIONS = f'''"""The functions of nn_core; users write ``import nn_core.functions as F``.

A function of Variables extends the graph; a function of NdArrays computes at once.

Every function accepts ``outputs``, NdArrays that the results are written into, one for each result. ``n_outputs`` is
accepted for programs written for NNabla; the number of results follows from the other arguments. Functions of plugins
are found here by their API name.

{_NOTICE}
"""

# ruff: noqa: A004, I001

from typing import TYPE_CHECKING

from nn_core.engine.dispatch.attributes import hide_submodules
{{imports}}

if not TYPE_CHECKING:  # so that checkers report names that do not exist; `nn-core stubs` declares those of plugins
    from nn_core.functions.plugin_functions import __dir__ as __dir__
    from nn_core.functions.plugin_functions import __getattr__ as __getattr__

    hide_submodules(__name__)

{{names}}
'''
_TOPIC = f'''"""Functions of the topic {{topic}}.

{_NOTICE}

The types are in the stub beside this file. At run time a function takes any arguments, and refuses those that do not fit.
"""

from nn_core.engine.graph.apply import apply
from nn_core.functions.signatures import refuse, show_signatures
{{constants}}
{{functions}}


show_signatures(globals(), SPECS)
'''
_STUB = f"""# {_NOTICE}
from collections.abc import Sequence{{typing}}

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand{{variable}}

{{functions}}
"""


def generate(root: Path) -> dict[Path, str]:
    """Return the text of every generated file of the checkout at `root`, by path."""
    specs = load(root / "function_spec.yaml")
    package = root / "nn_core"
    topics = {topic: [spec for spec in specs if spec.topic == topic] for topic in TOPICS}
    topics = {topic: found for topic, found in topics.items() if found}
    builtin = package / "operators" / "spec" / "builtin"
    files = {builtin / f"{topic}.py": specs_module(topic, found) for topic, found in topics.items()}
    files[builtin / "__init__.py"] = _BUILTIN.format(
        imports=import_line("nn_core.operators.spec.builtin", sorted(topics)),
        specs="\n".join(f"    *{topic}.SPECS," for topic in topics),
    )
    for topic, found in topics.items():
        files[package / "functions" / f"{topic}.py"] = functions_module(topic, found)
        files[package / "functions" / f"{topic}.pyi"] = functions_stub(found)
    files[package / "functions" / "__init__.py"] = functions_package(topics, exports_by_hand(package / "functions"))
    return files


def specs_module(topic: str, specs: Sequence[FunctionSpec]) -> str:
    """Return the module of ``nn_core.operators.spec.builtin`` with the specifications of one topic."""
    constants = "\n\n".join(f"{constant(spec)} = {render(spec)}" for spec in specs)
    classes = ("ArgSpec", "BackwardSpec", "FunctionSpec", "InputSpec", "OutputSpec")
    imports = import_line("nn_core.operators.spec.model", [name for name in classes if f"{name}(" in constants])
    listed = tuple_text([constant(spec) for spec in specs], "SPECS: tuple[FunctionSpec, ...] = ")
    return f'"""Specifications of the topic {topic}.\n\n{_NOTICE}\n"""\n\n{imports}\n\n{constants}\n\n{listed}\n'


def functions_module(topic: str, specs: Sequence[FunctionSpec]) -> str:
    """Return the module of ``nn_core.functions`` with the functions of one topic."""
    names = sorted(["SPECS", *map(constant, specs)], key=str.lower)
    return _TOPIC.format(
        topic=topic,
        constants=import_line(f"nn_core.operators.spec.builtin.{topic}", names),
        functions="\n".join(f"\n\n{function_text(spec)}" for spec in specs),
    )


def functions_stub(specs: Sequence[FunctionSpec]) -> str:
    """Return the stub of that module, with the signatures for type checkers."""
    return _STUB.format(
        typing="\nfrom typing import Literal, overload" if any(map(flags_of_results, specs)) else "",
        variable="" if all(spec.inputs for spec in specs) else "\nfrom nn_core.variable import Variable",
        functions="\n".join(map(stub_text, specs)),
    )


def function_text(spec: FunctionSpec) -> str:
    """Return the definition of the public function of `spec`."""
    head = bracketed(f"def {spec.api}(", _lenient_parameters(signature(spec)), "):")
    names = [entry.name for entry in spec.inputs]
    if spec.variadic:
        inputs = names[-1] if len(names) == 1 else f"({', '.join(names[:-1])}, *{names[-1]})"
    else:
        inputs = tuple_text(names)
    args = bracketed("{", [f'"{arg.name}": {arg.name}' for arg in spec.args], "}", _WIDTH - 8)
    call = bracketed("return apply(", [constant(spec), inputs, args, "outputs"], ")", _WIDTH - 4)
    wrong, surplus = ("unknown", "()") if spec.variadic else ("surplus or unknown", "surplus")
    check = f"if {wrong}:\n    refuse({constant(spec)}, {surplus}, unknown)"
    text = docstring(spec).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    body = indent(f'"""{text}\n"""\n{check}\n{call}', "    ")
    return f"{head}\n{body}"


def _lenient_parameters(public: Signature) -> list[str]:
    """Parameters that take any call: None for what is missing, and the rest of the arguments for `refuse`."""
    texts: dict[Any, list[str]] = {kind: [] for kind in (_PLAIN, Parameter.VAR_POSITIONAL, Parameter.KEYWORD_ONLY)}
    for parameter in public.parameters.values():
        is_rest = parameter.kind is Parameter.VAR_POSITIONAL
        default = "None" if parameter.default is Parameter.empty else render(parameter.default)
        texts[parameter.kind].append(f"*{parameter.name}" if is_rest else f"{parameter.name}={default}")
    plain, rest, keywords = texts.values()
    return [*plain, *(rest or ["*surplus"]), *keywords, "**unknown"]


def stub_text(spec: FunctionSpec) -> str:
    """Return the signature of the public function of `spec`, or those without and with further results."""
    public = signature(spec)
    whole = bracketed(f"def {spec.api}(", _parameters(public), f") -> {public.return_annotation}: ...")
    flags = flags_of_results(spec)
    if not flags:
        return whole
    one, several = public.return_annotation.split(" | ")
    unset = {name: public.parameters[name].replace(annotation="Literal[False]") for name in flags}
    without = public.replace(parameters=list({**public.parameters, **unset}.values()))
    first = bracketed(f"def {spec.api}(", _parameters(without), f") -> {one}: ...")
    second = bracketed(f"def {spec.api}(", _parameters(public), f") -> {several}: ...")
    return "\n".join(["@overload", first, "@overload", second])


def _parameters(public: Signature) -> list[str]:
    parameters: list[str] = []
    only_keywords = False
    for parameter in public.parameters.values():
        if parameter.kind is Parameter.KEYWORD_ONLY and not only_keywords:
            parameters.append("*")
        only_keywords = parameter.kind in (Parameter.KEYWORD_ONLY, Parameter.VAR_POSITIONAL)
        star = "*" if parameter.kind is Parameter.VAR_POSITIONAL else ""
        default = "" if parameter.default is Parameter.empty else f" = {render(parameter.default)}"
        parameters.append(f"{star}{parameter.name}: {parameter.annotation}{default}")
    return parameters


def functions_package(topics: Mapping[str, Sequence[FunctionSpec]], by_hand: Mapping[str, Sequence[str]]) -> str:
    """Return the package ``nn_core.functions``; names written by hand take the place of generated ones."""
    taken = {name for names in by_hand.values() for name in names}
    sources = dict(by_hand)
    for topic, specs in topics.items():
        sources[topic] = [spec.api for spec in specs if spec.api not in taken]
    public = {module: _public(names) for module, names in sorted(sources.items())}
    lines = [_short_import(f"nn_core.functions.{module}", names) for module, names in public.items() if names]
    names = sorted(chain.from_iterable(public.values()))
    return _FUNCTIONS.format(imports="\n".join(lines), names=_list_by_letter("__all__", names))


def _public(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if not name.startswith("__"))


def _list_by_letter(variable: str, names: Sequence[str]) -> str:
    """Assign the sorted names to `variable`, with a new line for each first letter: one more name changes a line or two."""
    groups = [filled_lines(map(json.dumps, group)) for _, group in groupby(names, lambda name: name[0])]
    return "\n".join([f"{variable} = [", *(f"    {line}," for group in groups for line in group), "]"])


def _short_import(module: str, names: Sequence[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    return line if len(line) <= _WIDTH else filled(f"from {module} import (", names, ")")


def exports_by_hand(folder: Path) -> dict[str, list[str]]:
    """``__all__`` of the modules in `folder` that are written by hand; no module is imported."""
    found = {}
    for path in sorted(folder.glob("**/[a-z]*.py")):
        if path.parent == folder and path.stem in TOPICS:
            continue
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
                module = ".".join(path.relative_to(folder).with_suffix("").parts)
                found[module] = list(ast.literal_eval(statement.value))
    return found


def constant(spec: FunctionSpec) -> str:
    """Return the name of the constant that holds `spec`."""
    return spec.api.upper()


def import_line(module: str, names: Sequence[str]) -> str:
    """Return an import of `names`, broken where it is too long."""
    line = f"from {module} import {', '.join(names)}"
    return line if len(line) <= _WIDTH else bracketed(f"from {module} import (", names, ")")


def bracketed(head: str, items: Iterable[str], tail: str, width: int = _WIDTH) -> str:
    """Head, items and tail on one line, or each item on a line of its own with a comma after it."""
    items = list(items)
    line = head + ", ".join(items) + tail
    if len(line) <= width and "\n" not in line:
        return line
    return "\n".join([head, *(indent(item, "    ") + "," for item in items), tail])


def filled(head: str, items: Iterable[str], tail: str, width: int = _WIDTH) -> str:
    """Head, items and tail on one line, or the items on as few lines as hold them."""
    items = list(items)
    line = head + ", ".join(items) + tail
    if len(line) <= width and "\n" not in line:
        return line
    return "\n".join([head, *(indent(line, "    ") + "," for line in filled_lines(items, width)), tail])


def filled_lines(items: Iterable[str], width: int = _WIDTH) -> list[str]:
    """Return the items on as few lines as hold them, indented and with a comma after each line."""
    lines: list[str] = []
    for item in items:
        if lines and "\n" not in lines[-1] + item and len(lines[-1]) + len(item) + 7 <= width:
            lines[-1] += f", {item}"
        else:
            lines.append(item)
    return lines


def tuple_text(items: Sequence[str], head: str = "", width: int = _WIDTH) -> str:
    """Return a tuple display; that of a single element keeps its comma."""
    text = filled(f"{head}(", items, ")", width)
    return text[:-1] + ",)" if len(items) == 1 and "\n" not in text else text


def render(value: Any, width: int = _WIDTH) -> str:
    """Return Python source of a specification or a part of one, without the prose."""
    if is_dataclass(value):
        parts = []
        for field in fields(value):
            part = getattr(value, field.name)
            default = field.default if field.default_factory is MISSING else field.default_factory()
            if part != default and not field.metadata.get("prose"):
                parts.append(f"{field.name}={render(part, width - len(field.name) - 6)}")
        return filled(f"{type(value).__name__}(", parts, ")", width)
    if isinstance(value, tuple):
        return tuple_text([render(item, width - 6) for item in value], width=width)
    if isinstance(value, str):
        return quoted(value, width)
    return repr(value)


def quoted(text: str, width: int = _WIDTH) -> str:
    """Return a string literal; a long one is split between words."""
    literal = json.dumps(text, ensure_ascii=False)
    if len(literal) <= width:
        return literal
    parts = re.findall(rf".{{1,{width - 12}}}(?:\s+|$)|\S+\s*", text, re.DOTALL)
    return "\n".join(["(", *(f"    {json.dumps(part, ensure_ascii=False)}" for part in parts), ")"])
