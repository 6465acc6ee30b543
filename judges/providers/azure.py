"""Azure OpenAI: chat completions of a deployment, by the SDK's own client. The judge's model is the deployment."""

from typing import Any

from openai import AsyncAzureOpenAI

from judges.providers.openai import OpenAIProvider
from judges.records import Judge, Request


class AzureProvider(OpenAIProvider):
    """POST <base_url>/openai/deployments/<model>/chat/completions?api-version=..."""

    key_header = "api-key"
    key_prefix = ""

    def open_client(self, judge: Judge) -> AsyncAzureOpenAI:
        """It makes the deployment's address of the model in a request's body."""
        return AsyncAzureOpenAI(
            azure_endpoint=self.base_url,
            api_version=_version(judge),
            api_key="set-as-it-leaves",
            http_client=self.http,
            max_retries=0,
            timeout=None,
        )

    def options(self, request: Request) -> Any:
        """With the judge's own version: judges of one account may differ in it."""
        return {**super().options(request), "params": {"api-version": _version(request.judge)}}


def _version(judge: Judge) -> str:
    return str(judge.parameters.get("api_version", ""))
