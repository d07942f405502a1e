"""Where the broker under test is, in the forms that client libraries take."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """An AMQP 0-9-1 address with the first user's credentials."""

    host: str
    port: int
    user: str = "guest"
    password: str = "guest"

    def url(self, user: str = "", password: str = "", virtual_host: str = "/") -> str:
        credentials = f"{user or self.user}:{password or self.password}"
        return f"amqp://{credentials}@{self.host}:{self.port}/{quote(virtual_host, safe='')}"

    @classmethod
    def parse(cls, text: str) -> BrokerAddress:
        """Reads `host:port`."""
        host, _, port = text.rpartition(":")
        return cls(host, int(port))
