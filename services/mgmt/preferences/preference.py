"""One preference: as its record keeps it, as a user writes it, and as it is shown. Pure."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from services.common.invalid import told
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.strict_json import depth_of

RECORD_KIND: Final = "preference"
QUERY: Final = "query"
"""Of the query browser; what others keep has a type of its own, which begins with X-."""
_OWN: Final = "X-"
_LONGEST_VALUE: Final = 1 << 16
"""Characters of JSON."""
_DEEPEST: Final = 100
"""Maps and lists within each other: what could be read may be too deep to be told, which is done further below."""

_Name = Annotated[str, Field(min_length=1, max_length=255)]


class Who(NamedTuple):
    """The user that asks."""

    name: str
    groups: frozenset[str] = frozenset()


class Said(BaseModel):
    """The fields that a client may set; it may send back the others as it has read them."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: uuid.UUID | None = None
    name: _Name
    type: _Name
    description: Annotated[str, Field(max_length=4096)] | None = None
    visibilityList: tuple[_Name, ...] | None = None  # noqa: N815 - Broker-J's
    value: dict[str, Any] = {}


def _as_text(value: object) -> object:
    """Records had what it says itself."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value


_Text = Annotated[str, BeforeValidator(_as_text)]


class Preference(BaseModel):
    """The record's key is the id, its value `to_json()`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    name: str
    type: str
    description: str | None = None
    owner: str
    object: str  # the key of what it is about: the next of its name is another one
    visible_to: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()  # of these, the groups that its owner was in: a user's name may be a group's too
    created: int
    updated: int
    value: _Text = "{}"
    """JSON: as text, since there are many, and what it says takes many times the memory."""

    @property
    def size(self) -> int:
        """Bytes on record."""
        return len(self.to_json())

    def to_json(self) -> bytes:
        """The record's value."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False).encode()

    def is_seen_by(self, who: Who) -> bool:
        """Its owner sees it, and so do groups to which it is shown."""
        return self.owner == who.name or not who.groups.isdisjoint(self.groups)

    def told(self, object_id: str) -> dict[str, Any]:
        """In Broker-J's words."""
        return {
            "id": self.id,
            "name": self.name,
            "type": self.type,
            "description": self.description,
            "owner": self.owner,
            "associatedObject": object_id,
            "visibilityList": list(self.visible_to),
            "lastUpdatedDate": self.updated,
            "createdDate": self.created,
            "value": json.loads(self.value),
        }


def read(said: object, **fixed: str) -> Said:
    """`fixed` is what the path says of it. Raises IllegalConfiguration."""
    if not isinstance(said, Mapping):
        raise IllegalConfiguration("a preference is a map")
    for name, value in fixed.items():
        if said.get(name, value) != value:
            raise IllegalConfiguration(f"{name}: {said[name]!r} is said, and by the path it is {value!r}")
    try:
        found = Said.model_validate({**said, **fixed})
    except ValidationError as error:
        raise IllegalConfiguration(told(error.errors())) from None
    _check(found)
    return found


def _check(said: Said) -> None:
    if said.type != QUERY and not said.type.startswith(_OWN):
        raise IllegalConfiguration(
            f"type: there is no {said.type!r}; there is {QUERY}, and whatever begins with {_OWN}"
        )
    if depth_of(said.value) > _DEEPEST:
        raise IllegalConfiguration(f"value: it has more than {_DEEPEST} maps and lists within each other")
    if len(json.dumps(said.value)) > _LONGEST_VALUE:
        raise IllegalConfiguration(f"value: it has more than {_LONGEST_VALUE} characters")


def read_all(said: object, **fixed: str) -> list[Said]:
    """Of a list. Raises IllegalConfiguration."""
    if not isinstance(said, list):
        raise IllegalConfiguration("a list of preferences is wanted")
    return [read(each, **fixed) for each in said]


def read_by_type(said: object) -> list[Said]:
    """Of a map of lists, by type. Raises IllegalConfiguration."""
    if not isinstance(said, Mapping):
        raise IllegalConfiguration("a map is wanted, of lists of preferences by type")
    return [each for type_, its in said.items() for each in read_all(its, type=type_)]


def ordered(found: Iterable[Preference]) -> list[Preference]:
    """As Broker-J has them."""
    return sorted(found, key=lambda each: (each.name, each.type, each.id))
