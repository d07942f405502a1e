"""Paths of names: each is encoded twice where it holds a slash, as Broker-J's are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from urllib.parse import quote, unquote

from fastapi import HTTPException
from starlette.convertors import Convertor, register_url_convertor

from services.mgmt.rest.names import NO_TEXT

VERSIONS = ("latest", "v9.1")


class _Version(Convertor[str]):
    regex = r"latest|v9\.1"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("model_version", _Version())


def object_convertor(depths: Mapping[str, int]) -> Convertor[str]:
    """Of whole paths: a category, and as many names as `depths` says of it; or of what is of no category."""
    known = [name + "/[^/]+" * depth for name, depth in depths.items()]

    class Object(_Version):
        regex = f"{'|'.join(known)}|(?!(?:{'|'.join(depths)})/)[^/]+(?:/[^/]+)*?"

    return Object()


def names_in(path: str) -> tuple[str, ...]:
    """What is left of one decoding is decoded once more, after it was taken apart. Raises HTTPException (400)."""
    return tuple(name_in(part) for part in path.split("/") if part)


def name_in(part: str) -> str:
    """The same of one."""
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise HTTPException(HTTPStatus.BAD_REQUEST, NO_TEXT) from None


def path_of(names: Sequence[str]) -> str:
    """The same the other way round: safe in a URL."""
    return "/".join(quote(quote(name, safe=""), safe="") for name in names)
