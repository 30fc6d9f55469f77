"""Groups of a solver's parameters by patterns of their names: multipliers of rate and decay, own numbers, frozen ones."""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias

from nn_core.engine.error_messages.refusal import checked_flag, described
from nn_core.engine.error_messages.synonyms import suggestion
from nn_core.errors import ArgumentError
from nn_core.solvers.numbers import RATE_NAMES, checked_number

#: Settings by pattern of the names of parameters, such as ``{"*/b": {"weight_decay_multiplier": 0.0}}``.
ParameterGroups: TypeAlias = Mapping[str, Mapping[str, float]]

_RATE: Final = "learning_rate_multiplier"
_DECAY: Final = "weight_decay_multiplier"
_FROZEN: Final = "frozen"
_HINTS: Final = {
    **dict.fromkeys((*RATE_NAMES, "lr_scale", "lr_mult"), _RATE),
    **dict.fromkeys(("weight_decay", "decay_mult"), _DECAY),
    **dict.fromkeys(("need_grad", "requires_grad", "freeze"), _FROZEN),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one parameter.

    Attributes:
        rate: Multiplier of the learning rate.
        decay: Multiplier of the rate of weight decay.
        is_frozen: Whether the solver passes the parameter over.
        numbers: Numbers of the rule that replace those of the solver, by index.
    """

    rate: float = 1.0
    decay: float = 1.0
    is_frozen: bool = False
    numbers: tuple[tuple[int, float], ...] = ()

    def number(self, index: int, value: float, decay_index: int | None) -> float:
        """Return the number at `index` for this parameter, where the solver has `value`."""
        if index == 0:
            return value * self.rate
        if index == decay_index:
            return value * self.decay
        return dict(self.numbers).get(index, value)


#: Settings of parameters that no pattern matches.
USUAL: Final = Settings()


@dataclass(frozen=True)
class RuleNumbers:
    """The numbers of a rule that a group may change.

    Attributes:
        solver: Name of the solver.
        names: Names of the numbers, learning rate first.
        decay: Name of the number that ``weight_decay()`` replaces.
        fixed: Names of the numbers that say what states there are.
    """

    solver: str
    names: Sequence[str]
    decay: str | None
    fixed: Collection[str]

    @property
    def free(self) -> list[str]:
        """Names of the numbers that a group may set."""
        return [name for name in self.names[1:] if name != self.decay and name not in self.fixed]


def checked_groups(function: str, groups: ParameterGroups, rule: RuleNumbers) -> dict[str, dict[str, float]]:
    """Return groups as plain values.

    Raises:
        ArgumentError: when they are not settings by pattern, or a setting is unknown or out of range.
    """
    if not isinstance(groups, Mapping):
        raise ArgumentError(
            f"{function}: groups must be settings by pattern of the names, such as {{'*/b': {{'{_DECAY}': 0}}}}, "
            f"got {described(groups)}"
        )
    return {_checked_pattern(function, pattern): _checked(function, pattern, own, rule) for pattern, own in groups.items()}


def _checked_pattern(function: str, pattern: Any) -> str:
    if not isinstance(pattern, str):
        raise ArgumentError(f"{function}: a pattern of groups must be a text such as '*/b', got {described(pattern)}")
    return pattern


def _checked(function: str, pattern: str, settings: Any, rule: RuleNumbers) -> dict[str, float]:
    if not isinstance(settings, Mapping):
        raise ArgumentError(f"{function}: groups[{pattern!r}] must be settings by name, got {described(settings)}")
    return {name: _checked_setting(f"{function}: groups[{pattern!r}]", name, value, rule) for name, value in settings.items()}


def _checked_setting(function: str, name: str, value: Any, rule: RuleNumbers) -> float:
    if name == _FROZEN:
        return checked_flag(f"{function}: {name}", value)
    if name in (_RATE, _DECAY):
        number = checked_number(function, name, value)
        if not 0 <= number < math.inf:
            raise ArgumentError(f"{function}: {name} must be at least 0 and finite, got {value!r}")
        return number
    if name not in rule.free:
        raise ArgumentError(f"{function}: {_unknown(name, rule)}")
    return checked_number(function, name, value)


def _unknown(name: str, rule: RuleNumbers) -> str:
    known = [_RATE, _DECAY, _FROZEN, *rule.free]
    instead = _DECAY if name == rule.decay else _HINTS.get(name)
    hint = suggestion(str(name), known) if instead is None else f"\n  hint: {instead} is its factor for a group"
    if instead == _FROZEN:
        hint = f"\n  hint: {_FROZEN}=True leaves the parameters of a group alone"
    return f"a setting of {rule.solver} must be one of {', '.join(known)}, got {name!r}{hint}"


def require_matches(function: str, groups: ParameterGroups, names: Collection[str]) -> None:
    """Refuse a pattern that matches none of the parameters, of which there are some.

    Raises:
        ArgumentError: naming the pattern and the parameters.
    """
    for pattern in groups if names else ():
        if not any(fnmatchcase(name, pattern) for name in names):
            shown = ", ".join(sorted(names)[:8])
            raise ArgumentError(
                f"{function}: a pattern of groups must match the name of a parameter, got {pattern!r} for {shown}"
                f"{' ...' if len(names) > 8 else ''}\n  hint: * stands for any text, '/' included"
            )


def settings_of(name: str, groups: ParameterGroups, rule: RuleNumbers) -> Settings:
    """Return the settings of a parameter: those of all patterns that match its name, a later one before an earlier one."""
    merged: dict[str, float] = {}
    for pattern, settings in groups.items():
        if fnmatchcase(name, pattern):
            merged.update(settings)
    if not merged:
        return USUAL
    usual = replace(
        USUAL, rate=merged.pop(_RATE, 1.0), decay=merged.pop(_DECAY, 1.0), is_frozen=bool(merged.pop(_FROZEN, False))
    )
    return replace(usual, numbers=tuple((rule.names.index(name), float(value)) for name, value in merged.items()))


def as_text(groups: ParameterGroups) -> str:
    """Return groups as a text for files and states."""
    return json.dumps({pattern: dict(settings) for pattern, settings in groups.items()})


def from_text(function: str, text: Any, rule: RuleNumbers) -> dict[str, dict[str, float]]:
    """Return the groups of a file or a state.

    Raises:
        ArgumentError: when they are damaged, or those of another rule.
    """
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise ArgumentError(f"{function}: groups must be a text in JSON, got {described(text)}") from error
    return checked_groups(function, found, rule)
