from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner

from services.__main__ import app
from services.cli import password
from services.common import secret
from services.common.clients.dry_run import DryRunClient
from services.common.clients.mgmt import MgmtClient
from services.common.clients.objects import ObjectsClient, Page
from services.common.dry_run import DryRun
from services.common.errors import BrokerError, NotFound, Unavailable
from services.common.trace import Journey, Match, Trace
from services.rpc.objects_pb2 import ListRequest


@pytest.fixture
def hopline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[CliRunner]:
    """A shell without a running Hopline, on free ports."""
    monkeypatch.setenv("HOPLINE_DATA", str(tmp_path))
    monkeypatch.setenv("HOPLINE_HTTP_PORT", "1")
    before = structlog.get_config()
    yield CliRunner()
    secret.use("")
    # A command that follows has log lines go to its own standard error, which is closed when it has ended.
    structlog.configure(**before)
    structlog.contextvars.clear_contextvars()


def test_version(hopline: CliRunner) -> None:
    """`hopline version` says what is installed."""
    assert hopline.invoke(app.whole, ["version"]).stdout == version("hopline") + "\n"


@pytest.mark.parametrize("command", ["up", "gateway", "router", "queue", "store", "mgmt", "health"])
def test_wrong_settings(hopline: CliRunner, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """Every variable that has no meaning gets a line, and the exit status is 2."""
    monkeypatch.setenv("HOPLINE_AMQP_PORT", "99999")
    monkeypatch.setenv("HOPLINE_LEASE_TTL_MS", "soon")
    result = hopline.invoke(app.whole, [command])
    first, second = sorted(result.stderr.splitlines())
    assert first.startswith("HOPLINE_AMQP_PORT=99999: ")
    assert second.startswith("HOPLINE_LEASE_TTL_MS=soon: ")
    assert result.exit_code == 2


def test_queue_needs_a_queue_s_name(hopline: CliRunner) -> None:
    """A name that is not for queue processes is refused."""
    result = hopline.invoke(app.whole, ["queue", "--name", "store"])
    assert (result.exit_code, result.stderr) == (2, "--name store: a queue process is called queue-<something>\n")


@pytest.mark.parametrize(
    "command",
    [
        ["health"],
        ["users", "list"],
        ["users", "add", "a", "--password", "b"],
        ["queues", "list"],
        ["exchanges", "declare", "x"],
        ["bindings", "unbind", "x", "q"],
        ["connections", "close", "3.2"],
        ["consumers", "list"],
        ["publish", "m", "--key", "q"],
        ["get", "q"],
        ["vhosts", "list"],
        ["vhosts", "add", "a"],
        ["vhosts", "delete", "a"],
        ["trace", "order-1"],
        ["trace", "--queue", "q", "--fate", "expired", "--since", "1h"],
        ["route", "--key", "q"],
        ["store", "backup", "one.backup"],
    ],
)
def test_nothing_runs(hopline: CliRunner, command: list[str]) -> None:
    """A command for a stack that does not run says so in one line."""
    result = hopline.invoke(app.whole, command)
    assert result.exit_code == 1
    assert result.stderr.startswith("no answer from ")
    assert result.stderr.count("\n") == 1


def test_where_health_is_asked(hopline: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody answers, the address is told, and what sets it."""
    monkeypatch.setenv("HOPLINE_HTTP_PORT", "1")
    said = hopline.invoke(app.whole, ["health"]).stderr
    assert said.startswith("no answer from 127.0.0.1:1 (HOPLINE_HTTP_HOST, HOPLINE_HTTP_PORT); does Hopline run? ")


@pytest.mark.parametrize(("command", "says"), [(["health"], "no answer from "), (["events"], "no event bus is known")])
def test_who_needs_no_secret(
    hopline: CliRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: list[str], says: str
) -> None:
    """One that cannot be read does not keep commands from what is open to all."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOPLINE_SECRET_FILE", str(tmp_path / "file" / "secret"))
    assert hopline.invoke(app.whole, command).stderr.startswith(says)


def test_a_folder_of_another_user(hopline: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the bus is cannot be read: the command says so, in a line."""

    def refuse(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", refuse)
    result = hopline.invoke(app.whole, ["events"])
    assert result.exit_code == 1
    assert result.stderr.startswith("cannot read where the event bus is: ")
    assert result.stderr.count("\n") == 1


def test_a_bus_that_could_not_be_told(hopline: CliRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its file is empty while the disk is full: the command does not say that nothing runs."""
    monkeypatch.setenv("HOPLINE_RUN", str(tmp_path))
    (tmp_path / "nats.url").touch()
    result = hopline.invoke(app.whole, ["events"])
    assert result.exit_code == 1
    assert "make room on its disk" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Users that mgmt is asked for, with their passwords."""
    put: list[tuple[str, str]] = []

    async def put_user(_client: MgmtClient, name: str, password: str, *_tags: object, **_options: object) -> None:
        put.append((name, password))

    monkeypatch.setattr(MgmtClient, "put_user", put_user)
    return put


def test_password_is_asked_for(hopline: CliRunner, monkeypatch: pytest.MonkeyPatch, put: list[tuple[str, str]]) -> None:
    """At a terminal, a password that is not given is asked for twice, and not shown."""
    monkeypatch.setattr(password, "_at_a_terminal", lambda: True)
    result = hopline.invoke(app.whole, ["users", "add", "alice"], input="secret\nsecret\n")
    assert "Password" in result.stdout
    assert "secret" not in result.output
    assert put == [("alice", "secret")]


@pytest.mark.parametrize("line_end", ["", "\n", "\r\n"])
def test_password_from_a_file(hopline: CliRunner, tmp_path: Path, put: list[tuple[str, str]], line_end: str) -> None:
    """A file has the password, or standard input, without its line end; so the process list does not."""
    (tmp_path / "it").write_bytes(f" secret {line_end}".encode())
    for file, stdin in ((str(tmp_path / "it"), ""), ("-", f" secret {line_end}")):
        result = hopline.invoke(app.whole, ["users", "add", "alice", "--password-file", file], input=stdin)
        assert (result.exit_code, result.output) == (0, "")
    assert put == [("alice", " secret ")] * 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--password-file FILE"),
        (["--password", "a", "--password-file", "b"], "not both"),
        (["--password-file", "nowhere"], "--password-file nowhere: No such file or directory\n"),
        (["--password-file", "/dev/null/x"], "/dev/null/x"),
    ],
)
def test_no_password(hopline: CliRunner, put: list[tuple[str, str]], arguments: list[str], said: str) -> None:
    """Without a password, and without a terminal, a line says how to give it; no service is called."""
    result = hopline.invoke(app.whole, ["users", "add", "alice", *arguments])
    assert (result.exit_code, result.stderr.count("\n"), put) == (2, 1, [])
    assert said in result.stderr


def test_password_on_the_command_line(hopline: CliRunner, put: list[tuple[str, str]]) -> None:
    """It still works."""
    assert hopline.invoke(app.whole, ["users", "add", "alice", "--password", "secret"]).exit_code == 0
    assert put == [("alice", "secret")]


@pytest.mark.parametrize(
    "command",
    ["users add", "users change", "providers add", "definitions import", "store export", "store import", "store copy"],
)
def test_who_sees_a_secret(hopline: CliRunner, command: str) -> None:
    """Where one may be said on a command line, its help tells that others see it, and of a file."""
    told = hopline.invoke(app.whole, [*command.split(), "--help"]).stdout
    assert "processes" in told
    assert "file" in told.lower()


def test_no_event_bus(hopline: CliRunner) -> None:
    """Where no bus is known, `hopline events` says so in one line; where it does not answer, too."""
    result = hopline.invoke(app.whole, ["events"])
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "HOPLINE_NATS_URL" in result.stderr
    result = hopline.invoke(app.whole, ["events"], env={"HOPLINE_NATS_URL": "nats://127.0.0.1:1"})
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "nats://127.0.0.1:1" in result.stderr


@pytest.mark.parametrize("command", [["move", "99", "queue-1"], ["move", "x", "queue-1"], ["unpin", "64"]])
def test_no_such_partition(hopline: CliRunner, command: list[str]) -> None:
    """An impossible partition is refused in one line, and no service is called."""
    result = hopline.invoke(app.whole, ["partitions", *command])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["order-1", "--follow", "q"],
        ["order-1", "--limit", "0"],
        ["order-1", "--queue", "q"],
        ["--queue", "q", "--follow", "q"],
        ["--follow", "q", "--since", "1h"],
        ["--fate", "eaten"],
        ["--queue", "q", "--since", "soon"],
    ],
)
def test_trace_of_nothing(hopline: CliRunner, arguments: list[str]) -> None:
    """`hopline trace` wants an id, or what messages have in common, or a queue to follow; each as it can be."""
    result = hopline.invoke(app.whole, ["trace", *arguments])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr


def test_follow_without_a_bus(hopline: CliRunner) -> None:
    """`hopline trace --follow` says in one line that there is no bus to follow."""
    result = hopline.invoke(app.whole, ["trace", "--follow", "q"])
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "HOPLINE_NATS_URL" in result.stderr


@pytest.mark.parametrize(
    ("queue", "known", "said"),
    [
        ("q", ["q"], False),
        ("q", [], True),
        ("q", NotFound("no such virtual host"), True),
        ("q", Unavailable("no router"), False),
        ("q*", ["q"], False),
        ("q?", [], True),
        ("q*", NotFound("no such virtual host"), True),
        ("q*", Unavailable("no mgmt"), False),
        ("[q]", [], True),  # is a name: only * and ? are special
    ],
)
def test_follow_what_is_not_there(
    hopline: CliRunner, monkeypatch: pytest.MonkeyPatch, queue: str, known: list[str] | BrokerError, said: bool
) -> None:
    """Following a queue that does not exist, or a pattern that none fits, says so, and follows on."""

    async def route(_client: DryRunClient, virtual_host: str, _exchange: str, key: str, _headers: object) -> DryRun:
        if isinstance(known, BrokerError):
            raise known
        return DryRun(virtual_host=virtual_host, exchange="", routing_key=key, headers={}, visits=[], queues=known)

    async def queues(_client: ObjectsClient, asked: ListRequest) -> AsyncIterator[Page]:
        assert (asked.virtual_host, dict(asked.fits)) == ("/", {"name": queue})
        if isinstance(known, BrokerError):
            raise known
        yield Page([{"name": name} for name in known], len(known))

    monkeypatch.setattr(DryRunClient, "route", route)
    monkeypatch.setattr(ObjectsClient, "list", queues)
    result = hopline.invoke(app.whole, ["trace", "--follow", queue], env={"HOPLINE_NATS_URL": "nats://127.0.0.1:1"})
    lines = result.stderr.splitlines()
    told = f"there is no queue '{queue}' in virtual host '/' now; lines come when it is declared"
    assert (result.exit_code, told in lines) == (1, said)
    assert "nats://127.0.0.1:1" in lines[-1]


def test_nothing_is_said_in_a_line(hopline: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of an id with a line end in it."""

    async def trace(_client: MgmtClient, asked: str, _journeys: int, **_options: bool) -> Trace:
        return Trace(id=asked, journeys=[], more=False)

    monkeypatch.setattr(MgmtClient, "trace", trace)
    result = hopline.invoke(app.whole, ["trace", "order\n17"])
    assert (result.exit_code, result.stderr) == (1, "nothing is on record of 'order\\n17'\n")


def test_nothing_is_captured(hopline: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks for what was captured of a message is told that it was not."""

    async def trace(_client: MgmtClient, asked: str, _journeys: int, **_options: bool) -> Trace:
        match = Match(uid=1, kind="uid", time_us=None)
        return Trace(id=asked, journeys=[Journey(match=match, messages=[], gaps=[], cut_short=False)], more=False)

    monkeypatch.setattr(MgmtClient, "trace", trace)
    said = {option: hopline.invoke(app.whole, ["trace", "1", *option]).stderr for option in ((), ("--payload",))}
    assert said[()] == ""
    assert said["--payload",].startswith("nothing of it is captured: ")


def test_route_with_a_bad_header(hopline: CliRunner) -> None:
    """A header that cannot be read is refused before any service is called."""
    result = hopline.invoke(app.whole, ["route", "--header", "size:=big"])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


def test_no_backup(hopline: CliRunner, tmp_path: Path) -> None:
    """A file that is no backup is refused in one line, by what looks at it and by what would restore it."""
    (tmp_path / "notes.txt").write_text("no backup at all, and longer than the first line of one")
    for command in (["verify"], ["restore", "--to", str(tmp_path / "new")]):
        result = hopline.invoke(app.whole, ["store", *command, str(tmp_path / "notes.txt")])
        assert result.exit_code == 1
        assert "is no backup of Hopline" in result.stderr
        assert not (tmp_path / "new").exists()
