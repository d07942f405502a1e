"""What a category of the tree can do, beside what its class declares: plug-ins of group `categories`."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from services.common.access.action import Action
from services.common.access.asked import Asked
from services.common.errors import NotFound
from services.mgmt.access.operations import CONFIGURE, OBSERVE
from services.mgmt.model.configured_object import ACTIVE, Begun, ConfiguredObject, Made
from services.mgmt.model.faults import IllegalTransition, NotOffered
from services.mgmt.model.shared_steps import SharedSteps
from services.mgmt.model.steps import Steps
from services.mgmt.tree.counted import Sum
from services.mgmt.tree.counters import Counted, grown
from services.mgmt.tree.mirror import OVERLAY
from services.mgmt.turns import at_once

if TYPE_CHECKING:
    from services.mgmt.tree.house import House

RESET: Final = "reset"
"""What is kept of an object whose statistics were reset: how far its counters were then."""
_NOTHING: Final = Made(None, {})
Own = tuple[dict[str, Any], str]
"""Attributes that were set of an object, and its incarnation."""


class Source(Enum):
    """Sources of state that is not on record: asked every few seconds, while there are requests for it."""

    COUNTS = "queue processes: how full queues are, and their consumers"
    CONNECTIONS = "gateways: who is connected"
    LOG_FILES = "this machine's disk: files of loggers"
    COUNTERS = "all processes: what they have counted since they began"
    COUNTERS_APART = "the same of single objects, where the settings want that counted"


_M = TypeVar("_M", bound=BaseModel)


def readable(kind: type[_M], values: Iterable[Any]) -> list[_M]:
    """Those that can be read: one that cannot hides none of the others."""
    found = []
    for each in values:
        with contextlib.suppress(ValidationError):
            found.append(kind.model_validate(each))
    return found


class Category(Protocol):
    """Read from what is known now, without waiting; changes wait until the owner of the object has made them."""

    kind: ClassVar[type[ConfiguredObject]]
    sees: ClassVar[Asked]
    """A user who may do that may look at all of it."""
    fresh: ClassVar[frozenset[Source]]
    """What has to be fresh before it is read."""
    changes: ClassVar[bool]
    """Whether anything of it can be changed."""

    def children(self, parent: ConfiguredObject | None) -> Mapping[str, ConfiguredObject]:
        """Those below `parent`, by name."""

    def making(self, parent: ConfiguredObject | None) -> Steps[Mapping[str, ConfiguredObject]]:
        """The same in steps, of one object each: there may be thousands, and records may change meanwhile."""

    def measure(self, found: ConfiguredObject) -> Mapping[str, int]:
        """Statistics, by name."""

    def counted(self, found: ConfiguredObject) -> Counted:
        """Of those that grow: what each process has counted since it began."""

    def column(self, found: Sequence[ConfiguredObject], name: str) -> list[int | None]:
        """One statistic of each of them: of thousands, to sort them by it."""

    def needs(self, action: Action, path: tuple[str, ...], wanted: Mapping[str, Any]) -> Iterable[Asked]:
        """What a user needs who creates, updates or deletes what is at `path`.

        A generator where it depends on the state: see `Asking.check`.
        """

    def needs_to_read(self, operation: str, path: tuple[str, ...]) -> Iterable[Asked]:
        """And before it is found out what the arguments of an operation mean."""

    async def read(self, operation: str, path: tuple[str, ...], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """What they mean, where that takes its time. Raises BrokerError."""

    def needs_to_invoke(self, operation: str, path: tuple[str, ...], arguments: Mapping[str, Any]) -> Iterable[Asked]:
        """The same for an operation, with arguments as they were read: a generator as well."""

    async def tidy(self) -> None:
        """Before something is kept of one: what is kept of those that are gone, where nobody tells when they go."""

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:
        """`wanted` has been checked against what the class declares. Raises BrokerError."""

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        """The same of an object that is there, of what changes."""

    async def move(self, found: ConfiguredObject, state: str, who: str) -> None:
        """To a state that it is not in, but DELETED. Raises IllegalTransition that says why it cannot be in it."""

    async def delete(self, found: ConfiguredObject) -> None:
        """With what is below it."""

    async def invoke(self, found: ConfiguredObject, operation: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 - each its own
        """One of the operations that its class alone declares."""


class Keeper(ABC):
    """As Category says, for what cannot be changed."""

    kind: ClassVar[type[ConfiguredObject]]
    sees: ClassVar[Asked] = OBSERVE
    fresh: ClassVar[frozenset[Source]] = frozenset()
    changes: ClassVar[bool] = False
    why_active: ClassVar[str] = "whoever has it goes by it as long as it is there"
    """Why one does not stop: for who wants that."""
    depends: ClassVar[tuple[str, ...]] = ()
    """Kinds of records that its objects are read from."""
    sums: ClassVar[Mapping[str, Sum]] = {}
    """Statistics that grow."""

    def __init__(self, house: House) -> None:
        self.house = house
        self._roots: dict[str, Made] = {}

    @abstractmethod
    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        """What each object below `parent` is like.

        Records may change between two of them: it walks over what does not.
        """

    def children(self, parent: ConfiguredObject | None) -> Mapping[str, ConfiguredObject]:
        return at_once(self.making(parent))

    def making(self, parent: ConfiguredObject | None) -> Steps[Mapping[str, ConfiguredObject]]:
        # With the parent: a request for a missing object leaves nothing here.
        known = parent.below if parent else self._roots
        stamp, former = self.house.mirror.stamp((*self.depends, OVERLAY)), known.get(self.kind.category, _NOTHING)
        if former.stamp == stamp:
            return former.objects
        if not self.depends:
            return (yield from self._made(parent, {}))
        begun = former.then
        if begun is None or begun.stamp != stamp or begun.steps.failed:
            begun = Begun(stamp, SharedSteps(self._made(parent, former.objects)))
            known[self.kind.category] = former._replace(then=begun)
        objects = yield from begun.steps.follow()
        # Of what changes meanwhile some is in it, and some is not: the next request has all of it, by the stamp.
        if known[self.kind.category].then is begun:
            known[self.kind.category] = Made(stamp, objects)
        return objects

    def _made(
        self, parent: ConfiguredObject | None, former: Mapping[str, ConfiguredObject]
    ) -> Steps[dict[str, ConfiguredObject]]:
        objects = {}
        for own in self.described(parent):
            objects[own[0]["name"]] = self._same(former, *own) or self._make(parent, *own)
            yield
        return objects

    def _same(
        self, former: Mapping[str, ConfiguredObject], own: dict[str, Any], incarnation: str
    ) -> ConfiguredObject | None:
        """Of thousands, one change leaves all others as they are."""
        its = former.get(own["name"])
        if its is None or its.actual is not own or its.incarnation != incarnation:
            return None
        return None if self.house.overlays and self.house.overlay(its) else its

    def _make(self, parent: ConfiguredObject | None, own: dict[str, Any], incarnation: str) -> ConfiguredObject:
        found = self.kind(parent, own, incarnation)
        if self.house.overlays and (more := self.house.overlay(found)):
            found.actual = {**own, **more}
        return found

    def measure(self, found: ConfiguredObject) -> Mapping[str, int]:
        return {**self.present(found), **grown(self.counted(found), found.actual.get(RESET, {}))}

    def present(self, found: ConfiguredObject) -> Mapping[str, int]:  # noqa: ARG002 - as said
        """Statistics of this moment, as far as they are known."""
        return {}

    def counted(self, found: ConfiguredObject) -> Counted:
        return self.house.counters.counted(self.sums, *self.whose(found)) if self.sums else {}

    def whose(self, found: ConfiguredObject) -> tuple[str, ...]:
        """What its counters are labelled with: as all things in a virtual host."""
        return (found.path[1], found.actual["name"])

    def column(self, found: Sequence[ConfiguredObject], name: str) -> list[int | None]:
        return [self.measure(each).get(name) for each in found]

    def needs(self, action: Action, path: tuple[str, ...], wanted: Mapping[str, Any]) -> Iterable[Asked]:  # noqa: ARG002 - as said
        return (CONFIGURE,)

    def needs_to_read(self, operation: str, path: tuple[str, ...]) -> Iterable[Asked]:  # noqa: ARG002 - as said
        return ()

    async def read(self, operation: str, path: tuple[str, ...], arguments: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002 - as said
        return arguments

    def needs_to_invoke(self, operation: str, path: tuple[str, ...], arguments: Mapping[str, Any]) -> Iterable[Asked]:  # noqa: ARG002 - as said
        its = self.kind.operations[operation]
        if its.modifying:
            return (CONFIGURE,)
        return (self.sees, CONFIGURE) if its.private else (self.sees,)

    async def tidy(self) -> None:  # noqa: B027 - of most it is told when they go
        """As said."""

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:  # noqa: ARG002 - as said
        raise NotOffered(f"no {self.kind.category} is created here")

    def as_now(self, found: ConfiguredObject) -> ConfiguredObject:
        """At its turn, behind those of others. Raises NotFound where it is gone."""
        if (now := self.children(found.parent).get(found.actual["name"])) is None:
            raise NotFound(f"no {self.kind.category} '{found.actual['name']}'")
        return now

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:  # noqa: ARG002 - as said
        raise NotOffered(f"no {self.kind.category} is changed here")

    async def move(self, found: ConfiguredObject, state: str, who: str) -> None:  # noqa: ARG002 - as said
        name = found.value("name")
        raise IllegalTransition(f"{self.kind.category} '{name}' is {ACTIVE}, and never {state}: {self.why_active}")

    async def delete(self, found: ConfiguredObject) -> None:  # noqa: ARG002 - as said
        raise NotOffered(f"no {self.kind.category} is deleted here")

    async def invoke(self, found: ConfiguredObject, operation: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401, ARG002 - as said
        raise NotOffered(f"{operation} is not carried out here")
