"""The policy of retries: which requests are sent again, and when."""

import random
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import httpx2

TOO_MANY = 429
# Statuses after which a retry may succeed. Also 500, because a failed request with an
# Idempotency-Key has changed nothing.
FAULTS = frozenset({TOO_MANY, 500, 502, 503, 504})
# The connection broke, and the server may have processed the request.
LOST = (httpx2.NetworkError, httpx2.TimeoutException, httpx2.RemoteProtocolError, httpx2.ProxyError)
# The request was not sent, so that a retry is safe for every method.
UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


@dataclass(frozen=True)
class RetryPolicy:
    """Limits of retries: attempts of a request in all, and seconds of the pauses between them.

    Without Retry-After, the n-th pause is drawn from 0 to `first` * 2 ** (n - 1). If the server asks for more
    than `longest`, there are no further attempts.
    """

    # The five pauses take at most 15.5 seconds, enough for a restart of the server.
    attempts: int = 6
    first: float = 0.5
    longest: float = 120.0

    def pause(
        self, attempt: int, response: httpx2.Response | None, failure: Exception | None, *, is_repeatable: bool
    ) -> float | None:
        """Return the seconds before the next attempt; None: no further attempt.

        `is_repeatable`: the request is safe to repeat. Others are repeated only if the server has not processed them.
        """
        if response is not None:
            # A 429 was refused before processing, so that it can always be repeated.
            may_retry = response.status_code in FAULTS if is_repeatable else response.status_code == TOO_MANY
        else:
            may_retry = isinstance(failure, LOST if is_repeatable else UNSENT)
        if attempt >= self.attempts or not may_retry:
            return None
        # Retry-After has precedence over the policy's pauses.
        requested = read_retry_after(response) if response is not None else None
        if requested is not None:
            return requested if requested <= self.longest else None
        # From 0 on, so that clients that failed together do not retry together.
        return random.uniform(0, min(self.longest, self.first * 2 ** (attempt - 1)))


def read_retry_after(response: httpx2.Response) -> float | None:
    """Return the seconds of Retry-After, given as a number or a date; None where it is absent or malformed."""
    # RFC 9110, section 10.2.3: seconds, or an HTTP date.
    text = response.headers.get("Retry-After", "").strip()
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None
