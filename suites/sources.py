"""Gets the source of a suite: from a folder of checkouts, from the index of pip, or from its repository."""

from __future__ import annotations

import shutil
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from suites.command import install
from suites.failure import NotRun
from suites.suite import Files, Repository, Sdist

if TYPE_CHECKING:
    from suites.suite import Suite

REPLACED = Path(__file__).parent / "replaced"


def bring(suite: Suite, given: Path | None, home: Path) -> Path:
    """A folder with the suite's files, ours to write in; raises NotRun when they cannot be had."""
    if isinstance(suite.source, Files):
        return _installed(suite.source)
    folder = home / "source"
    if not folder.exists():
        arriving = home / "arriving"
        shutil.rmtree(arriving, ignore_errors=True)
        _obtain(suite, given, arriving)
        arriving.rename(folder)
    for path, ours in suite.replaced.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPLACED / ours, folder / path)
    return folder


def _installed(source: Files) -> Path:
    folder = Path(source.folder)
    if not folder.is_dir():
        raise NotRun(f"{source.package} is not installed (Debian: apt install {source.package})")
    return folder


def _obtain(suite: Suite, given: Path | None, folder: Path) -> None:
    if given and (given / suite.name).is_dir():
        shutil.copytree(given / suite.name, folder, ignore=shutil.ignore_patterns(".git"))
    elif isinstance(suite.source, Repository):
        _clone(suite.source, folder)
    elif isinstance(suite.source, Sdist):
        _download(f"{suite.source.package}=={suite.version}", folder)


def _clone(source: Repository, folder: Path) -> None:
    url = f"https://github.com/{source.project}"
    command = ["git", "clone", "--quiet", "--depth", "1", "--branch", source.tag, url, str(folder)]
    install(command, folder.parent, folder.parent / "git.log")


def _download(package: str, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", package]
    fetched = folder.parent / "sdist"
    fetched.mkdir(exist_ok=True)
    install(command, fetched, folder.parent / "pip.log")
    with tarfile.open(next(fetched.glob("*.tar.gz"))) as archive:
        archive.extractall(fetched, filter="data")
    next(path for path in fetched.iterdir() if path.is_dir()).rename(folder)
