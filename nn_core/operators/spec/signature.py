"""The public signature and the docstring of a function, as its specification says them.

The generator prints them into ``nn_core.functions``; for functions of plugins they are set at run time.
"""

from inspect import Parameter, Signature
from textwrap import fill, indent
from typing import Any

from nn_core.operators.spec.model import ArgSpec, ArgValue, FunctionSpec, InputSpec, OutputSpec, Required

_WIDTH = 112
_ANNOTATIONS = {
    "bool": "bool",
    "int": "int",
    "axis": "int",
    "float": "float",
    "str": "str",
    "ints": "Sequence[int]",
    "shape": "Sequence[int]",
    "axes": "Sequence[int]",
    "floats": "Sequence[float]",
}


class Annotation(str):
    """The source of an annotation, which `help` shows without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def signature(spec: FunctionSpec) -> Signature:
    """Return the signature of the function; annotations are their source."""
    parameters = [_input_parameter(entry) for entry in spec.inputs]
    kind = Parameter.KEYWORD_ONLY if spec.variadic else Parameter.POSITIONAL_OR_KEYWORD
    parameters += [_arg_parameter(arg, kind) for arg in spec.args if not arg.keyword_only]
    parameters.append(Parameter("n_outputs", kind, default=-1, annotation=Annotation("int")))
    parameters.append(Parameter("outputs", kind, default=None, annotation=Annotation("Sequence[NdArray] | None")))
    parameters += [_arg_parameter(arg, Parameter.KEYWORD_ONLY) for arg in spec.args if arg.keyword_only]
    return Signature(parameters, return_annotation=Annotation(_return_annotation(spec)))


def flags_of_results(spec: FunctionSpec) -> tuple[str, ...]:
    """Return the arguments that ask for further results: where all are False there is one."""
    has_optional = any(entry.optional for entry in spec.visible_outputs)
    return tuple(arg.name for arg in spec.args if has_optional and arg.name.startswith("with_"))


def _return_annotation(spec: FunctionSpec) -> str:
    kind = "Operand" if spec.inputs else "Variable"
    visible = spec.visible_outputs
    if len(visible) == 1 and not visible[0].variadic:
        return kind
    several = f"tuple[{kind}, ...]"
    return f"{kind} | {several}" if any(entry.optional for entry in visible) else several


def public_default(arg: ArgSpec) -> ArgValue:
    """Return the default in the signature: the real one, or None where it depends on the inputs or is shown so."""
    return None if arg.shown_as_none or isinstance(arg.default, Required) else arg.default


def docstring(spec: FunctionSpec) -> str:
    """Return the docstring of the function, without the indentation of its body."""
    sections = [spec.doc, spec.formula]
    entries = [_input_text(entry) for entry in spec.inputs] + [_arg_text(arg) for arg in spec.args]
    entries.append("n_outputs, outputs: see `nn_core.functions`.")
    sections.append(_section("Args", entries, hanging="    "))
    results = [_output_text(entry) for entry in spec.visible_outputs]
    sections.append(_section("Returns", results, hanging="    "))
    if spec.notes:
        sections.append(_section("Notes", [spec.notes]))
    if spec.example:
        sections.append("Example:\n" + indent(spec.example, "    "))
    if spec.references:
        sections.append(_section("References", [spec.references]))
    sections.append(f"Spec: function_spec.yaml, entry {spec.name}")
    return "\n\n".join(section if ":\n" in section else _wrap(section) for section in sections if section)


def _input_parameter(entry: InputSpec) -> Parameter:
    if entry.variadic:
        return Parameter(entry.name, Parameter.VAR_POSITIONAL, annotation=Annotation("Operand"))
    kind = Parameter.POSITIONAL_OR_KEYWORD
    if entry.optional:
        return Parameter(entry.name, kind, default=None, annotation=Annotation("Operand | None"))
    return Parameter(entry.name, kind, annotation=Annotation("Operand"))


def _arg_parameter(arg: ArgSpec, kind: Any) -> Parameter:
    annotation = ("int | " if arg.takes_one_number else "") + _ANNOTATIONS[arg.type]
    if arg.required:
        return Parameter(arg.name, kind, annotation=Annotation(annotation))
    default = public_default(arg)
    annotation += " | None" if default is None else ""
    return Parameter(arg.name, kind, default=default, annotation=Annotation(annotation))


def _input_text(entry: InputSpec) -> str:
    facts = [f"Shape {entry.shape}." if entry.shape else "", "Optional." if entry.optional else ""]
    facts.append(_since(entry))
    return _entry_text(("*" if entry.variadic else "") + entry.name, entry.doc, facts)


def _arg_text(arg: ArgSpec) -> str:
    facts = []
    if arg.choices:
        facts.append(f"One of {', '.join(map(repr, arg.choices))}.")
    if "default" not in arg.doc.lower():
        if arg.default_rule is not None:
            facts.append(f"Default: {arg.default_rule.replace('_', ' ')}.")
        elif arg.shown_as_none:
            facts.append(f"Default: {arg.default!r}.")
    return _entry_text(arg.name, arg.doc, [*facts, _since(arg)])


def _since(entry: InputSpec | ArgSpec) -> str:
    return f"Since {entry.since}." if entry.since else ""


def _output_text(entry: OutputSpec) -> str:
    facts = [f"Shape {entry.shape}." if entry.shape else "", "Only where asked for." if entry.optional else ""]
    return _entry_text(entry.name, entry.doc, facts)


def _entry_text(name: str, doc: str, facts: list[str]) -> str:
    return " ".join([f"{name}: {_sentence(doc)}", *filter(None, facts)])


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "?", ":")) else text + "."


def _section(title: str, entries: list[str], hanging: str = "") -> str:
    return "\n".join([f"{title}:", *(indent(_wrap(entry, hanging), "    ") for entry in entries)])


def _wrap(text: str, hanging: str = "") -> str:
    """Fill each paragraph; text with indented lines (a formula, a table) stays as it is."""
    if "\n " in text:
        return text
    return "\n\n".join(
        fill(paragraph, _WIDTH, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)
        for paragraph in text.split("\n\n")
    )
