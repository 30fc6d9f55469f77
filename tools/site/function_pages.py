"""Pages of the site with every function, one page per topic, as the specification describes it.

The hooks of the site (`tools.site.site_pages`) add them; they are not committed.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from inspect import Signature
from pathlib import Path

from nn_core.operators.spec.generate import exports_by_hand
from nn_core.operators.spec.load import load
from nn_core.operators.spec.model import TOPICS, WHOLE_DTYPES, ArgSpec, FunctionSpec, InputSpec, OutputSpec
from nn_core.operators.spec.signature import signature

_KINDS = {
    "float": "floating",
    "parameter": "floating",
    "statistic": "floating",
    **WHOLE_DTYPES,
    "same": "any",
    "exact": "floating, or integers",
}


def pages(root: Path) -> dict[str, str]:
    """Return the pages of the topics of the checkout at `root`, by their names."""
    by_hand = composites(root / "nn_core" / "functions")
    return {f"{topic}.md": topic_page(topic, specs, by_hand) for topic, specs in _topics(root).items()}


def overview(root: Path, text: str) -> str:
    """Return `text`, the page that introduces the functions, with links to all of them and a table of the composites."""
    intro, errors = text.split("\n## Errors\n")
    links = [
        f"- [{topic}]({topic}.md): " + ", ".join(f"[{spec.api}]({topic}.md#{spec.api})" for spec in specs)
        for topic, specs in _topics(root).items()
    ]
    by_hand = composites(root / "nn_core" / "functions")
    rows = [(f"`{name}({arguments})`", text) for name, (arguments, text) in sorted(by_hand.items())]
    return "\n".join(
        [
            intro,
            *links,
            "\n## Functions written in terms of operators\n",
            table(("function", ""), rows),
            "\n## Errors",
            errors,
        ]
    )


def _topics(root: Path) -> dict[str, list[FunctionSpec]]:
    specs = load(root / "function_spec.yaml")
    topics = {topic: [spec for spec in specs if spec.topic == topic] for topic in TOPICS}
    return {topic: found for topic, found in topics.items() if found}


def composites(folder: Path) -> dict[str, tuple[str, str]]:
    """Return the functions that are written by hand: arguments and first line of the docstring, by name."""
    found = {}
    for module, names in exports_by_hand(folder).items():
        tree = ast.parse((folder / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef) and statement.name in names and statement.name[0] != "_":
                for argument in ast.walk(statement.args):
                    if isinstance(argument, ast.arg):
                        argument.annotation = None
                text = (ast.get_docstring(statement) or "").partition("\n")[0]
                found[statement.name] = ast.unparse(statement.args), text
    return found


def topic_page(topic: str, specs: Sequence[FunctionSpec], by_hand: Mapping[str, tuple[str, str]]) -> str:
    """Return the page of one topic."""
    sections = [function_section(spec, by_hand.get(spec.api, ("", ""))[0]) for spec in specs]
    return "\n\n".join([f"# {topic.capitalize()}", *sections]) + "\n"


def function_section(spec: FunctionSpec, by_hand: str = "") -> str:
    """Return the section of one function; `by_hand` are the arguments of a public function that hides the operator."""
    shown = _shown_signature(spec)
    parts = [
        f"## {spec.api}",
        f"```python\nF.{spec.api}{f'({by_hand})' if by_hand else shown}\n```",
        spec.doc,
        f"The tables describe the operator beneath, `{spec.api}{shown}`, as gradient rules call it." if by_hand else "",
        f"```text\n{spec.formula}\n```" if spec.formula else "",
        table(("input", "shape", "values", "meaning"), map(_input_row, spec.inputs)),
        table(("argument", "type", "default", "meaning"), map(_arg_row, spec.args)),
        table(("output", "shape", "values", "meaning"), map(_output_row, spec.visible_outputs)),
        f"**Gradient:** {_gradient_text(spec)}",
        _labelled("Tags", ", ".join(spec.tags)),
        _labelled("Rewrites", _code(spec.updates) if spec.updates else ""),
        _labelled("Notes", spec.notes),
        f"```python\n{spec.example}\n```" if spec.example else "",
        _labelled("References", spec.references),
        f"Operator `{spec.name}`, since {spec.since}.",
    ]
    return "\n\n".join(part for part in parts if part)


def _shown_signature(spec: FunctionSpec) -> Signature:
    """Return the signature without types, and without the arguments that all functions have."""
    full = signature(spec)
    parameters = [
        parameter.replace(annotation=parameter.empty)
        for parameter in full.parameters.values()
        if parameter.name not in ("n_outputs", "outputs")
    ]
    return full.replace(parameters=parameters, return_annotation=full.empty)


def _labelled(label: str, text: str) -> str:
    return f"**{label}:** {text}" if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, or nothing if it has no rows."""
    lines = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    if not lines:
        return ""
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *lines])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _input_row(entry: InputSpec) -> Sequence[str]:
    name = f"`*{entry.name}`" if entry.variadic else f"`{entry.name}`"
    return name + (", optional" if entry.optional else ""), entry.shape, _KINDS[entry.dtype], entry.doc + _since(entry)


def _since(entry: InputSpec | ArgSpec) -> str:
    return f" Since {entry.since}." if entry.since else ""


def _output_row(entry: OutputSpec) -> Sequence[str]:
    name = f"`{entry.name}`" + (", several" if entry.variadic else "") + (", where asked for" if entry.optional else "")
    return name, entry.shape, _KINDS[entry.dtype], entry.doc


def _arg_row(arg: ArgSpec) -> Sequence[str]:
    kind = " or ".join(f"`{choice!r}`" for choice in arg.choices) or arg.type
    bounds = {"at least": arg.minimum, "at most": arg.maximum}
    kind += "".join(f", {words} {bound:g}" for words, bound in bounds.items() if bound is not None)
    default = "" if arg.required else f"`{arg.default!r}`"
    if arg.default_rule is not None:
        default = arg.default_rule.replace("_", " ")
    return f"`{arg.name}`", kind, default, arg.doc + _since(arg)


def _gradient_text(spec: FunctionSpec) -> str:
    if spec.backward.none_because is not None:
        return f"none, because {spec.backward.none_because[0].lower()}{spec.backward.none_because[1:].rstrip('.')}."
    text = f"reads {_code(spec.backward.needs)}" if spec.backward.needs else "reads no values"
    cases = [f", {_code(needs)} if `{name}` is negative" for name, needs in spec.backward.needs_if_negative]
    return "".join([text, *cases, "."])
