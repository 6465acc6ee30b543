"""What people's part of a policy costs. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SimulatedPeople:
    """None: unknown."""

    overlap: int  # People who judge an escalated pair.
    seconds: float | None  # Of a judgment: the median time on the page.
    hourly_rate: float | None  # USD.

    def hours(self, judgments: int) -> float | None:
        """Time on the page; no judgment takes none."""
        if not judgments:
            return 0.0
        return None if self.seconds is None else judgments * self.seconds / 3600

    def cost(self, judgments: int) -> float | None:
        """USD."""
        hours = self.hours(judgments)
        if not judgments or hours is None or self.hourly_rate is None:
            return None if judgments else 0.0
        return hours * self.hourly_rate
