"""The look-up itself: what is asked, carried out step by step, in one thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from services.common.clock import Clock, epoch_ns
from services.common.question import Sought
from services.common.trace import MOST_GAPS, Gap, Journey, Match, Message, Step, Trace, trace_ids
from services.mgmt.heap import give_back
from services.mgmt.lookup.assemble import assemble, begin_of
from services.mgmt.lookup.database import Database
from services.mgmt.lookup.facets import facets, letters
from services.mgmt.lookup.fate import Record
from services.mgmt.lookup.finding import Wanted, find
from services.mgmt.lookup.owners import Owners
from services.mgmt.lookup.payloads import Payloads
from services.mgmt.lookup.peers import Peers
from services.mgmt.lookup.search import Search
from services.mgmt.lookup.span_search import find_spans
from services.mgmt.lookup.way import follow

_DAY_US = 24 * 3_600_000_000
_SECONDS = 10.0  # after which no further step of a way is looked for
_SPANS_SECONDS = 2.0  # after which no further file of spans is looked into


class Answers:
    """From the ledger in `folder`; raises what `Database.select` does."""

    def __init__(
        self, folder: Path, clock: Clock, spans: Sequence[Path] = (), database: Database | None = None
    ) -> None:
        """`spans` are folders of spans in files."""
        self._folder = folder
        self._folders = spans
        self._database = database or Database(folder)
        self._search = Search(self._database)
        self._peers = Peers(self._database)
        self._payloads = Payloads(self._database)
        self._clock = clock

    def another(self) -> Answers:
        """For another thread, with what this one knows of the files."""
        return Answers(self._folder, self._clock, self._folders, self._database.another())

    def trace(
        self, asked: str, journeys: int, everything: bool, payloads: bool, unfiled: Mapping[str, pa.Table]
    ) -> Trace:
        """As `LookUp.trace`, also from the rows in `unfiled`."""
        until = self._clock() + _SECONDS
        self._database.offer(unfiled)
        found, more = self._search.matches(asked, journeys, everything=everything)
        owners = Owners(self._search, lambda: self._clock() >= until)
        told = [journey for match in found if (journey := self._journey(match, owners, until))]
        more, told = more or len(told) > journeys, told[:journeys]
        told = self._payloads.add(told) if payloads else told
        return self._told(told, id=asked, more=more, gaps=[] if told else self._perhaps_received())

    def search(self, sought: Sought, journeys: int, unfiled: Mapping[str, pa.Table]) -> Trace:
        """As `LookUp.search`, also from the rows in `unfiled`."""
        until = self._clock() + _SECONDS
        self._database.offer(unfiled)
        found = find(self._database, self._wanted(sought), sought, journeys, lambda: self._clock() >= until)
        told: list[Journey] = []
        known: set[int] = set()
        owners = Owners(self._search, lambda: self._clock() >= until)
        for uid, time_us in found.uids.items():
            match = Match(uid=uid, kind="found", time_us=time_us)
            # What was found as itself, and as what it went on as, has one way.
            if uid not in known and (journey := self._journey(match, owners, until)):
                told.append(journey)
                known |= {message.uid for message in journey.messages}
        return self._told(told, id="", more=found.more, cut_short=found.cut_short)

    def connections(self, sought: Sought, unfiled: Mapping[str, pa.Table]) -> list[str]:
        """Those whose user or address fits `sought.client`, the newest first."""
        self._database.offer(unfiled)
        return self._peers.connections(sought, sought.client)

    def _wanted(self, sought: Sought) -> Wanted:
        peers = [self._peers.connections(sought, who) for who in (sought.client, sought.consumer)]
        return Wanted(facets(sought, *peers), letters(sought, *peers))

    def interrupt(self) -> None:
        """From any thread: ends `trace`, which raises ResourceError."""
        self._database.interrupt()

    def close(self) -> None:
        """Frees what it holds alone."""
        self._database.close()

    def _journey(self, match: Match, owners: Owners, until: float) -> Journey | None:
        # Of one that was found it is known when it ended, not when it began.
        since_us = None if match.kind == "found" else match.time_us
        way = follow(self._search, match.uid, since_us, lambda: self._clock() >= until)
        if not way.rows and match.kind in {"uid", "found"}:
            return None
        gaps = self._search.gaps(begin_of(way, match))
        return assemble(match, way, self._record(gaps, owners))

    def _record(self, gaps: Sequence[Gap], owners: Owners) -> Record:
        search, now_us = self._search, epoch_ns() // 1000
        followers, ends_alone, unread = search.followers, search.ends_alone, search.unread
        return Record(gaps, followers, now_us, ends_alone, unread, owners.of, owners.since, owners.takes_over)

    def _perhaps_received(self) -> list[Gap]:
        """The newest gaps in which a message may have been received of which no row is on record."""
        gaps = [gap for gap in self._search.gaps(epoch_ns() // 1000 - _DAY_US) if gap.service == "gateway"]
        return gaps[: -MOST_GAPS - 1 : -1]

    def _told(self, journeys: list[Journey], **facts: Any) -> Trace:  # noqa: ANN401 - fields of Trace
        """With the ids of messages, the users and addresses of their connections, and the spans of their traces."""
        named = self._named(self._peers.introduce(journeys))
        until = self._clock() + _SPANS_SECONDS
        begin = min((step.time_us for step in _steps(named)), default=0)
        traces = {trace_id for journey in named for trace_id in trace_ids(journey)}
        found = find_spans(self._folders, traces, begin, lambda: self._clock() >= until)
        give_back()  # a millisecond; what footers and pages took would stay with this process
        told = [
            journey.model_copy(update={"spans": [span for span in found.spans if span.trace_id in trace_ids(journey)]})
            for journey in named
        ]
        return Trace(journeys=told, spans_cut_short=found.cut_short, damaged=self._database.damaged, **facts)

    def _named(self, journeys: list[Journey]) -> list[Journey]:
        messages = [message for journey in journeys for message in journey.messages]
        received = {message.uid: step.time_us for message in messages for step in message.steps if _is_first(step)}
        names = self._search.names(received)

        def named(message: Message) -> Message:
            return message.model_copy(update={"names": names.get(message.uid, [])})

        return [journey.model_copy(update={"messages": list(map(named, journey.messages))}) for journey in journeys]


def _is_first(step: Step) -> bool:
    return step.stage == "received"


def _steps(journeys: list[Journey]) -> Iterator[Step]:
    return (step for journey in journeys for message in journey.messages for step in message.steps)
