"""Names in paths: whole, with any characters, and text."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.convertors import Convertor, register_url_convertor

NO_TEXT: Final = "names in paths are UTF-8"


class _Names(Convertor[str]):
    regex = r"(?s:.*)"  # as `path`, but a name may have more lines than one, and its last character is not lost

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("names", _Names())


def is_text(path: bytes) -> bool:
    """Otherwise two names that are different could be read as the same."""
    try:
        unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        return False
    return True
