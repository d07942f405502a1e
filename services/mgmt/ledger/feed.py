"""Batches from the stream, in the order in which they came, until they are acknowledged."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Self

from nats.aio.msg import Msg
from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig
from nats.js.errors import NotFoundError

from services.common.bus.nats_link import Away, NatsLink
from services.common.config import Settings
from services.common.ledger import stream

_NAME = "filer"
AT_ONCE = 200
_NEVER = 24 * 3600.0  # seconds until NATS would give again what is not acknowledged: a new feed begins anew instead
_MOST_OPEN = 100_000


class Feed:
    """One connection, from its making to its first failure; every method raises Away."""

    def __init__(self, link: NatsLink, subscription: JetStreamContext.PullSubscription) -> None:
        self._link = link
        self._subscription = subscription

    @classmethod
    async def open(cls, address: str, settings: Settings) -> Self:
        """Gives everything that was not acknowledged, from the oldest on: the consumer before is no more.

        Otherwise what was given to it would come late and out of order.
        """
        link = await NatsLink.connect(address, "mgmt ledger")
        subscriptions: list[JetStreamContext.PullSubscription] = []

        async def begin(context: JetStreamContext) -> None:
            await stream.configure(context, settings)
            with contextlib.suppress(NotFoundError):
                await context.delete_consumer(stream.NAME, _NAME)
            config = ConsumerConfig(
                durable_name=_NAME, ack_policy=AckPolicy.EXPLICIT, ack_wait=_NEVER, max_ack_pending=_MOST_OPEN
            )
            await context.add_consumer(stream.NAME, config)
            subscriptions.append(await context.pull_subscribe_bind(_NAME, stream.NAME))

        try:
            await link.set_up(begin)
        except BaseException:
            await link.close()
            raise
        return cls(link, subscriptions[0])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._link.close()

    async def limit(self, settings: Settings) -> None:
        """The stream keeps as much as these settings say."""
        await self._link.set_up(lambda context: stream.configure(context, settings))

    async def takes(self) -> bool:
        """Whether the stream takes messages."""
        took: list[bool] = []

        async def ask(context: JetStreamContext) -> None:
            took.append(await stream.takes(context))

        await self._link.set_up(ask)
        return took[0]

    async def renew(self, settings: Settings) -> None:
        """Another stream takes the place of this one, and of what is in it; then this feed is of no use any more."""
        await self._link.set_up(lambda context: stream.renew(context, settings))

    async def next(self, seconds: float) -> list[Msg]:
        """At most AT_ONCE batches, fewer when these are all; none when none came for so long."""
        try:
            return await self._batches(await self._subscription.fetch(AT_ONCE, timeout=seconds))
        except TimeoutError:
            if not self._link.up:
                raise Away("connection lost") from None
            await self._link.require()  # no batch came, or NATS is away
            return []
        except (Error, OSError) as failure:
            raise Away(str(failure) or type(failure).__name__) from failure

    async def _batches(self, messages: list[Msg]) -> list[Msg]:
        for message in messages:
            if message.subject == stream.PROBE:
                await message.ack()
        return [message for message in messages if message.subject != stream.PROBE]

    async def acknowledge(self, messages: list[Msg]) -> None:
        """They need not be given again."""
        try:
            for message in messages:
                await message.ack()
        except (Error, OSError) as failure:
            raise Away(str(failure) or type(failure).__name__) from failure
