"""Local transactions: parts are staged in memory, and one commit decides. An outcome, once there, never changes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import takewhile

from services.rpc.store_pb2 import JournalFrame, TransactionOutcome
from services.store.committer import Committer
from services.store.draft import Draft
from services.store.fencing import Epochs
from services.store.provider import OutcomeRow

# A process that asks later than this is told "aborted"; they ask within seconds.
KEPT_MS = 3_600_000

# A part is known by its writer and sequence, so that a resent one counts once.
PartKey = tuple[int, int]


class Transactions:
    """All transactions, staged and decided."""

    def __init__(self, committer: Committer, epochs: Epochs) -> None:
        self._committer = committer
        self._epochs = epochs
        self._staged: dict[int, dict[PartKey, JournalFrame]] = {}
        self._since: dict[int, int] = {}
        self._outcomes: dict[int, OutcomeRow] = {}

    def restore(self, rows: Iterable[OutcomeRow]) -> None:
        """The outcomes that a provider holds, oldest first."""
        self._outcomes = {row.transaction: row for row in rows}

    def stage(self, key: PartKey, frame: JournalFrame, at: int) -> None:
        """Keeps a part until the decision; a part that comes after the decision is not needed any more."""
        transaction = frame.transaction
        if transaction not in self._outcomes:
            self._staged.setdefault(transaction, {})[key] = frame
            self._since.setdefault(transaction, at)

    async def commit(self, transaction: int, parts: int) -> TransactionOutcome:
        """Applies all staged parts and records that, in one commit; asked again, answers what was decided.

        Aborts unless there are exactly `parts` and all their fences hold; 0 where nothing is durable.
        """
        weight = sum(frame.ByteSize() for frame in self._staged.get(transaction, {}).values() if frame.contents)
        return await self._decide(Decision(self, transaction, parts), weight)

    async def resolve(self, transaction: int) -> TransactionOutcome:
        """The outcome; an undecided transaction is aborted."""
        return await self._decide(Decision(self, transaction, None))

    def forget(self, before: int) -> None:
        """Drops outcomes, and parts whose commit never came, that are older than `before` (running time, ms)."""
        for transaction in _until(before, ((row.at, number) for number, row in self._outcomes.items())):
            del self._outcomes[transaction]
        for transaction in _until(before, ((since, number) for number, since in self._since.items())):
            self._take(transaction)

    async def _decide(self, decision: Decision, weight: int = 0) -> TransactionOutcome:
        self._committer.submit(decision, weight, moot=decision.is_moot)
        return await asyncio.shield(decision.outcome)

    def _take(self, transaction: int) -> list[JournalFrame]:
        self._since.pop(transaction, None)
        return list(self._staged.pop(transaction, {}).values())

    def outcome(self, transaction: int) -> OutcomeRow | None:
        """How it was decided, if it was."""
        return self._outcomes.get(transaction)

    def decide(self, transaction: int, parts: int | None, draft: Draft) -> TransactionOutcome:
        """The decision itself, within a commit group; `parts` None aborts what is undecided."""
        if known := self._outcomes.get(transaction):
            return TransactionOutcome(committed=known.committed)
        frames = self._take(transaction)
        fenced = [lease for frame in frames for lease in self._epochs.refused(frame.fences)]
        committed = parts == len(frames) and not fenced and not any(map(draft.fault, frames))
        if committed:
            for frame in frames:
                draft.add(frame)
        self._outcomes[transaction] = OutcomeRow(transaction, committed, draft.changes.at)
        draft.changes.outcomes[transaction] = committed
        return TransactionOutcome(committed=committed, fenced=fenced)


def _until(before: int, stamped: Iterable[tuple[int, int]]) -> list[int]:
    """The transactions at the head of `stamped` that are older; dictionaries keep the order of their stamps."""
    return [transaction for _, transaction in takewhile(lambda stamp: stamp[0] < before, stamped)]


class Decision:
    """A commit or a question, on its way through the committer."""

    def __init__(self, transactions: Transactions, transaction: int, parts: int | None) -> None:
        self.outcome: asyncio.Future[TransactionOutcome] = asyncio.get_running_loop().create_future()
        self._transactions = transactions
        self._transaction = transaction
        self._parts = parts
        self._reply = TransactionOutcome()

    def is_moot(self) -> bool:
        """Whether another request has decided the transaction."""
        return self._transactions.outcome(self._transaction) is not None

    def prepare(self, draft: Draft) -> None:
        self._reply = self._transactions.decide(self._transaction, self._parts, draft)

    def written(self) -> None:
        self.outcome.set_result(self._reply)
