"""One thing that can be said of a queue, and the names that it goes by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from services.common.arguments.checks import Check

_T = TypeVar("_T")

Said: TypeAlias = "Mapping[str, Any]"
"""What a declaration says, by the names of arguments, whichever names its client has used."""


def _as_it_is(value: Any) -> Any:  # noqa: ANN401 - a value's
    return value


def _nothing(_value: Any) -> None:  # noqa: ANN401 - a client's
    return None


@dataclass(frozen=True, slots=True)
class Argument(Generic[_T]):
    """`name` is RabbitMQ's, where it has one. A declaration that differs in a `compared` one is of another queue.

    `implies` is what it means for other arguments, where nothing is said of them. `check_new` is a further
    check, of what is said now, and comes first, as it bounds what the other costs: what was taken once is heeded.
    """

    name: str
    check: Check
    default: _T
    read: Callable[[Any], _T] = _as_it_is
    compared: bool = True
    implies: Said = field(default_factory=dict)
    check_new: Check = _nothing

    def of(self, said: Said) -> _T:
        """Its value in a declaration, or the default."""
        value = said.get(self.name)
        return self.default if value is None else self.read(value)


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name, for something that arguments can say: `says` is given a value that has passed the check."""

    name: str
    check: Check
    says: Callable[[Any], Said]
    implies: Said = field(default_factory=dict)
    check_new: Check = _nothing


def newly_wrong(of: Argument[Any] | Alias, value: Any) -> str | None:  # noqa: ANN401 - a client's
    """See Check: of what is said now."""
    return of.check_new(value) or of.check(value)
