"""Errors of a call to a provider, which say whether another try may help."""

from judges.records import Reply


class ProviderError(Exception):
    """A call without an answer. `raw` is the body that came instead, if any."""

    retry = False
    billed = False  # The provider may charge for the call all the same, an unknown amount.
    late = False  # The call reached its time limit.

    def __init__(
        self, message: str, *, status: int | None = None, raw: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.raw = raw
        self.retry_after = retry_after  # Seconds that the provider asks us to wait.
        self.reply: Reply | None = None  # If the error reports the call's usage or cost.


class RateLimited(ProviderError):
    """Status 429: too many requests or tokens."""

    retry = True


class Overloaded(ProviderError):
    """Status 5xx: the provider's fault, worth another try."""

    retry = True


class Unreachable(ProviderError):
    """No connection, a dropped one, or no answer in time."""

    retry = True


class BadAnswer(ProviderError):
    """A body that is not the provider's wire format, though the status said success. Worth another try."""

    retry = True
    billed = True


class Rejected(ProviderError):
    """Another status 3xx or 4xx. Another try would fail; judges.domain.refusals says if other documents would."""


class Declined(Rejected):
    """Refusal of this one text: moderation, a content filter, a firewall, or its length."""


class Refused(Rejected):
    """Refusal of the account: a missing or wrong key, an unknown model, no rights, no quota.

    Every further call of the judge would fail, too.
    """


class NotSent(ProviderError):
    """The call was halted before it was sent."""
