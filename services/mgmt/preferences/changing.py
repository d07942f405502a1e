"""What becomes of a user's preferences at an object when they are changed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.preferences.preference import Preference, Said, Who

MOST: Final = 1000
"""Preferences of one owner, at all objects together."""
MOST_BYTES: Final = 1 << 20
"""The same, on record: they are in memory as well, as long as there are any."""


class Change(NamedTuple):
    """What is to be on record, and ids of what is to be there no more."""

    puts: Sequence[Preference]
    deletes: Sequence[str] = ()


class Changing(NamedTuple):
    """Of `all_` preferences by id, by `who`, at the object with the key `at`, in milliseconds since the Unix epoch."""

    all_: Mapping[str, Preference]
    who: Who
    at: str
    now: int

    @property
    def own(self) -> list[Preference]:
        """Those that can be changed."""
        return [each for each in self.all_.values() if each.owner == self.who.name and each.object == self.at]

    def replaced(self, said: Iterable[Said], which: Callable[[Preference], bool]) -> Change:
        """In place of those own ones of which `which` says so. Raises IllegalConfiguration."""
        gone = [each for each in self.own if which(each)]
        puts = [self._made(each) for each in said]
        return self._checked(Change(puts, [each.id for each in gone]))

    def appended(self, said: Iterable[Said]) -> Change:
        """Beside the others; those that have the id of one are what that is like from now on."""
        return self._checked(Change([self._made(each, keep=True) for each in said]))

    def _made(self, said: Said, *, keep: bool = False) -> Preference:
        former = self.all_.get(str(said.id))
        return Preference(
            id=str(said.id or uuid.uuid4()),
            name=said.name,
            type=said.type,
            description=said.description,
            owner=self.who.name,
            object=self.at,
            visible_to=said.visibilityList or (),
            groups=self._groups(said.visibilityList or ()),
            created=former.created if former and keep else self.now,
            updated=self.now,
            value=json.dumps(said.value, ensure_ascii=False),
        )

    def _groups(self, names: Iterable[str]) -> tuple[str, ...]:
        """As in Broker-J a user shows preferences only to groups of its own, not to other groups or users."""
        for name in names:
            if name != self.who.name and name not in self.who.groups:
                raise IllegalConfiguration(f"visibilityList: '{self.who.name}' is in no group '{name}'")
        return tuple(name for name in names if name in self.who.groups)

    def _checked(self, change: Change) -> Change:
        for each in change.puts:
            self._check_id(each)
        left = {each.id: each for each in self.own if each.id not in change.deletes}
        after = [*{**left, **{each.id: each for each in change.puts}}.values()]
        _check_once(change.puts, after)
        if change.puts:
            self._check_room(after)
        puts = {each.id for each in change.puts}
        return Change(change.puts, [id_ for id_ in change.deletes if id_ not in puts])

    def _check_room(self, after: Sequence[Preference]) -> None:
        """For those that there are to be at the object, and those at others."""
        others = [each for each in self.all_.values() if each.owner == self.who.name and each.object != self.at]
        if len(others) + len(after) > MOST:
            raise IllegalConfiguration(f"'{self.who.name}' has {MOST} preferences, which are as many as one may have")
        if sum(each.size for each in (*others, *after)) > MOST_BYTES:
            raise IllegalConfiguration(f"'{self.who.name}' has {MOST_BYTES} bytes of preferences, which are the most")

    def _check_id(self, made: Preference) -> None:
        former = self.all_.get(made.id)
        mine = former and (former.owner, former.object, former.type) == (made.owner, made.object, made.type)
        if former and not mine:
            raise IllegalConfiguration(f"id: there is another preference '{made.id}'")


def _check_once(puts: Sequence[Preference], after: Sequence[Preference]) -> None:
    if len({each.id for each in puts}) < len(puts):
        raise IllegalConfiguration("id: two preferences have one")
    seen = set[tuple[str, str]]()
    for each in after:
        if (each.type, each.name) in seen:
            raise IllegalConfiguration(f"name: there is a preference '{each.name}' of type '{each.type}' already")
        seen.add((each.type, each.name))
