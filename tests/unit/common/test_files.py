"""How many files may be open."""

from __future__ import annotations

import resource

from services.common.files import files


def test_files() -> None:
    """A process asks for all the files that it may have."""
    assert files() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] or files() == 1 << 20
