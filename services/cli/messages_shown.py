"""Messages that were got: what each is, its properties, then its body."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from services.cli.payloads import body_lines
from services.cli.table import shown
from services.common.printable import printable, printable_json

if TYPE_CHECKING:
    from services.common.clients.objects import Row


def message_lines(rows: Iterable[Row], before: int) -> Iterator[str]:
    """`before` have been shown."""
    for number, row in enumerate(rows, before + 1):
        yield f"{number}: {_head(row)}"
        for name, value in row["properties"].items():
            yield f"   {printable(name)}: {shown(value)}"
        body = _body(row)
        yield from (f"   {line}" for line in body_lines(body, whole=len(body) == row["payload_bytes"]))


def json_lines(rows: Iterable[Row], before: int) -> Iterator[str]:  # noqa: ARG001 - as message_lines
    """All there is of each."""
    return (printable_json(json.dumps(row, ensure_ascii=False)) for row in rows)


def _head(row: Row) -> str:
    exchange = f"exchange '{row['exchange']}'" if row["exchange"] else "the default exchange"
    again = ", delivered before" if row["redelivered"] else ""
    left = f", {row['message_count']} left" if row["message_count"] else ""
    return printable(f"{row['payload_bytes']} bytes from {exchange} with key '{row['routing_key']}'{again}{left}")


def _body(row: Row) -> bytes:
    payload: str = row["payload"]
    return base64.b64decode(payload) if row["payload_encoding"] == "base64" else payload.encode()
