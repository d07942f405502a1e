"""From messages to consumers of which some do not want everything, or take nothing of what they see.

Each consumer has a cursor. Those at the edge have looked at all that is in front: what is behind comes to the front bit
by bit, is offered to them, and stays there if nobody takes it. The others go through the front from where they are.
What comes in among what they have passed is told them separately (`late.py`).

A turn has so many looks, whoever looks: what is left to do is gone on with by the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from operator import attrgetter
from typing import Any, Final

from services.common.selectors.message import MessageView
from services.queue.machine.consumers import Consumer, Consumers
from services.queue.machine.delivery import late
from services.queue.machine.delivery.choosers import Choosers, best_first, key_of
from services.queue.machine.delivery.cursor import Cursor
from services.queue.machine.delivery.groups import Groups
from services.queue.machine.delivery.index import Index
from services.queue.machine.delivery.interest import view_of
from services.queue.machine.delivery.looks import Looks
from services.queue.machine.delivery.sending import Sending
from services.queue.machine.entries import Entries
from services.queue.machine.entry import AVAILABLE, Entry
from services.queue.machine.order.ready import Fresh

_PULLED: Final = 64  # entries that come to the front at a time, at most
_VISIT: Final = 64  # looks of one consumer before it is another's turn


_at_edge = attrgetter("at_edge")


def _passed(rank: Any, hearing: set[Cursor]) -> Callable[[Cursor], bool]:  # noqa: ANN401 - an order's own
    return lambda cursor: cursor in hearing and cursor.passed(rank)


class SelectiveDelivery:
    """From its making on the queue's entries are selectable."""

    def __init__(self, entries: Entries, consumers: Consumers, groups: Groups | None = None) -> None:
        self._entries = entries
        self._consumers = consumers
        self._sending = Sending(entries)
        self._groups = groups
        self.ready = entries.ready = entries.ready.selectable()
        self._late = late.Late()
        self._choosers = Choosers()
        self._cursors: dict[Consumer, Cursor] = {}
        self._index = Index((), self.ready.rank)
        self._given = self._visits = 0
        self._free: list[Entry] = []  # whose group was somebody's, and is not any more
        self._reached: Any = self.ready.edge  # the rank of the last entry that those at the edge were offered
        self.unfinished = False
        for consumer in consumers:
            self.attach(consumer)

    # -------------------------------------------------------------- consumers

    def attach(self, consumer: Consumer) -> None:
        """One that has come: it has all of it before it."""
        is_first = next(self.ready.after(None), None) is None
        cursor = Cursor(consumer, at_edge=is_first, heard=self._late.end)
        self._cursors[consumer] = cursor
        self._choosers.add(cursor)
        # What is in front already is in no index for another name: then its consumers look at all of it.
        if is_first and self._index.names != self._choosers.names:
            self._index = Index(self._choosers.names, self.ready.rank)

    def detach(self, consumer: Consumer) -> None:
        """One that has gone."""
        self._choosers.remove(self._cursors.pop(consumer))
        if self._groups:
            self._free += self._groups.gone(consumer)

    def hands_groups_on(self, consumer: Consumer) -> bool:
        """As Queue says."""
        return self._groups is not None and self._groups.handed_on(consumer)

    def settled(self, entries: list[Entry]) -> None:
        """Nobody holds these any more: what of their groups waits is for others too."""
        if self._groups:
            self._free += self._groups.settled(entries)

    def held(self, consumer: Consumer | None, entry: Entry) -> None:
        """As Entries.on_held says: whoever it is, its group may be his."""
        if self._groups:
            there = consumer if consumer in self._cursors else None
            self._free += self._groups.held(there, entry)

    # -------------------------------------------------------------- as Delivery says

    def has_offered_all(self, consumer: Consumer) -> bool:
        """As Queue says. What nobody has looked at is left only when the looks were spent; then a few are behind."""
        cursor = self._cursors.get(consumer)
        if cursor is None or not self.unfinished:
            return True
        return cursor.at_edge and cursor.heard == self._late.end and not self._free and self.ready.nothing_new

    def from_list(self, now: int, expired: list[Entry]) -> None:
        """As Delivery says, with so many looks."""
        looks = Looks(now, expired)
        self._begin()
        try:
            self._deliver(looks)
            while self._free and not looks.spent:
                self._tell_free()
                self._deliver(looks)
        except Exception:
            # Nobody knows who has been offered what: all look again at what is behind what they were offered surely.
            self._leave_edge(self._cursors.values(), all_of_them=True)
            self._index = Index((), self.ready.rank)
            raise
        finally:
            self._send()
            self.unfinished = looks.spent
        self._forget(self.ready.count, self._entries.holding.size)

    def _forget(self, count: int, kept: int) -> None:
        """What has left, if that is much; `count` entries wait, in a queue that keeps so many bytes."""
        lost = self._late.forget([each.heard for each in self._cursors.values()], count, kept)
        self._index.sweep(count, kept)
        if self._groups:
            self._bring_behind(lost)
            self._groups.sweep(count, kept)

    def _deliver(self, looks: Looks) -> None:
        """Half of the looks is for what is new: who has a long way to go keeps nobody waiting."""
        self._tell_late(looks)
        while self._free and not looks.spent:  # before what is behind of the same groups
            self._tell_free()
            self._tell_late(looks)
        self._visit_front(looks, looks.left // 2)
        self._pull(looks)
        self._visit_front(looks, 0)
        self._pull(looks)  # for those that have come to the edge only now

    def _begin(self) -> None:
        for cursor in self._cursors.values():
            cursor.begin()
        if self.ready.count:
            self._consumers.choose_live()
        fresh = [each for each in self.ready.take_fresh() if each.entry.state == AVAILABLE]
        self._late.add(fresh)
        self._tell_free()  # behind what came back of the same group
        for each in fresh:
            self._index.add(each.entry, view_of(each.entry))

    def _tell_free(self) -> None:
        free, self._free = self._free, []
        self._late.add([Fresh(entry, True) for entry in free], lead=True)

    def _bring_behind(self, entries: Iterable[Entry]) -> None:
        """These were told because their groups were free, and it is the next ones' turn."""
        if self._groups:
            for entry in entries:
                self._free += self._groups.behind(entry)

    # -------------------------------------------------------------- what came in among what was passed

    def _tell_late(self, looks: Looks) -> None:
        deaf = [each for each in self._able() if each.heard < self._late.end]
        if takers := [each.heard for each in deaf if not each.browses]:
            self._bring_behind(self._late.lost_since(min(takers)))
            self._tell_free()
        for cursor in deaf:
            if cursor.browses:
                self._show_late(cursor, looks)
            elif len(self._late.since(cursor.heard)) > late.SOME:
                self._go_back(cursor)
        if hearing := {each for each in deaf if not each.browses and each.heard < self._late.end}:
            self._offer_late(hearing, looks)

    def _show_late(self, browser: Cursor, looks: Looks) -> None:
        """One by one, in the order in which they came: it is shown each once. What comes back it has seen."""
        for number, entry, back, _ in self._late.since(browser.heard):
            if looks.spent or not browser.able:
                return
            browser.heard = number + 1
            rank, view = self.ready.rank(entry), view_of(entry)
            due = browser.passed(rank) and not (back and browser.has_seen(rank))
            if due and self._waits(entry, looks) and self._wants(browser, entry, view, looks):
                self._give(browser, entry)
        browser.heard = self._late.end

    def _go_back(self, cursor: Cursor) -> None:
        """To the first of what came: it goes on from there."""
        lowest = min(self.ready.rank(came.entry) for came in self._late.since(cursor.heard))
        if cursor.passed(lowest):
            cursor.stop_at(self.ready.before(lowest))
        cursor.heard = self._late.end

    def _offer_late(self, hearing: set[Cursor], looks: Looks) -> None:
        """A few, in their order, to those that have passed them."""
        for came in sorted(self._late.since(min(each.heard for each in hearing)), key=self._rank_of):
            entry, may = came.entry, _passed(self._rank_of(came), hearing)
            waits = self._waits(entry, looks)
            if waits:
                self._offer(entry, view_of(entry), may, looks)
            if came.leads and (not waits or self._is_unwanted(entry, hearing)):
                self._bring_behind([entry])
        for cursor in hearing:
            if cursor.able:  # or it has not been asked about all of it
                cursor.heard = self._late.end

    def _rank_of(self, came: late.Came) -> Any:  # noqa: ANN401 - an order's own
        return self.ready.rank(came.entry)

    def _is_unwanted(self, entry: Entry, hearing: set[Cursor]) -> bool:
        """Whether somebody has been offered it who might have it, and does not want it."""
        if self._groups is None or entry.state != AVAILABLE:
            return False
        may_have, rank = self._groups.may_have, self.ready.rank(entry)
        return any(each.able and each.passed(rank) and may_have(each.consumer, entry) for each in hearing)

    # -------------------------------------------------------------- what is in front

    def _visit_front(self, looks: Looks, least: int) -> None:
        """Those that are not at the edge go on, each a bit in its turn, until so many looks are left."""
        while looks.more_than(least) and (behind := self._behind()):
            for cursor in sorted(behind, key=attrgetter("visited")):
                if looks.more_than(least):
                    self._visit(cursor, looks, least)

    def _behind(self) -> list[Cursor]:
        return [cursor for cursor in self._able() if not cursor.at_edge]

    def _visit(self, cursor: Cursor, looks: Looks, least: int) -> None:
        self._visits += 1
        cursor.visited = self._visits
        before = self._before(cursor)
        for entry in before[:_VISIT]:
            if not looks.more_than(least) or not cursor.able:
                return
            cursor.seen = self.ready.rank(entry)
            if self._waits(entry, looks) and self._wants(cursor, entry, view_of(entry), looks):
                self._give(cursor, entry)
        cursor.at_edge = len(before) <= _VISIT

    def _before(self, cursor: Cursor) -> list[Entry]:
        """What it comes by next: what it looks at in a visit, and one more if there is any."""
        key = key_of(cursor)
        indexed = key is not None and key.name in self._index.names
        found = self._index.after(key, cursor.seen) if key and indexed else self.ready.after(cursor.seen)
        return list(islice(found, _VISIT + 1))

    # -------------------------------------------------------------- what is behind

    def _pull(self, looks: Looks) -> None:
        """Brings to the front what nobody has looked at, while somebody at the edge might take it."""
        while not looks.spent and (able := sum(cursor.at_edge for cursor in self._able())):
            pulled = self.ready.further(max(1, min(_PULLED, looks.left // able)))
            if not pulled:
                return
            self._leave_edge(self._cursors.values())
            for entry in pulled:
                self._offer_new(entry, looks)

    def _offer_new(self, entry: Entry, looks: Looks) -> None:
        view = view_of(entry)
        given = self._offer(entry, view, _at_edge, looks) if self._waits(entry, looks) else []
        self._reached = self.ready.rank(entry)
        if entry.state == AVAILABLE:
            self._index.add(entry, view)
        self._leave_edge(given)

    def _leave_edge(self, cursors: Iterable[Cursor], *, all_of_them: bool = False) -> None:
        """Who has no credit has not been offered what comes next."""
        for cursor in cursors:
            if cursor.at_edge and (all_of_them or not cursor.able):
                cursor.stop_at(self._reached)

    # -------------------------------------------------------------- one entry

    def _able(self) -> list[Cursor]:
        return [cursor for cursor in self._cursors.values() if cursor.able]

    def _waits(self, entry: Entry, looks: Looks) -> bool:
        """Whether it can be had; what is past its time is taken out."""
        if entry.state != AVAILABLE:
            return False
        if entry.expires and entry.expires <= looks.now:
            self.ready.choose(entry)
            looks.expired.append(entry)
            return False
        return True

    def _offer(self, entry: Entry, view: MessageView, may: Callable[[Cursor], bool], looks: Looks) -> list[Cursor]:
        """To those that may have it: all browsers, and the first of the others who wants it. Gives who has got it."""
        given: list[Cursor] = []
        looks.left -= 1
        for cursor in best_first(each for each in self._choosers.of(view) if each.able and may(each)):
            if (cursor.browses or entry.state == AVAILABLE) and self._wants(cursor, entry, view, looks):
                self._give(cursor, entry)
                given.append(cursor)
        return given

    def _wants(self, cursor: Cursor, entry: Entry, view: MessageView, looks: Looks) -> bool:
        if self._groups and not cursor.browses and not self._groups.may_have(cursor.consumer, entry):
            looks.left -= 1
            self._groups.passed(entry)
            return False
        return looks.wants(cursor, entry, view)

    def _give(self, cursor: Cursor, entry: Entry) -> None:
        if cursor.browses:
            cursor.show(entry, self.ready.rank(entry))
            return
        self._given += 1
        self.ready.choose(entry)
        cursor.take(entry, self._given)
        if self._groups:
            self._free += self._groups.given(cursor.consumer, entry)

    def _send(self) -> None:
        for cursor in self._cursors.values():
            if not cursor.taking:
                continue
            consumer, entries = cursor.consumer, cursor.taken()
            if cursor.browses:
                self._sending.show(consumer, entries)
            else:
                self._sending.hand_out(consumer, entries)
                self._consumers.served(consumer)
            self._entries.context.traffic += len(entries)
