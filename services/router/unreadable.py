"""Records of the topology that cannot be read: named in the log, left out, and kept where they are."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from services.router.topology.state import Unreadable

_DO = "declare it again, which replaces the record; or start the version of Hopline that wrote it"

log = structlog.get_logger()


def name_unreadable(records: Iterable[Unreadable]) -> None:
    """Says of each what it is and what to do about it."""
    for kind, key, fault in records:
        log.error("a record cannot be read and is left out", kind=kind, key=key, reason=repr(fault), do=_DO)
