"""Routes of another broker's API report errors in its form, whether sign-in or a handler raises them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ClassVar

from fastapi import Request, Response
from fastapi.routing import APIRoute


class Answering(APIRoute):
    """`answers` says of each kind of error how; what is of none of them is the server's fault."""

    answers: ClassVar[Mapping[type[Exception], Callable[[Any], Response]]] = {}

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """As FastAPI asks for."""
        inner, answers = super().get_route_handler(), self.answers

        async def handle(request: Request) -> Response:
            try:
                return await inner(request)
            except tuple(answers) as error:
                return next(answer for kind, answer in answers.items() if isinstance(error, kind))(error)

        return handle
