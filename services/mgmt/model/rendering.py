"""An object as JSON has it: attributes, statistics, and what is below it, as deep as is asked for. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from services.mgmt.model.attribute import MASK, Attribute
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration

Children = Callable[[ConfiguredObject], Iterable[tuple[str, Iterable[ConfiguredObject]]]]
"""Below an object, by category: those that whoever asks may see."""
Measure = Callable[[ConfiguredObject], Mapping[str, int]]

OVERSIZE: Final = 120
_CUT: Final = "..."


@dataclass(frozen=True, slots=True)
class Options:
    """Parameters of a GET, as Broker-J names and defaults them."""

    depth: int = 0
    actuals: bool = False
    oversize: int = OVERSIZE
    exclude_inherited_context: bool = True


def rendered(found: ConfiguredObject, options: Options, children: Children, measure: Measure) -> dict[str, Any]:
    """What has no value is left out."""
    told = dict(attributes_told(found, options))
    if options.actuals:
        return told
    told["statistics"] = dict(measure(found))
    if options.depth > 0:
        deeper = Options(options.depth - 1, options.actuals, options.oversize, options.exclude_inherited_context)
        for category, below in children(found):
            told[plural(category)] = [rendered(each, deeper, children, measure) for each in below]
    return told


def plural(category: str) -> str:
    """What children are found under: lower case."""
    return f"{category.lower()}s"


def attributes_told(found: ConfiguredObject, options: Options) -> Iterable[tuple[str, Any]]:
    """Names and values of those that have one."""
    for name, declared in found.attributes.items():
        if options.actuals and (declared.derived or name not in found.actual):
            continue
        with contextlib.suppress(IllegalConfiguration):  # its variables make no sense: as it was set, `actuals` tells
            if (value := _told(found, declared, options)) is not None:
                yield name, value


def _told(found: ConfiguredObject, declared: Attribute, options: Options) -> Any:  # noqa: ANN401 - each its own
    if not found.has(declared):
        return None
    value = found.value(declared.name)
    if declared.secure:
        return None if value is None else MASK
    if declared.name == "context":
        return _context(found, options)
    if declared.oversize and isinstance(value, str) and len(value) > options.oversize > 0:
        return value[: max(options.oversize - len(_CUT) - 1, 0)] + _CUT
    if declared.name == "description" and isinstance(value, str) and not options.actuals:
        return found.interpolated(value)
    return value


def _context(found: ConfiguredObject, options: Options) -> dict[str, str] | None:
    own = found.value("context") if options.exclude_inherited_context or options.actuals else found.inherited_context()
    return own or None
