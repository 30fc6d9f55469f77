"""The converter, and the class of what it applies."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.errors import ArgumentError, PluginError
from nn_core.function import Function
from nn_core.graph_rewriting import GraphCopy, copy_graph, functions_of
from nn_core.parametric_functions.scope import get_parameters, set_parameter
from nn_core.variable import Variable


class FunctionModifier:
    """One change of graphs; subclasses override ``modify``.

    Example:
        >>> import nn_core.functions as F
        >>> class Softer(FunctionModifier):
        ...     def modify(self, f, inputs):
        ...         return F.tanh(inputs[0]) if f.info.type_name == "HardTanh" else None
        >>> y = GraphConverter([Softer()]).convert(F.hard_tanh(Variable((2,))))
        >>> y.parent.name
        'Tanh'
    """

    def __init__(self) -> None:
        self._names: dict[Variable, str] = {}
        self._readers: Counter[Variable] = Counter()
        self._copy: GraphCopy | None = None

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | Sequence[Variable] | None:
        """Give what stands for the outputs of a function.

        Args:
            f: the function in the original graph.
            inputs: its inputs in the new graph.

        Returns:
            The variables that take the place of its outputs; None copies the function as it is.
        """
        return None

    def init_map_func_inputs(self, f: Function, inputs: list[Variable]) -> list[Variable]:
        """Give the inputs for `f` in the new graph; for subclasses that put others in the place of `inputs`."""
        return inputs

    def replaced_inputs(self) -> Mapping[Variable, Variable]:
        """Variables of the original, and what takes their place from the start."""
        return {}

    def finish_output(self, original: Variable, copy: Variable) -> Variable:
        """Give the new output from the copy that stands for the output `original`."""
        return copy

    def finish_up(self) -> None:
        """Clear what was noted about one graph; called after each."""
        self._names, self._readers, self._copy = {}, Counter(), None

    def get_parameter_scope(self, v: Variable) -> str:
        """Return the scope of a parameter, such as "conv1/conv"; empty when `v` is none of the current scope's."""
        return self._name_of(v).rpartition("/")[0]

    def __call__(self, f: Function) -> None:
        """Take the next function into the copy: ``y.visit(modifier)`` goes through a graph."""
        if self._copy is None:
            self._copy = GraphCopy(self.replaced_inputs(), self._rewrite)
        self._copy.add(f)

    def convert(self, outputs: Sequence[Variable]) -> list[Variable]:
        """Copy the graph of `outputs` with the change."""
        self._readers = Counter(variable for f in functions_of(outputs) for variable in f.inputs)
        self._readers.update(outputs)
        try:
            copies = copy_graph(outputs, self.replaced_inputs(), self._rewrite)
            return [self.finish_output(output, copy) for output, copy in zip(outputs, copies, strict=True)]
        finally:
            self.finish_up()

    def is_read_once(self, variable: Variable) -> bool:
        """Return whether one function of the graph reads `variable` of the original, and it is no output."""
        return self._readers[variable] == 1

    def new_parameter(self, like: Variable, suffix: str, values: Any, need_grad: bool = True) -> Variable:
        """Return a parameter with `values`; it is registered beside `like` if that is a parameter of the current scope."""
        parameter = Variable.from_numpy_array(values, need_grad=need_grad)
        parameter.name = suffix
        name = self._name_of(like)
        if name:
            set_parameter(f"{name.rpartition('/')[0]}/{suffix}".lstrip("/"), parameter)
        return parameter

    def _rewrite(self, f: Function, inputs: list[Variable]) -> Variable | Sequence[Variable] | None:
        return self.modify(f, self.init_map_func_inputs(f, inputs))

    def _name_of(self, variable: Variable) -> str:
        if variable not in self._names:
            self._names = {parameter: name for name, parameter in get_parameters(grad_only=False).items()}
        return self._names.get(variable, "")


#: A modifier, the name of one that a plugin offers, or several that are applied one after the other.
Modifiers: TypeAlias = "FunctionModifier | str | Sequence[Modifiers]"


class GraphConverter:
    """Copy graphs and change them on the way.

    Args:
        modifiers: modifiers, names of passes that plugins offer, and lists of them; each is applied to what the one before
            has made.
    """

    def __init__(self, modifiers: Modifiers = ()) -> None:
        self.modifiers = list(_flat(modifiers))

    def convert(self, o: Variable | Sequence[Variable]) -> Any:
        """Copy the graph of a variable, or of several at once; the original stays as it is.

        Returns:
            The new variable, or a list of them.

        Raises:
            ArgumentError: when `o` is something else.
        """
        outputs = [o] if isinstance(o, Variable) else list(o)
        for output in outputs:
            if not isinstance(output, Variable):
                raise ArgumentError(f"convert: o must be a Variable or a list of them, got {type(output).__name__}")
        for modifier in self.modifiers:
            outputs = modifier.convert(outputs)
        return outputs[0] if isinstance(o, Variable) else outputs


def _flat(modifiers: Modifiers) -> Iterable[FunctionModifier]:
    if isinstance(modifiers, FunctionModifier):
        yield modifiers
    elif isinstance(modifiers, str):
        yield _offered(modifiers)
    elif isinstance(modifiers, (list, tuple)):
        for modifier in modifiers:
            yield from _flat(modifier)
    else:
        raise ArgumentError(
            f"GraphConverter: modifiers must be FunctionModifiers or lists of them, got {type(modifiers).__name__}"
        )


class _Rewriting(FunctionModifier):
    """A pass of a plugin that is a function from outputs to those that take their place."""

    def __init__(self, label: str, rewrite: Callable[[list[Variable]], Sequence[Variable]]) -> None:
        super().__init__()
        self._label, self._rewrite_all = label, rewrite

    def convert(self, outputs: Sequence[Variable]) -> list[Variable]:
        """Call the function."""
        made = self._rewrite_all(list(outputs))
        if not isinstance(made, (list, tuple)) or [type(v) for v in made] != [Variable] * len(outputs):
            raise PluginError(f"{self._label}: must return a list of {len(outputs)} variables, got {made!r}")
        return list(made)


def _offered(name: str) -> FunctionModifier:
    offer = PLUGINS.required_offer("passes", name, "pass")
    found = PLUGINS.offers.load(offer)
    if isinstance(found, type):
        with offer.called():
            found = found()
    return found if isinstance(found, FunctionModifier) else _Rewriting(offer.label, found)
