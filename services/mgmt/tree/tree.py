"""The tree: categories put together, and what is found in it by paths of names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from services.common import plugins
from services.common.errors import NotFound
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.steps import Steps
from services.mgmt.preferences.preferences import Preferences
from services.mgmt.tree.category import Category, Source
from services.mgmt.tree.house import House
from services.mgmt.turns import at_once

GROUP: Final = "categories"
ANY: Final = "*"
BROKER: Final = "broker"


class Tree:
    """`categories` by their names in lower case, as paths of REST have them."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.categories: Mapping[str, Category] = {
            name: plugins.load(GROUP, name)(house) for name in plugins.names(GROUP)
        }
        self.preferences = Preferences(house, self.line)
        self._below: dict[str, list[str]] = {}
        for name, each in self.categories.items():
            self._below.setdefault(each.kind.parent_kind.lower(), []).append(name)

    async def ready(self, fresh: Iterable[Source]) -> None:
        """Returns when it can be read, with what has to be fresh."""
        await self.house.ready()
        house, wanted = self.house, set(fresh)
        for source, ask in (
            (Source.COUNTS, house.counts.fresh),
            (Source.CONNECTIONS, house.connected.recent),
            (Source.LOG_FILES, house.loggers.files.look),
            (Source.COUNTERS, house.counters.fresh),
            (Source.COUNTERS_APART, house.counters.fresh_apart),
        ):
            if source in wanted:
                await ask()

    def fresh(self, category: str, depth: int) -> set[Source]:
        """What has to be fresh before objects of it are read, with those so far below."""
        found = set(self.categories[category].fresh)
        return (
            found.union(*(self.fresh(each, depth - 1) for each in self.children_of(category))) if depth > 0 else found
        )

    def line(self, category: str) -> list[str]:
        """Categories from below the broker down to this one: what its paths name."""
        found = [category]
        while (above := self.categories[found[0]].kind.parent_kind.lower()) not in {"", BROKER}:
            found.insert(0, above)
        return [] if category == BROKER else found

    @property
    def broker(self) -> ConfiguredObject:
        """The root."""
        return next(iter(self.categories[BROKER].children(None).values()))

    def of(self, found: ConfiguredObject) -> Category:
        """The category that an object is of."""
        return self.categories[found.category.lower()]

    def find(self, category: str, path: Sequence[str]) -> list[ConfiguredObject]:
        """All at a path, which may end early, or have `*` for a name. Raises NotFound for a name that is not there."""
        return at_once(self.finding(category, path))

    def finding(self, category: str, path: Sequence[str]) -> Steps[list[ConfiguredObject]]:
        """The same in steps: there may be thousands."""
        found = [self.broker]
        for number, each in enumerate(self.line(category)):
            name = path[number] if number < len(path) else ANY
            found = yield from self._step(found, each, name, exact=ANY not in path[:number])
        return found

    def _step(
        self, above: Iterable[ConfiguredObject], category: str, name: str, *, exact: bool
    ) -> Steps[list[ConfiguredObject]]:
        keeper, found = self.categories[category], list[ConfiguredObject]()
        for parent in above:
            there = yield from keeper.making(parent)
            yield  # of thousands of parents, most may have nothing below them
            found += there.values() if name == ANY else filter(None, (there.get(name),))
        if not found and exact and name != ANY:
            raise NotFound(f"no {keeper.kind.category} '{name}'")
        return found

    def one(self, category: str, path: Sequence[str]) -> ConfiguredObject:
        """The object at a whole path of names. Raises NotFound."""
        found: ConfiguredObject | None = self.broker
        for each, name in zip(self.line(category), path, strict=True):
            found = self.categories[each].children(found).get(name)
            if found is None:
                raise NotFound(f"no {self.categories[each].kind.category} '{name}'")
        assert found
        return found

    async def delete(self, found: ConfiguredObject) -> None:
        """With what is below it, and what is kept of it here."""
        await self.of(found).delete(found)
        await self.house.forget(found)
        await self.preferences.forget(found)

    def below(self, found: ConfiguredObject) -> Iterator[tuple[str, list[ConfiguredObject]]]:
        """Children of an object, by category."""
        for name in self._below.get(found.category.lower(), ()):
            yield name, list(self.categories[name].children(found).values())

    def below_in_steps(self, found: ConfiguredObject) -> Iterator[tuple[str, Iterator[ConfiguredObject | None]]]:
        """The same; None wherever others may have their turn before there are more."""
        for name in self._below.get(found.category.lower(), ()):
            yield name, self._each(name, found)

    def _each(self, category: str, parent: ConfiguredObject) -> Iterator[ConfiguredObject | None]:
        making = self.categories[category].making(parent)
        while True:
            try:
                yield next(making)
            except StopIteration as done:
                yield from list(done.value.values())
                return

    def children_of(self, category: str) -> list[str]:
        """Categories right below one."""
        return self._below.get(category, [])

    def measure(self, found: ConfiguredObject) -> Mapping[str, int]:
        """Statistics of an object."""
        return self.of(found).measure(found)

    def column(self, found: list[ConfiguredObject], name: str) -> list[Any]:
        """As `look`, of many objects of one category."""
        if not found:
            return []
        if (declared := found[0].attributes.get(name)) is None:
            return self.of(found[0]).column(found, name)
        # What was set of it counts as it is.
        plain = not declared.secure and not declared.types
        return [each.actual[name] if plain and name in each.actual else self.look(each, name) for each in found]

    def look(self, found: ConfiguredObject, name: str) -> Any:  # noqa: ANN401 - each its own
        """An attribute or a statistic, by its name; None where it has none, or its variables make none of it."""
        if name in found.attributes:
            declared = found.attributes[name]
            with contextlib.suppress(IllegalConfiguration):
                return None if declared.secure or not found.has(declared) else found.value(name)
            return None
        return self.of(found).column([found], name)[0] if name in found.statistics else None
