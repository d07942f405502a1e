"""RabbitMQ's paths: names in them are percent-encoded, a virtual host that is called / is %2F."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Final
from urllib.parse import unquote

from starlette.convertors import Convertor, register_url_convertor

from services.mgmt.front import Application

API: Final = "/api"

OURS: Final = frozenset({
    "aliveness-test", "bindings", "channels", "cluster-name", "connections", "consumers", "definitions", "exchanges",
    "global-parameters", "health", "nodes", "operator-policies", "overview", "parameters", "permissions", "policies",
    "queues", "topic-permissions", "user-limits", "users", "vhost-limits", "vhosts", "whoami",
})  # fmt: skip
"""First words of paths below /api that are RabbitMQ's."""


class _Segment(Convertor[str]):
    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value)

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("encoded", _Segment())


class RawPaths:
    """ASGI: below RabbitMQ's paths it is looked for by what is encoded yet, so that a name may hold a slash."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI says
        """As ASGI says."""
        if scope["type"] == "http" and is_ours(raw := (scope.get("raw_path") or b"").decode("latin-1")):
            scope = {**scope, "path": raw.removesuffix("/")}
        await self._app(scope, receive, send)


def is_ours(path: str) -> bool:
    """Whether it is one of RabbitMQ's."""
    return first_word(path) in OURS


def first_word(path: str) -> str:
    """Below /api; of other paths there is none."""
    _, api, first, *_ = (*path.split("/", 3), "", "", "")
    return first if api == "api" else ""
