"""Vertex AI with Anthropic's models, by Anthropic's client for it."""

from anthropic import AsyncAnthropicVertex

from judges.providers.anthropic import AnthropicProvider
from judges.providers.base import PLACEHOLDER
from judges.providers.google_account import GoogleAccount, Place, place_of
from judges.providers.received import Received
from judges.records import Judge, ModelRequest


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
                access_token=PLACEHOLDER,
                base_url=f"{self.base_url}/v1",
                **self.settings(),
            )
        return self.clients[place]

    async def send(self, request: ModelRequest, received: Received) -> None:
        """As Anthropic's, in the judge's project: its client is looked at before anything is waited for."""
        self.client = self.client_of(request.judge)
        await super().send(request, received)

    async def close(self) -> None:
        """Release the connections."""
        for client in self.clients.values():
            await client.close()
