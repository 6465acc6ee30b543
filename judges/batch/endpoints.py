"""The providers' batch endpoints, through their SDKs: prepare and create a batch, poll it, read its answers.

A batch is paid for once it is created, so nothing here is retried, not even by the SDKs: a batch whose
creation got no answer is looked for instead (docs/adr/0021).
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
# The most calls and bytes of one batch, by wire format. OpenAI, Anthropic and Google take 50,000
# calls and 200 MB; 100,000 and 256 MB; 20 MB inlined. Ours are lower, because our count of bytes is an
# estimate, and a batch is in memory while it is sent.
MOST = {
    "chat": (20_000, 100 * MEGABYTE),
    "messages": (20_000, 120 * MEGABYTE),
    "generate": (2_000, 15 * MEGABYTE),
}
SKEW = timedelta(minutes=10)  # The most by which a provider's clock may differ from ours.
TIMEOUT_S = 600.0
NEVER_LEFT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
# No provider promises to respect the key for batches; a gateway in between may.
IDEMPOTENCY = "Idempotency-Key"
BY_PLACE = "#"  # Prefix of the key of an answer that names no call; its position among the answers follows.
# The HTTP status that an error in an answer would have had in a single call: by Anthropic's types of
# errors, and by gRPC's codes (Google). All other errors may pass.
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
    failure: str = ""  # Why the batch was refused as a whole, without a call to the model.
    crowded: bool = False  # It was refused because of the account's other batches, and may be accepted later.
    begun: bool = True  # The provider has checked and accepted it.
    of_account: bool = False  # The account is refused (its money is spent), and would be for any other batch.


class Endpoint(ABC):
    """The batch endpoint of one account, through the provider's SDK."""

    client: Any

    def __init__(self, judge: Judge) -> None:
        provider = open_provider(judge)
        # Only providers that are called through an SDK have a batch endpoint.
        assert isinstance(provider, SdkProvider)
        self.provider: Any = provider
        provider.encrypted_key = judge.encrypted_key  # The account's client may be older than the key.
        key = next(iter(provider.credentials().values()), "none")
        self.key = key.removeprefix(provider.key_prefix)
        self.base_url = provider.base_url
        self.http = httpx2.AsyncClient(
            verify=tls_context(self.base_url) or True,
            timeout=TIMEOUT_S,
            follow_redirects=True,  # a file of answers may be behind one
        )

    @abstractmethod
    async def prepare(self, name: str, calls: Sequence[tuple[str, ModelRequest]]) -> Any:
        """Return what `create` sends for calls of (key, request). This costs nothing and may be repeated."""

    @abstractmethod
    async def create(self, name: str, prepared: Any) -> str:
        """Create the batch with exactly one request, and return the provider's id: from here on it is paid for."""

    @abstractmethod
    async def find(self, name: str, calls: int, since: datetime) -> str | None:
        """Return the provider's id of a batch of `calls` calls that was created under the name, if it has one."""

    async def fits(self, calls: int, since: datetime, known_ids: Collection[str]) -> str | None:
        """Return the only batch in progress with `calls` calls, from that time and not of `known_ids`; else None.

        For providers that store no names, and show whose calls a batch contains only once it has ended.
        """
        return None

    @abstractmethod
    async def look(self, batch: str) -> BatchStatus:
        """Ask the provider for the state of a batch."""

    @abstractmethod
    def answers(self, batch: str) -> AsyncIterator[tuple[str, Body | ProviderError]]:
        """Yield the key of each answered call with its answer or error."""

    @abstractmethod
    async def cancel(self, batch: str) -> None:
        """Ask the provider to end the batch early; the answers so far are kept."""

    async def close(self) -> None:
        await self.client.close()


class OpenAIBatches(Endpoint):
    """OpenAI's batches: a file of requests, a batch of the file, a file of answers."""

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
        """Upload the file of requests, and return its id."""
        route = {"method": "POST", "url": "/v1/chat/completions"}
        lines = [json.dumps({"custom_id": key, **route, "body": self.provider.body(request)}) for key, request in calls]
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
            # Batches are listed newest first: the search ends at those older than ours can be.
            if datetime.fromtimestamp(batch.created_at, UTC) < since - SKEW:
                break
        return None

    async def look(self, batch: str) -> BatchStatus:
        job = await self.client.batches.retrieve(batch)
        if job.status == "failed":
            errors = (job.errors and job.errors.data) or []
            message = "; ".join(error.message or "" for error in errors) or "the batch failed"
            codes = {error.code for error in errors}
            return BatchStatus(
                True, message, "token_limit_exceeded" in codes, of_account=not NO_QUOTA.isdisjoint(codes)
            )
        return BatchStatus(job.status in ("completed", "expired", "cancelled"), begun=job.status != "validating")

    async def answers(self, batch: str) -> AsyncIterator[tuple[str, Body | ProviderError]]:
        job = await self.client.batches.retrieve(batch)
        # Calls that failed are in a separate file.
        for file in filter(None, (job.output_file_id, job.error_file_id)):
            content = await self.client.files.content(file)
            # Only a line feed ends a line: other line separators may occur within an answer's text.
            for line in content.content.split(b"\n"):
                if line.strip() and (answer := self._answer(line)) is not None:
                    yield answer

    def _answer(self, line: bytes) -> tuple[str, Body | ProviderError] | None:
        """Return the key and answer of one call; None for a line that cannot be read."""
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

    They have no names: a batch whose id was lost is found by the keys of its calls in its results.
    """

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        from anthropic import AsyncAnthropic

        self.client: AsyncAnthropic = AsyncAnthropic(
            api_key=self.key, base_url=self.base_url, http_client=self.http, max_retries=0
        )

    async def prepare(self, name: str, calls: Sequence[tuple[str, ModelRequest]]) -> Any:
        """Return the calls in the wire format."""
        return [{"custom_id": key, "params": self.provider.body(request)} for key, request in calls]

    async def create(self, name: str, prepared: Any) -> str:
        headers = {IDEMPOTENCY: name}
        return (await self.client.messages.batches.create(requests=prepared, extra_headers=headers)).id

    async def find(self, name: str, calls: int, since: datetime) -> str | None:
        async for batch in self._similar("ended", calls, since):
            results = await self.client.messages.batches.results(batch.id)
            try:
                # One entry is enough: the keys of all calls of a batch contain its name.
                entry = await anext(aiter(results), None)
            finally:
                await results.close()
            if entry is not None and entry.custom_id.rpartition("-")[0] == name:
                return batch.id
        return None

    async def fits(self, calls: int, since: datetime, known_ids: Collection[str]) -> str | None:
        batches = [batch async for batch in self._similar("in_progress", calls, since) if batch.id not in known_ids]
        batch_ids = [batch.id for batch in batches if batch.created_at < since + SKEW]
        return batch_ids[0] if len(batch_ids) == 1 else None  # if two fit, neither is taken

    async def _similar(self, status: str, calls: int, since: datetime) -> "AsyncIterator[MessageBatch]":
        """Yield the batches with this status and number of calls, created since that time, newest first."""
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
    """Google's batch jobs: inlined requests to one model, whose answers are part of the job."""

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
        for position, entry in enumerate((job.dest and job.dest.inlined_responses) or []):
            # Answers without a key are in the order of the calls.
            key = (entry.metadata or {}).get("key") or f"{BY_PLACE}{position}"
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


# By wire format, for presets with a batch endpoint.
ENDPOINTS: dict[str, type[Endpoint]] = {
    "chat": OpenAIBatches,
    "messages": AnthropicBatches,
    "generate": GoogleBatches,
}


def status_of(error: Exception) -> int | None:
    """Return the HTTP status of the provider's answer; None if it did not answer."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return status if isinstance(status, int) else None


def was_not_created(error: Exception) -> bool:
    """Return whether the provider certainly did not create the batch: it refused it, or was never reached."""
    status = status_of(error)
    if status is not None:
        return 400 <= status < 500 and status not in UNCLEAR
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, NEVER_LEFT):
        cause = cause.__cause__
    return cause is not None


def read_refusal(error: Exception, host: str = "the provider") -> ProviderError | None:
    """Return the refusal of a batch as the error of a single call; None if it was not refused."""
    status = status_of(error)
    return _read_error(error, status, host) if status is not None and 400 <= status < 500 else None


def _read_error(error: Exception, status: int, host: str) -> ProviderError:
    body = getattr(error, "body", None) or getattr(error, "details", None) or str(error)
    return refusal_error(host, status, body if isinstance(body, str) else _dump_json(body), None)


def describe_error(error: Exception, host: str = "the provider") -> str:
    """Return an error in one line of plain words, without the objects and class names of an SDK's message."""
    if isinstance(error, ProviderError):
        return str(error)
    if (status := status_of(error)) is not None:
        return str(_read_error(error, status, host))
    return f"{host}: {describe_failure(error)}" if is_of_connection(error) else describe_own_fault(error)


def _dump_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
