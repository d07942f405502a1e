"""Definitions as RabbitMQ 3.10 exports them."""

from __future__ import annotations

import base64
import hashlib
from typing import Any


def hashed(password: str, algorithm: str = "sha256") -> str:
    """As RabbitMQ makes it: four bytes of salt, and a digest of both."""
    salt = b"\x01\x02\x03\x04"
    return base64.b64encode(salt + hashlib.new(algorithm, salt + password.encode()).digest()).decode()


def user(name: str, algorithm: str = "sha256", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "password_hash": hashed("guest" if name == "guest" else "secret", algorithm),
        "hashing_algorithm": f"rabbit_password_hashing_{algorithm}",
        "tags": ["administrator"],
        "limits": {},
        **more,
    }


def queue(name: str, vhost: str = "shop", **more: Any) -> dict[str, Any]:
    return {"name": name, "vhost": vhost, "durable": True, "auto_delete": False, "arguments": {}, **more}


EXPORTED = {
    "rabbit_version": "3.10.8",
    "rabbitmq_version": "3.10.8",
    "product_name": "RabbitMQ",
    "product_version": "3.10.8",
    "users": [user("anna"), user("bert", "sha512", tags="management,policymaker"), user("guest")],
    "vhosts": [{"name": "/"}, {"name": "shop", "limits": []}],
    "permissions": [{"user": "anna", "vhost": "shop", "configure": ".*", "write": ".*", "read": ".*"}],
    "topic_permissions": [{"user": "anna", "vhost": "shop", "exchange": "orders", "write": "^eu", "read": ".*"}],
    "parameters": [],
    "global_parameters": [{"name": "internal_cluster_id", "value": "rabbitmq-cluster-id-x"}],
    "policies": [],
    "queues": [queue("orders"), queue("safe", arguments={"x-queue-type": "quorum"})],
    "exchanges": [
        {
            "name": "orders",
            "vhost": "shop",
            "type": "topic",
            "durable": True,
            "auto_delete": False,
            "internal": False,
            "arguments": {},
        }
    ],
    "bindings": [
        {
            "source": "orders",
            "vhost": "shop",
            "destination": "orders",
            "destination_type": "queue",
            "routing_key": "eu.#",
            "arguments": {"weight": 3},
        }
    ],
}
