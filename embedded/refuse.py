"""The one way in which the platform says no before Django is there: one line on standard error, exit 2."""

import sys
from typing import NoReturn


def refuse(line: str, code: int = 2) -> NoReturn:
    """Print the line and leave. 2: the input or the place is wrong; 1: our fault."""
    sys.stderr.write(line.strip() + "\n")
    raise SystemExit(code)
