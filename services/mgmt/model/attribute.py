"""What is declared once of an attribute, a statistic, an operation; a class's body names them, in Python's case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from services.mgmt.model.configured_object import ConfiguredObject

KINDS: Mapping[type, str] = {bool: "Boolean", int: "Long", float: "Double", str: "String", list: "List", dict: "Map"}
"""What a value may be, and what Broker-J's metadata calls it."""
CONTENT = "Content"
"""What an operation returns that gives bytes as they are."""
MASK = "********"
"""In place of a value that is secret."""


SINCE = "by processes that are there, since each began, or since the last reset"
"""Of statistics that grow."""
APART = "where messages are counted apart (HOPLINE_METRICS_{})"
"""Of those that are known where the settings want it."""


def camel(name: str) -> str:
    """maximum_message_ttl is maximumMessageTtl in the model."""
    first, *rest = name.split("_")
    return first + "".join(each.capitalize() for each in rest)


@dataclass(slots=True)
class Attribute:
    """A property of an object, as its class declares it."""

    description: str
    default: Any = None
    mandatory: bool = False
    immutable: bool = False
    secure: bool = False
    derived: bool = False
    oversize: bool = False
    valid: Sequence[str] | Callable[[], Sequence[str]] = ()
    types: frozenset[str] = frozenset()  # of objects that have it; none: all
    name: str = ""
    kind: type = str

    def __get__(self, found: ConfiguredObject | None, _kind: object) -> Any:  # noqa: ANN401 - each its own
        return self if found is None else found.value(self.name)

    @property
    def valid_values(self) -> tuple[str, ...]:
        """Empty where any of its kind is."""
        return tuple(self.valid() if callable(self.valid) else self.valid)


def attribute(description: str, default: Any = None, *, types: Sequence[str] = (), **flags: Any) -> Any:  # noqa: ANN401 - a field
    """In the body of a class, where it stands for the value of an object."""
    return Attribute(description, default, types=frozenset(types), **flags)


def derived(description: str, **more: Any) -> Any:  # noqa: ANN401 - a field
    """One that cannot be set."""
    return Attribute(description, derived=True, **more)


@dataclass(slots=True)
class Statistic:
    """A number that changes by itself: how many there are now, or how many there were."""

    description: str
    units: str = "MESSAGES"
    cumulative: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """Of an operation."""

    kind: type
    default: Any = None
    mandatory: bool = False


@dataclass(slots=True)
class Operation:
    """Something that can be done to an object."""

    description: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    modifying: bool = True
    returns: str = "void"
    private: bool = False
    """Whether what it tells is for administrators, though others may look at the object."""
    name: str = ""


def extracting() -> Operation:
    """Of what has all of a configuration below it."""
    return Operation(
        "What was set of it, and of all that lasts below it; secrets are masked",
        {"includeSecureAttributes": Parameter(bool, False)},
        modifying=False,
        returns="Map",
        private=True,
    )


def loading(how: str) -> Operation:
    """Of a category that has rules; `how` is what they are to those that there are."""
    return Operation(
        f"Loads rules from a file of the machine that manages, or from a data: URL, {how}",
        {"path": Parameter(str, mandatory=True)},
    )


def resetting() -> Operation:
    """Of a category that has statistics that grow."""
    return Operation("Statistics that grow begin at 0 again, here and nowhere else: metrics go on")
