"""The URL of a store in JetStream: servers, stream, replicas, and credentials.

nats://[user[:password]@]host[:port][,host[:port]…][/stream][?option=value&…]
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from services.common.errors import InternalError
from services.common.secret import nats_token
from services.store.several_hosts import split

STREAM = "HOPLINE_STORE"
_PORT = 4222
_PORTS = re.compile(r"(\[.+\]|[^:]+):\d+")  # with its host, in brackets if it has colons
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FILES = ("passfile", "tokenfile", "creds", "tls_ca", "tls_cert", "tls_key")
_OPTIONS = (*_FILES, "replicas")
_REPLICAS = ("1", "3", "5")


@dataclass(frozen=True, slots=True)
class Url:
    """A parsed URL; its files are read whenever a connection is made, so that they can be replaced."""

    servers: tuple[str, ...]
    stream: str
    user: str
    password: str
    options: dict[str, str]

    def __str__(self) -> str:
        """The URL without its secrets and options."""
        return f"nats://{f'{self.user}@' if self.user else ''}{','.join(self.servers)}/{self.stream}"

    @property
    def replicas(self) -> int:
        """The replicas; 0: three in a cluster, else one."""
        return int(self.options.get("replicas", 0))

    def arguments(self) -> dict[str, Any]:
        """The arguments for nats-py's client. Raises OSError or InternalError where a file cannot be used."""
        scheme = "tls" if self._tls else "nats"
        given: dict[str, Any] = {"servers": [f"{scheme}://{server}" for server in self.servers]}
        if self.user:
            given |= {"user": self.user, "password": self._read("passfile") or self.password}
        if creds := self.options.get("creds"):
            Path(creds).read_bytes()  # raises an error that names a missing file
            if find_spec("nkeys") is None:
                raise InternalError("credentials in a file need nkeys: pip install 'hopline[jetstream]'")
            given["user_credentials"] = creds
        if token := self._read("tokenfile") or self._token():
            given["token"] = token
        if self._tls:
            given["tls"] = self._context()
        return given

    @property
    def _tls(self) -> bool:
        return any(name.startswith("tls_") for name in self.options)

    def _token(self) -> str:
        """The token of the stack's own server, unless the URL has other credentials."""
        return "" if self.user or "creds" in self.options else nats_token()

    def _read(self, option: str) -> str:
        path = self.options.get(option)
        return Path(path).read_text().strip() if path else ""

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.options.get("tls_ca"))
        if certificate := self.options.get("tls_cert"):
            context.load_cert_chain(certificate, self.options.get("tls_key"))
        return context


def parse(text: str) -> Url:
    """Parses a URL. Raises InternalError where it is invalid, without its text: there may be a password in it."""
    try:
        parts = split(text)
        options = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
    except ValueError as wrong:
        raise InternalError("HOPLINE_STORE_URL is no URL of a store in JetStream") from wrong
    identity, _, hosts = parts.netloc.rpartition("@")
    user, _, password = identity.partition(":")
    stream = parts.path.strip("/") or STREAM
    _check(options, stream, hosts)
    servers = tuple(_with_port(host) for host in hosts.split(","))
    if not all(_PORTS.fullmatch(server) and 0 < int(server.rpartition(":")[2]) < 1 << 16 for server in servers):
        raise InternalError("HOPLINE_STORE_URL names a server whose port is none: nats://host:port/stream is wanted")
    return Url(servers, stream, unquote(user), unquote(password), options)


def _check(options: dict[str, str], stream: str, hosts: str) -> None:
    if unknown := sorted(set(options) - set(_OPTIONS)):
        raise InternalError(f"HOPLINE_STORE_URL has the option {unknown[0]}: {', '.join(_OPTIONS)} are known")
    if options.get("replicas", _REPLICAS[0]) not in _REPLICAS:
        raise InternalError(f"HOPLINE_STORE_URL wants other replicas than {', '.join(_REPLICAS)}")
    if not _NAME.fullmatch(stream):
        raise InternalError("HOPLINE_STORE_URL names a stream that has not only letters, digits, - and _")
    if not all(hosts.split(",")):
        raise InternalError("HOPLINE_STORE_URL names no server: nats://host/stream is wanted")


def _with_port(host: str) -> str:
    return host if re.search(r":\d+$", host) else f"{host}:{_PORT}"
