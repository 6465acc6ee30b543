"""Progress bars, made by tqdm."""

from types import TracebackType
from typing import Any

from quorum_client.extras import import_extra


class ProgressBar:
    """A bar in the terminal or in a notebook, if it is to be shown."""

    def __init__(self, title: str, *, is_shown: bool, unit: str = "") -> None:
        self._bar: Any = None
        if is_shown:
            # `auto` draws a widget in notebooks.
            tqdm = import_extra("tqdm.auto", "progress", "progress=True").tqdm
            self._bar = tqdm(desc=title, unit=unit, unit_scale=unit == "B", total=0)

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, done: int, total: int | None) -> None:
        """Show the amount done, and the total where it is known."""
        if self._bar is not None:
            # Without a total the bar only counts.
            self._bar.total = total or None
            self._bar.n = done
            self._bar.refresh()
