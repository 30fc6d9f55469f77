"""Type stubs of ``nn_core.functions`` with the operators of the installed plugins, which are made at run time only."""

from inspect import Parameter, Signature
from pathlib import Path

import nn_core.functions
from nn_core.engine.dispatch.extension_registry import Offer
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.registry import REGISTRY
from nn_core.operators.spec.model import FunctionSpec
from nn_core.operators.spec.signature import signature

_HEAD = '''"""The functions of nn_core and of the installed plugins. Written by `nn-core stubs`; edits are lost."""

from collections.abc import Sequence

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand
'''


def write_stubs(folder: Path) -> Path:
    """Write a partial stub package (PEP 561) for ``nn_core.functions`` into `folder`; returns its path."""
    package = folder / "nn_core-stubs"
    functions = package / "functions"
    functions.mkdir(parents=True, exist_ok=True)
    (package / "py.typed").write_text("partial\n", encoding="utf-8")
    (functions / "__init__.pyi").write_text(functions_stub(), encoding="utf-8")
    return package


def functions_stub() -> str:
    """Return the text of the stub: the functions of the core by their modules, those of plugins by their signatures."""
    PLUGINS.all()
    names = sorted(nn_core.functions.__all__)
    modules = [getattr(nn_core.functions, name).__module__ for name in names]
    imports = [f"from {module} import {name} as {name}\n" for module, name in zip(modules, names, strict=True)]
    added = _added()
    return "".join([_HEAD, *imports, *(["\n"] if added else []), *added])


def _added() -> list[str]:
    """Return the functions of plugins, and a class for each vendor namespace."""
    offers = PLUGINS.offered("composites")
    functions = [f"# {each.plugin}\n{_function(each.spec)}\n" for each in REGISTRY if each.key == each.spec.api]
    functions += [f"# {offer.plugin}\n{_import(offer)}\n" for offer in offers if not offer.namespaced]
    namespaced = {each.plugin for each in REGISTRY if each.key != each.spec.api}
    namespaced |= {offer.plugin for offer in offers if offer.namespaced}
    return [*functions, *map(_namespace, sorted(namespaced))]


def _namespace(plugin: str) -> str:
    """Return a class with the functions of a plugin that has a vendor namespace: ``F.<plugin>.<name>``."""
    lines: list[str] = []
    for offer in PLUGINS.offers.of("composites", plugin):
        # imported under a name that nobody else has, and repeated in the class, where imports are not allowed
        hidden = f"_{plugin}_{offer.info.name}"
        lines.append(f"{_import(offer).rpartition(' as ')[0]} as {hidden}")
    lines.append(f"class {plugin}:")
    lines += [f"    @staticmethod\n    {_function(spec)}" for spec in REGISTRY.of_plugin(plugin)]
    lines += [f"    {offer.info.name} = _{plugin}_{offer.info.name}" for offer in PLUGINS.offers.of("composites", plugin)]
    return "\n".join(["", *lines, ""])


def _import(offer: Offer) -> str:
    target = PLUGINS.offers.load(offer)
    return f"from {target.__module__} import {target.__name__} as {offer.info.name}"


def _function(spec: FunctionSpec) -> str:
    full = signature(spec)
    parameters = [
        parameter if parameter.default is Parameter.empty else parameter.replace(default=_Given())
        for parameter in full.parameters.values()
    ]
    return f"def {spec.api}{Signature(parameters, return_annotation=full.return_annotation)}: ..."


class _Given:
    def __repr__(self) -> str:
        return "..."
