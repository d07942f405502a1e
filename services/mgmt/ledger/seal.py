"""A checksum of a Parquet file's footer, right in front of it, where readers of Parquet look at nothing.

Parquet has checksums of pages alone, and Arrow may end the process that reads a footer in which a bit has flipped: mgmt
would end again with each look at that file. Files of older releases have no seal, nor have those of others.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO, Final
from zlib import crc32

_MARK: Final = b"HOPSEAL1"
_SEAL: Final = struct.Struct("<8sI")  # the mark, and the checksum of the footer with what follows it
_END: Final = struct.Struct("<I4s")  # how long the footer is, and Parquet's own mark
_PARQUET: Final = b"PAR1"


def seal(path: Path) -> None:
    """Seals a file that is whole. Raises OSError, and ValueError for what is no Parquet file."""
    with path.open("r+b") as file:
        at = _footer_at(file)
        if at is None:
            raise ValueError("no Parquet file")
        footer = file.read()
        file.seek(at)
        file.write(_SEAL.pack(_MARK, crc32(footer)) + footer)


def require_seal(path: str | Path) -> None:
    """Raises ValueError where a seal is broken: the file is damaged. What has no seal passes. Raises OSError."""
    with Path(path).open("rb") as file:
        at = _footer_at(file)
        if at is None or at < _SEAL.size:
            return
        file.seek(at - _SEAL.size)
        mark, told = _SEAL.unpack(file.read(_SEAL.size))
        if mark == _MARK and told != crc32(file.read()):
            raise ValueError("its footer is damaged: the checksum in front of it is another one")


def _footer_at(file: BinaryIO) -> int | None:
    """Where the footer begins, and the next read does; None where nothing says so."""
    end = file.seek(0, 2) - _END.size
    if end < len(_PARQUET):
        return None
    file.seek(end)
    size, mark = _END.unpack(file.read(_END.size))
    return file.seek(end - size) if mark == _PARQUET and size <= end else None
