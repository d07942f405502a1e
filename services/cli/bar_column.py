"""A column of a bar: `3/7`, and nothing where nobody counts."""

from __future__ import annotations

from rich.progress import MofNCompleteColumn, Task
from rich.text import Text


class HowMany(MofNCompleteColumn):
    """As rich has it, but for what is only waited for."""

    def render(self, task: Task) -> Text:
        """As ProgressColumn says."""
        return super().render(task) if task.completed or task.total else Text()
