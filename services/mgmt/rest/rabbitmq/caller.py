"""The user of a request below RabbitMQ's paths, and which virtual hosts it may see.

https://www.rabbitmq.com/docs/management#permissions: a user with the tag `management` sees the virtual hosts that it
may open, one who may observe sees all of them; for changes in one it needs permissions, as over AMQP.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastapi import Depends, Request

from services.common.access import questions
from services.common.access.asked import Asked
from services.common.access.asked import Principal as Asker
from services.common.authentication.principal import Principal
from services.mgmt.access.guard import Guard
from services.mgmt.access.operations import ASK_MGMT, OBSERVE
from services.mgmt.rabbitmq.objects import Objects
from services.mgmt.rest.basic import Doors, Most
from services.mgmt.rest.bodies import MOST


@dataclass(frozen=True, slots=True)
class Caller:
    """A user who has signed in and has one of RabbitMQ's tags."""

    asker: Asker
    guard: Guard

    def may(self, asked: Asked) -> bool:
        """Whether; nothing is put on record of it."""
        return self.guard.may(self.asker, asked)

    def check(self, *asked: Asked) -> None:
        """Raises AccessRefused."""
        self.guard.check(self.asker, *asked)

    def sees(self, virtual_host: str) -> bool:
        """Whether what is in it is told them."""
        return self.may(OBSERVE) or self.may(questions.open_virtual_host(virtual_host))

    def seen(self, objects: Objects, virtual_host: str | None = None) -> list[str]:
        """Virtual hosts to be told of: the one that is meant, or all. Raises AccessRefused, NotFound."""
        if virtual_host is None:
            return [name for name in objects.virtual_hosts() if self.sees(name)]
        if not self.may(OBSERVE):
            self.check(questions.open_virtual_host(virtual_host))
        objects.check_virtual_host(virtual_host)
        return [virtual_host]


def who_asks(doors: Doors, asked: Asked | Callable[[Request], Asked] = ASK_MGMT, most: Most = MOST) -> Any:  # noqa: ANN401 - as FastAPI's Depends
    """A dependency of routes: the Caller who may do that, in a body of so many bytes."""
    door = Depends(doors.to(asked, most))

    async def caller(request: Request, principal: Principal = door) -> Caller:
        peer = request.client.host if request.client else ""
        return Caller(await doors.guard.user(principal, peer), doors.guard)

    found: Callable[..., Awaitable[Caller]] = caller
    return Depends(found)
