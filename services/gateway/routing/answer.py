"""What is found out of where the messages of a request go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.common.clients.outbound import Targets
from services.common.errors import AccessRefused, BrokerError, NotFound
from services.gateway.vocabulary import Kind


@dataclass(slots=True)
class Answer:
    """Where each message goes, or why some kinds end their session."""

    targets: Sequence[Targets] = ()
    faults: Mapping[Kind, BrokerError] = field(default_factory=dict)


def unknown_exchange(virtual_host: str, name: str) -> BrokerError:
    return NotFound(f"no exchange '{name}' in vhost '{virtual_host}'")


def internal_exchange(virtual_host: str, name: str) -> BrokerError:
    """Clients may not publish to it."""
    return AccessRefused(f"cannot publish to internal exchange '{name}' in vhost '{virtual_host}'")
