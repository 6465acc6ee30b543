"""Policy of retries: which requests are sent again, and when."""

import random
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import httpx2

TOO_MANY = 429
# Statuses after which the same request may be answered well. 500 is among them: a request with a
# key that failed has left nothing.
FAULTS = frozenset({TOO_MANY, 500, 502, 503, 504})
# The connection broke: nobody knows whether the server did what was asked.
LOST = (httpx2.NetworkError, httpx2.TimeoutException, httpx2.RemoteProtocolError, httpx2.ProxyError)
# No byte of the request has left: to send it again is safe for every method.
UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


@dataclass(frozen=True)
class RetryPolicy:
    """Limits of retries: tries of a request in all, and seconds of the pauses between them.

    Without a Retry-After the n-th pause is drawn from 0 to `first` times 2 to the power of n - 1; a
    server that asks for more than `longest` gets no further try.
    """

    # The five pauses between them take 15.5 seconds at most: a restart of the server is survived.
    attempts: int = 6
    first: float = 0.5
    longest: float = 120.0

    def pause(
        self, attempt: int, response: httpx2.Response | None, failure: Exception | None, *, is_repeatable: bool
    ) -> float | None:
        """Return the seconds before the next try; None: this answer, or failure, is the last.

        `is_repeatable`: sent twice it happens once. Otherwise it is sent again only where the server did not begin it.
        """
        if attempt >= self.attempts or not _may_be_repeated(response, failure, is_repeatable):
            return None
        # The server's own wish comes before the policy's pauses.
        wanted = read_retry_after(response) if response is not None else None
        if wanted is not None:
            return wanted if wanted <= self.longest else None
        # From 0 on, and not around a middle: clients that failed together come back scattered.
        return random.uniform(0, min(self.longest, self.first * 2 ** (attempt - 1)))


def _may_be_repeated(response: httpx2.Response | None, failure: Exception | None, is_repeatable: bool) -> bool:
    if response is not None:
        # A 429 was refused before anything began, so even what must happen once may be sent again.
        return response.status_code in FAULTS if is_repeatable else response.status_code == TOO_MANY
    return isinstance(failure, LOST if is_repeatable else UNSENT)


def read_retry_after(response: httpx2.Response) -> float | None:
    """Return the seconds that the server asks for, by number or by date; None where it says nothing sensible."""
    # RFC 9110, section 10.2.3: seconds, or the date of HTTP.
    text = response.headers.get("Retry-After", "").strip()
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None
