"""Where secrets could have got to: every process of this machine, every file of a stack."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq


def forms(user: str, password: str) -> list[bytes]:
    """A password by itself, and as SASL PLAIN and HTTP write it."""
    whole = (f"\0{user}\0{password}", f"{user}:{password}")
    return [password.encode(), *(base64.b64encode(text.encode()) for text in whole)]


def in_processes(secrets: Mapping[str, list[bytes]]) -> set[tuple[str, str, str]]:
    """(secret's name, program, "cmdline" or "environ"); a program is the last words of its command."""
    return {
        (name, _program(pid), where)
        for pid in (entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit())
        for where in ("cmdline", "environ")
        for name in _found(secrets, _read(Path(f"/proc/{pid}/{where}")))
    }


def in_files(secrets: Mapping[str, list[bytes]], folder: Path) -> set[tuple[str, str]]:
    """(secret's name, path of a file in the folder). Parquet is read: it is compressed."""
    return {
        (name, str(path.relative_to(folder)))
        for path in _files(folder)
        for name in _found(secrets, _read(path) + _unpacked(path))
    }


def in_text(secrets: Mapping[str, list[bytes]], text: str) -> list[str]:
    """Names of the secrets that the text holds."""
    return _found(secrets, text.encode())


def _found(secrets: Mapping[str, list[bytes]], data: bytes) -> list[str]:
    return [name for name, forms in secrets.items() if any(form in data for form in forms)]


def _program(pid: str) -> str:
    words = _read(Path(f"/proc/{pid}/cmdline")).decode(errors="replace").rstrip("\0").split("\0")
    return " ".join(word.rpartition("/")[2] for word in words[-2:])


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def _read(path: Path) -> bytes:
    with suppress(OSError):  # of a process that has ended, a file that was removed
        return path.read_bytes()
    return b""


def _unpacked(path: Path) -> bytes:
    return repr(pq.read_table(path).to_pydict()).encode() if path.suffix == ".parquet" else b""
