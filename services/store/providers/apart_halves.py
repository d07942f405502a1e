"""The two halves of a store whose configuration is apart, and what tells that they belong together.

Each half has a mark, with a number that both have in common and which half it is: configuration beside the messages of
another store would be taken for a broker whose queues are all empty. The mark is the one of a store that is not whole
(`moving/mark.py`): neither half is ever served by itself, by former releases either. The mark of both, as a store that
is being moved, is under another key.

The configuration is marked first, then the messages, then records are written. So where only the configuration has a
mark, and nothing else, that was begun and goes on.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping
from typing import Final

from services.common.errors import InternalError
from services.store.moving.mark import KEY, KIND, Mark, half, mark_in
from services.store.provider import Changes, Provider, RecordRow

_MOVING: Final = (KIND, "moving both")
_OWN: Final = (KIND, KEY)
_BITS: Final = 63

Rows = Mapping[tuple[str, str], RecordRow | None]


class Half:
    """One of the two providers; `turn` is held while a group is written to it."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.turn = asyncio.Lock()

    async def commit(self, changes: Changes) -> None:
        """As Provider says."""
        async with self.turn:
            await self.provider.commit(changes)


class Join:
    """Holds the two together: `check`, then `made` before anything is written."""

    def __init__(self, messages: str, configuration: str, *, forgets: bool = False) -> None:
        """Where they are, as shown to people; `forgets`: messages are in memory, and each start has none."""
        self._forgets = forgets
        self._messages = messages
        self._configuration = configuration
        self._to_mark: list[tuple[Provider, Mark]] = []

    async def check(self, messages: Provider, configuration: Provider) -> None:
        """Raises InternalError where one of them is no half, or not of the other; writes nothing."""
        ours, theirs = mark_in(await messages.records()), mark_in(await configuration.records())
        self._insist(ours, "messages", self._messages)
        self._insist(theirs, "configuration", self._configuration)
        if self._forgets and theirs is None:
            return
        if ours is not None and theirs is not None:
            if ours.pair != theirs.pair:
                raise InternalError(self._strangers(ours, theirs))
            self._to_mark = []
            return
        await self._insist_on_nothing(messages, self._messages, ours)
        await self._insist_on_nothing(configuration, self._configuration, theirs)
        if ours is not None:
            raise InternalError(self._alone(self._messages, "messages", ours, self._configuration))
        pair = theirs.pair if theirs is not None else secrets.randbits(_BITS)
        first = half("configuration", pair, self._messages)
        self._to_mark = [(configuration, first), (messages, half("messages", pair, self._configuration))]

    async def made(self) -> None:
        """Marks both, the first time."""
        while self._to_mark:
            provider, mark = self._to_mark[0]
            await provider.commit(Changes(records={_OWN: mark.row()}))
            del self._to_mark[0]

    def _insist(self, mark: Mark | None, holds: str, place: str) -> None:
        if mark is not None and mark.holds != holds:
            what = f"has the {mark.holds} of a store" if mark.holds else "has a store that is not whole"
            raise InternalError(f"{place} is to be for the {holds}, and {what}: {_LOOK}")

    async def _insist_on_nothing(self, provider: Provider, place: str, mark: Mark | None) -> None:
        """That there is nothing but the mark."""
        rows = [row for row in await provider.records() if (row.kind, row.key) != _OWN]
        if not rows and not await provider.leases() and not await provider.live():
            return
        if mark is not None:
            other = self._messages if mark.holds == "configuration" else self._configuration
            raise InternalError(self._alone(place, mark.holds, mark, other))
        raise InternalError(
            f"{place} has a whole store, configuration and messages: `hopline store copy` makes two of it "
            "(docs/moving.md), and both have to be empty before"
        )

    def _alone(self, place: str, holds: str, mark: Mark, empty: str) -> str:
        return (
            f"the {holds} in {place} belongs to what was in {mark.other}, and {empty} has nothing of it: {_LOOK}; "
            "if that is lost, make both of a backup (docs/backups.md)"
        )

    def _strangers(self, ours: Mark, theirs: Mark) -> str:
        return (
            f"{self._messages} and {self._configuration} are of two stores: the one goes with configuration in "
            f"{ours.other}, the other with messages in {theirs.other}: {_LOOK}"
        )


_LOOK: Final = "see HOPLINE_STORE_URL and HOPLINE_STORE_CONFIGURATION_URL"


def in_half(records: Rows) -> dict[tuple[str, str], RecordRow | None]:
    """The records as the half with the configuration keeps them."""
    if _OWN not in records:
        return dict(records)
    rows = dict(records)
    row = rows.pop(_OWN)
    rows[_MOVING] = row and row._replace(key=_MOVING[1])
    return rows


def by_themselves(rows: Iterable[RecordRow]) -> list[RecordRow]:
    """The records as they were given: the opposite of `in_half`."""
    given = (row for row in rows if (row.kind, row.key) != _OWN)
    return [row._replace(key=KEY) if (row.kind, row.key) == _MOVING else row for row in given]
