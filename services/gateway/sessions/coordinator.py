"""Local transactions (design, section 7): collected here, prepared by each queue process, decided by the store.

    several processes   PREPARE to each → all answer Prepared → the store commits every staged part → COMPLETE to each
                                        ↘ one cannot, or is lost → ABORT to all
    one process         PREPARE, alone → what it writes commits the transaction in the store → it answers completed
                                       ↘ more than a frame, or the store has no room → Prepared, and on as above
                                       ↘ nothing of it is durable → Prepared → COMPLETE → it decides, answers completed

An attempt that decided nothing, since only an owner changed, is tried again. The store decides when any part is
durable, or when more than one process holds a part. When the stream of a single process breaks before it has answered,
both sides ask the store, which answers both alike.

A commit whose answer does not come is in doubt, and is asked for again, as a commit: the store says what it has decided
before, and decides what it has not. The client waits meanwhile, as publishers do while the store is away: it hears
commit-ok only of what is committed, and an error only of what is not. A transaction aborted meanwhile, because a queue
process asked or the store has lost the parts, is tried again. Requests behind the commit wait too, a rollback and the
end of the session among them. When the store may have forgotten the outcome, the client is told that it is unknown.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import structlog

from services.common.clients.change import Change, Handled
from services.common.clients.link_frame import Settlement, settlements_of
from services.common.clients.outbound import Attempt, Messages
from services.common.errors import BrokerError, InDoubt, PreconditionFailed, Unavailable
from services.common.memory import available
from services.common.message.alike import objects
from services.common.message.weight import FRAME_BYTES
from services.common.remedies import STORE
from services.common.topology.slots import SlotId
from services.gateway.sessions.transaction import OpenTransactions, PendingSettlement, Transaction
from services.rpc import queue_pb2 as pb
from services.rpc import store_pb2

if TYPE_CHECKING:
    from services.common.clients.publisher import Publisher
    from services.common.clients.queue_link import QueueLink
    from services.common.clients.store import StoreClient
    from services.gateway.owners.ownerless import OwnerlessQueues

log = structlog.get_logger()

_PATIENCE = 30.0  # seconds in which owners may change before a commit is given up
_AGAIN = 0.1
_DOUBT = 1800.0  # seconds that the store is asked; it keeps outcomes for an hour, and a later commit would be a new one
_TOO_OFTEN = 2  # times that a process is lost while it holds a transaction too large for an ordinary frame
_NO_OWNER = frozenset({pb.NOT_OWNER, pb.UNAVAILABLE})

_Settles: TypeAlias = dict[tuple[SlotId, pb.Outcome.ValueType, Change], list[int]]
"""Uids by queue and what is said of them."""


_Question: TypeAlias = Callable[[int], Awaitable[store_pb2.TransactionOutcome]]
"""Asks the store about a transaction: to commit it, or to say what has become of it."""


class _Part(NamedTuple):
    """What one participant has to do."""

    attempts: list[Attempt]
    settles: _Settles

    @property
    def may_decide(self) -> bool:
        """Whether what it writes may be the decision: without anything to write it waits to be told."""
        return bool(self.settles) or any(
            facts.persistent for attempt in self.attempts for facts in objects(attempt.messages.facts).values()
        )


class _Asked(NamedTuple):
    """A participant's answer: Prepared, or None when it has carried out the transaction, of which it settles this."""

    settles: _Settles
    answer: asyncio.Future[pb.Prepared | None]


def _now() -> float:
    return asyncio.get_running_loop().time()


class _OwnerChanged(Exception):
    """Nothing was decided; the same transaction may be tried under a new identity.

    `lost`: the owner's stream broke while it was asked. The store was asked for `asked` seconds, which do not count
    against the time for owners to change.
    """

    def __init__(self, *, lost: bool = False, asked: float = 0.0) -> None:
        super().__init__()
        self.lost = lost
        self.asked = asked


class Coordinator:
    """Carries transactions out, one attempt after the other until one is decided."""

    def __init__(self, publisher: Publisher, store: StoreClient, ownerless: OwnerlessQueues) -> None:
        self._publisher = publisher
        self._store = store
        self._ownerless = ownerless
        self.open = OpenTransactions(available() // 8)
        self._asked: dict[tuple[int, QueueLink], _Asked] = {}
        self._settled: dict[tuple[int, QueueLink], _Settles] = {}  # committed, and not known to be safe

    async def commit(self, transaction: Transaction) -> None:
        """Returns when all of it is done; raises when none of it is: PreconditionFailed, Unavailable.

        Raises InDoubt when the outcome is unknown.
        """
        give_up = _now() + _PATIENCE
        routed, lost = [each.messages.part(its) for each in transaction.publications if len(its := each.routed)], 0
        while routed or transaction.settlements:
            try:
                await self._attempt(routed, transaction.settlements)
            except _OwnerChanged as changed:
                lost += changed.lost
                give_up += changed.asked
                if lost == _TOO_OFTEN and transaction.size > FRAME_BYTES:
                    # As suspects.py does with messages published without a transaction.
                    raise PreconditionFailed("transaction refused: two queue processes were lost with it") from None
                if _now() > give_up:
                    raise Unavailable("transaction not committed: a queue has no owner") from None
                await asyncio.sleep(_AGAIN)
            else:
                return

    async def _attempt(self, publications: list[Messages], settlements: list[PendingSettlement]) -> None:
        identity = self._publisher.uids.take()[0]
        publishes, settles = self._publishes(publications), self._settles(settlements)
        queue_ids = {each.holder.queue_id for each in settlements}
        terms = {queue_id: self._ownerless.term_of(queue_id) for queue_id in queue_ids}
        links = dict.fromkeys([*publishes, *settles])
        parts = {link: _Part(publishes.get(link, []), settles.get(link, {})) for link in links}
        match [*parts.items()]:
            case [(link, part)]:
                await self._alone(identity, link, part)
            case [_, *_]:
                await self._together(identity, parts)
        self._ownerless.settle_elsewhere(settlements, terms)

    async def _together(self, identity: int, parts: Mapping[QueueLink, _Part]) -> None:
        """Several processes prepare, and the store decides."""
        streams = {link: link.streams for link in parts}
        try:
            answers = [self._ask(identity, link, part) for link, part in parts.items()]
            staged = sum([_parts(answer) for answer in await self._answers(answers)])
        except TimeoutError:
            self._tell(parts, identity, pb.TransactionStep.ABORT)
            raise _unanswered() from None
        except (BrokerError, _OwnerChanged):
            self._tell(parts, identity, pb.TransactionStep.ABORT)
            raise
        finally:
            self._forget(identity, parts)
        await self._decide(identity, parts, staged)
        for link, part in parts.items():
            self._keep(identity, link, part.settles, streams[link])

    # -------------------------------------------------------------- one process

    async def _alone(self, identity: int, link: QueueLink, part: _Part) -> None:
        """The only process decides: with what it writes, or, told to complete, when it writes nothing."""
        stream = link.streams
        try:
            prepared = await self._prepared_alone(identity, link, part)
            if prepared is None:
                return
            if prepared.parts:
                await self._decide(identity, (link,), prepared.parts)
                self._keep(identity, link, part.settles, stream)
            else:
                await self._completed_alone(identity, link, part)
        finally:
            self._forget(identity, (link,))

    async def _prepared_alone(self, identity: int, link: QueueLink, part: _Part) -> pb.Prepared | None:
        """None when it has carried the transaction out."""
        stream = link.streams
        try:
            [answer] = await self._answers([self._ask(identity, link, part, alone=True)])
        except (TimeoutError, _OwnerChanged) as unanswered:
            await self._resolve(identity, link, part, lost=isinstance(unanswered, _OwnerChanged))
            self._keep(identity, link, part.settles, stream)
            return None
        if answer is not None:
            self._check(identity, link, answer)
        return answer

    def _check(self, identity: int, link: QueueLink, answer: pb.Prepared) -> None:
        try:
            _parts(answer)
        except (BrokerError, _OwnerChanged):
            self._tell((link,), identity, pb.TransactionStep.ABORT)
            raise

    async def _resolve(self, identity: int, link: QueueLink, part: _Part, *, lost: bool) -> None:
        """It may have decided, or not: returns when the store says that it has, or else has it decide no more."""
        began = _now()
        if part.may_decide:
            outcome = await self._outcome(identity, self._store.resolve_transaction, began + _DOUBT)
            if outcome.committed:
                self._tell((link,), identity, pb.TransactionStep.COMPLETE)
                return
        self._tell((link,), identity, pb.TransactionStep.ABORT)
        if not lost:
            raise _unanswered()
        raise _OwnerChanged(lost=True, asked=_now() - began)

    async def _completed_alone(self, identity: int, link: QueueLink, part: _Part) -> None:
        """Lets it decide; where it was lost, the store does."""
        try:
            if not link.up:
                raise _OwnerChanged  # noqa: TRY301 - as if it were lost while it is asked
            asked = self._ask_for(identity, link, part.settles)
            link.step(identity, pb.TransactionStep.COMPLETE)
            if await asked is not None:
                raise _OwnerChanged  # noqa: TRY301 - it has asked the store
        except _OwnerChanged:
            await self._decide(identity, (link,), 0)
            # The participant, if alive, has asked the store as well, and may have answered on a stream that is gone.
            self._ownerless.give_back(_kept(part.settles), committing=True)

    # -------------------------------------------------------------- what is said of settlements

    def _keep(self, identity: int, link: QueueLink, its: _Settles, stream: int) -> None:
        """Keeps the settlements until they are safe: the next owner would not know of them."""
        if its and link.up and link.streams == stream:
            self._settled[identity, link] = its
        else:
            self._ownerless.give_back(_kept(its), committing=True)

    def take_unsettled(self, link: QueueLink, is_lost: Callable[[SlotId], bool]) -> list[Settlement]:
        """Takes out the committed settlements, perhaps not safe, of queues for which `is_lost` is true."""
        lost: list[Settlement] = []
        for (_, other), its in self._settled.items():
            gone = [said for said in its if is_lost(said[0])] if other is link else []
            lost += [_settlement(said, its.pop(said)) for said in gone]
        self._settled = {key: its for key, its in self._settled.items() if its}
        return lost

    # -------------------------------------------------------------- asking

    def _ask(
        self, identity: int, link: QueueLink, part: _Part, *, alone: bool = False
    ) -> asyncio.Future[pb.Prepared | None]:
        """Sends a participant its part, and asks it to prepare."""
        if part.attempts:
            link.publish_in_transaction(part.attempts, identity)
        for (queue_id, outcome, change), uids in part.settles.items():
            link.settle(queue_id, outcome, uids, identity, change=change)
        link.step(identity, pb.TransactionStep.PREPARE, alone=alone)
        return self._ask_for(identity, link, part.settles)

    def _ask_for(self, identity: int, link: QueueLink, settles: _Settles) -> asyncio.Future[pb.Prepared | None]:
        asked = _Asked(settles, asyncio.get_running_loop().create_future())
        self._asked[identity, link] = asked
        return asked.answer

    async def _answers(self, asked: list[asyncio.Future[pb.Prepared | None]]) -> list[pb.Prepared | None]:
        """Raises TimeoutError, and _OwnerChanged when a stream breaks."""
        async with asyncio.timeout(_PATIENCE):
            return [await asked[0]] if len(asked) == 1 else await asyncio.gather(*asked)

    def _forget(self, identity: int, links: Iterable[QueueLink]) -> None:
        for link in links:
            self._asked.pop((identity, link), None)

    def _publishes(self, publications: Iterable[Messages]) -> dict[QueueLink, list[Attempt]]:
        by_link: dict[QueueLink, list[Attempt]] = defaultdict(list)
        for messages in publications:
            for link, attempt in self._publisher.attempts(messages):
                if link is None:
                    raise _OwnerChanged
                by_link[link].append(attempt)
        return by_link

    def _settles(self, settlements: Iterable[PendingSettlement]) -> dict[QueueLink, _Settles]:
        by_link: dict[QueueLink, _Settles] = {}
        for each in settlements:
            queue_id = each.holder.queue_id
            link = self._ownerless.link_of(queue_id)
            if link is None:
                if self._ownerless.exists(queue_id):
                    raise _OwnerChanged
                continue
            by_link.setdefault(link, {}).setdefault((queue_id, each.outcome, each.change), []).append(each.uid)
        return by_link

    async def _decide(self, identity: int, links: Collection[QueueLink], parts: int) -> None:
        """Has the store commit so many staged parts, and tells the participants; raises _OwnerChanged if it aborts."""
        began = _now()
        commit = partial(self._store.commit_transaction, parts=parts)
        outcome = await self._outcome(identity, commit, began + _DOUBT)
        self._tell(links, identity, pb.TransactionStep.COMPLETE if outcome.committed else pb.TransactionStep.ABORT)
        if not outcome.committed:
            raise _OwnerChanged(asked=_now() - began)

    async def _outcome(self, identity: int, ask: _Question, give_up: float) -> store_pb2.TransactionOutcome:
        doubted = False
        while True:
            try:
                return await ask(identity)
            except BrokerError as failure:
                # Asked as before: to resolve a commit would abort it when the store is merely slow.
                if _now() > give_up:
                    raise InDoubt("it is not known whether the transaction was committed") from None
                if not doubted:
                    what, reason = "transaction in doubt, its client waits", failure.text
                    log.warning(what, transaction=identity, reason=reason, do=STORE)
                doubted = True
            await asyncio.sleep(_AGAIN)

    def _tell(self, links: Iterable[QueueLink], identity: int, step: pb.TransactionStep.Step.ValueType) -> None:
        for link in links:
            if link.up:
                link.step(identity, step)

    # -------------------------------------------------------------- the links say

    def prepared(self, link: QueueLink, prepared: pb.Prepared) -> None:
        """A queue process holds its part, or cannot; or holds it no longer, since it has asked the store."""
        asked = self._asked.get((prepared.transaction, link))
        if asked and not asked.answer.done():
            asked.answer.set_result(prepared)

    def completed(self, link: QueueLink, transaction: int) -> None:
        """A queue process has carried a transaction out, or given it up."""
        asked = self._asked.get((transaction, link))
        if asked and not asked.answer.done():
            asked.answer.set_result(None)
            if asked.settles:
                self._settled[transaction, link] = asked.settles

    def safe(self, link: QueueLink, transactions: Iterable[int]) -> None:
        """The settlements of these transactions are safe: drops them here."""
        for transaction in transactions:
            self._settled.pop((transaction, link), None)

    def unsettled(self, link: QueueLink, them: Iterable[pb.Settle], consumers: Mapping[int, Handled]) -> None:
        """It could not carry these out, some perhaps of transactions: the next owner of their queues will."""
        by_whether_committing: dict[bool, list[pb.Settle]] = defaultdict(list)
        for said in them:
            by_whether_committing[(said.transaction, link) in self._asked].append(said)
        for committing, some in by_whether_committing.items():
            self._ownerless.give_back(settlements_of(some, consumers), committing=committing)

    def link_down(self, link: QueueLink) -> None:
        """A stream broke: what was not answered on it never will be."""
        for (_, other), asked in self._asked.items():
            if other is link and not asked.answer.done():
                asked.answer.set_exception(_OwnerChanged(lost=True))


def _kept(its: _Settles) -> list[Settlement]:
    return [_settlement(said, uids) for said, uids in its.items()]


def _settlement(said: tuple[SlotId, pb.Outcome.ValueType, Change], uids: list[int]) -> Settlement:
    queue_id, outcome, change = said
    return Settlement(queue_id, outcome, uids, change)


def _unanswered() -> Unavailable:
    return Unavailable("transaction not committed: a queue process did not answer")


def _parts(answer: pb.Prepared | None) -> int:
    """Frames that are staged. Raises what the answer says where it is none of a participant that has prepared."""
    if answer is None:
        raise _OwnerChanged
    if answer.reason == pb.NONE:
        return answer.parts
    if answer.reason in _NO_OWNER:
        raise _OwnerChanged
    if answer.reason == pb.OVERFLOW:
        # 506 would end the whole connection; as RabbitMQ, a refused commit ends the channel.
        raise PreconditionFailed(answer.text or "transaction refused: a queue is full")
    raise PreconditionFailed(answer.text or "transaction refused by a queue")
