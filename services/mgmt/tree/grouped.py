"""Records of a kind by what one field of them says: kept up with each change, so that it costs the same for many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from services.mgmt.tree.mirror import Kept


class Grouped(Mapping[Any, "list[Kept]"]):
    """Values of the field, and the records that have each. Its lists are to be read only."""

    def __init__(self, field: str, table: Mapping[str, Kept]) -> None:
        self._field = field
        self._members: dict[Any, dict[str, Kept]] = {}
        self._lists: dict[Any, list[Kept]] = {}  # made when they are asked for
        for key, kept in table.items():
            self.change(key, None, kept)

    def change(self, key: str, former: Kept | None, kept: Kept | None) -> None:
        """A record is another one now; None where there was, or is, none."""
        if former is not None:
            self._remove(key, former.value[self._field])
        if kept is not None:
            value = kept.value[self._field]
            self._members.setdefault(value, {})[key] = kept
            self._lists.pop(value, None)

    def _remove(self, key: str, value: Any) -> None:  # noqa: ANN401 - whatever JSON has
        its = self._members.get(value, {})
        its.pop(key, None)
        self._lists.pop(value, None)
        if not its:
            self._members.pop(value, None)

    def __getitem__(self, value: Any) -> list[Kept]:  # noqa: ANN401 - whatever JSON has
        found = self._lists.get(value)
        if found is None:
            found = self._lists[value] = list(self._members[value].values())
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


def change_all(grouped: Iterable[Grouped], key: str, former: Kept | None, kept: Kept | None) -> None:
    """The same in each of them."""
    for each in grouped:
        each.change(key, former, kept)
