"""A history that is to happen, as data: drawn from a seed, kept as JSON, made shorter when it fails.

`topology` are steps too; client 0 of a virtual host carries them out before anything else, and is the only one that
changes the topology afterwards (but for exclusive queues), so that changes have an order that the model knows.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

Step = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """`shape` are arguments of the world's Shape; `faults` have moments (`at`) from when the load begins."""

    seed: int
    shape: dict[str, Any] = field(default_factory=dict)
    topology: list[Step] = field(default_factory=list)
    clients: list[dict[str, Any]] = field(default_factory=list)  # name, host, gateway
    steps: list[Step] = field(default_factory=list)  # client, wait, do, …
    faults: list[Step] = field(default_factory=list)  # at, do, …

    def dump(self) -> str:
        """As JSON, one step in a line."""
        parts = []
        for name, value in asdict(self).items():
            if isinstance(value, list):
                lines = ",\n  ".join(json.dumps(each) for each in value)
                parts.append(f'"{name}": [\n  {lines}\n]' if value else f'"{name}": []')
            else:
                parts.append(f'"{name}": {json.dumps(value)}')
        return "{" + ",\n".join(parts) + "}\n"

    @classmethod
    def load(cls, text: str) -> Plan:
        return cls(**json.loads(text))

    def but(self, **changes: Any) -> Plan:
        """The same with something else."""
        return replace(self, **changes)

    def lines(self) -> list[str]:
        """Readable lines: what happens, and which client does it."""
        told = [f"seed {self.seed}, cluster {_words(self.shape)}"]
        told += [f"  before: {_words(step)}" for step in self.topology]
        told += [f"  client {_words(client)}" for client in self.clients]
        told += [
            f"  {step['client']:>4} {_words({k: v for k, v in step.items() if k != 'client'})}" for step in self.steps
        ]
        told += [f"  fault {_words(fault)}" for fault in self.faults]
        return told


def _words(step: dict[str, Any]) -> str:
    first = f"{step['do']}: " if "do" in step else ""
    rest = (f"{key}={value}" for key, value in step.items() if key != "do" and value not in (None, False, {}, [], 0))
    return first + " ".join(rest)
