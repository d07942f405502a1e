"""Permissions in RabbitMQ's words, which knows them in one virtual host each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from services.common.access.records import Permission
from services.mgmt.access.grants import Granted

Row = dict[str, Any]


def permissions(granted: Granted, virtual_hosts: Iterable[str]) -> list[Row]:
    """One that counts in all virtual hosts is told in each in which its user has no other."""
    by_host: dict[str | None, dict[str, Permission]] = defaultdict(dict)
    for each in granted.permissions:
        by_host[each.virtual_host][each.user] = each
    return [
        {"user": user, "vhost": host, "configure": each.configure, "write": each.write, "read": each.read}
        for host in virtual_hosts
        for user, each in sorted((by_host[None] | by_host[host]).items())
    ]


def topic_permissions(granted: Granted) -> list[Row]:
    """As they are kept."""
    return [
        {
            "user": each.user,
            "vhost": each.virtual_host,
            "exchange": each.exchange,
            "write": each.write,
            "read": each.read,
        }
        for each in granted.topic_permissions
    ]
