"""The providers' batch endpoints, through their SDKs: prepare, create, look, take the answers.

A batch is paid for once it is created, so nothing here is tried again: no SDK retries, and who
created a batch without getting an answer looks for it (docs/adr/0021).
"""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx2

from judges.engine.answers import describe_own_fault
from judges.errors import ProviderError, Unreachable
from judges.providers import open_provider
from judges.providers.base import SdkProvider
from judges.providers.connections import describe_failure, is_of_connection, tls_context
from judges.providers.replies import NO_QUOTA, get_path, parse_body, refusal_error
from judges.records import Body, Judge, ModelRequest

if TYPE_CHECKING:
    from anthropic.types.messages import MessageBatch


logger = logging.getLogger(__name__)

MEGABYTE = 1_000_000
# Calls and bytes that one batch holds at most, by wire. OpenAI, Anthropic and Google take 50,000
# calls and 200 MB; 100,000 and 256 MB; 20 MB inlined: there is room for what differs from our own
# count, and a batch is held in memory while it is sent.
MOST = {
    "chat": (20_000, 100 * MEGABYTE),
    "messages": (20_000, 120 * MEGABYTE),
    "generate": (2_000, 15 * MEGABYTE),
}
SKEW = timedelta(minutes=10)  # By which a provider's clock may differ from ours.
TIMEOUT_S = 600.0
NEVER_LEFT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
# None of the providers promises to heed the key for batches; a gateway in between may.
IDEMPOTENCY = "Idempotency-Key"
BY_PLACE = "#"  # Begins the key of an answer that names no call: its place among the answers follows.
# What an error in an answer would have had for a status, had its call been made alone: by
# Anthropic's types of errors, and by gRPC's codes (Google). Any other passes.
STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
}
STATUS_OF_CODE = {
    3: (400, "INVALID_ARGUMENT"),
    5: (404, "NOT_FOUND"),
    7: (403, "PERMISSION_DENIED"),
    8: (429, "RESOURCE_EXHAUSTED"),
    9: (400, "FAILED_PRECONDITION"),
    16: (401, "UNAUTHENTICATED"),
}
UNCLEAR = (408, 409)  # Statuses below 500 that do not say whether the batch was created.


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """State of a batch as its provider reports it."""

    ended: bool
    failure: str = ""  # Why it ended without answers: it was refused as a whole, and nothing of it was asked.
    crowded: bool = False  # It was refused for what else is out: later it may be taken.
    begun: bool = True  # The provider has looked at it and taken it.
    of_account: bool = False  # The account is refused (its money is spent), and would be for any other batch.


class Endpoint(ABC):
    """The batch endpoint of one account, by the SDK's client: bodies in files."""

    client: Any

    def __init__(self, judge: Judge) -> None:
        provider = open_provider(judge)
        # Only providers that are called through an SDK have a batch endpoint.
        assert isinstance(provider, SdkProvider)
        self.provider: Any = provider
        key = next(iter(provider.credentials().values()), "none")
        self.key = key.removeprefix(provider.key_prefix)
        self.base_url = provider.base_url
        self.http = httpx2.AsyncClient(
            # A file of answers may lie behind a redirect.
            verify=tls_context(self.base_url) or True,
            timeout=TIMEOUT_S,
            follow_redirects=True,
        )

    @abstractmethod
    async def prepare(self, name: str, calls: Sequence[tuple[str, ModelRequest]]) -> Any:
        """Return what `create` sends of the calls, by their ids. Preparing costs nothing and may be done again."""

    @abstractmethod
    async def create(self, name: str, prepared: Any) -> str:
        """Create the batch at the provider with exactly one request, and return its id: from here on it is paid for."""

    @abstractmethod
    async def find(self, name: str, calls: int, since: datetime) -> str | None:
        """Return the provider's id of a batch of so many calls that was created under the name; None: none is seen."""

    async def fits(self, calls: int, since: datetime, known: Collection[str]) -> str | None:
        """Return the one batch that is under way, has so many calls, is from that time and none of those `known`."""
        # For providers that show no names, and tell whose calls a batch holds only once it has ended.
        return None

    @abstractmethod
    async def look(self, batch: str) -> BatchStatus:
        """Ask the provider for the state of a batch."""

    @abstractmethod
    def answers(self, batch: str) -> AsyncIterator[tuple[str, Body | ProviderError]]:
        """Yield each call's answer or error with its id; missing ones got none."""

    @abstractmethod
    async def cancel(self, batch: str) -> None:
        """Ask the provider to end it early; answers that are there stay."""

    async def close(self) -> None:
        await self.client.close()


class OpenAIBatches(Endpoint):
    """A file of requests, a batch over it, a file of answers."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        from openai import AsyncOpenAI

        self.client: AsyncOpenAI = AsyncOpenAI(
            # No retries by the SDK: a second `create` would be a second batch, paid for twice.
            api_key=self.key,
            base_url=self.base_url,
            http_client=self.http,
            max_retries=0,
        )

    async def prepare(self, name: str, calls: Sequence[tuple[str, ModelRequest]]) -> Any:
        """Return the id of an uploaded file."""
        to = {"method": "POST", "url": "/v1/chat/completions"}
        lines = [json.dumps({"custom_id": key, **to, "body": self.provider.body(request)}) for key, request in calls]
        content = "\n".join(lines).encode()
        return (await self.client.files.create(file=(f"{name}.jsonl", content), purpose="batch")).id

    async def create(self, name: str, prepared: Any) -> str:
        batch = await self.client.batches.create(
            input_file_id=prepared,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={"quorum": name},
            extra_headers={IDEMPOTENCY: name},
        )
        return batch.id

    async def find(self, name: str, calls: int, since: datetime) -> str | None:
        async for batch in self.client.batches.list(limit=100):
            if (batch.metadata or {}).get("quorum") == name:
                return batch.id
            # Batches come newest first: older than the batch can be, with the clocks' difference,
            # nothing is looked for.
            if datetime.fromtimestamp(batch.created_at, UTC) < since - SKEW:
                break
        return None

    async def look(self, batch: str) -> BatchStatus:
        found = await self.client.batches.retrieve(batch)
        if found.status == "failed":
            errors = (found.errors and found.errors.data) or []
            said = "; ".join(error.message or "" for error in errors) or "the batch failed"
            codes = {error.code for error in errors}
            return BatchStatus(True, said, "token_limit_exceeded" in codes, of_account=not NO_QUOTA.isdisjoint(codes))
        return BatchStatus(found.status in ("completed", "expired", "cancelled"), begun=found.status != "validating")

    async def answers(self, batch: str) -> AsyncIterator[tuple[str, Body | ProviderError]]:
        found = await self.client.batches.retrieve(batch)
        # Calls that failed stand in a file of their own.
        for file in filter(None, (found.output_file_id, found.error_file_id)):
            content = await self.client.files.content(file)
            # Only a line feed ends a line: other separators of lines are text, and may stand in an answer as they are.
            for line in content.content.split(b"\n"):
                if line.strip() and (answer := self._answer(line)) is not None:
                    yield answer

    def _answer(self, line: bytes) -> tuple[str, Body | ProviderError] | None:
        """One call's answer; None for a broken line, which spoils no other."""
        entry = parse_body(line.decode("utf-8", "replace"))
        key, status = entry.get("custom_id"), get_path(entry, "response", "status_code")
        if not isinstance(key, str):
            logger.warning("%s: a line of a batch's answers cannot be read: %.200r", self.provider.host, line)
            return None
        body = get_path(entry, "response", "body")
        if body and isinstance(status, int):
            return key, Body(status, _dump_json(body))
        return key, Unreachable(f"{self.provider.host}: {_dump_json(entry.get('error'))}")

    async def cancel(self, batch: str) -> None:
        await self.client.batches.cancel(batch)


class AnthropicBatches(Endpoint):
    """Anthropic's message batches.

    They carry no name: a batch whose id was lost is found by its calls' ids in its results.
    """

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        from anthropic import AsyncAnthropic

        self.client: AsyncAnthropic = AsyncAnthropic(
            api_key=self.key, base_url=self.base_url, http_client=self.http, max_retries=0
        )

    async def prepare(self, name: str, calls: Sequence[tuple[str, ModelRequest]]) -> Any:
        """Return the calls as the wire format has them."""
        return [{"custom_id": key, "params": self.provider.body(request)} for key, request in calls]

    async def create(self, name: str, prepared: Any) -> str:
        headers = {IDEMPOTENCY: name}
        return (await self.client.messages.batches.create(requests=prepared, extra_headers=headers)).id

    async def find(self, name: str, calls: int, since: datetime) -> str | None:
        async for batch in self._alike("ended", calls, since):
            results = await self.client.messages.batches.results(batch.id)
            try:
                # One entry tells: all calls of a batch carry its name.
                entry = await anext(aiter(results), None)
            finally:
                await results.close()
            if entry is not None and entry.custom_id.rpartition("-")[0] == name:
                return batch.id
        return None

    async def fits(self, calls: int, since: datetime, known: Collection[str]) -> str | None:
        alike = [batch async for batch in self._alike("in_progress", calls, since) if batch.id not in known]
        # Anthropic's batches carry no name, so the time and the number of calls have to do.
        found = [batch.id for batch in alike if batch.created_at < since + SKEW]
        return found[0] if len(found) == 1 else None  # where two fit, neither is taken

    async def _alike(self, status: str, calls: int, since: datetime) -> "AsyncIterator[MessageBatch]":
        """The batches of so many calls from that time on which have this status, newest first."""
        async for batch in self.client.messages.batches.list(limit=100):
            if batch.created_at < since - SKEW:
                break
            counts = batch.request_counts
            size = counts.canceled + counts.errored + counts.expired + counts.processing + counts.succeeded
            if batch.processing_status == status and size == calls:
                yield batch

    async def look(self, batch: str) -> BatchStatus:
        return BatchStatus((await self.client.messages.batches.retrieve(batch)).processing_status == "ended")

    async def answers(self, batch: str) -> AsyncIterator[tuple[str, Body | ProviderError]]:
        async for entry in await self.client.messages.batches.results(batch):
            result = entry.result
            if result.type == "succeeded":
                yield entry.custom_id, Body(200, result.message.to_json(indent=None))
            elif result.type == "errored":
                raw = result.error.to_json(indent=None)
                status = STATUS_OF_TYPE.get(result.error.error.type, 500)
                yield entry.custom_id, refusal_error(self.provider.host, status, raw, None)
            else:
                yield entry.custom_id, Unreachable(f"{self.provider.host}: the call {result.type} in its batch")

    async def cancel(self, batch: str) -> None:
        await self.client.messages.batches.cancel(batch)


class GoogleBatches(Endpoint):
    """Inlined requests of one model; the answers stand in the job."""

    ENDED = ("JOB_STATE_SUCCEEDED", "JOB_STATE_PARTIALLY_SUCCEEDED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED")

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        from google import genai
        from google.genai import types

        options = types.HttpOptions(
            base_url=self.base_url,
            api_version="v1beta",
            httpx_async_client=self.http,
            retry_options=types.HttpRetryOptions(attempts=1),
        )
        self.client = genai.Client(api_key=self.key, vertexai=False, http_options=options)

    async def prepare(self, name: str, calls: Sequence[tuple[str, ModelRequest]]) -> Any:
        """Return the model and the calls as the SDK takes them."""
        from google.genai import types

        requests = [
            types.InlinedRequest(
                contents=request.prompt.user, config=self.provider.config(request), metadata={"key": key}
            )
            for key, request in calls
        ]
        return calls[0][1].judge.model, requests

    async def create(self, name: str, prepared: Any) -> str:
        from google.genai import types

        model, requests = prepared
        config = types.CreateBatchJobConfig(display_name=name)
        job = await self.client.aio.batches.create(model=model, src=requests, config=config)
        return str(job.name)

    async def find(self, name: str, calls: int, since: datetime) -> str | None:
        async for job in await self.client.aio.batches.list(config={"page_size": 100}):
            if job.display_name == name:
                return str(job.name)
            if job.create_time is not None and job.create_time < since - SKEW:
                break
        return None

    async def look(self, batch: str) -> BatchStatus:
        job = await self.client.aio.batches.get(name=batch)
        state = job.state.name if job.state else ""
        if state == "JOB_STATE_FAILED":
            return BatchStatus(True, (job.error and job.error.message) or "the batch failed")
        return BatchStatus(state in self.ENDED)

    async def answers(self, batch: str) -> AsyncIterator[tuple[str, Body | ProviderError]]:
        job = await self.client.aio.batches.get(name=batch)
        for place, entry in enumerate((job.dest and job.dest.inlined_responses) or []):
            # They come in the order of the calls, should the keys be missing.
            key = (entry.metadata or {}).get("key") or f"{BY_PLACE}{place}"
            if entry.response is not None:
                yield key, Body(200, entry.response.model_dump_json(by_alias=True, exclude_none=True))
            else:
                message = entry.error.message if entry.error else "no answer"
                status, name = STATUS_OF_CODE.get((entry.error and entry.error.code) or 13, (500, "INTERNAL"))
                raw = _dump_json({"error": {"message": message, "status": name}})
                yield key, refusal_error(self.provider.host, status, raw, None)

    async def cancel(self, batch: str) -> None:
        await self.client.aio.batches.cancel(name=batch)

    async def close(self) -> None:
        await self.client.aio.aclose()
        await self.http.aclose()


# By wire, for presets with a batch endpoint.
ENDPOINTS: dict[str, type[Endpoint]] = {
    "chat": OpenAIBatches,
    "messages": AnthropicBatches,
    "generate": GoogleBatches,
}


def status_of(error: Exception) -> int | None:
    """Return the status that the provider answered with; None where it did not answer."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return status if isinstance(status, int) else None


def was_not_created(error: Exception) -> bool:
    """Whether the provider surely has not begun the batch: it refused it, or was never reached."""
    status = status_of(error)
    if status is not None:
        return 400 <= status < 500 and status not in UNCLEAR
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, NEVER_LEFT):
        cause = cause.__cause__
    return cause is not None


def read_refusal(error: Exception, host: str = "the provider") -> ProviderError | None:
    """Return the error of a single call that a refusal of the batch stands for; None where it was not refused."""
    status = status_of(error)
    return _read_error(error, status, host) if status is not None and 400 <= status < 500 else None


def _read_error(error: Exception, status: int, host: str) -> ProviderError:
    body = getattr(error, "body", None) or getattr(error, "details", None) or str(error)
    return refusal_error(host, status, body if isinstance(body, str) else _dump_json(body), None)


def describe_error(error: Exception, host: str = "the provider") -> str:
    """Return an error in one line of plain words: SDKs show objects of theirs, and of a connection that it failed."""
    if isinstance(error, ProviderError):
        return str(error)
    if (status := status_of(error)) is not None:
        return str(_read_error(error, status, host))
    return f"{host}: {describe_failure(error)}" if is_of_connection(error) else describe_own_fault(error)


def _dump_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
