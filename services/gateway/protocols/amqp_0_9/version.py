"""A version of the 0-9 family as data: its protocol header and its methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType

from services.gateway.protocols.amqp_0_9.method import Method
from services.gateway.protocols.amqp_0_9.methods import basic, channel, confirm, connection, exchange, queue, tx


@dataclass(frozen=True, slots=True)
class Version:
    """`methods` by their code (class-id << 16 | method-id)."""

    name: str
    header: bytes
    major: int
    minor: int
    methods: Mapping[int, type[Method]]


def _methods_in(modules: Iterable[ModuleType]) -> dict[int, type[Method]]:
    declared = [kind for module in modules for kind in vars(module).values() if hasattr(kind, "code")]
    return {kind.code: kind for kind in declared}


AMQP_0_9_1 = Version(
    name="AMQP 0-9-1",
    header=b"AMQP\x00\x00\x09\x01",
    major=0,
    minor=9,
    methods=_methods_in((connection, channel, exchange, queue, basic, tx, confirm)),
)
