"""What Arrow finds wrong, as errors that everybody knows: who files need not know Arrow before there are rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pyarrow as pa


@contextlib.contextmanager
def as_known_errors() -> Iterator[None]:
    """Raises ValueError for what Arrow alone has a name for; what is an OSError or a LookupError too stays that."""
    try:
        yield
    except (OSError, ValueError, LookupError):
        raise
    except pa.ArrowException as failure:
        raise ValueError(str(failure)) from failure
