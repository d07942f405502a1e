"""Settings of all services, from environment variables `HOPLINE_…`. Locally, services meet on unix sockets."""

from __future__ import annotations

import os
import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

_PREFIX = "hopline_"

Port = Annotated[int, Field(ge=0, le=65535)]
Network = IPv4Network | IPv6Network

_NAME = re.compile(
    r"(?=[a-z])[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", re.IGNORECASE
)  # a machine's name, which no address matches


def _sources(value: object) -> object:
    """Splits a list at commas; raises ValueError with the entry that is neither a network nor a name."""
    if not isinstance(value, str):
        return value
    written = [each.strip() for each in value.split(",") if each.strip()]
    return tuple(each if _NAME.fullmatch(each) else ip_network(each) for each in written)


def _path(value: object) -> object:
    """None for an empty variable."""
    return value or None


def _texts(value: object) -> object:
    """Splits a list at commas."""
    return tuple(each.strip() for each in value.split(",") if each.strip()) if isinstance(value, str) else value


_MECHANISM = re.compile(r"[A-Z0-9_-]{1,20}")  # RFC 4422, section 3.1


def _mechanisms(value: object) -> object:
    """Splits a list at blanks or commas; raises ValueError with the entry that is no name of a SASL mechanism."""
    if not isinstance(value, str):
        return value
    names = tuple(dict.fromkeys(value.upper().replace(",", " ").split()))
    for name in names:
        if not _MECHANISM.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a SASL mechanism, such as PLAIN")
    return names


def _page(value: str) -> str:
    """Raises ValueError for what is neither empty nor a URL of HTTP."""
    parts = urlsplit(value)
    if value and (parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0):
        raise ValueError("a URL is wanted, such as http://localhost:16686")
    return value


def _host_and_port(value: str) -> str:
    parts = urlsplit(f"//{value}")
    if value and not (parts.hostname and parts.port):
        raise ValueError("host:port is wanted")
    return value


class Settings(BaseModel):
    """Read once by the composition root; a service gets it whole. Raises ValidationError on values out of range."""

    # Defaults are validated as what is said is: they go the same way through a field's validators.
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    data: Path = Field(Path("data"), description="where everything durable lives, and by default the sockets")
    run: Path | None = Field(None, description="folder of the unix sockets; by default `run` in the data folder")
    log_format: Literal["console", "json"] = "console"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    # A broker serves its network; the user guest may only sign in from this machine.
    amqp_host: str = Field("", description="address, or name, to listen on; empty: all of IPv4 and of IPv6")
    amqp_port: Port = 5672
    amqps_port: Port = Field(5671, description="for TLS alone; opened as soon as there is a certificate")
    http_host: str = "0.0.0.0"  # noqa: S104 - open to the network, as AMQP is
    http_port: Port = 8080
    http_max_connections: Annotated[int, Field(ge=0)] = Field(
        0, description="over HTTP, in all, at most half of the files that mgmt may have open. 0: 1000, or that half"
    )
    http_max_connections_each: Annotated[int, Field(ge=0)] = Field(
        250, description="over HTTP, from one address; 0: as many as in all"
    )
    http_head_timeout: Annotated[float, Field(gt=0)] = Field(
        10.0, description="seconds for the head of a request, from its first byte or the beginning of the connection"
    )
    http_idle_timeout: Annotated[int, Field(ge=1)] = Field(
        5, description="seconds after an answer for which a connection is kept without another request"
    )

    store_address: str = Field("", description="gRPC target; empty: unix socket in the run folder")
    store_listen: str = Field(
        "", description="host:port where the store listens while it writes; empty: store_address, as the others know it"
    )
    store_process_address: str = Field(
        "",
        description="host:port where a store process answers for its health, also while it stands by; empty: nowhere",
    )
    store_process_advertise: str = Field("", description="host:port of that, as others reach it; empty: found out")
    router_address: str = Field("", description="gRPC target; where a router listens. Empty: unix socket")
    router_advertise: str = Field("", description="host:port of it, as others reach it; empty: found out")
    mgmt_address: str = ""
    queue_address: str = Field("", description="host:port to listen on; empty: unix socket")
    queue_advertise: str = Field("", description="host:port of it, as others reach it; empty: found out")
    gateway_address: str = Field("", description="gRPC of the gateway: its connections, its health")
    gateway_advertise: str = Field("", description="host:port of it, as others reach it; empty: found out")

    secret_file: Path | None = Field(
        None,
        description="file of the secret that all services of a stack share, made when there is none; see secret.py",
    )

    nats_url: str = Field("", description="NATS server to tell events to; empty: the one that `hopline up` runs")
    nats_port: Port = Field(4222, description="loopback port where `hopline up` serves NATS; 0: a free one")

    ledger: bool = Field(True, description="whether every message is put on record; needs a NATS server")
    ledger_buffer: Annotated[int, Field(ge=1 << 20)] = Field(
        32 << 20, description="bytes of rows that a process keeps while NATS is away; the oldest go first"
    )
    ledger_stream_bytes: Annotated[int, Field(ge=1 << 20)] = Field(
        1 << 30, description="bytes of rows that NATS keeps while no mgmt process files them; the oldest go first"
    )
    ledger_days: Annotated[float, Field(gt=0)] = Field(7.0, description="days for which filed rows are kept")
    ledger_bytes: Annotated[int, Field(ge=1 << 20)] = Field(
        20 << 30, description="bytes of filed rows that are kept; the oldest hours go first"
    )
    ledger_seconds: Annotated[float, Field(gt=0, le=60)] = Field(
        10.0, description="seconds after which rows are on file at the latest"
    )

    capture_days: Annotated[float, Field(gt=0)] = Field(1.0, description="days for which captured messages are kept")
    capture_bytes: Annotated[int, Field(ge=1 << 20)] = Field(
        1 << 30, description="bytes of captured messages that are kept; the oldest go first"
    )

    user: str = Field("", description="the first user, made when there is none; empty: guest, from this machine only")
    password: SecretStr = Field(SecretStr(""), description="of the first user, unless it is in a file")
    password_file: Path | None = Field(None, description="file with the first user's password, in place of `password`")

    audit: bool = Field(True, description="whether sign-ins, refusals and changes are written to the audit log")
    audit_folder: Annotated[Path | None, BeforeValidator(_path)] = Field(
        None, description="folder of the audit log; empty: `audit` in the data folder"
    )
    log_folder: Annotated[Path | None, BeforeValidator(_path)] = Field(
        None, description="folder that files of loggers are below, at mgmt; empty: `log` in the data folder"
    )
    audit_bytes: Annotated[int, Field(ge=1 << 20)] = Field(
        256 << 20, description="bytes of the audit log that are kept"
    )
    audit_days: Annotated[int, Field(ge=1)] = Field(90, description="days for which the audit log is kept")

    store_provider: str = "sqlite"
    store_url: SecretStr = Field(
        SecretStr(""), description="of a store elsewhere, postgresql://… or nats://…; empty: as store_provider says"
    )
    store_configuration_url: SecretStr = Field(
        SecretStr(""), description="of another store for the configuration, or sqlite:; empty: it is with the messages"
    )
    disk_reserve: Annotated[int, Field(ge=0)] = Field(
        0, description="bytes of the disk that messages leave free; 0: a tenth of it, and 64 MiB at most"
    )
    store_processes: Annotated[int, Field(ge=1, le=16)] = Field(
        1, description="that `hopline up` runs, on a database or a stream: one writes, the others stand by"
    )
    partitions: Annotated[int, Field(ge=1, le=65536)] = 64
    queue_processes: Annotated[int, Field(ge=1, le=64)] = 2
    placement: str = Field("fair", description="of partitions: fair, or load, which keeps the busiest apart")
    routers: Annotated[int, Field(ge=1, le=64)] = Field(1, description="that `hopline up` runs: one writes, all route")
    gateways: Annotated[int, Field(ge=1, le=64)] = Field(
        1, description="that `hopline up` runs; all listen at the same ports, and clients are spread over them"
    )
    lease_ttl_ms: Annotated[int, Field(ge=200, le=600_000)] = 2000
    # By half longer than leases: when a router dies, watchers keep their places until its lease has run out.
    place_ttl_ms: Annotated[int, Field(ge=200, le=600_000)] = 3000

    trace_ratio: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0, description="share of the messages whose publisher does not trace them that get spans"
    )
    trace_most: Annotated[float, Field(ge=0)] = Field(
        1000.0,
        description="messages a second, of a gateway, that get spans because their publishers trace them; 0: all",
    )
    trace_link_after: Annotated[float, Field(ge=0)] = Field(
        300.0, description="seconds in a queue after which a delivery begins a trace of its own, linked to the first"
    )
    spans: Path | None = Field(None, description="folder of spans in files; by default `spans` in the data folder")
    spans_file_size: Annotated[int, Field(ge=1 << 10)] = Field(64 << 20, description="bytes of one file of spans")
    spans_keep_bytes: Annotated[int, Field(ge=0)] = Field(1 << 30, description="bytes of older files that are kept")
    spans_keep_days: Annotated[int, Field(ge=1)] = 7
    spans_others: Path | None = Field(
        None, description="folder of spans that applications, or a collector, write as OTLP JSON lines, for look-ups"
    )
    jaeger_url: Annotated[str, AfterValidator(_page)] = Field(
        "", description="of Jaeger's pages, as a person opens them: look-ups link to it"
    )
    jaeger_address: Annotated[str, AfterValidator(_host_and_port)] = Field(
        "", description="host:port where mgmt sees if Jaeger is there; empty: that of the URL"
    )

    metrics: bool = Field(True, description="whether messages are counted for /metrics; all else is in any case")
    metrics_queues: bool = Field(
        False, description="whether messages of each queue are counted apart as well, for /metrics/per-object"
    )

    metrics_exchanges: bool = Field(
        False, description="whether messages of each exchange are counted apart, for /metrics/per-object"
    )
    metrics_connections: bool = Field(
        False,
        description="whether messages and consumers of each connection are counted apart, for /metrics/per-object",
    )
    metrics_token_file: Annotated[Path | None, BeforeValidator(_path)] = Field(
        None, description="file of a token: a scraper that sends it may read /metrics, beside users who may observe"
    )

    memory: Annotated[int, Field(ge=0)] = Field(
        0, description="bytes for a process, or for all of `hopline up`; 0: what the machine or the control group has"
    )
    queue_memory: Annotated[int, Field(ge=0)] = Field(
        0, description="bytes of messages in one queue process above which publishers wait; 0: a share of its memory"
    )
    incoming_memory: Annotated[int, Field(ge=1 << 20)] = Field(
        300 << 20,
        description="bytes of unfinished messages in a gateway above which only clients that have sent little are read",
    )
    outgoing_memory: Annotated[int, Field(ge=1 << 20)] = Field(
        128 << 20,
        description="bytes that wait for clients to read them; as long as it lasts, each client may be a MiB behind",
    )
    incoming_timeout: Annotated[float, Field(gt=0)] = Field(
        30.0,
        description="seconds after which a connection without progress is closed, while others wait for that memory",
    )
    unread_timeout: Annotated[float, Field(gt=0)] = Field(
        120.0,
        description="seconds after which a client is closed that sends requests and reads none of its answers",
    )
    heartbeat: Annotated[int, Field(ge=0, le=65535)] = Field(60, description="seconds, proposed to clients; 0 is none")
    frame_max: Annotated[int, Field(ge=4096, le=16 << 20)] = 131072
    channel_max: Annotated[int, Field(ge=1, le=65535)] = 2047
    max_message_size: Annotated[int, Field(ge=1, le=128 << 20)] = Field(
        16 << 20, description="bytes of a message's body; what is announced as larger is refused"
    )
    message_compression: Literal["none", "negotiated", "assumed"] = Field(
        "negotiated",
        description="Qpid's, of AMQP 0-8, 0-9 and 0-9-1: gzipped bodies stay as they are; are unzipped for clients that"
        " say they cannot do it themselves; or, as in Broker-J, also for clients that say nothing",
    )
    message_compression_threshold: Annotated[int, Field(ge=0)] = Field(
        100 << 10, description="bytes above which bodies are gzipped for clients that say they understand it"
    )
    max_connections: Annotated[int, Field(ge=0)] = Field(
        0, description="clients of one gateway; further ones are refused. 0: as many as it may have files open"
    )
    proxy_sources: Annotated[tuple[Network | str, ...], BeforeValidator(_sources)] = Field(
        (), description="addresses, networks, names of balancers, parted by commas, which send PROXY protocol version 2"
    )
    tls_certificate: Annotated[tuple[Path, ...], BeforeValidator(_texts)] = Field(
        (), description="PEM files of certificates with their chains, parted by commas; clients' names (SNI) choose"
    )
    tls_key: Annotated[tuple[Path, ...], BeforeValidator(_texts)] = Field(
        (), description="PEM files of their keys, in the same order; empty: each is in its certificate's file"
    )
    tls_self_signed: bool = Field(
        False, description="whether a certificate is made where none is given, for trying out; in the data folder"
    )
    tls_clients: Literal["none", "wanted", "needed"] = Field("none", description="certificates of clients")
    tls_client_authorities: Annotated[Path | None, BeforeValidator(_path)] = Field(
        None, description="PEM file of the authorities that sign clients' certificates"
    )
    tls_user: Literal["common-name", "distinguished-name"] = Field(
        "common-name", description="which part of a client's certificate is its user's name with EXTERNAL"
    )
    websocket_origins: Annotated[tuple[str, ...], BeforeValidator(_texts)] = Field(
        (), description="origins of pages that may open a WebSocket, parted by commas, * for all; empty: there is none"
    )
    sasl_mechanisms: Annotated[tuple[str, ...], BeforeValidator(_mechanisms), Field(min_length=1)] = Field(
        ("PLAIN", "AMQPLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        description="how clients may sign in, parted by blanks or commas, best first",
    )
    unsecured_passwords: bool = Field(
        True, description="whether clients on other machines may send passwords without TLS: PLAIN, AMQPLAIN"
    )
    access_control: Annotated[tuple[str, ...], BeforeValidator(_texts), Field(min_length=1)] = Field(
        ("acl", "permissions"),
        description="access controls, parted by commas; the first that does not defer decides: `acl`, rules that were"
        " loaded; `permissions`, as in RabbitMQ; `allow_all`",
    )
    anonymous_user: str = Field("", description="user of clients that sign in with ANONYMOUS; empty: not offered")
    authentication_provider: Annotated[str, Field(min_length=1)] = Field(
        "internal", description="of ports that name no other, by its name; internal: the users on record"
    )
    http_authentication_provider: str = Field("", description="the same for HTTP; empty: authentication_provider")
    authentication_providers_file: Annotated[Path | None, BeforeValidator(_path)] = Field(
        None,
        description="TOML file of authentication providers, a table for each, beside those that hopline providers adds",
    )
    secrets_key_file: Annotated[Path | None, BeforeValidator(_path)] = Field(
        None,
        description="file of the keys that encrypt secrets at rest; empty: one in the user's configuration folder",
    )
    product: Annotated[str, Field(min_length=1, max_length=255)] = Field(
        "Hopline", description="name of the broker that clients are told; some test for RabbitMQ"
    )
    product_version: Annotated[str, Field(max_length=255)] = Field(
        "", description="the version that goes with `product`; empty: Hopline's own"
    )
    handshake_timeout: Annotated[float, Field(gt=0)] = Field(
        10.0, description="seconds for a client to sign in and open its virtual host"
    )

    @model_validator(mode="before")
    @classmethod
    def _with_variables(cls, given: Any) -> Any:  # noqa: ANN401 - as pydantic has it
        """What is `given`, and of the rest what the environment says, whose names may be in small letters too."""
        if not isinstance(given, dict):
            return given
        variables = {name.lower(): value for name, value in os.environ.items()}
        said = {name: variables[key] for name in cls.model_fields if (key := f"{_PREFIX}{name}") in variables}
        return {**said, **given}

    @property
    def run_folder(self) -> Path:
        return self.run or self.data / "run"

    @property
    def spans_folder(self) -> Path:
        return self.spans or self.data / "spans"

    @property
    def audit_path(self) -> Path:
        return self.audit_folder or self.data / "audit"

    @property
    def log_path(self) -> Path:
        return self.log_folder or self.data / "log"

    @property
    def router_names(self) -> list[str]:
        """The routers of `hopline up`. The first has the plain name: commands ask it, whether it writes or not."""
        return ["router", *(f"router-{number}" for number in range(2, self.routers + 1))]

    @property
    def gateway_names(self) -> list[str]:
        """The gateways of `hopline up`. The first has the plain name; others none that looks like `gateway-2`, which is
        how a gateway calls itself, by its origin.
        """
        return ["gateway", *(f"gateway-process-{number}" for number in range(2, self.gateways + 1))]

    @property
    def store_names(self) -> list[str]:
        """The store processes of `hopline up`. A single one has the plain name, and the address that others use."""
        return ["store"] if self.store_processes == 1 else [f"store-{n}" for n in range(1, self.store_processes + 1)]

    def address_of(self, service: str) -> str:
        """The gRPC target where `service` (store, router, mgmt, gateway, or queue-<member>) listens."""
        configured: str = getattr(self, f"{service.split('-', maxsplit=1)[0]}_address")
        return configured or f"unix:{self.run_folder.absolute()}/{service}.sock"
