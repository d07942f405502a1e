"""How many files a process may have open at once: sockets are among them."""

from __future__ import annotations

import resource

_MOST = 1 << 20


def files() -> int:
    """As many as this process may ask for, which it does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return most
    return _MOST if soft == resource.RLIM_INFINITY else soft
