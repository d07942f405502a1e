"""The consumers of one queue: who they are, what they may take, whose turn it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final, Protocol

from services.common.ledger.place import LedgerPlace
from services.queue.machine.deliveries import Deliveries
from services.queue.machine.delivery.live import LiveConsumers
from services.rpc.queue_pb2 import Reason

if TYPE_CHECKING:
    from services.queue.machine.delivery.interest import Interest


class ConsumerLink(Protocol):
    """Where deliveries go and who holds them until they are settled."""

    deliveries: Deliveries
    origin: int  # incarnation of the gateway
    broken: bool  # nobody listens any more …
    over: bool  # … and who did is not waited for any more

    def activated(self, consumer: Consumer) -> None:
        """It is the single active one from now on; what it is sent comes later."""

    def ended(self, consumer: Consumer, reason: Reason.ValueType) -> None:
        """Its queue is gone from here; the consumer is out of it already."""


NOWHERE = (LedgerPlace(), LedgerPlace())  # for the ledger, of a consumer whose deliveries it is not told


class Consumer:
    """`messages` and `size` are its credit; an entry may be sent while both are above zero."""

    __slots__ = (
        "activated", "age", "browse", "connection", "exclusive", "handle", "holds", "interest", "link", "messages",
        "places", "priority", "queued", "settled", "size", "tag", "theft",
    )  # fmt: skip

    def __init__(
        self,
        handle: int,
        link: ConsumerLink,
        *,
        tag: str = "",
        connection: str = "",
        exclusive: bool = False,
        settled: bool = False,
        browse: bool = False,
        priority: int = 0,
        messages: int = 0,
        size: int = 0,
        age: int = 0,
        activated: int = 0,
        holds: bool = False,
        interest: Interest | None = None,
    ) -> None:
        self.handle = handle
        self.link = link
        self.tag = tag
        self.connection = connection
        self.exclusive = exclusive
        self.settled = settled
        self.browse = browse
        self.priority = priority
        self.messages = messages
        self.size = size
        self.age = age  # grows with every newcomer, of a queue with a single active consumer …
        self.activated = activated  # … and when it became that one, by the same count; 0 is never
        self.holds = holds  # has unsettled deliveries of a former owner
        self.interest = interest  # None: everything
        self.theft = 0  # of one that has stolen what others had; who has a lower number has lost it
        self.places = NOWHERE
        self.queued = False  # stands in a ring

    @property
    def ready(self) -> bool:
        """Whether it may be sent something."""
        return self.messages > 0 and self.size > 0

    @property
    def chooses(self) -> bool:
        """Whether what is next may not be for it, or stays when it has seen it."""
        return self.interest is not None or self.browse


_NOBODY: Final[deque[Consumer]] = deque(maxlen=0)


class Watcher(Protocol):
    """Hears who is there."""

    def came(self, consumer: Consumer) -> None:
        """From now on."""

    def went(self, consumer: Consumer) -> None:
        """Not any more."""


class Unwatched:
    """Of consumers whom nobody delivers to."""

    def came(self, consumer: Consumer) -> None:
        """See Watcher."""

    def went(self, consumer: Consumer) -> None:
        """See Watcher."""


class Consumers:
    """Rings of consumers with credit, one for each priority, highest first. Browsers are in none: they take nothing."""

    def __init__(self, live: LiveConsumers | None = None) -> None:
        self._live = live
        self.latest_theft = 0  # of all that were ever here
        self.watcher: Watcher = Unwatched()
        self._all: dict[Consumer, None] = {}  # in the order in which they came
        self._rings: list[tuple[int, deque[Consumer]]] = []

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Consumer]:
        return iter(list(self._all))

    @property
    def first_settles_nothing(self) -> bool:
        """Whether what waits may leave without being anybody's: sent to the one that came first, it is settled."""
        first = next(iter(self._all), None)
        return first is not None and first.settled

    @property
    def exclusive(self) -> Consumer | None:
        """The one that has the queue to itself."""
        return next((consumer for consumer in self._all if consumer.exclusive), None)

    def refuses(self, *, exclusive: bool) -> bool:
        """A newcomer is not let in where one has the queue to itself, nor where it wants that and there are others."""
        return self.exclusive is not None or (exclusive and len(self._all) > 0)

    def is_live(self, consumer: Consumer) -> bool:
        """Where few are, since there was something to deliver; else any is."""
        return self._live is None or consumer in self._live.chosen

    def are_all(self, those: Container[Consumer]) -> bool:
        """Whether nobody but those could be given something; with others there order is nobody's.

        Stops at the first of the others: one of many consumers may end after the other.
        """
        there: Iterable[Consumer] = self._all
        if self._live is not None and self._live.most == 1:
            there = self._live.chosen
        first = next((each for each in there if not each.browse), None)
        return first is not None and all(each in those for each in there if not each.browse)

    def reserve(self) -> AbstractSet[Consumer]:
        """Where few are live: those that wait until one of these is gone, as tools show it."""
        return self._live.reserve(self._all) if self._live is not None else frozenset()

    @property
    def ring(self) -> deque[Consumer]:
        """Those of the highest priority that have credit, whose turn it is first; empty when nobody can take.

        To be asked for when there is something to take: where few are live, they are chosen then.
        """
        if self._live is not None:
            self.choose_live()
        rings = self._rings
        while rings and not rings[0][1]:
            rings.pop(0)
        return rings[0][1] if rings else _NOBODY

    def choose_live(self) -> None:
        """Where few are live, and there is room for more: there is something to take."""
        if self._live is not None and len(self._live.chosen) < self._live.most:
            for consumer in self._live.choose(self._all):
                self.refresh(consumer)

    def capacity(self) -> int:
        """How many messages all of them together may be sent, as far as bytes allow any."""
        return sum(consumer.messages for _, ring in self._rings for consumer in ring)

    def add(self, consumer: Consumer) -> None:
        """A newcomer, or one that comes again after a change of owner."""
        self._all[consumer] = None
        if self._live is not None and not consumer.browse:
            self._live.came(consumer)
        self.refresh(consumer)
        self.watcher.came(consumer)

    def remove(self, consumer: Consumer) -> None:
        """It takes nothing any more; if it was live, the next by age may become it."""
        was_there = consumer in self._all
        self._all.pop(consumer, None)
        if consumer.queued:
            self._ring_of(consumer.priority).remove(consumer)
            consumer.queued = False
        if self._live is not None:
            self._live.went(consumer)
        if was_there:
            self.watcher.went(consumer)

    def refresh(self, consumer: Consumer) -> None:
        """Its credit has grown: it may get a place at the end of its ring."""
        if consumer.queued or consumer.browse or consumer.messages <= 0 or consumer.size <= 0:
            return
        if not self.is_live(consumer):
            return
        consumer.queued = True
        self._ring_of(consumer.priority).append(consumer)

    def stop(self, consumer: Consumer) -> None:
        """It takes nothing until it has credit again."""
        consumer.messages = 0
        if consumer.queued:
            self._ring_of(consumer.priority).remove(consumer)
            consumer.queued = False

    def served(self, consumer: Consumer) -> None:
        """It was given something: another one comes first next time, and without credit it is out of its ring."""
        ring = self._ring_of(consumer.priority)
        ring.remove(consumer)
        consumer.queued = consumer.messages > 0 and consumer.size > 0
        if consumer.queued:
            ring.append(consumer)

    def turn(self, ring: deque[Consumer], served: int) -> None:
        """So many messages were given out in turns: drops those without credit, the next comes first.

        Whoever had none is not looked at.
        """
        if len(ring) == 1:
            consumer = ring[0]
            consumer.queued = consumer.messages > 0 and consumer.size > 0
            if not consumer.queued:
                ring.clear()
            return
        if served < len(ring):
            had = [ring.popleft() for _ in range(served)]
        else:
            ring.rotate(-(served % len(ring)))
            had = list(ring)
            ring.clear()
        for consumer in had:
            consumer.queued = consumer.messages > 0 and consumer.size > 0
            if consumer.queued:
                ring.append(consumer)

    def _ring_of(self, priority: int) -> deque[Consumer]:
        for level, ring in self._rings:
            if level == priority:
                return ring
        ring = deque[Consumer]()
        self._rings.append((priority, ring))
        self._rings.sort(key=lambda pair: -pair[0])
        return ring
