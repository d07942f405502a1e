"""Rules that are loaded from a file of the machine that manages, or from a data: URL, which has them in itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Final

from services.common.errors import SyntaxFault
from services.mgmt.certificates.urls import fetch, has_all_in_itself
from services.mgmt.model.faults import IllegalConfiguration

_PATH: Final = "path"
_PLACE: Final = re.compile(r" at line \d+\Z")


async def rules_at(path: str, parse: Callable[[str], object]) -> str:
    """Rules that `parse` takes. Raises IllegalConfiguration; what is in a file is not repeated: it may be any file."""
    data = await asyncio.to_thread(fetch, path, _PATH, "parameter")
    try:
        text = data.decode()
        parse(text)
    except UnicodeDecodeError:
        raise IllegalConfiguration(f"parameter '{_PATH}': there is no text in UTF-8") from None
    except SyntaxFault as fault:
        raise IllegalConfiguration(f"parameter '{_PATH}': {_why(fault.text, path)}") from None
    return text


def _why(text: str, path: str) -> str:
    place = _PLACE.search(text)
    return text if has_all_in_itself(path) else f"there is no rule{place[0] if place else ''}"
