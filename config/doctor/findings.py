"""Findings of the doctor: one line for each, with what to do about it."""

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    OK = "ok"
    WARNING = "warning"  # It works, but deserves a look.
    PROBLEM = "problem"
    UNKNOWN = "unknown"  # A service that the check needs does not answer.


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. `remedy`: what to do; "" if all is well."""

    check: str
    health: Health
    says: str
    remedy: str = ""

    def line(self) -> str:
        """Return the finding as a line for people."""
        return f"{self.health:<8} {self.check}: {self.says}" + (f" -> {self.remedy}" if self.remedy else "")


def ok(check: str, says: str) -> Finding:
    return Finding(check, Health.OK, says)


def warn(check: str, says: str, remedy: str) -> Finding:
    return Finding(check, Health.WARNING, says, remedy)


def problem(check: str, says: str, remedy: str) -> Finding:
    return Finding(check, Health.PROBLEM, says, remedy)


def first_line(error: BaseException) -> str:
    """Return an error's message on one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__
