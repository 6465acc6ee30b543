"""The providers' batch endpoints, through their SDKs: submit, look, take the answers."""

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from judges.providers import open_provider
from judges.providers.base import SdkProvider
from judges.providers.replies import refusal
from judges.records import Body, Judge, ProviderError, Request, Unreachable

MOST = {"openai": 20_000, "anthropic": 20_000, "google": 2_000}
"""Calls in one batch; the bounds of the providers in bytes are reached at about twice as many."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a provider says of a batch. `failure`: why it ended without answers, else ""."""

    ended: bool
    failure: str = ""


class Refused(Exception):
    """The provider does not take the batch, and would not take it a second time."""


class Endpoint(ABC):
    """The batch endpoint of one account. Its client is the SDK's own, without our wire: bodies come in files."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        provider = open_provider(judge)
        assert isinstance(provider, SdkProvider)
        self.provider: Any = provider
        key = next(iter(provider.credentials().values()), "none")
        self.key = key.removeprefix(provider.key_prefix)
        self.base_url = provider.base_url

    @abstractmethod
    async def submit(self, name: str, calls: Sequence[tuple[str, Request]]) -> str:
        """Send the calls, by their ids, as a batch of this name; the provider's id of it."""

    @abstractmethod
    async def find(self, name: str) -> str | None:
        """The provider's id of a batch that was submitted under the name; None where there is none, or no telling."""

    @abstractmethod
    async def look(self, batch: str) -> Look:
        """Whether it has ended."""

    @abstractmethod
    def answers(self, batch: str) -> AsyncIterator[tuple[str, Body | ProviderError]]:
        """What came of each call, by its id; calls that are missing got no answer."""

    @abstractmethod
    async def cancel(self, batch: str) -> None:
        """Ask the provider to end it early; answers that are there stay."""

    @abstractmethod
    async def close(self) -> None:
        """Release the connections."""


class OpenAIBatches(Endpoint):
    """A file of requests, a batch over it, a file of answers."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        from openai import AsyncOpenAI

        self.client = AsyncOpenAI(api_key=self.key, base_url=self.base_url)

    async def submit(self, name: str, calls: Sequence[tuple[str, Request]]) -> str:
        def line(key: str, request: Request) -> str:
            body = self.provider.body(request)
            return json.dumps({"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": body})

        content = "\n".join(line(key, request) for key, request in calls).encode()
        file = await self.client.files.create(file=(f"{name}.jsonl", content), purpose="batch")
        batch = await self.client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={"quorum": name},
        )
        return batch.id

    async def find(self, name: str) -> str | None:
        async for batch in self.client.batches.list(limit=100):
            if (batch.metadata or {}).get("quorum") == name:
                return batch.id
        return None

    async def look(self, batch: str) -> Look:
        found = await self.client.batches.retrieve(batch)
        if found.status == "failed":
            errors = (found.errors and found.errors.data) or []
            return Look(True, "; ".join(error.message or "" for error in errors) or "the batch failed")
        return Look(found.status in ("completed", "expired", "cancelled"))

    async def answers(self, batch: str) -> AsyncIterator[tuple[str, Body | ProviderError]]:
        found = await self.client.batches.retrieve(batch)
        for file in filter(None, (found.output_file_id, found.error_file_id)):
            content = await self.client.files.content(file)
            for line in content.text.splitlines():
                entry = json.loads(line)
                response = entry.get("response") or {}
                if response.get("body"):
                    yield entry["custom_id"], Body(int(response["status_code"]), _json(response["body"]))
                else:
                    yield entry["custom_id"], Unreachable(f"{self.provider.host}: {_json(entry.get('error'))}")

    async def cancel(self, batch: str) -> None:
        await self.client.batches.cancel(batch)

    async def close(self) -> None:
        await self.client.close()


class AnthropicBatches(Endpoint):
    """Message batches. They carry no name, so one that was sent by a process that died at once cannot be found."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        from anthropic import AsyncAnthropic

        self.client = AsyncAnthropic(api_key=self.key, base_url=self.base_url)

    async def submit(self, name: str, calls: Sequence[tuple[str, Request]]) -> str:
        requests: Any = [{"custom_id": key, "params": self.provider.body(request)} for key, request in calls]
        return (await self.client.messages.batches.create(requests=requests)).id

    async def find(self, name: str) -> str | None:
        return None

    async def look(self, batch: str) -> Look:
        return Look((await self.client.messages.batches.retrieve(batch)).processing_status == "ended")

    async def answers(self, batch: str) -> AsyncIterator[tuple[str, Body | ProviderError]]:
        async for entry in await self.client.messages.batches.results(batch):
            result = entry.result
            if result.type == "succeeded":
                yield entry.custom_id, Body(200, result.message.to_json(indent=None))
            elif result.type == "errored":
                raw = result.error.to_json(indent=None)
                status = 400 if result.error.error.type == "invalid_request_error" else 500
                yield entry.custom_id, refusal(self.provider.host, status, raw, None)
            else:
                yield entry.custom_id, Unreachable(f"{self.provider.host}: the call {result.type} in its batch")

    async def cancel(self, batch: str) -> None:
        await self.client.messages.batches.cancel(batch)

    async def close(self) -> None:
        await self.client.close()


class GoogleBatches(Endpoint):
    """Inlined requests of one model; the answers stand in the job."""

    ENDED = ("JOB_STATE_SUCCEEDED", "JOB_STATE_PARTIALLY_SUCCEEDED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED")

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        from google import genai
        from google.genai import types

        options = types.HttpOptions(base_url=self.base_url, api_version="v1beta")
        self.client = genai.Client(api_key=self.key, vertexai=False, http_options=options)

    async def submit(self, name: str, calls: Sequence[tuple[str, Request]]) -> str:
        from google.genai import types

        requests = [
            types.InlinedRequest(
                contents=request.prompt.user, config=self.provider.config(request), metadata={"key": key}
            )
            for key, request in calls
        ]
        model = calls[0][1].judge.model
        config = types.CreateBatchJobConfig(display_name=name)
        job = await self.client.aio.batches.create(model=model, src=requests, config=config)
        return str(job.name)

    async def find(self, name: str) -> str | None:
        async for job in await self.client.aio.batches.list(config={"page_size": 100}):
            if job.display_name == name:
                return str(job.name)
        return None

    async def look(self, batch: str) -> Look:
        job = await self.client.aio.batches.get(name=batch)
        state = job.state.name if job.state else ""
        if state == "JOB_STATE_FAILED":
            return Look(True, (job.error and job.error.message) or "the batch failed")
        return Look(state in self.ENDED)

    async def answers(self, batch: str) -> AsyncIterator[tuple[str, Body | ProviderError]]:
        job = await self.client.aio.batches.get(name=batch)
        for entry in (job.dest and job.dest.inlined_responses) or []:
            key = (entry.metadata or {}).get("key", "")
            if entry.response is not None:
                yield key, Body(200, entry.response.model_dump_json(by_alias=True, exclude_none=True))
            else:
                message = entry.error.message if entry.error else "no answer"
                code = (entry.error and entry.error.code) or 13
                # gRPC's codes: 3, 5, 7 and 9 are the request's own fault, another try would fail alike.
                yield key, refusal(self.provider.host, 400 if code in (3, 5, 7, 9) else 500, str(message), None)

    async def cancel(self, batch: str) -> None:
        await self.client.aio.batches.cancel(name=batch)

    async def close(self) -> None:
        await self.client.aio.aclose()


ENDPOINTS: dict[str, type[Endpoint]] = {
    "openai": OpenAIBatches,
    "anthropic": AnthropicBatches,
    "google": GoogleBatches,
}
"""By provider: judges.prices.BATCHED names them too."""


def is_final(error: Exception) -> bool:
    """Whether the provider refused the batch itself, so that sending it again is of no use."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return isinstance(status, int) and 400 <= status < 500 and status not in (408, 409, 429)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
