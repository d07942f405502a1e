"""Certificates in files that change, or are not there for a while."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from services.gateway.transport import certificates
from services.gateway.transport.certificates import Certificates, Files
from tests.support.certificates import Authority


def test_a_file_that_is_away(tmp_path: Path) -> None:
    """Is said once, not with each client that comes; and again when it goes away again."""
    path, now = Authority(tmp_path).sign("broker"), [0.0]
    shown = Certificates(Files((path,)), lambda: now[0])
    first = shown.context()
    with capture_logs() as logged:
        for there in (False, False, False, True, False):
            (tmp_path / "aside").rename(path) if there else path.exists() and path.rename(tmp_path / "aside")
            now[0] += 2
            assert shown.context() is first
    assert [line["event"] for line in logged] == ["a certificate cannot be read"] * 2


def test_what_could_not_be_read_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is read later, though it has not changed since: a new certificate must not be missed by too many open files."""
    authority, now = Authority(tmp_path), [0.0]
    shown = Certificates(Files((authority.sign("broker"),)), lambda: now[0])
    first = shown.context()
    authority.sign("broker")
    now[0] += 2
    with monkeypatch.context() as patched:
        patched.setattr(certificates, "_context_of", _too_many_files)
        assert shown.context() is first
    now[0] += 2
    assert shown.context() is not first


def _too_many_files(_files: Files) -> None:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
