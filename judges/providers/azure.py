"""Azure OpenAI: chat completions of a deployment, by the SDK's own client. The judge's model is the deployment."""

from typing import Any

from openai import AsyncAzureOpenAI, Omit

from judges.providers.base import PLACEHOLDER
from judges.providers.openai import OpenAIProvider
from judges.providers.received import Received
from judges.records import Judge, ModelRequest


class AzureProvider(OpenAIProvider):
    """POST <base_url>/openai/deployments/<model>/chat/completions?api-version=..."""

    key_header = "api-key"
    key_prefix = ""

    def open_client(self, judge: Judge) -> AsyncAzureOpenAI:
        """It makes the deployment's address of the model in a request's body."""
        return AsyncAzureOpenAI(
            azure_endpoint=self.base_url, api_version=_api_version(judge), api_key=PLACEHOLDER, **self.settings()
        )

    def options(self, request: ModelRequest, received: Received) -> dict[str, Any]:
        """With the judge's own version: judges of one account may differ in it."""
        found = super().options(request, received)
        if "api-key" not in received.credentials:
            found["extra_headers"] = {"api-key": Omit(), **found["extra_headers"]}
        return {**found, "extra_query": {"api-version": _api_version(request.judge)}}


def _api_version(judge: Judge) -> str:
    return str(judge.parameters.get("api_version", ""))
