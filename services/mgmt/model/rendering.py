"""An object as JSON has it: attributes, statistics, and what is below it, as deep as is asked for. Pure.

A tree is written in parts, so that a request for all of it does not keep others waiting.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from services.mgmt.model.attribute import MASK, Attribute
from services.mgmt.model.configured_object import COMPUTED, ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration

Children = Callable[[ConfiguredObject], Iterable[tuple[str, Iterable[ConfiguredObject | None]]]]
"""Below an object, by category: those that the caller may see; None wherever others may have their turn first."""
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


def rendered(found: ConfiguredObject, options: Options, measure: Measure) -> dict[str, Any]:
    """An object alone. What has no value is left out."""
    told = dict(attributes_told(found, options))
    if not options.actuals:
        told["statistics"] = dict(measure(found))
    return told


def written(found: ConfiguredObject, options: Options, children: Children, measure: Measure) -> Iterator[str]:
    """An object, and what is below it, as JSON in parts: none has more than one object."""
    text = _json(rendered(found, options, measure))
    if options.actuals or options.depth <= 0:
        yield text
        return
    yield text.removesuffix("}")
    deeper = replace(options, depth=options.depth - 1)
    for category, below in children(found):
        yield f",{_json(plural(category))}:"  # statistics come before it
        yield from written_list(below, deeper, children, measure)
    yield "}"


def written_list(
    found: Iterable[ConfiguredObject | None], options: Options, children: Children, measure: Measure
) -> Iterator[str]:
    """The same of many."""
    yield "["
    between = ""
    for each in found:
        if each is None:
            yield ""
            continue
        yield between
        yield from written(each, options, children, measure)
        between = ","
    yield "]"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def plural(category: str) -> str:
    """What children are found under: lower case."""
    return f"{category.lower()}s"


def attributes_told(found: ConfiguredObject, options: Options) -> Iterable[tuple[str, Any]]:
    """Names and values of those that have one."""
    for name, declared in found.attributes.items():
        if name not in found.actual and (options.actuals or (declared.default is None and name not in COMPUTED)):
            continue  # as most, of thousands
        if options.actuals and declared.derived:
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
