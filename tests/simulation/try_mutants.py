"""`python -m tests.simulation.try_mutants`: puts faults back, one at a time, and counts histories until each is found.

Each file in `mutants/` is a patch of the product that begins with what it breaks; it is applied to a copy. `Kind` is
that of the histories that are to find it, if not any; `Beside` another patch that it includes: it has to break another
promise than that does.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PATCHES = Path(__file__).parent / "mutants"
_COPIED = ("services", "tests", "proto", "pyproject.toml")
_SAID = re.compile(r"^(\d+) histories from seed", re.MULTILINE)
_HEADS = re.compile(r"^(Kind|Beside): (\S+)$", re.MULTILINE)
_FAILED = re.compile(r"^seed (\d+): (.*)$", re.MULTILINE)


def main() -> int:
    """1 when one was not found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of patches, without .patch; none: all")
    parser.add_argument("--kind", default="", help="of histories; without: as the patch says")
    parser.add_argument("--limit", type=int, default=500, help="histories for each")
    parser.add_argument("--from", dest="start", type=int, default=1, help="the first seed")
    options = parser.parse_args()
    missed = []
    with tempfile.TemporaryDirectory(prefix="hopline-mutants-") as name:
        # What is worked on meanwhile changes nothing here.
        whole = Path(name) / "whole"
        _copy(_ROOT, whole)
        for patch in _patches(options.names):
            found, said = _try(patch, whole, options)
            _say(f"{patch.stem}: {said}")
            if not found:
                missed.append(patch.stem)
    if missed:
        _say(f"NOT FOUND: {', '.join(missed)}")
    return int(bool(missed))


def _copy(source: Path, target: Path) -> None:
    target.mkdir()
    for name in _COPIED:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source / name, target / name)


def _patches(names: list[str]) -> Iterator[Path]:
    for patch in sorted(_PATCHES.glob("*.patch")):
        if not names or patch.stem in names:
            yield patch


def _try(patch: Path, whole: Path, options: argparse.Namespace) -> tuple[bool, str]:
    heads = dict(_HEADS.findall(patch.read_text()))
    start, limit, kind = options.start, options.limit, options.kind or heads.get("Kind", "")
    try:
        folder = _patched(whole, patch)
        base = _patched(whole, _PATCHES / f"{heads['Beside']}.patch") if "Beside" in heads else whole
    except subprocess.CalledProcessError as failure:
        return False, f"does not apply any more: {failure.stderr.strip()}"
    end, at = start + limit, start
    while at < end:
        counted, seed, said = _search(folder, at, end - at, kind)
        if seed is None:
            return False, f"not found in {limit} histories" if counted else said
        if not _breaks(base, seed, kind, said):
            return True, f"found in {seed - start + 1} histories of {kind or 'all kinds'}; {said[:200]}"
        at = seed + 1  # that one fails without the patch too
    return False, f"not found in {limit} histories"


def _patched(whole: Path, patch: Path) -> Path:
    """A copy with a patch; raises CalledProcessError when it does not apply."""
    folder = whole.parent / patch.stem
    if not folder.exists():
        _copy(whole, folder)
        subprocess.run(["git", "apply", str(patch)], cwd=folder, capture_output=True, text=True, check=True)
    return folder


def _search(folder: Path, start: int, count: int, kind: str) -> tuple[int, int | None, str]:
    """How many histories there were, and the seed of the first that fails."""
    ran = _simulate(folder, "--from", str(start), "--count", str(count), "--kind", kind)
    counted = _SAID.search(ran.stdout)
    if counted is None:
        return 0, None, f"could not be run: {ran.stderr[-500:]}"
    found = [(int(failed[1]), failed[2]) for failed in _FAILED.finditer(ran.stdout)]
    return int(counted[1]), *min(found, default=(None, ""))


def _breaks(base: Path, seed: int, kind: str, said: str) -> bool:
    """Whether the history breaks the same promise without the patch."""
    ran = _simulate(base, "--from", str(seed), "--count", "1", "--kind", kind)
    failed = _FAILED.search(ran.stdout)
    return ran.returncode != 0 and (failed is None or _promise(failed[2]) == _promise(said))


def _promise(said: str) -> str:
    return said.partition(":")[0]


def _simulate(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.simulation", *options, "--shrink", "0"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
