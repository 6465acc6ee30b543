"""Vertex AI with Google's and Anthropic's models, each by the client of its own SDK.

The access token comes from the judge's command or from an environment variable. Otherwise Google's library looks for
Application Default Credentials: the service account's file that GOOGLE_APPLICATION_CREDENTIALS names, the login of
`gcloud auth application-default login`, or the machine's own account.
"""

from datetime import UTC

import google.auth
from anthropic import AsyncAnthropicVertex, DefaultAioHttpClient
from google import genai
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import Request
from google.genai import types
from google.oauth2.credentials import Credentials

from judges.errors import Refused
from judges.providers.anthropic import AnthropicProvider
from judges.providers.base import PLACEHOLDER, SdkProvider
from judges.providers.google import GoogleProvider
from judges.providers.received import Received
from judges.providers.tokens import AccessToken, make_token
from judges.records import Judge, ModelRequest

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
ADVICE = (
    "name a service account's file in GOOGLE_APPLICATION_CREDENTIALS where the workers run, or give the judge a "
    'token_command, e.g. ["gcloud", "auth", "print-access-token"]'
)
ProjectAndRegion = tuple[str, str]


class GoogleAccount(SdkProvider):
    """Base of the providers on Vertex AI. Judges of one account may use several projects."""

    key_header = "Authorization"
    key_prefix = "Bearer "

    async def authorized(self, judge: Judge) -> dict[str, str]:
        """Return the header with the token. Raises Refused if there is none."""
        # The judge's own key or command takes precedence over the machine's credentials.
        if judge.parameters.get("token_command") or self.key_env:
            return await super().authorized(judge)
        self.allow()
        return {"Authorization": f"Bearer {await self.tokens.of(SCOPE, self.default_token)}"}

    def shown_key(self) -> str:
        return super().shown_key() if self.key_env else "an access token of Google Cloud"

    def place(self, judge: Judge) -> ProjectAndRegion:
        """Return the project and region of the judge's model."""
        return str(judge.parameters["project"]), str(judge.parameters["region"])

    def default_token(self) -> AccessToken:
        """Return a token for the credentials that Google's library finds. Raises Refused."""
        try:
            credentials, _ = google.auth.default(scopes=[SCOPE])
            credentials.refresh(Request())  # type: ignore[no-untyped-call]
        except GoogleAuthError:
            # Without the error's message, which may contain parts of the credentials.
            raise Refused(f"{self.host}: no token of Google Cloud can be had: {ADVICE}") from None
        expiry = credentials.expiry  # In UTC, without a time zone.
        return make_token(str(credentials.token), expiry.replace(tzinfo=UTC).timestamp() if expiry else 0.0)


class VertexProvider(GoogleAccount, GoogleProvider):
    """Provider for Gemini on Vertex AI.

    POST <base_url>/v1/projects/<project>/locations/<region>/publishers/google/models/<model>:generateContent.
    """

    api_version = "v1"

    def open_client(self, judge: Judge, options: types.HttpOptions) -> genai.Client:
        """Return the client of the judge's project and region."""
        project, region = self.place(judge)
        # The real token is set on each request when it is sent; the client needs a placeholder.
        credentials = Credentials(token=PLACEHOLDER)  # type: ignore[no-untyped-call]
        return genai.Client(
            vertexai=True, project=project, location=region, credentials=credentials, http_options=options
        )


class VertexAnthropicProvider(GoogleAccount, AnthropicProvider):
    """Provider for Claude on Vertex AI.

    POST <base_url>/v1/projects/<project>/locations/<region>/publishers/anthropic/models/<model>:rawPredict.
    """

    def open_client(self, judge: Judge) -> AsyncAnthropicVertex:
        """Return the client of the judge's project and region. The token is set on each request when it is sent."""
        self.clients: dict[ProjectAndRegion, AsyncAnthropicVertex] = {}
        return self.client_of(judge)

    def client_of(self, judge: Judge) -> AsyncAnthropicVertex:
        """Return the client of the judge's project and region, which builds the address and adds the version."""
        project_and_region = project, region = self.place(judge)
        # Each client has its own connections, so there is one for each project and region.
        if project_and_region not in self.clients:
            self.clients[project_and_region] = AsyncAnthropicVertex(
                project_id=project,
                region=region,
                access_token=PLACEHOLDER,
                base_url=f"{self.base_url}/v1",
                **self.client_options(DefaultAioHttpClient),
            )
        return self.clients[project_and_region]

    async def send(self, request: ModelRequest, received: Received) -> None:
        """Send as Anthropic's provider, by the project's client, chosen before any await."""
        self.client = self.client_of(request.judge)
        await super().send(request, received)

    async def close(self) -> None:
        for client in self.clients.values():
            await client.close()
