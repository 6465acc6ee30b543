"""Messages on standard error before Django is loaded: progress and refusals."""

import sys
from typing import NoReturn


def say(line: str) -> None:
    """Print a line about the progress of starting."""
    sys.stderr.write(f"{line}\n")


def refuse(line: str, code: int = 2) -> NoReturn:
    """Print the line and end the program: with 2 for wrong input or environment, 1 for an error of ours."""
    sys.stderr.write(line.strip() + "\n")
    raise SystemExit(code)
