"""What to do about an error that a service answers with: told along with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_HINTS: Final[Mapping[str, str]] = {
    "no vhost '": "`hopline vhosts list` says which there are",
    "no virtual host '": "`hopline vhosts list` says which there are",
    "' not found": "`hopline vhosts list` says which there are",
    "no queue '": "`hopline queues list` says which there are",
    "no exchange '": "`hopline exchanges list` says which there are",
    "no connection '": "`hopline connections list` says which there are",
    "no user '": "`hopline users list` says which there are",
    "no group '": "`hopline groups list` says which there are, and who is in them",
    "has no permission of its own": "`hopline permissions list` says who has which",
    "has no topic permission": "`hopline permissions topics list` says who has which",
    "has no limit": "`hopline limits list` says who has which",
    "no authentication provider '": "`hopline providers list` says which there are",
    "no port '": "`hopline ports list` says which there are",
    "no tracing rule '": "`hopline tracing rules list` says which there are",
    "no capture rule '": "`hopline capture list` says which there are",
    "no policy '": "`hopline policies list` says which there are",
    "no operator policy '": "`hopline policies list --operator` says which there are",
    "is not recognised in a": "names are RabbitMQ's, such as max-length, message-ttl, dead-letter-exchange",
    "unknown exchange type '": "`hopline exchanges declare --help` says which are built in",
    "no binding '": "`hopline bindings list` says which there are, with their keys and arguments",
    " not empty": "`hopline queues purge` empties it",
    " in use": "`hopline consumers list` and `hopline bindings list` show by what",
    "inequivalent arg '": "it stays as it is until it is deleted; `show` says how that is",
    "must be an integer, not str": "NAME:=5 says a number, NAME=5 a text",
    "exclusive access to locked queue": "it goes with its connection: `hopline queues show` says which",
}
"""What to do, by a part of the error's text; an error with none of these parts gets no hint."""


def advised(text: str) -> str:
    """With what to do, where that is known."""
    hint = next((hint for part, hint in _HINTS.items() if part in text), "")
    return f"{text}; {hint}" if hint else text
