"""What a service logs is for operators."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOUD = ("warning", "error", "exception", "critical")
PASSED_ON = ("warn",)  # methods that log a warning with what they are given


def test_warnings_say_what_to_do() -> None:
    """Every warning and error of a service says what to do (`do=`), or that nothing need be done."""
    sources = sorted(path for path in (ROOT / "services").rglob("*.py") if ROOT / "services/rpc" not in path.parents)
    silent = [f"{path.relative_to(ROOT)}:{line}" for path in sources for line in _silent(path.read_text())]
    assert silent == []


def test_what_is_silent_is_found() -> None:
    """So that the claim above says something: of a logger, of one that another is handed, of a method that logs."""
    silent = ("log.warning('x', a=1)", "_log().error('x')", "few.say(log.error, 'x')", "self.warn('x')")
    saying = ("log.warning('x', do=DO)", "few.say(log.error, 'x', do=DO)", "log.error('x', **about)", "log.info('x')")
    assert [list(_silent(call)) for call in silent] == [[1]] * len(silent)
    assert [list(_silent(call)) for call in saying] == [[]] * len(saying)


def _silent(source: str) -> Iterator[int]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _is_loud(node) and not {"do", None} & {each.arg for each in node.keywords}:
            yield node.lineno


def _is_loud(call: ast.Call) -> bool:
    """Whether it logs, or hands on what logs; keywords that come by `**` may say what to do."""
    passed_on = isinstance(call.func, ast.Attribute) and call.func.attr in PASSED_ON
    return passed_on or any(_is_loggers(each) for each in (call.func, *call.args))


def _is_loggers(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr in LOUD
        and ast.unparse(node.value).removesuffix("()").endswith("log")
    )
