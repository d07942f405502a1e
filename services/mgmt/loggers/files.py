"""Files of a logger, as they are told and given: read as they are sent, never whole into memory."""

from __future__ import annotations

import asyncio
import base64
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote

from services.common.errors import NotFound
from services.mgmt.loggers.rolling import files
from services.mgmt.model.answer import Answer

_PIECE: Final = 1 << 18
_IN_A_MAP: Final = 1 << 20
"""Bytes that are given over AMQP, too."""
_ON_DISK: Final = 1 << 20
"""Bytes of an archive beyond which it is made in a file."""


def details(path: Path) -> list[dict[str, Any]]:
    """Of a logger's file and its former ones, as Broker-J's LogFileDetails."""
    found = []
    for each in files(path):
        with suppress(OSError):  # it has just been renamed
            its = each.stat()
            found.append({"name": each.name, "lastModified": its.st_mtime_ns // 1_000_000, "size": its.st_size})
    return found


async def content(path: Path, operation: str, arguments: Mapping[str, Any]) -> Answer:
    """Of one of them as it is, or of several in an archive. Raises NotFound."""
    there = {each.name: each for each in files(path)}
    named = [arguments["fileName"]] if operation == "getFile" else arguments.get("fileName", list(there))
    if unknown := [name for name in named if name not in there]:
        raise NotFound(f"no file {unknown[0]!r} is of this logger; there are {', '.join(there)}")
    if operation == "getFile":
        return await asyncio.to_thread(_one, there[named[0]])
    return await asyncio.to_thread(_several, path, [there[name] for name in dict.fromkeys(named)])


def _one(path: Path) -> Answer:
    try:
        opened = path.open("rb")
    except FileNotFoundError:
        raise NotFound(f"file {path.name!r} has just been renamed; ask for logFiles again") from None
    # What is written while it is sent is not in it.
    return _given(opened, path.name, "application/x-gzip" if path.suffix == ".gz" else "text/plain")


def _several(path: Path, wanted: Sequence[Path]) -> Answer:
    # Where the files are there is room for as much as they take; in containers there is little elsewhere.
    archive = tempfile.SpooledTemporaryFile(max_size=_ON_DISK, dir=str(path.parent))  # noqa: SIM115 - closed when it is sent
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as into:
        for each in wanted:
            with suppress(FileNotFoundError):
                into.write(each, each.name)
    return _given(archive, f"{path.name}.zip", "application/zip")


def _given(opened: IO[bytes], name: str, media_type: str) -> Answer:
    size = opened.seek(0, os.SEEK_END)
    opened.seek(0)
    told: dict[str, Any] = {"name": name, "contentType": media_type, "size": size}
    if size <= _IN_A_MAP:
        data = opened.read(size)
        opened.close()
        told["content"] = base64.b64encode(data).decode()
        return Answer(told, _headers(name, media_type, len(data)), data)
    return Answer(told, _headers(name, media_type, size), pieces=_pieces(opened, size))


def _headers(name: str, media_type: str, size: int) -> dict[str, str]:
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return {"Content-Type": media_type, "Content-Disposition": disposition, "Content-Length": str(size)}


def _pieces(opened: IO[bytes], size: int) -> Iterator[bytes]:
    with opened:
        while size > 0 and (piece := opened.read(min(_PIECE, size))):
            size -= len(piece)
            yield piece
