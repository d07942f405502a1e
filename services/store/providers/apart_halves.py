"""The two halves of a store whose configuration is apart, and what tells that they belong together.

Each half has a mark, with a number that both have in common and which half it is: configuration beside the messages of
another store would be taken for a broker whose queues are all empty. The mark is the one of a store that is not whole
(`moving/mark.py`): neither half is ever served by itself, by former releases either. The mark of both, as a store that
is being moved, is under another key.

The configuration is marked first, then the messages, then records are written. So where only the configuration has a
mark, and nothing else, that was begun and goes on.

Each counts in its mark what the other has to know of, and has there how far the other was. A change of configuration
is counted, and the next group of messages has that number with it: so it is there before a message of a queue that was
declared, and without the queue a start would drop the message. An origin is counted, and the next change of
configuration has that number: so it is there before a queue whose id was made of the origin, and another queue could
get that id. Each start counts in both. A half that has counted less than the other has heard is an older one, put in
its place. Those are two numbers in commits that happen anyway: neither half waits for the other's place.
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
_OTHER: Final = {"messages": "configuration", "configuration": "messages"}

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

    def __init__(self, messages: str, configuration: str, *, forgets: bool = False, older: bool = False) -> None:
        """Where they are, as shown to people; `forgets`: messages are in memory, and each start has none.

        `older`: one of them may be older than the other, since somebody says so.
        """
        self._forgets = forgets
        self._older = older
        self._messages = messages
        self._configuration = configuration
        self._to_mark: list[tuple[Provider, Mark]] = []
        self._marks: dict[str, Mark] = {}  # as they are on disk, by what they hold

    async def check(self, messages: Provider, configuration: Provider) -> None:
        """Raises InternalError where one of them is no half, or not of the other; writes nothing."""
        ours, theirs = mark_in(await messages.records()), mark_in(await configuration.records())
        self._insist(ours, "messages", self._messages)
        self._insist(theirs, "configuration", self._configuration)
        if self._forgets:
            await self._check_alone(configuration, theirs)
            return
        if ours is not None and theirs is not None:
            if ours.pair != theirs.pair:
                raise InternalError(self._strangers(ours, theirs))
            if not self._older:
                self._insist_on_the_same_time(ours, theirs)
            self._to_mark, self._marks = [], {"messages": ours, "configuration": theirs}
            return
        await self._insist_on_nothing(messages, self._messages, ours)
        await self._insist_on_nothing(configuration, self._configuration, theirs)
        if ours is not None:
            raise InternalError(self._alone(self._messages, "messages", ours, self._configuration))
        pair = (theirs.pair if theirs is not None else 0) or secrets.randbits(_BITS)
        first = half("configuration", pair, self._messages)
        self._to_mark = [(configuration, first), (messages, half("messages", pair, self._configuration))]

    async def _check_alone(self, configuration: Provider, mark: Mark | None) -> None:
        """Of a configuration that outlives its messages: it is known by a mark without a number."""
        if mark is None:
            await self._insist_on_nothing(configuration, self._configuration, None)
        elif mark.pair:
            raise InternalError(self._alone(self._configuration, "configuration", mark, self._messages))
        found = mark or half("configuration", 0, self._messages)
        self._to_mark = [] if mark else [(configuration, found)]
        self._marks = {"configuration": found, "messages": half("messages", 0, self._configuration)}

    async def made(self) -> None:
        """Marks both, the first time."""
        while self._to_mark:
            provider, mark = self._to_mark[0]
            await provider.commit(Changes(records=own(mark)))
            self.marked(mark)
            del self._to_mark[0]

    def next_mark(self, holds: str) -> Mark:
        """The mark of this half with what comes now counted, and as far as it is known how far the other is."""
        mark = self._marks[holds]
        return mark.model_copy(update={"known": mark.known + 1, "heard": self._marks[_OTHER[holds]].known})

    def marked(self, mark: Mark) -> None:
        """It is durable."""
        self._marks[mark.holds] = mark

    @property
    def unheard(self) -> bool:
        """Whether the configuration has changed since the messages have heard of it."""
        return self._marks["messages"].heard != self._marks["configuration"].known

    def _insist_on_the_same_time(self, ours: Mark, theirs: Mark) -> None:
        """That neither knows of something that the other has forgotten."""
        if theirs.known < ours.heard:
            raise InternalError(self._behind("configuration", self._configuration, "messages", self._messages))
        if ours.known < theirs.heard:
            raise InternalError(self._behind("messages", self._messages, "configuration", self._configuration))

    @property
    def one_place(self) -> str:
        """The error text where both turn out to be in one."""
        return f"{self._configuration} is where the messages are, {self._messages}: they have to be two places"

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

    def _behind(self, older: str, at: str, newer: str, beside: str) -> str:
        return (
            f"the {older} in {at} is older than the {newer} in {beside}: it does not have what these rest on. Put back "
            "what was there, or make both of one backup (docs/backups.md); if there is nothing else, `hopline store "
            "export --older` and `import` make a new store of the two as they are (docs/moving.md)"
        )

    def _strangers(self, ours: Mark, theirs: Mark) -> str:
        return (
            f"{self._messages} and {self._configuration} are of two stores: the one goes with configuration in "
            f"{ours.other}, the other with messages in {theirs.other}: {_LOOK}"
        )


def own(mark: Mark) -> dict[tuple[str, str], RecordRow | None]:
    """The mark as a change of records in its half."""
    return {_OWN: mark.row()}


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
