"""Refusal to start before Django is loaded: one line on standard error, exit 2."""

import sys
from typing import NoReturn


def refuse(line: str, code: int = 2) -> NoReturn:
    """Print the line and exit: 2 for wrong input or surroundings, 1 for an error of Quorum's own."""
    sys.stderr.write(line.strip() + "\n")
    raise SystemExit(code)
