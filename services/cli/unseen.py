"""A password on the command line is seen by everyone who lists the processes of the machine, until it is overwritten.

That is a moment after the start: better it is in a file (`password.py`). One in the URL of a database, or of a broker
whose definitions are imported, is a password as well; those commands run for minutes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_OPTION = b"--password"
_IN_URL = re.compile(
    rb"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://(?:[^/?#:]*:([^/?#]*)@)?(?:[^?#]*\?[^#]*?\bpassword=([^&#]*))?",
    re.IGNORECASE,
)
_BEGIN, _END = 45, 46  # of the memory that /proc/PID/cmdline shows, in /proc/PID/stat behind the program's name


def overwrite_passwords(arguments: Sequence[str]) -> None:
    """Of this process, where its `arguments` name any."""
    if any(each.startswith(_OPTION.decode()) or "://" in each for each in arguments):
        with suppress(OSError, ValueError, IndexError):  # a system that does not say where it is
            _overwrite()


def _overwrite() -> None:
    import ctypes  # noqa: PLC0415 - few commands have a password, and it takes time

    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[_BEGIN]), int(fields[_END])
    words = ctypes.string_at(begin, end - begin).split(b"\0")
    before = b""
    for word in words:
        option, is_one, value = word.partition(b"=")
        if before == _OPTION:
            ctypes.memset(begin, ord("*"), len(word))
        elif is_one and option == _OPTION:
            ctypes.memset(begin + len(option) + 1, ord("*"), len(value))
        elif found := _IN_URL.search(word):
            for group in (1, 2):
                if found[group]:
                    ctypes.memset(begin + found.start(group), ord("*"), len(found[group]))
        before, begin = word, begin + len(word) + 1
