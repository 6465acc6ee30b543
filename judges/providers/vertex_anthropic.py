"""Vertex AI with Anthropic's models, by Anthropic's client for it."""

from anthropic import AsyncAnthropicVertex

from judges.providers.anthropic import AnthropicProvider
from judges.providers.google_account import GoogleAccount, Place, place_of
from judges.records import Judge, Request


class VertexAnthropicProvider(GoogleAccount, AnthropicProvider):
    """POST <base_url>/v1/projects/<project>/locations/<region>/publishers/anthropic/models/<model>:rawPredict."""

    def open_client(self, judge: Judge) -> AsyncAnthropicVertex:
        """The client of the judge's project and region; one for each pair of them. Its token is set as it leaves."""
        self.clients: dict[Place, AsyncAnthropicVertex] = {}
        return self.client_of(judge)

    def client_of(self, judge: Judge) -> AsyncAnthropicVertex:
        """The client of the judge's project and region. It makes the address and names the version in the body."""
        place = project, region = place_of(judge)
        if place not in self.clients:
            self.clients[place] = AsyncAnthropicVertex(
                project_id=project,
                region=region,
                access_token="set-as-it-leaves",
                base_url=f"{self.base_url}/v1",
                http_client=self.http,
                max_retries=0,
                timeout=None,
            )
        return self.clients[place]

    async def send(self, request: Request) -> object:
        """As Anthropic's, in the judge's project: its client is looked at before anything is waited for."""
        self.client = self.client_of(request.judge)
        return await super().send(request)
