"""What is said before Django is loaded, on standard error: progress of a start, and a refusal with exit 2."""

import sys
from typing import NoReturn


def say(line: str) -> None:
    """Print a line about the progress of a start."""
    sys.stderr.write(f"{line}\n")


def refuse(line: str, code: int = 2) -> NoReturn:
    """Print the line and exit: 2 for wrong input or surroundings, 1 for an error of Quorum's own."""
    sys.stderr.write(line.strip() + "\n")
    raise SystemExit(code)
