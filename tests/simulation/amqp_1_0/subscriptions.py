"""Links that outlive their connections (part 3, section 3.5.6), and what clients together know of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from services.common.message.amqp_1_0 import values as v
from services.gateway.protocols.amqp_1_0.performatives import Attach, Detach
from services.gateway.protocols.amqp_1_0.termini import Source
from tests.simulation.amqp_1_0.links import SELECTOR_FILTER, Receiver
from tests.simulation.choices import SELECTOR
from tests.simulation.history import Asked, Consuming, History, Opened
from tests.simulation.line import GoneError
from tests.simulation.plan import Step

if TYPE_CHECKING:
    from tests.simulation.amqp_1_0.links import Taker
    from tests.simulation.amqp_1_0.session import Session

_NEVER: Final = "never"
_UNSETTLED_STATE: Final = 2
_STOLEN: Final = "amqp:link:stolen"
_NOT_ITS_OWN: Final = frozenset({403, 404, 405})


def queue_of(name: str) -> str:
    """The queue of a link of that name: all clients are one container's, `guest`."""
    return f"qpidsub_/guest_/{name}"


class Subscription:
    """What is known of it: `made` is its beginning in the model, `ended` its end."""

    def __init__(self, history: History, host: str, step: Step, opened: Opened) -> None:
        self.name = name = step["tag"]
        self.address, self.selector = step["address"], step.get("selector", "")
        self.made = self._asked(history, host, "subscribe", {"queue": queue_of(name), "durable": True}, opened)
        chosen = {SELECTOR: self.selector} if self.selector else {}
        binding = {"source": step["exchange"], "to": queue_of(name), "key": step["key"], "arguments": chosen}
        self.bound = self._asked(history, host, "bind_own", binding, opened)
        self.ended: Asked | None = None
        self.sure = True  # no attach was left without an answer
        self.attaching = self.begun = 0
        self.clear = True  # the last two attaches were one after the other
        self.latest: Consuming | None = None  # who has attached it last

    @staticmethod
    def _asked(history: History, host: str, what: str, arguments: dict[str, Any], opened: Opened) -> Asked:
        asked = Asked(what, host, arguments, opened, history.tick(), history.clock(), outcome="lost")
        history.asked.append(asked)
        return asked

    @property
    def stands(self) -> bool:
        """Whether it is certainly there."""
        return self.made.outcome == "ok" and self.ended is None

    def attached(self, at: int, consuming: Consuming) -> None:
        """Somebody has it."""
        self.latest = consuming
        for each in (self.made, self.bound):
            if each.answered is None:
                each.answered, each.outcome = at, "ok"


class Subscriber(Receiver):
    """One end of a subscription. It is found again by its name alone, or says what it is."""

    def __init__(self, session: Session, its: Subscription, consuming: Consuming, taker: Taker, *, every: int) -> None:
        super().__init__(session, consuming, taker, every=every)
        self.its = its
        self.recalls = False

    @property
    def _source(self) -> Source | None:
        if self.recalls:
            return None
        said = self.its.selector
        chosen = {SELECTOR_FILTER: v.Described(SELECTOR_FILTER, said)} if said else None
        return Source(self.its.address, _UNSETTLED_STATE, _NEVER, filter=chosen)

    async def attach(self) -> None:
        """Raises GoneError. Whoever has it loses it."""
        its, stood, alone = self.its, self.its.stands, not self.its.attaching
        its.begun = begun = its.begun + 1
        its.attaching += 1
        try:
            await super().attach()
        except GoneError:
            its.sure = its.sure and bool(self.text)
            if self.code in _NOT_ITS_OWN and stood and its.stands:
                self.session.breach(f"subscription {its.name} was there, and refused: {self.text}")
            raise
        finally:
            its.attaching -= 1
            its.clear = alone and its.begun == begun
        its.attached(self.session.history.tick(), self.consuming)

    def _agreed(self, attach: Attach) -> bool:
        source = attach.source
        if isinstance(source, Source) and (source.address, source.expiry_policy) != (self.its.address, _NEVER):
            self.session.breach(f"{self.name} is of {self.its.address}, and was told {source}")
        return source is not None

    # -------------------------------------------------------------- the end

    async def part(self) -> None:
        """Detached, it stays."""
        await self.detach(closed=False)

    async def end(self) -> None:
        """Closed, it goes, with its queue; unless another has taken it by then."""
        its, history = self.its, self.session.history
        if self.dead:
            return
        contested, stolen = its.attaching > 0 or not its.clear, its.latest is not self.consuming
        arguments = {"queue": queue_of(its.name)}
        begun = its.begun
        its.ended = ended = Asked("unsubscribe", self.consuming.host, arguments, self.session.opened, history.tick())
        ended.outcome = "lost"
        history.asked.append(ended)
        await self.detach()
        if stolen and not contested and not history.faults:
            history.asked.remove(ended)
            its.ended = None
        elif its.sure and not (contested or stolen or its.begun != begun):
            ended.answered, ended.outcome = history.tick(), "ok"

    def detached(self, detach: Detach) -> None:
        """As Link says. Whoever has it now, or will again, keeps it, whatever is said of its end to the former."""
        error = detach.error
        if self.ending is None and getattr(error, "condition", "") == _STOLEN:
            self.consuming.stolen = True
        self.closes = self.consuming.stolen and bool(self.session.opened.number % 2)
        super().detached(detach)
