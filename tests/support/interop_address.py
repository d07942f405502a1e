"""Where the broker under test is, in the forms that client libraries take."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """An AMQP 0-9-1 address with the first user's credentials."""

    host: str
    port: int

    def url(self, user: str = "guest", password: str = "guest", virtual_host: str = "/") -> str:
        return f"amqp://{user}:{password}@{self.host}:{self.port}/{quote(virtual_host, safe='')}"

    @classmethod
    def parse(cls, text: str) -> BrokerAddress:
        """Reads `host:port`."""
        host, _, port = text.rpartition(":")
        return cls(host, int(port))
