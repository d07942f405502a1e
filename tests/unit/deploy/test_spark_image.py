"""The image of the analyses: a few of the project's dependencies, chosen by name."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_it_has_what_the_analyses_import() -> None:
    """Every import of theirs is of the standard library, of what the image installs, or of what that requires."""
    installed = _named()
    installed |= {_name(required) for name in installed for required in requires(name) or ()}
    there = {package for package, names in packages_distributions().items() if installed & {*map(_name, names)}}
    assert _imported() - {"spark"} - sys.stdlib_module_names <= there


def _named() -> set[str]:
    chosen = re.search(r"startswith\(\((.*?)\)\)", (ROOT / "deploy/spark/Dockerfile").read_text())
    assert chosen
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {*ast.literal_eval(f"[{chosen[1]}]"), *map(_name, project["optional-dependencies"]["analytics"])}


def _name(requirement: str) -> str:
    return re.split(r"[^\w-]", requirement, maxsplit=1)[0].lower()


def _imported() -> set[str]:
    trees = [ast.parse(path.read_text()) for path in (ROOT / "spark").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return {name.partition(".")[0] for name in plain | {_module(node) for node in nodes}} - {""}


def _module(node: ast.AST) -> str:
    return (node.module or "") if isinstance(node, ast.ImportFrom) else ""
