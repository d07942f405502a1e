"""The look-up as a part of a service: two questions at a time, each in a thread of its own, within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from services.common.clock import Clock, monotonic
from services.common.errors import ResourceError, SyntaxFault
from services.common.question import LONGEST_ID, MOST_JOURNEYS, Sought
from services.common.restored import Restored
from services.common.runtime import shielded
from services.common.trace import Journey, Trace, trace_ids
from services.mgmt.lookup.jaeger import Jaeger
from services.mgmt.lookup.present import Present, claims, owners, unanswered
from services.mgmt.lookup.undone import undone
from services.mgmt.lookup.unfiled import unsure

if TYPE_CHECKING:
    import pyarrow as pa

    from services.mgmt.lookup.answers import Answers

_HARD_SECONDS = 20.0  # after which a question is broken off
_AT_ONCE = 2  # each takes most of a core
_MOST_WAITING = 16
# Seconds between askings for an id of which nothing is on record: what has just happened is there in little more than
# one, since processes tell their rows four times a second, and the filer takes them once.
UNTIL_IT_IS_THERE = (0.4, 0.5, 0.6)

_T = TypeVar("_T")

Unfiled: TypeAlias = "Callable[[], Mapping[str, pa.Table]]"
"""Rows that are not in files yet, by table; called in the event loop."""

_Question: TypeAlias = "Callable[[Answers, Mapping[str, pa.Table]], _T]"


def nothing_unfiled() -> Mapping[str, pa.Table]:
    """Where files are all there is."""
    return {}


class LookUp:
    """Answers from the ledger in `folder`, and from what `unfiled` gives."""

    def __init__(
        self,
        folder: Path,
        unfiled: Unfiled = nothing_unfiled,
        clock: Clock = monotonic,
        trouble: Callable[[], str] = str,
        restored: Callable[[], Restored | None] = lambda: None,
        spans: Sequence[Path] = (),
        jaeger: Jaeger | None = None,
        present: Present = Present(),  # noqa: B008 - frozen
        patience: Sequence[float] = (),
    ) -> None:
        """`trouble` tells why nothing is filed at the moment; "" where all is. `restored` is the last restore.

        `spans` are folders of spans in files. `present` is asked what the record cannot tell yet. `patience` are
        seconds after which an id is looked for again that is not there.
        """
        self._patience = patience
        self._present = present
        self._spans = spans
        self._jaeger = jaeger or Jaeger("")
        self._folder = folder
        self._unfiled = unfiled
        self._clock = clock
        self._trouble = trouble
        self._restored = restored
        self._answers: list[Answers] = []
        self._idle: list[Answers] = []
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="look-up")
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._opening = asyncio.Lock()
        self._waiting = 0

    async def trace(self, asked: str, journeys: int = 1, *, everything: bool = False, payloads: bool = False) -> Trace:
        """The ways of the newest messages that have the id `asked`: of the newest day that has any, or of all time.

        With what was captured of them, if `payloads` says so. Where there is none it may just have been published:
        that takes as long as the patience. Raises SyntaxFault for what cannot be an id, ResourceError when too much
        is asked for, Unavailable when the ledger cannot be read.
        """
        if not 0 < len(asked) <= LONGEST_ID or not 0 < journeys <= MOST_JOURNEYS:
            raise SyntaxFault(f"an id has 1 to {LONGEST_ID} characters; 1 to {MOST_JOURNEYS} journeys are told")
        return await self._until_found(
            lambda answers, unfiled: answers.trace(asked, journeys, everything, payloads, unfiled)
        )

    async def search(self, sought: Sought, journeys: int = 1) -> Trace:
        """The ways of the newest messages that `sought` applies to; raises as `trace` does."""
        if fault := sought.fault():
            raise SyntaxFault(fault)
        if not 0 < journeys <= MOST_JOURNEYS:
            raise SyntaxFault(f"1 to {MOST_JOURNEYS} journeys are told")
        return await self._asked(lambda answers, unfiled: answers.search(sought, journeys, unfiled))

    async def connections(self, virtual_host: str, who: str) -> list[str]:
        """Those on record whose user or address fits `who`, the newest first; raises as `trace` does."""
        sought = Sought(virtual_host, client=who)
        if fault := sought.fault():
            raise SyntaxFault(fault)
        return await self._in_turn(lambda answers, unfiled: answers.connections(sought, unfiled))

    async def stop(self) -> None:
        """Breaks off what is under way."""
        for answers in self._answers:
            answers.interrupt()
        await asyncio.to_thread(self._threads.shutdown)
        for answers in self._answers:
            answers.close()

    async def _until_found(self, question: _Question[Trace]) -> Trace:
        found = await self._asked(question)
        for seconds in self._patience:
            if found.journeys or found.trouble:
                break
            await asyncio.sleep(seconds)
            found = await self._asked(question)
        return found

    async def _asked(self, question: _Question[Trace]) -> Trace:
        before = self._trouble()
        trace = await self._in_turn(question)
        unnoticed, journeys = await asyncio.gather(self._unnoticed(trace), self._answered_for(trace.journeys))
        trouble = self._trouble() or before or unnoticed
        linked = [await self._linked(journey) for journey in (unsure(journeys) if trouble else journeys)]
        restored = self._restored()
        told = str(restored) if undone(trace.journeys, restored) else ""
        gone = [] if linked else sorted(self._present.gone())
        return trace.model_copy(update={"journeys": linked, "trouble": trouble, "restored": told, "gone": gone})

    async def _unnoticed(self, trace: Trace) -> str:
        return await self._present.trouble() if claims(trace.journeys) else ""

    async def _answered_for(self, journeys: Sequence[Journey]) -> Sequence[Journey]:
        asked = owners(journeys)
        silent = await self._present.silent(asked) if asked else ()
        return unanswered(journeys, silent) if silent else journeys

    async def _in_turn(self, question: _Question[_T]) -> _T:
        if self._waiting >= _MOST_WAITING:
            raise ResourceError("too many look-ups at a time; try again")
        self._waiting += 1
        try:
            async with self._turns:
                return await self._answered(question)
        finally:
            self._waiting -= 1

    async def _answered(self, question: _Question[_T]) -> _T:
        answers = self._idle.pop() if self._idle else await self._opened()
        try:
            return await self._bounded(answers, question)
        finally:
            self._idle.append(answers)

    async def _opened(self) -> Answers:
        async with self._opening:
            answers = await self._in_thread(self._open)
            self._answers.append(answers)
            return answers

    async def _linked(self, journey: Journey) -> Journey:
        links = await self._jaeger.links(trace_ids(journey))
        return journey.model_copy(update={"jaeger": links}) if links else journey

    async def _bounded(self, answers: Answers, question: _Question[_T]) -> _T:
        # Taken before the files are listed: what is filed meanwhile is found twice rather than never.
        unfiled = self._unfiled()
        work = self._in_thread(question, answers, unfiled)
        try:
            async with asyncio.timeout(_HARD_SECONDS):
                return await shielded(work)
        except (TimeoutError, asyncio.CancelledError) as end:
            # The thread is free again before the next question has its turn.
            answers.interrupt()
            await asyncio.wait([work])
            if isinstance(end, TimeoutError):
                raise ResourceError(f"the look-up takes longer than {_HARD_SECONDS:.0f} seconds") from None
            raise

    def _in_thread(self, work: Callable[..., _T], *arguments: object) -> asyncio.Future[_T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    def _open(self) -> Answers:
        # DuckDB and Arrow take time and memory, which mgmt does not spend before the first question.
        from services.mgmt.lookup.answers import Answers  # noqa: PLC0415

        if self._answers:
            return self._answers[0].another()
        return Answers(self._folder, self._clock, self._spans)
