"""What `hopline permissions list` shows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from google.protobuf.json_format import MessageToDict
from rich.table import Table

from services.cli.console import cell
from services.common.printable import printable_json

if TYPE_CHECKING:
    from rich.console import Console

    from services.rpc.mgmt_pb2 import Permission, TopicPermission


def show_permissions(permissions: Iterable[Permission], console: Console) -> None:
    """As a table."""
    table = _table("user", "vhost", "configure", "write", "read")
    for each in permissions:
        host = each.virtual_host if each.HasField("virtual_host") else "(all others)"
        table.add_row(*map(cell, (each.user, host, each.configure, each.write, each.read)))
    console.print(table)


def show_topic_permissions(permissions: Iterable[TopicPermission], console: Console) -> None:
    """As a table."""
    table = _table("user", "vhost", "exchange", "write", "read")
    for each in permissions:
        table.add_row(*map(cell, (each.user, each.virtual_host, each.exchange, each.write, each.read)))
    console.print(table)


def show_json(permissions: Iterable[Permission | TopicPermission], console: Console) -> None:
    """As JSON lines; a permission without a virtual host counts in all others."""
    for each in permissions:
        said = MessageToDict(each, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
        console.out(printable_json(json.dumps(said)), highlight=False)


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table
