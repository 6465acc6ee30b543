"""Webhooks: addresses that are told of events, and what was sent to them."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from quorum_client._async.resources import AsyncResource
from quorum_client.answers import build_body
from quorum_client.models import (
    ReplayedOut,
    WebhookChanges,
    WebhookDeliveryOut,
    WebhookOut,
    WebhookSecretOut,
)


class AsyncWebhooks(AsyncResource):
    """Webhooks of the collection; what they send is checked by `quorum_client.webhooks.verify`."""

    def list(self) -> AsyncIterator[WebhookOut]:
        """List the webhooks."""
        return self.transport.iterate(WebhookOut, self.at("webhooks"))

    async def create(self, url: str, events: Sequence[str], description: str = "") -> WebhookSecretOut:
        """Create a webhook; the answer holds its secret, which is shown only now.

        It takes no key, for the secret would be kept with it: a connection that breaks is not tried again.
        """
        body = {"url": url, "events": [*events], "description": description}
        return await self.transport.post(WebhookSecretOut, self.at("webhooks"), body, is_repeatable=False)

    async def read(self, number: int) -> WebhookOut:
        """Read a webhook."""
        return await self.transport.read(WebhookOut, self.at("webhooks", number))

    async def change(
        self, number: int, asked: WebhookChanges | None = None, *, if_match: WebhookOut | None = None, **fields: Any
    ) -> WebhookOut:
        """Change `url`, `events`, `description`; `active` disables or enables it."""
        body = build_body(WebhookChanges, asked, fields)
        return await self.transport.change(WebhookOut, self.at("webhooks", number), body, if_match)

    async def delete(self, number: int, *, if_match: WebhookOut | None = None) -> None:
        """Delete a webhook with its log."""
        await self.transport.delete(self.at("webhooks", number), if_match)

    async def replace_secret(self, number: int) -> WebhookSecretOut:
        """Replace the secret; for 24 hours the former one signs beside the new one."""
        path = self.at("webhooks", number, "secret")
        return await self.transport.post(WebhookSecretOut, path, is_repeatable=False)

    async def send_test(self, number: int) -> WebhookDeliveryOut:
        """Send the event webhook.test."""
        return await self.transport.post(WebhookDeliveryOut, self.at("webhooks", number, "test"))

    def deliveries(self, number: int, state: str | None = None) -> AsyncIterator[WebhookDeliveryOut]:
        """Iterate over the deliveries of the last 30 days; `state`: pending, delivered or failed."""
        params = {} if state is None else {"state": state}
        return self.transport.iterate(WebhookDeliveryOut, self.at("webhooks", number, "deliveries"), params)

    async def replay(self, number: int, delivery: int | None = None) -> int:
        """Send one delivery again, or all that failed; return how many."""
        body = {} if delivery is None else {"delivery": delivery}
        return (await self.transport.post(ReplayedOut, self.at("webhooks", number, "replay"), body)).replayed
