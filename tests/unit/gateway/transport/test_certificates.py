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

_KEY = "-----BEGIN PRIVATE KEY"


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


def test_files_that_are_bad_from_the_start(tmp_path: Path) -> None:
    """Hold up nothing: it is said why there is no TLS, and there is as soon as the files are good."""
    authority, now = Authority(tmp_path), [0.0]
    path = tmp_path / "broker.pem"
    path.write_text("nonsense")
    with capture_logs() as logged:
        shown = Certificates(Files((path,)), lambda: now[0])
        why = f"{path}: there is no certificate, or no key, in it, in PEM"
        assert (shown.there, shown.amiss) == (False, f"{why}; there is no TLS until it can be read")
        with pytest.raises(ValueError, match="no certificate, or no key"):
            shown.context()
        authority.sign("broker")
        now[0] += 2
        assert (shown.there, shown.amiss) == (True, "")
    assert shown.context()
    error, info = logged
    assert (error["event"], error["reason"]) == ("a certificate cannot be read", why)
    assert info["event"] == "certificates were read again"


def test_good_files_at_the_start(tmp_path: Path) -> None:
    """Are nothing to tell of."""
    with capture_logs() as logged:
        shown = Certificates(Files((Authority(tmp_path).sign("broker"),)))
    assert (shown.there, shown.amiss, logged) == (True, "", [])


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("nonsense", "{path}: there is no certificate, or no key, in it, in PEM"),
        ("", "{path}: there is no certificate, or no key, in it, in PEM"),
        ("another key", "{path}: the key is another certificate's"),
        (None, "{path}: No such file or directory"),
    ],
)
def test_what_is_amiss(tmp_path: Path, bad: str | None, why: str) -> None:
    """Is told with the file, and that the former is shown, until the file is good again."""
    authority, now = Authority(tmp_path), [0.0]
    path, other = authority.sign("broker"), authority.sign("other")
    good = path.read_text()
    shown = Certificates(Files((path,)), lambda: now[0])
    if bad is None:
        path.unlink()
    elif bad == "another key":
        path.write_text(good.partition(_KEY)[0] + "".join(other.read_text().partition(_KEY)[1:]))
    else:
        path.write_text(bad)
    now[0] += 2
    with capture_logs():
        assert shown.amiss == f"{why.format(path=path)}; the former certificate is shown"
        assert shown.there
        path.write_text(good)
        now[0] += 2
        assert shown.amiss == ""


def test_which_file_it_is(tmp_path: Path) -> None:
    """Of several it is told which is bad: of certificates with keys apart both, of authorities theirs."""
    authority = Authority(tmp_path)
    first, second = authority.sign("first"), authority.sign("second")
    with capture_logs():
        swapped = Certificates(Files((first, second), (first, first))).amiss
        (tmp_path / "authorities.pem").write_text("nonsense")
        strange = Certificates(Files((first,), (), tmp_path / "authorities.pem", "needed")).amiss
    assert swapped.startswith(f"{second} with {first}: the key is another certificate's; ")
    assert strange.startswith(f"{tmp_path}/authorities.pem: there is no certificate in it, in PEM; ")


def _too_many_files(_files: Files) -> None:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
