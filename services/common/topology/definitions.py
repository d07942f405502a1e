"""What is declared. Values: an exchange or queue that is declared again after its deletion is another one."""

from __future__ import annotations

from dataclasses import dataclass

from services.common.topology.life import NOBODY, PERMANENT, Life, Party, Unused


@dataclass(frozen=True, slots=True)
class Host:
    """One incarnation of a virtual host."""

    name: str
    id: int = 0  # never used again; 0 for those that were made before there were ids


@dataclass(frozen=True, slots=True)
class Queue:
    """One incarnation of a queue."""

    id: int  # never used again
    virtual_host: str
    name: str
    partition: int  # of its first slot
    durable: bool = False
    owner: Party = NOBODY  # who alone may use it
    life: Life = PERMANENT
    arguments: bytes = b""
    type: str = "classic"
    changed: bytes = b""  # what was changed of the arguments since (`services/common/arguments/changed.py`)
    policy: bytes = b""  # what its policies say (`services/common/arguments/policies.py`): on no record, but told

    @property
    def exclusive_to(self) -> str:
        """The connection that alone may use it, or a session of it; else ""."""
        return self.owner.connection

    @property
    def auto_delete(self) -> bool:
        """Whether it goes with its last consumer."""
        return self.life.unused in (Unused.NO_CONSUMERS, Unused.NO_LINKS)


@dataclass(frozen=True, slots=True)
class Exchange:
    """An exchange as declared; its bindings are kept in the virtual host."""

    virtual_host: str
    name: str
    type: str
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    arguments: bytes = b""
