"""Local transactions (design, section 7): collected here, prepared by each queue process, decided by the store.

    PREPARE to each process → all answer Prepared → the store commits every staged part (the decision) → COMPLETE
                            ↘ one cannot, or is lost → ABORT to all; tried again when only an owner changed

The store decides when any part is durable, or when more than one process holds a part. A single process with nothing
durable decides by completing; when its stream breaks meanwhile, both sides ask the store, which answers both alike.

A commit whose answer does not come is in doubt, and is asked for again, as a commit: the store says what it has decided
before, and decides what it has not. The client waits meanwhile, as publishers do while the store is away: it hears
commit-ok only of what is committed, and an error only of what is not. A transaction aborted meanwhile, because a queue
process asked or the store has lost the parts, is tried again. Requests behind the commit wait too, a rollback and the
end of the session among them. When the store may have forgotten the outcome, the client is told that it is unknown.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import structlog

from services.common.clients.link_frame import Settlement
from services.common.clients.outbound import Attempt, Messages
from services.common.errors import BrokerError, PreconditionFailed, Unavailable
from services.common.memory import available
from services.common.message.indexes import condensed
from services.common.message.weight import FRAME_BYTES
from services.rpc import queue_pb2 as pb
from services.rpc import store_pb2

if TYPE_CHECKING:
    from services.common.clients.publisher import Publisher
    from services.common.clients.queue_link import QueueLink
    from services.common.clients.store import StoreClient
    from services.gateway.observe.observer import Followed
    from services.gateway.owners.ownerless import OwnerlessQueues
    from services.gateway.sessions.consumer import Consumer, GetHolder
    from services.gateway.vocabulary import Publish

log = structlog.get_logger()

_PATIENCE = 30.0  # seconds in which owners may change before a commit is given up
_AGAIN = 0.1
_DOUBT = 1800.0  # seconds that the store is asked; it keeps outcomes for an hour, and a later commit would be a new one
_LARGEST = 64 << 20
_TOO_OFTEN = 2  # times that a process is lost while it holds a transaction too large for an ordinary frame
_NOBODY = frozenset({pb.NOT_OWNER, pb.UNAVAILABLE})

_Settles: TypeAlias = dict[tuple[int, pb.Outcome.ValueType], list[int]]
"""Uids by queue and outcome."""


@dataclass(slots=True)
class PendingSettlement:
    """One settlement that waits for the commit."""

    number: int
    holder: Consumer | GetHolder
    uid: int
    outcome: pb.Outcome.ValueType


@dataclass(slots=True)
class Publication:
    """What a request publishes, at once or with the commit; numbers of messages are indexes of its columns."""

    request: Publish
    messages: Messages
    followed: Followed

    @property
    def routed(self) -> Sequence[int]:
        """Numbers of the messages that have target queues."""
        targets = self.messages.targets
        if all(targets):
            return range(len(targets))
        return condensed([index for index, queue_ids in enumerate(targets) if queue_ids])

    @property
    def unrouted(self) -> Sequence[int]:
        """Numbers of the messages without target queues: dropped, or returned."""
        targets = self.messages.targets
        return () if all(targets) else [index for index, queue_ids in enumerate(targets) if not queue_ids]


@dataclass(slots=True)
class OpenTransactions:
    """Bytes of all transactions of a gateway that are not decided, and how many there may be."""

    limit: int
    used: int = 0


@dataclass(slots=True)
class Transaction:
    """What a session collected since tx.select, the last commit or the last rollback."""

    open: OpenTransactions
    publications: list[Publication] = field(default_factory=list)
    settlements: list[PendingSettlement] = field(default_factory=list)
    size: int = 0

    def add(self, publication: Publication) -> None:
        """Raises PreconditionFailed when it, or all of the gateway together, would be too large."""
        self.publications.append(publication)
        size = publication.messages.size
        self.size += size
        self.open.used += size
        if self.size > _LARGEST:
            raise PreconditionFailed(f"a transaction may hold {_LARGEST} bytes of messages; commit more often")
        if self.open.used > self.open.limit:
            raise PreconditionFailed("the open transactions of all clients take too much memory; try again")

    def _end(self) -> None:
        self.open.used -= self.size
        self.size = 0

    def committed(self) -> None:
        """The transaction is committed."""
        self._end()
        for each in self.publications:
            each.followed.committed(len(each.messages))

    def rolled_back(self) -> None:
        """The transaction is rolled back."""
        self._end()
        for each in self.publications:
            each.followed.rolled_back()

    def in_doubt(self) -> None:
        """The outcome is unknown."""
        self._end()
        for each in self.publications:
            each.followed.in_doubt()


class InDoubt(Unavailable):
    """It is unknown whether a transaction was committed."""


class _Completing(NamedTuple):
    """What the only participant has to settle, and its answer."""

    settles: _Settles
    answer: asyncio.Future[None]


def _now() -> float:
    return asyncio.get_running_loop().time()


class _OwnerChanged(Exception):
    """Nothing was decided; the same transaction may be tried under a new identity."""

    lost = False  # the owner's stream broke while it was asked


class _OwnerLost(_OwnerChanged):
    lost = True


class _Aborted(_OwnerChanged):
    """The store said so after `asked` seconds, which do not count against the time for owners to change."""

    def __init__(self, asked: float) -> None:
        super().__init__()
        self.asked = asked


class Coordinator:
    """Carries transactions out, one attempt after the other until one is decided."""

    def __init__(self, publisher: Publisher, store: StoreClient, ownerless: OwnerlessQueues) -> None:
        self._publisher = publisher
        self._store = store
        self._ownerless = ownerless
        self.open = OpenTransactions(available() // 8)
        self._waiting: dict[tuple[int, QueueLink], asyncio.Future[pb.Prepared]] = {}
        self._completing: dict[tuple[int, QueueLink], _Completing] = {}
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
                if isinstance(changed, _Aborted):
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
        links = self._send(publishes, settles, identity)
        streams = {link: link.streams for link in links}
        try:
            parts = await self._prepared(identity, links)
        except (BrokerError, _OwnerChanged):
            self._tell(links, identity, pb.TransactionStep.ABORT)
            raise
        if parts or len(links) > 1:
            await self._decide(identity, links, parts)
            self._tell(links, identity, pb.TransactionStep.COMPLETE)
            for link, its in settles.items():
                self._keep(identity, link, its, streams[link])
        elif not await self._completed(identity, links, settles):
            # The participant, if alive, has asked the store as well, and may have answered on a stream that is gone.
            self._ownerless.give_back(kept for its in settles.values() for kept in _kept(its))
        self._ownerless.settle_elsewhere(settlements, terms)

    def _keep(self, identity: int, link: QueueLink, its: _Settles, stream: int) -> None:
        """Keeps the settlements until they are safe: the next owner would not know of them."""
        if link.up and link.streams == stream:
            self._settled[identity, link] = its
        else:
            self._ownerless.give_back(_kept(its))

    def take_unsettled(self, link: QueueLink, is_lost: Callable[[int], bool]) -> list[Settlement]:
        """Takes out the committed settlements, perhaps not safe, of queues for which `is_lost` is true."""
        lost: list[Settlement] = []
        for (_, other), its in self._settled.items():
            for queue_id, outcome in list(its) if other is link else ():
                if is_lost(queue_id):
                    lost.append(Settlement(queue_id, outcome, its.pop((queue_id, outcome))))
        self._settled = {key: its for key, its in self._settled.items() if its}
        return lost

    def _send(
        self, publishes: dict[QueueLink, list[Attempt]], settles: dict[QueueLink, _Settles], identity: int
    ) -> list[QueueLink]:
        links = list(dict.fromkeys([*publishes, *settles]))
        for link in links:
            if attempts := publishes.get(link):
                link.publish_in_transaction(attempts, identity)
            for (queue_id, outcome), uids in settles.get(link, {}).items():
                link.settle(queue_id, outcome, uids, identity)
            link.step(identity, pb.TransactionStep.PREPARE)
        return links

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
            by_link.setdefault(link, {}).setdefault((queue_id, each.outcome), []).append(each.uid)
        return by_link

    async def _prepared(self, identity: int, links: list[QueueLink]) -> int:
        loop = asyncio.get_running_loop()
        waiting = {(identity, link): loop.create_future() for link in links}
        self._waiting.update(waiting)
        try:
            answers = await asyncio.wait_for(asyncio.gather(*waiting.values()), _PATIENCE)
        except TimeoutError:
            raise Unavailable("transaction not committed: a queue process did not answer") from None
        finally:
            for key in waiting:
                self._waiting.pop(key, None)
        for answer in answers:
            _check(answer)
        return sum(answer.parts for answer in answers)

    async def _decide(self, identity: int, links: list[QueueLink], parts: int) -> None:
        began = _now()
        outcome = await self._outcome(identity, parts, began + _DOUBT)
        if not outcome.committed:
            self._tell(links, identity, pb.TransactionStep.ABORT)
            raise _Aborted(_now() - began)

    async def _outcome(self, identity: int, parts: int, give_up: float) -> store_pb2.TransactionOutcome:
        doubted = False
        while True:
            try:
                return await self._store.commit_transaction(identity, parts)
            except BrokerError as failure:
                # Not resolved: that would abort a transaction when the store is merely slow.
                if _now() > give_up:
                    raise InDoubt("it is not known whether the transaction was committed") from None
                if not doubted:
                    log.warning("transaction in doubt, its client waits", transaction=identity, reason=failure.text)
                doubted = True
            await asyncio.sleep(_AGAIN)

    async def _completed(self, identity: int, links: list[QueueLink], settles: Mapping[QueueLink, _Settles]) -> bool:
        """Lets the only participant decide; False when it was lost, and the store has decided."""
        try:
            for link in links:
                await self._completed_by(identity, link, settles.get(link, {}))
        except _OwnerChanged:
            await self._decide(identity, links, 0)
            return False
        return True

    async def _completed_by(self, identity: int, link: QueueLink, its: _Settles) -> None:
        if not link.up:
            raise _OwnerChanged
        completing = _Completing(its, asyncio.get_running_loop().create_future())
        self._completing[identity, link] = completing
        link.step(identity, pb.TransactionStep.COMPLETE)
        try:
            await completing.answer
        finally:
            del self._completing[identity, link]

    def _tell(self, links: Iterable[QueueLink], identity: int, step: pb.TransactionStep.Step.ValueType) -> None:
        for link in links:
            if link.up:
                link.step(identity, step)

    # -------------------------------------------------------------- the links say

    def prepared(self, link: QueueLink, prepared: pb.Prepared) -> None:
        """A queue process holds its part, or cannot; or holds it no longer, since it has asked the store."""
        waiting = self._waiting.get((prepared.transaction, link))
        if waiting and not waiting.done():
            waiting.set_result(prepared)
        completing = self._completing.get((prepared.transaction, link))
        if completing and not completing.answer.done() and prepared.reason != pb.NONE:
            completing.answer.set_exception(_OwnerChanged())

    def completed(self, link: QueueLink, transaction: int) -> None:
        """A queue process has carried a transaction out, or given it up."""
        completing = self._completing.get((transaction, link))
        if completing and not completing.answer.done():
            completing.answer.set_result(None)
            if completing.settles:
                self._settled[transaction, link] = completing.settles

    def safe(self, link: QueueLink, transactions: Iterable[int]) -> None:
        """The settlements of these transactions are safe: drops them here."""
        for transaction in transactions:
            self._settled.pop((transaction, link), None)

    def link_down(self, link: QueueLink) -> None:
        """A stream broke: what was not answered on it never will be."""
        asked: list[tuple[tuple[int, QueueLink], asyncio.Future[Any]]] = [*self._waiting.items()]
        asked += [(key, completing.answer) for key, completing in self._completing.items()]
        for (_, other), answer in asked:
            if other is link and not answer.done():
                answer.set_exception(_OwnerLost())


def _kept(its: _Settles) -> list[Settlement]:
    return [Settlement(queue_id, outcome, uids) for (queue_id, outcome), uids in its.items()]


def _check(answer: pb.Prepared) -> None:
    if answer.reason == pb.NONE:
        return
    if answer.reason in _NOBODY:
        raise _OwnerChanged
    if answer.reason == pb.OVERFLOW:
        # 506 would end the whole connection; as RabbitMQ, a refused commit ends the channel.
        raise PreconditionFailed(answer.text or "transaction refused: a queue is full")
    raise PreconditionFailed(answer.text or "transaction refused by a queue")
