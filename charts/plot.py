"""The box between two axes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from charts.drawing import Canvas, format_figure


@dataclass(frozen=True, slots=True)
class Plot:
    """The box between the axes, and how values become places."""

    left: float
    top: float
    right: float
    bottom: float
    x_ticks: list[float]
    y_ticks: list[float]

    def x(self, value: float) -> float:
        low, high = self.x_ticks[0], self.x_ticks[-1]
        return self.left + (value - low) / (high - low) * (self.right - self.left)

    def y(self, value: float) -> float:
        low, high = self.y_ticks[0], self.y_ticks[-1]
        return self.bottom - (value - low) / (high - low) * (self.bottom - self.top)

    def axes(self, canvas: Canvas, x: str, y: str, names: Mapping[float, str] | None = None) -> None:
        for at in self.y_ticks:
            canvas.rule(self.left, self.y(at), self.right, self.y(at))
            canvas.text(self.left - 8, self.y(at) + 4, format_figure(at), anchor="end")
        for at in self.x_ticks if names is None else names:
            words = format_figure(at) if names is None else names[at]
            canvas.text(self.x(at), self.bottom + 18, words, anchor="middle")
        canvas.rule(self.left, self.bottom, self.right, self.bottom, kind="soft")
        canvas.text((self.left + self.right) / 2, self.bottom + 38, x, anchor="middle")
        canvas.text(14, (self.top + self.bottom) / 2, y, anchor="middle", turned=True)
