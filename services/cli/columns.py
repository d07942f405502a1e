"""What tables of the command line have of each kind of thing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from services.cli.table import Column


def _source(row: Mapping[str, Any]) -> str:
    return row["source"] or "(default)"


def _name(row: Mapping[str, Any]) -> str:
    return row["name"] or "(default)"


def _peer(row: Mapping[str, Any]) -> str:
    host = row["peer_host"]
    return f"[{host}]:{row['peer_port']}" if ":" in host else f"{host}:{row['peer_port']}"


def _limit(name: str, row: Mapping[str, Any]) -> int | str:
    found: int | str = row["value"].get(name, "")
    return found


VIRTUAL_HOSTS = (
    Column("vhost", "name"),
    Column("description", "description"),
    Column("tags", lambda row: ", ".join(row["tags"])),
)
USERS = (
    Column("user", "name"),
    Column("tags", lambda row: ", ".join(row["tags"])),
    Column("may log in from", lambda row: "this machine" if row["loopback_only"] else "anywhere"),
)
PROVIDERS = (
    Column("provider", "name"),
    Column("type", "type"),
    Column("of the settings", "of_settings"),
    Column("options", lambda row: " ".join(f"{name}={json.dumps(value)}" for name, value in row["options"].items())),
)
LIMITS = (
    Column("limits of", lambda row: "user" if "user" in row else "vhost"),
    Column("name", lambda row: row.get("user") or row.get("vhost")),
    *(Column(each, partial(_limit, each), right=True) for each in ("max-connections", "max-channels", "max-queues")),
)
GROUPS = (Column("group", "name"), Column("members", lambda row: ", ".join(row["members"])))
QUEUES = (
    Column("queue", "name"),
    Column("vhost", "vhost"),
    Column("ready", "messages_ready", right=True),
    Column("unacknowledged", "messages_unacknowledged", right=True),
    Column("consumers", "consumers", right=True),
    Column("type", "type"),
    Column("durable", "durable"),
    Column("served by", "node"),
)
EXCHANGES = (
    Column("exchange", _name),
    Column("vhost", "vhost"),
    Column("type", "type"),
    Column("durable", "durable"),
    Column("auto-delete", "auto_delete"),
    Column("internal", "internal"),
    Column("arguments", "arguments"),
)
BINDINGS = (
    Column("from", _source),
    Column("vhost", "vhost"),
    Column("to", "destination"),
    Column("which is", "destination_type"),
    Column("key", "routing_key"),
    Column("arguments", "arguments"),
)
POLICIES = (
    Column("policy", "name"),
    Column("vhost", "vhost"),
    Column("queues that fit", "pattern"),
    Column("of", "apply-to"),
    Column("says", lambda row: " ".join(f"{name}={json.dumps(value)}" for name, value in row["definition"].items())),
    Column("priority", "priority", right=True),
)
CONSUMERS = (
    Column("queue", "queue.name"),
    Column("vhost", "queue.vhost"),
    Column("consumer", "consumer_tag"),
    Column("connection", "channel_details.connection_name"),
    Column("gets messages", "active"),
    Column("exclusive", "exclusive"),
    Column("acknowledges", "ack_required"),
    Column("priority", lambda row: row["arguments"].get("x-priority", 0), right=True),
)
CONNECTIONS = (
    Column("connection", "name"),
    Column("user", "user"),
    Column("vhost", "vhost"),
    Column("client", "user_provided_name"),
    Column("from", _peer),
    Column("channels", "channels", right=True),
    Column("gateway", "node"),
)
CHANNELS = (
    Column("channel", "number", right=True),
    Column("consumers", "consumer_count", right=True),
    Column("unacknowledged", "messages_unacknowledged", right=True),
    Column("prefetch", "prefetch_count", right=True),
    Column("for all", "global_prefetch_count", right=True),
    Column("confirms", "confirm"),
    Column("transactional", "transactional"),
)
