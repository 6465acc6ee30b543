"""What is said before Django loads, on standard error: progress, refusals."""

import sys
from typing import NoReturn


def say(line: str) -> None:
    """Print a line about the progress of a start."""
    sys.stderr.write(f"{line}\n")


def refuse(line: str, code: int = 2) -> NoReturn:
    """Print the line and exit: 2 for wrong input or surroundings, 1 for our error."""
    sys.stderr.write(line.strip() + "\n")
    raise SystemExit(code)
