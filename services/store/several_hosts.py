"""A store's URL, which may name several hosts."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

_BEGIN: Final = re.compile(r"([A-Za-z][\w+.-]*://)([^/?#]*)")
_DROPPED: Final = dict.fromkeys(map(ord, "\t\r\n"))  # as urlsplit does: a secret's file may end its line
_HOST: Final = re.compile(r"(\[[^][]+])?[^][]*")


def split(url: str) -> SplitResult:
    """As urlsplit, which in newer Pythons takes no address of version 6 beside other hosts. Raises ValueError for
    brackets around no address.

    The hosts are as they stand in it, users in front of them: who takes them apart has to look whether they are any.
    """
    url = url.translate(_DROPPED)
    begin = _BEGIN.match(url)
    if begin is None:
        return urlsplit(url)
    scheme, hosts = begin.groups()
    if not all(map(_HOST.fullmatch, hosts.rpartition("@")[2].split(","))):
        raise ValueError("brackets around no address")
    return urlsplit(scheme + url[begin.end() :])._replace(netloc=hosts)
