"""Makes names from the wire fit for a terminal, which must show and not obey them.

A client may call a queue, a key or a message what it likes: with an escape sequence in the name, or with a word in
brackets that a console takes for a colour.
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

_Told = TypeVar("_Told", bound=BaseModel)


def printable(text: str) -> str:
    r"""`text` with each character that a terminal would obey, or not show, as Python writes it: \x1b, \n, \u202e."""
    return text if text.isprintable() else "".join(map(_character, text))


def printable_lines(text: str) -> str:
    """The same for several lines, with their line ends kept."""
    return "\n".join(map(printable, text.split("\n")))


def printable_json(text: str) -> str:
    """JSON of the same meaning, whose strings also escape what a terminal would obey or not show; line ends stay."""
    return "".join(each if each == "\n" or each.isprintable() else _json_character(each) for each in text)


def all_printable(told: _Told) -> _Told:
    """A copy with every text in it, at any depth, printable. Free tables stay as they are: they are shown as JSON."""
    fields = {name: _printable(getattr(told, name)) for name in type(told).model_fields}
    return told.model_copy(update=fields)


def _printable(value: object) -> object:
    match value:
        case str():
            return printable(value)
        case BaseModel():
            return all_printable(value)
        case list():
            return [_printable(each) for each in value]
        case _:
            return value


def _character(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def _json_character(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
