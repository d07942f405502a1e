"""Routes that are made when somebody asks for one of them.

FastAPI looks at each parameter of each route when it is made. Of all categories of the model that takes a second of
processor time, and a process that is asked for three of them does without the rest. RabbitMQ's take a third of
one, and those that begin with the same word a tenth of that.
Routers are not included in the application, since FastAPI then makes all their routes again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

from fastapi import FastAPI
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

_ROUTE: Final = "hopline.late_route"


class Late(BaseRoute):
    """Stands for the routes that `make` gives; `serves` tells whether a path may be one of theirs."""

    def __init__(self, serves: Callable[[str], bool], make: Callable[[], Sequence[BaseRoute]]) -> None:
        self._serves = serves
        self._make = make

    @cached_property
    def routes(self) -> Sequence[BaseRoute]:
        """They are made now, if they are not there yet."""
        return self._make()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As Starlette asks for: the first that matches in full, or else the first that would with another method."""
        partial: tuple[Match, Scope] = Match.NONE, {}
        for route in self.routes if self._serves(scope["path"]) else ():
            match, found = route.matches(scope)
            if match is Match.FULL:
                return match, {**found, _ROUTE: route}
            if match is Match.PARTIAL and partial[0] is Match.NONE:
                partial = match, {**found, _ROUTE: route}
        return partial

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As Starlette asks for."""
        route: BaseRoute = scope[_ROUTE]
        await route.handle(scope, receive, send)


def part_of_path(*words: str) -> Callable[[str], bool]:
    """Whether one of them stands in a path, between two slashes or at the end."""
    return lambda path: any(f"/{word}/" in f"{path}/" for word in words)


def below(prefix: str) -> Callable[[str], bool]:
    """Whether a path is that one, or goes on from there."""
    return lambda path: f"{path}/".startswith(f"{prefix}/")


def make_all(app: FastAPI) -> None:
    """Puts the routes themselves where others stand for them: who describes an application wants all."""
    app.router.routes[:] = _made(app.router.routes)


def _made(routes: Sequence[BaseRoute]) -> Iterator[BaseRoute]:
    for route in routes:
        if isinstance(route, Late):
            yield from route.routes
        else:
            yield route
