"""How many files, sockets among them, a process may have open at once."""

from __future__ import annotations

import resource

_MOST = 1 << 20


def files() -> int:
    """Raises this process's limit as far as it may, and gives it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return most
    return _MOST if soft == resource.RLIM_INFINITY else soft
