"""slow_clients: the longest of five requests while thousands of clients send nothing, or half a request."""

import time
from typing import Any

from tests.slow_clients import HALF_BODY, HALF_HEADER, IDLE, clients, longest_of_five
from tools.bench.judging import served

KINDS = {
    "2,500 idle connections": (2500, IDLE),
    "2,500 half-sent headers": (2500, HALF_HEADER),
    "2,000 half-sent bodies": (2000, HALF_BODY),
}


def measure() -> list[dict[str, Any]]:
    """Return a figure for each kind of client."""
    figures = []
    with served() as port:
        longest_of_five(port)  # A warm-up.
        without_clients = longest_of_five(port)
        for case, (number, sent) in KINDS.items():
            with clients(port, number, sent):
                time.sleep(1)
                seconds = longest_of_five(port)
            figures.append(
                {
                    "name": "slow_clients",
                    "case": case,
                    "value": round(seconds, 3),
                    "unit": "s",
                    "aim": "1 and less",
                    "beside_none_s": round(without_clients, 3),
                }
            )
    return figures
