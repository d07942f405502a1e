"""Where the secret of a stack is kept, and which callers need it."""

from __future__ import annotations

import resource
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from services.common import secret
from services.common.config import Settings
from services.common.runtime import CannotStart

METHOD = "/hopline.store.v1.Store/Acquire"
TCP, UNIX = "store:7000", "unix:/run/store.sock"


def test_several_that_start_at_once_make_one(tmp_path: Path) -> None:
    """All of them read the same secret; nothing else is left in the folder, and only its owner may read it."""
    path = tmp_path / "new" / "secret"
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(secret.read_or_make, [path] * 32))
    assert len(found) == 1
    assert len(found.pop()) == 64
    assert [each.name for each in path.parent.iterdir()] == ["secret"]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"too short\n", b"\xff" * 40, b"two lines with\nenough characters"])
def test_a_file_that_holds_none(tmp_path: Path, content: bytes) -> None:
    """The process does not start, and says which file it is; what is in it is not said."""
    path = tmp_path / "secret"
    path.write_bytes(content)
    with pytest.raises(CannotStart, match=r"HOPLINE_SECRET_FILE=.*secret") as failure:
        secret.read_or_make(path)
    assert not content or content.decode(errors="replace").strip() not in str(failure.value)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """The same."""
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotStart, match="HOPLINE_SECRET_FILE="):
        secret.read_or_make(tmp_path / "file" / "secret")


def test_a_process_without_a_stack(tmp_path: Path) -> None:
    """Where no file is named, and `hopline up` left none, there is no secret, and none is made."""
    secret.use_that_of(Settings(data=tmp_path / "data"))
    assert secret.fields_for(TCP) == ()
    assert not list(tmp_path.iterdir())


def test_commands_find_that_of_the_stack(tmp_path: Path) -> None:
    """`hopline up` leaves it in the run folder."""
    settings = Settings(data=tmp_path)
    made = secret.read_or_make(secret.file_of_up(settings))
    try:
        secret.use_that_of(settings)
        assert secret.fields_for(TCP) == (("authorization", f"Bearer {made}"),)
    finally:
        secret.use("")


class Nobody:
    """Another user of the machine, without access to the stack's folders."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for how in ("exists", "read_text"):
            monkeypatch.setattr(Path, how, self._refuse)

    @staticmethod
    def _refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))


def test_what_needs_none_reads_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret that cannot be read is missed in calls over the network, and only there."""
    Nobody(monkeypatch)
    for settings in (Settings(data=tmp_path), Settings(data=tmp_path, secret_file=tmp_path / "secret")):
        try:
            secret.use_that_of(settings)
            assert secret.fields_for(UNIX) == ()
            with pytest.raises(CannotStart, match="Permission denied"):
                secret.fields_for(TCP)
        finally:
            secret.use("")


def test_callers_that_may_call(known: str) -> None:
    """Over the network callers with the secret, and any for health; on a unix socket any caller that could open it."""
    said = [("te", "trailers"), ("authorization", f"Bearer {known}")]
    for fields in (
        [],
        [("authorization", known)],
        [("authorization", "Bearer 0123456789abcdeF")],
        [("authorization", "")],
    ):
        assert not secret.is_said(fields, TCP)
        assert secret.is_said(fields, UNIX)
    assert secret.is_said(said, TCP)
    assert secret.is_open("/grpc.health.v1.Health/Check")
    assert not secret.is_open(METHOD)
    assert not secret.is_open("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")


def test_nothing_is_said_on_a_unix_socket(known: str) -> None:
    """Its folder keeps others out."""
    assert known in secret.fields_for(TCP)[0][1]
    assert secret.fields_for(UNIX) == ()


def test_nats_hears_another_one(known: str) -> None:
    """A foreign NATS server cannot call our services with what it was sent."""
    assert known not in secret.nats_token()
    assert len(secret.nats_token()) == 64


def test_on_a_full_disk(tmp_path: Path) -> None:
    """Nothing is left in the folder: each further start would leave another file that nobody deletes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # no file may have a byte
    try:
        with pytest.raises(CannotStart) as failure:
            secret.read_or_make(tmp_path / "secret")
        left = list(tmp_path.iterdir())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert failure.value.args
    assert left == []
