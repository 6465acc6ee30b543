"""Access tokens of Google Cloud: of a judge's command, of a variable, or of Google's own library.

The library finds Application Default Credentials: a service account's file that GOOGLE_APPLICATION_CREDENTIALS names,
what `gcloud auth application-default login` left, or the machine's own account.
"""

from datetime import UTC

import google.auth
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import Request

from judges.providers.base import SdkProvider
from judges.providers.tokens import AccessToken, make_token
from judges.records import Judge, Refused

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
ADVICE = (
    "name a service account's file in GOOGLE_APPLICATION_CREDENTIALS where the workers run, or give the judge a "
    'token_command, e.g. ["gcloud", "auth", "print-access-token"]'
)
Place = tuple[str, str]


class GoogleAccount(SdkProvider):
    """What providers on Vertex AI have in common. Judges of one account may ask in several projects."""

    key_header = "Authorization"
    key_prefix = "Bearer "

    async def authorized(self, judge: Judge) -> dict[str, str]:
        """The header with the token. Raises Refused where there is none."""
        if judge.parameters.get("token_command") or self.key_env:
            return await super().authorized(judge)
        self.allow()
        return {"Authorization": f"Bearer {await self.tokens.of(SCOPE, self.default_token)}"}

    def shown_key(self) -> str:
        """A token, whoever gave it."""
        return self.key_env or "an access token of Google Cloud"

    def default_token(self) -> AccessToken:
        """Of the credentials that Google's library finds."""
        try:
            credentials, _ = google.auth.default(scopes=[SCOPE])
            credentials.refresh(Request())  # type: ignore[no-untyped-call]
        except GoogleAuthError as error:
            why = type(error).__name__
            raise Refused(f"{self.host}: no token of Google Cloud can be had ({why}): {ADVICE}") from None
        expiry = credentials.expiry  # without a zone, and meant as UTC
        return make_token(str(credentials.token), expiry.replace(tzinfo=UTC).timestamp() if expiry else 0.0)


def place_of(judge: Judge) -> Place:
    """Project and region in which the judge's model is asked."""
    return str(judge.parameters["project"]), str(judge.parameters["region"])
