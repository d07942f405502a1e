"""What pydantic finds wrong with values, in words for the person who wrote them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_OURS = "Value error, "
"""What pydantic puts before the text of a validator of this project."""


def words(fault: Mapping[str, Any]) -> str:
    """The words for one fault."""
    return str(fault["msg"]).removeprefix(_OURS)


def told(faults: Iterable[Mapping[str, Any]]) -> str:
    """The words for all faults, each with its field; the value itself is never shown."""
    return "; ".join(": ".join(filter(None, (".".join(map(str, each["loc"])), words(each)))) for each in faults)
