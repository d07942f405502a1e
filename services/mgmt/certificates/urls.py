"""What a URL of a key store, a trust store or of rules holds: a path of the machine that manages, or data: with it."""

from __future__ import annotations

import base64
import binascii
import stat
from pathlib import Path
from typing import Final
from urllib.parse import unquote, unquote_to_bytes

from services.mgmt.model.faults import IllegalConfiguration

_DATA: Final = "data:"
_FILE: Final = "file:"
_MOST: Final = 1 << 20  # bytes


def fetch(url: str, name: str, what: str = "attribute") -> bytes:
    """Reads it; waits for a disk. Raises IllegalConfiguration that says what has that name, and never what is there."""
    try:
        return _in_itself(url) if has_all_in_itself(url) else _of_file(Path(path_in(url)))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise IllegalConfiguration(f"{what} '{name}': {why}") from None


def has_all_in_itself(url: str) -> bool:
    """Whether it is no path."""
    return url.startswith(_DATA)


def path_in(url: str) -> str:
    """The path that a URL names; "" of one that has all in itself."""
    if has_all_in_itself(url):
        return ""
    return unquote(url.removeprefix(_FILE).removeprefix("//")) if url.startswith(_FILE) else url


def _of_file(path: Path) -> bytes:
    if not path.is_absolute():
        raise ValueError("an absolute path is wanted, or a data: URL")
    its = path.stat()
    if not stat.S_ISREG(its.st_mode):
        raise ValueError("it is no file")
    if not its.st_size:  # as files of the kernel, which may make their reader wait
        raise ValueError("there is nothing in it")
    with path.open("rb") as file:
        data = file.read(_MOST + 1)
    if len(data) > _MOST:
        raise ValueError(f"the file has more than {_MOST} bytes")
    return data


def _in_itself(url: str) -> bytes:
    """RFC 2397."""
    head, comma, data = url.removeprefix(_DATA).partition(",")
    if not comma:
        raise ValueError("a data: URL has a comma before its data")
    if not head.endswith(";base64"):
        return unquote_to_bytes(data)
    try:
        return base64.b64decode(unquote(data), validate=True)
    except binascii.Error as error:
        raise ValueError(f"no base64: {error}") from None
