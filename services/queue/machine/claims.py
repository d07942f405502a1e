"""What clients hold of a queue since before this process had it.

An owner may deliver a message before that is on disk, and die: then the client has it, and the publisher's gateway
sends it again, later than the client's gateway claims it or sooner. A claim for what is not here waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from services.common.ledger.stages import HELD
from services.queue.machine.consumers import Consumer, ConsumerLink
from services.queue.machine.entries import Entries
from services.queue.machine.entry import WAITING, Entry, Holder, Undecided
from services.queue.machine.record import uids_of
from services.rpc import queue_pb2 as pb

# By then a gateway that lives has sent again what it has. Most claims that wait are of messages that are done with.
_KEPT_MS = 60_000

Outcome: TypeAlias = pb.Outcome.ValueType

FINAL: Final = frozenset({pb.ACCEPT, pb.REJECT})  # outcomes of which it does not matter who says them
_TRIED: Final = frozenset({pb.RELEASE, pb.ABANDON, pb.TRIED})  # and by which an attempt has ended


class _Heir(NamedTuple):
    """As _Claim: who holds what somebody else holds too."""

    link: ConsumerLink
    consumer: Consumer | None


@dataclass(slots=True)
class _Claim:
    """`link` has what is not here yet, or nobody; `consumer` is whose it was delivered as, None if that one is no more.

    `outcome`: it was settled already; `undecided`: a transaction's.
    """

    link: ConsumerLink | None
    consumer: Consumer | None = None
    outcome: Outcome | None = None
    undecided: Undecided | None = None

    def is_anothers(self, link: ConsumerLink) -> bool:
        """Whether another gateway has it, and is there."""
        return self.link is not None and not self.link.broken and self.link.origin != link.origin

    def begin(self, entry: Entry) -> None:
        """It is here now."""
        entry.holder = self.undecided or self.link
        if self.undecided:
            self.undecided.heirs[entry] = self.link


class Claims:
    """Claims move entries of a queue from `ready` to `unsettled`.

    Its context hears of what is settled before it is here: its publisher has not sent it again, so nothing of it is
    safe.
    """

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._unsettled = entries.unsettled
        self._waiting: dict[int, _Claim] = {}  # by uid
        self._sought: set[int] = set()  # of these, by `expect`: they may be in the list
        self._heirs: dict[int, _Heir] = {}  # by uid
        self._until = 0

    def __bool__(self) -> bool:
        return bool(self._waiting or self._heirs)

    def claim(self, held: Sequence[int], link: ConsumerLink, consumer: Consumer | None, now: int) -> list[Entry]:
        """`link` holds these, whether they are here or not; gives those that have left the list for it.

        They were delivered to a `consumer` of its, or to one that is no more. Two may hold one message, when a gateway
        was cut off while its former owner changed: it is with who came first, and then with the other, who has it
        already.
        """
        uids = self._claim_held(held, link, consumer)
        acquired = self._acquire(uids) if uids else []
        for entry in acquired:
            entry.holder = link
            self._entries.tell_held(consumer, entry)
            self._not_ended(entry)
            uids.discard(entry.message.uid)
        self._await(uids, link, consumer, now)
        return acquired

    def expect(self, held: Sequence[int], link: ConsumerLink, consumer: Consumer | None, now: int) -> None:
        """The same, but for those that stand in the list: `find` takes them out."""
        uids = self._claim_held(held, link, consumer)
        self._await(uids, link, consumer, now)
        self._sought |= uids

    @property
    def seeks(self) -> bool:
        """Whether some may stand in the list yet."""
        return bool(self._sought)

    def sought(self, waiting: Iterable[Entry]) -> list[Entry]:
        """Those of some that wait, that `expect` was told of."""
        sought = self._sought
        return [entry for entry in waiting if entry.message.uid in sought]

    def find(self, waiting: Iterable[Entry]) -> tuple[list[Entry], dict[int, Outcome]]:
        """Some of those that are `sought`: they leave the list, as `arrived` says."""
        found = self._leave(waiting)
        for entry, _ in found:
            self._not_ended(entry)
        return [entry for entry, _ in found], _outcomes(found)

    def give_up_seeking(self) -> None:
        """All of the list has been seen."""
        self._sought.clear()

    def _claim_held(self, held: Sequence[int], link: ConsumerLink, consumer: Consumer | None) -> set[int]:
        """Those that are somebody's; gives the others."""
        uids = set(held)
        for uid in held:
            if (entry := self._unsettled.get(uid)) is not None:
                uids.discard(uid)
                self._claim_unsettled(entry, link, consumer)
        return uids

    def _await(self, uids: Iterable[int], link: ConsumerLink, consumer: Consumer | None, now: int) -> None:
        if not uids:
            return
        self._forget_old(now)
        self._until = now + _KEPT_MS
        for uid in uids:
            before = self._waiting.get(uid)
            if before is None or before.outcome in _TRIED:
                self._waiting[uid] = _Claim(link, consumer)
            elif before.is_anothers(link):
                self._heirs[uid] = _Heir(link, consumer)
            else:
                before.link, before.consumer = link, consumer

    def _not_ended(self, entry: Entry) -> None:
        """Recovery counted an attempt that has not ended, unless it found a note of more that had."""
        entry.attempts = max(entry.attempts - 1, self._noted(entry))

    def _noted(self, entry: Entry) -> int:
        return self._entries.attempts.of(entry) if self._entries.attempts else 0

    def _claim_unsettled(self, entry: Entry, link: ConsumerLink, consumer: Consumer | None) -> None:
        holder = entry.holder
        if isinstance(holder, Undecided):
            holder.heirs[entry] = link
        elif isinstance(holder, Holder) and holder.broken:
            entry.holder = link
        elif isinstance(holder, Holder) and holder.origin != link.origin:
            self._heirs[entry.message.uid] = _Heir(link, consumer)
            return
        self._entries.tell_held(consumer, entry)

    def settled(self, outcome: Outcome, uids: Sequence[int]) -> list[int]:
        """What became of deliveries, some of which are perhaps not here; gives those that come back when they come."""
        back: list[int] = []
        for uid in uids:
            if outcome in FINAL:
                self._heirs.pop(uid, None)
            if (claim := self._waiting.get(uid)) is None:
                continue
            if outcome in FINAL:
                claim.outcome, claim.undecided = outcome, None
                self._entries.context.on_early()
            elif claim.outcome is None:
                self._give_up(uid, claim, keeps=outcome == pb.ABANDON)
                back.append(uid)
                if outcome in _TRIED and uid not in self._waiting:
                    self._waiting[uid] = _Claim(None, outcome=outcome)  # it comes as one that was delivered
        return back

    def not_others(self, uids: Iterable[int], holder: Holder) -> list[int]:
        """Those that neither another gateway holds that is there, nor a transaction of its.

        Of all of them its gateway is no heir any more: it has let them go.
        """
        others = {uid for uid in uids if self._is_anothers(uid, holder.origin)}
        for uid in uids if self._heirs else ():
            if (heir := self._heirs.get(uid)) and heir.link.origin == holder.origin:
                del self._heirs[uid]
        return [uid for uid in uids if uid not in others]

    def _is_anothers(self, uid: int, origin: int) -> bool:
        entry = self._unsettled.get(uid)
        holder = entry.holder if entry else self._claimant(uid)
        if isinstance(holder, Holder) and holder.broken:
            return False
        return isinstance(holder, (Holder, Undecided)) and holder.origin != origin

    def _claimant(self, uid: int) -> object:
        claim = self._waiting.get(uid)
        return claim and (claim.undecided or claim.link)

    def abandon(self, uids: Sequence[int]) -> list[int]:
        """Their consumer is gone: gives those that go back now; a transaction keeps what it has until it is decided."""
        back: list[int] = []
        for uid in uids:
            entry = self._unsettled.get(uid)
            if entry and isinstance(entry.holder, Undecided):
                entry.holder.heirs[entry] = None
            else:
                back.append(uid)
        return back

    @property
    def count(self) -> int:
        """Of all that are held, as `all_held` gives them."""
        return len(self._unsettled) + len(self._waiting) + len(self._heirs)

    def all_held(self) -> list[int]:
        """What anybody has, or claims, or is an heir of; some of it more than once."""
        return [*self._unsettled, *self._waiting, *self._heirs]

    def had(self, uids: Iterable[int], holder: object) -> list[int]:
        """Those of some that `holder` has, or claims, or is an heir of."""
        found = self._held_by(holder, uids)
        for others in (self._waiting, self._heirs):
            get = others.get
            found += [uid for uid in uids if (it := get(uid)) is not None and it.link is holder] if others else []
        return found

    def release(self, holder: object, uids: Iterable[int]) -> list[int]:
        """What `holder` had of these is anybody's, when it comes; gives what it has that is here."""
        for uid in uids:
            if (claim := self._waiting.get(uid)) and claim.link is holder and claim.outcome is None:
                self._give_up(uid, claim, keeps=True)
            if (heir := self._heirs.get(uid)) and heir.link is holder:
                del self._heirs[uid]
        return self._held_by(holder, uids)

    def inherited(self, entries: list[Entry]) -> list[Entry]:
        """These come back: gives those that nobody else holds."""
        if not self._heirs:
            return entries
        left: list[Entry] = []
        for entry in entries:
            heir = self._heirs.pop(entry.message.uid, None)
            if heir is None or heir.link.broken:
                left.append(entry)
            else:
                entry.holder = heir.link
                self._unsettled[entry.message.uid] = entry
                self._entries.tell_held(heir.consumer, entry)
        return left

    def _held_by(self, holder: object, uids: Iterable[int]) -> list[int]:
        get = self._unsettled.get
        return [uid for uid in uids if (entry := get(uid)) is not None and entry.holder is holder]

    def _give_up(self, uid: int, claim: _Claim, *, keeps: bool) -> None:
        """Its claimant's no more, but an heir's; `keeps`: a transaction has it all the same."""
        heir = self._heirs.pop(uid, None)
        claim.link, claim.consumer = heir if heir and not heir.link.broken else (None, None)
        if not keeps:
            claim.undecided = None
        if claim.link is None and claim.undecided is None:
            del self._waiting[uid]

    # -------------------------------------------------------------- transactions

    def hold(self, uids: Iterable[int], holder: Undecided) -> tuple[list[Entry], list[int]]:
        """These are a transaction's: gives those that are here, and the uids of those that are to come."""
        entries: list[Entry] = []
        coming: list[int] = []
        for uid in uids:
            self._heirs.pop(uid, None)
            if (entry := self._unsettled.get(uid)) is not None:
                entry.holder = holder
                entries.append(entry)
            elif (claim := self._waiting.get(uid)) and claim.outcome is None:
                claim.undecided = holder
                coming.append(uid)
        return entries, coming

    def still(self, uids: Iterable[int], holder: Undecided) -> list[int]:
        """Of those that were to come when `holder` took them, what it has yet: its gateway may have given them back."""
        return [uid for uid in uids if self._is_to_come(uid, holder) or self._has_come(uid, holder)]

    def let_go(self, uids: Iterable[int], holder: Undecided) -> list[Entry]:
        """The transaction is off: what comes is who claims it's; gives those that have come since, and are its yet."""
        for uid in uids:
            if self._is_to_come(uid, holder):
                claim = self._waiting[uid]
                claim.undecided = None
                if claim.link is None:
                    del self._waiting[uid]
        return [self._unsettled[uid] for uid in uids if self._has_come(uid, holder)]

    def _is_to_come(self, uid: int, holder: Undecided) -> bool:
        return (claim := self._waiting.get(uid)) is not None and claim.undecided is holder

    def _has_come(self, uid: int, holder: Undecided) -> bool:
        return (entry := self._unsettled.get(uid)) is not None and entry.holder is holder

    # -------------------------------------------------------------- what comes

    def among(self, uids: Sequence[int], now: int) -> bool:
        """Whether any of these is claimed."""
        self._forget_old(now)
        return not self._waiting.keys().isdisjoint(uids)

    def arrived(self, entries: Iterable[Entry]) -> tuple[list[Entry], dict[int, Outcome]]:
        """These wait now: gives those that are claimed, which leave the list, and what they were settled as."""
        found = self._leave(entries)
        return [entry for entry, _ in found], _outcomes(found)

    def _leave(self, entries: Iterable[Entry]) -> list[tuple[Entry, _Claim]]:
        """Those of some that wait and are claimed: their claimants have them from now on."""
        claimed: dict[int, Entry] = {}
        for entry in entries:
            if entry.message.uid in self._waiting and entry.state in WAITING:
                claimed.setdefault(entry.message.uid, entry)  # one of them: the same message may be here twice
        taken = self._entries.take_back(list(claimed.values()))
        found = [(entry, self._waiting.pop(entry.message.uid)) for entry in taken]
        self._here([entry for entry, _ in found])
        for entry, claim in found:
            self._sought.discard(entry.message.uid)
            claim.begin(entry)
            self._entries.tell_held(claim.consumer, entry)
        return found

    def _acquire(self, uids: set[int]) -> list[Entry]:
        entries = self._entries.acquire(uids)
        self._here(entries)
        return entries

    def _here(self, entries: list[Entry]) -> None:
        if entries:
            self._entries.record.recovered(uids_of(entries), HELD)
        self._unsettled.update((entry.message.uid, entry) for entry in entries)

    def _forget_old(self, now: int) -> None:
        if now > self._until and not self._sought:
            for uid in self._waiting if self._heirs else ():
                self._heirs.pop(uid, None)
            self._waiting.clear()


def _outcomes(found: Iterable[tuple[Entry, _Claim]]) -> dict[int, Outcome]:
    return {entry.message.uid: claim.outcome for entry, claim in found if claim.outcome is not None}
