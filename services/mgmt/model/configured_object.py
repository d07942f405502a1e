"""What every object of the tree is and has: Broker-J's ConfiguredObject."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple, TypeVar, get_type_hints

from services.mgmt.model import context
from services.mgmt.model.attribute import Attribute, Operation, Parameter, Statistic, attribute, camel, derived
from services.mgmt.model.shared_steps import SharedSteps
from services.mgmt.model.values import converted

_NAMESPACE: Final = uuid.UUID("6b2f6c1e-6c0e-5b55-9a3c-4f1d2a7e9b10")
_D = TypeVar("_D", Attribute, Statistic, Operation)
ACTIVE: Final = "ACTIVE"
QUIESCED: Final = "QUIESCED"
STOPPED: Final = "STOPPED"
STATES: Final = ("UNINITIALIZED", QUIESCED, STOPPED, ACTIVE, "DELETED", "ERRORED", "UNAVAILABLE")
DESIRED: Final = (ACTIVE, QUIESCED, STOPPED, "DELETED")
LIFETIMES: Final = (
    "PERMANENT",
    "DELETE_ON_CONNECTION_CLOSE",
    "DELETE_ON_SESSION_END",
    "DELETE_ON_NO_OUTBOUND_LINKS",
    "DELETE_ON_NO_LINKS",
    "DELETE_ON_CREATING_LINK_CLOSE",
    "IN_USE",
)


class Declared:
    """What the bodies of classes declare, gathered by kind of declaration."""

    category: ClassVar[str] = ""
    attributes: ClassVar[Mapping[str, Attribute]] = {}
    statistics: ClassVar[Mapping[str, Statistic]] = {}
    operations: ClassVar[Mapping[str, Operation]] = {}

    def __init_subclass__(cls) -> None:
        """Names are given here: those of Python's case, as the model writes them."""
        super().__init_subclass__()
        cls.category = cls.__name__
        hints = get_type_hints(cls)
        body: dict[str, Any] = {
            name: value for name, value in vars(cls).items() if isinstance(value, Attribute | Statistic | Operation)
        }
        for name, value in body.items():
            value.name = camel(name)
            if isinstance(value, Attribute):
                value.kind = getattr(hints[name], "__origin__", hints[name])
        cls.attributes = {**cls.attributes, **_of(body.values(), Attribute)}
        cls.statistics = {**cls.statistics, **_of(body.values(), Statistic)}
        cls.operations = {**cls.operations, **_of(body.values(), Operation)}


def _of(declared: Iterable[Any], kind: type[_D]) -> dict[str, _D]:
    return {its.name: its for its in declared if isinstance(its, kind)}


class Begun(NamedTuple):
    """Objects that are being made; `steps` are for all who want them meanwhile."""

    stamp: object
    steps: SharedSteps[dict[str, ConfiguredObject]]


class Made(NamedTuple):
    """Objects of one category, by name; `stamp` tells what they were made of; `then`: those that replace them."""

    stamp: object
    objects: Mapping[str, ConfiguredObject]
    then: Begun | None = None


class ConfiguredObject(Declared):
    """`actual` is what was set of it, by the names of the model; `incarnation` tells one from the next of its name."""

    parent_kind: ClassVar[str] = ""
    """The category of what it is below."""
    types: ClassVar[tuple[str, ...]] = ()
    passing: ClassVar[bool] = False
    """Whether the creator chooses its lifetime; all others are permanent."""
    context_defaults: ClassVar[Mapping[str, str]] = {}
    """Variables that count where neither an ancestor nor the environment sets them."""
    amqp_names: ClassVar[Mapping[str, str]] = {}
    """By type, what AMQP management calls the types that have a name of their own there."""
    environment: Mapping[str, str] = {}
    """Of the root: what the process was given."""

    __slots__ = ("_below", "actual", "incarnation", "parent")

    id: str = derived("UUID, of this incarnation")
    name: str = attribute("what it is called, unique among its siblings", mandatory=True, immutable=True)
    type: str = attribute("which of the types of its category it is", immutable=True)
    description: str = attribute("for humans")
    context: dict[str, str] = attribute("variables that count here and below", {})
    durable: bool = attribute("whether it outlives its broker", True, immutable=True)
    lifetime_policy: str = attribute("when it ends by itself", "PERMANENT", valid=LIFETIMES, immutable=True)
    desired_state: str = attribute("what it is to be: DELETED deletes it", ACTIVE, valid=DESIRED)
    state: str = derived("what it is like now", valid=STATES)
    created_by: str = derived("who made it, where that was here")
    created_time: int = derived("when, in milliseconds since the Unix epoch")
    last_updated_by: str = derived("who changed it here last")
    last_updated_time: int = derived("when, in milliseconds since the Unix epoch")

    get_statistics = Operation(
        "Its statistics, or those that are named", {"statistics": Parameter(list)}, modifying=False, returns="Map"
    )
    set_context_variable = Operation(
        "Sets a variable; gives what it was",
        {"name": Parameter(str, mandatory=True), "value": Parameter(str, mandatory=True)},
        returns="String",
    )
    remove_context_variable = Operation(
        "Removes a variable; gives what it was", {"name": Parameter(str, mandatory=True)}, returns="String"
    )

    def __init__(self, parent: ConfiguredObject | None, actual: Mapping[str, Any], incarnation: str = "") -> None:
        self.parent = parent
        self.actual = actual
        self.incarnation = incarnation
        self._below: dict[str, Made] | None = None  # most have nothing below them

    @property
    def below(self) -> dict[str, Made]:
        """What was made below it, by category: it goes with the object."""
        if self._below is None:
            self._below = {}
        return self._below

    @property
    def path(self) -> tuple[str, ...]:
        """Names from below the broker on."""
        return (*self.parent.path, self.actual["name"]) if self.parent else ()

    def value(self, name: str) -> Any:  # noqa: ANN401 - each attribute its own
        """As it counts: what was set, else the default, with what variables stand for."""
        said = self.said(name)
        if name not in self.actual and isinstance(said, str) and "$" in said:
            return converted(self.attributes[name], self.interpolated(said), f"{self.category}'s default")
        return said

    def said(self, name: str) -> Any:  # noqa: ANN401 - as value
        """As it was set, or declared: with its variables."""
        if name in self.actual:
            return self.actual[name]
        return COMPUTED[name](self) if name in COMPUTED else self.attributes[name].default

    def interpolated(self, text: str) -> str:
        """With what its variables stand for, seen from here. Raises IllegalConfiguration for a circle."""
        return context.interpolated(text, self.variable)

    def variable(self, name: str) -> str | None:
        """What a variable stands for here, which may name others; None: nothing."""
        subject, colon, attribute_name = name.partition(":")
        if colon:
            return self._of_attribute(subject, attribute_name)
        for each in self.ancestry():
            if (found := each.actual.get("context", {}).get(name)) is not None:
                return str(found)
        root = list(self.ancestry())[-1]
        if (given := root.environment.get(name)) is not None:
            return given
        return next((each.context_defaults[name] for each in self.ancestry() if name in each.context_defaults), None)

    def _of_attribute(self, subject: str, name: str) -> str | None:
        """this:name, ancestor:virtualhost:name."""
        category, _, its = name.partition(":")
        at, wanted = (self, name) if subject == "this" else (self.ancestor(category), its)
        if subject not in {"this", "ancestor"} or at is None or wanted not in at.attributes:
            return None
        # Not its value: that is resolved by the caller, which knows the whole expression, and so can find a cycle.
        return None if at.attributes[wanted].secure else str(at.said(wanted))

    def ancestor(self, category: str) -> ConfiguredObject | None:
        """The nearest of that category, itself included."""
        return next((each for each in self.ancestry() if each.category.lower() == category.lower()), None)

    def ancestry(self) -> Iterator[ConfiguredObject]:
        """Itself, and what it is below, up to the broker."""
        each: ConfiguredObject | None = self
        while each is not None:
            yield each
            each = each.parent

    def inherited_context(self) -> dict[str, str]:
        """All variables that are set here or above."""
        found: dict[str, str] = {}
        for each in reversed(list(self.ancestry())):
            found |= {**each.context_defaults, **each.actual.get("context", {})}
        return found

    def has(self, declared: Attribute) -> bool:
        """Whether an object of its type has such an attribute."""
        return not declared.types or self.value("type") in declared.types


def _id(found: ConfiguredObject) -> str:
    return str(uuid.uuid5(_NAMESPACE, "\0".join((found.category, *found.path, found.incarnation))))


COMPUTED: Final[Mapping[str, Callable[[ConfiguredObject], Any]]] = {
    "id": _id,
    "state": lambda _: ACTIVE,
    "type": lambda found: found.types[0] if found.types else found.category,
}
"""Attributes that each object has without that they were set."""
