"""Vertex AI with Google's models, by google-genai's client for it."""

from google import genai
from google.genai import types
from google.oauth2.credentials import Credentials

from judges.providers.google import GoogleProvider
from judges.providers.google_account import GoogleAccount, Place, place_of
from judges.records import Judge, Request


class VertexProvider(GoogleAccount, GoogleProvider):
    """POST <base_url>/v1/projects/<project>/locations/<region>/publishers/google/models/<model>:generateContent."""

    api_version = "v1"

    def open_client(self, judge: Judge, options: types.HttpOptions) -> genai.Client:
        """The client of the judge's project and region; one for each pair of them. Its token is set as it leaves."""
        self.options = options
        self.clients: dict[Place, genai.Client] = {}
        return self.client_of(judge)

    def client_of(self, judge: Judge) -> genai.Client:
        """The client of the judge's project and region."""
        place = project, region = place_of(judge)
        if place not in self.clients:
            self.clients[place] = genai.Client(
                vertexai=True,
                project=project,
                location=region,
                credentials=Credentials(token="set-as-it-leaves"),  # type: ignore[no-untyped-call]
                http_options=self.options,
            )
        return self.clients[place]

    async def send(self, request: Request) -> object:
        """As Google AI's, in the judge's project: its client is looked at before anything is waited for."""
        self.client = self.client_of(request.judge)
        return await super().send(request)
