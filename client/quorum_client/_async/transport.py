"""Requests and their answers: retries, keys of requests that may be sent again, errors, pages of lists, downloads."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import httpx2
from pydantic import TypeAdapter

from quorum_client.answers import ApiModel
from quorum_client.errors import QuorumError, read_problem
from quorum_client.progress import ProgressBar
from quorum_client.retries import RetryPolicy
from quorum_client.version import VERSION

T = TypeVar("T")
# Rows of a list that are asked for at once.
PAGE = 500
# Bytes of a file that are sent at once, and that a lost connection costs at most.
PART = 16 << 20
TUS = {"Tus-Resumable": "1.0.0"}
Query = Mapping[str, Any]


class AsyncTransport:
    """The connection to one site, in the name of one access token."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        retries: RetryPolicy,
        timeout: float,
        transport: httpx2.AsyncBaseTransport | None,
    ) -> None:
        self.retries = retries
        self.http = httpx2.AsyncClient(
            base_url=f"{base_url.rstrip('/')}/api/v1/",
            headers={"Authorization": f"Bearer {token}", "User-Agent": f"quorum_client/{VERSION}"},
            timeout=timeout,
            transport=transport,
        )

    async def send(
        self, method: str, path: str, *, is_repeatable: bool = True, headers: Query | None = None, **content: Any
    ) -> httpx2.Response:
        """Send a request, again where that is safe, and return its answer. Raises QuorumError for 400 and more."""
        sent = dict(headers or {})
        if method == "POST" and is_repeatable:
            # One key for all tries of this request: it happens once, however many arrive.
            sent["Idempotency-Key"] = str(uuid4())
        attempt = 0
        while True:
            attempt += 1
            response, failure = None, None
            try:
                response = await self.http.request(method, path, headers=sent, **content)
            except httpx2.TransportError as error:
                failure = error
            if response is not None and not response.is_error:
                return response
            if method == "DELETE" and attempt > 1 and response is not None and response.status_code == 404:
                # The answer to an earlier try was lost.
                return response
            pause = self.retries.pause(attempt, response, failure, is_repeatable=is_repeatable)
            if pause is None:
                if response is None:
                    raise QuorumError(f"{self.http.base_url} cannot be reached: {failure}") from failure
                raise read_problem(response)
            await asyncio.sleep(pause)

    async def read(self, kind: type[T], path: str, params: Query | None = None) -> T:
        """Read an object or a whole list."""
        return self.parse(kind, await self.send("GET", path, params=params))

    async def post(self, kind: type[T], path: str, body: Any = None, *, is_repeatable: bool = True) -> T:
        """Start or decide something, once however often it is sent; not `is_repeatable`: without a key, and once."""
        content = {} if body is None else {"json": body}
        return self.parse(kind, await self.send("POST", path, is_repeatable=is_repeatable, **content))

    async def put(self, kind: type[T], path: str, body: Any) -> T:
        """Put an object in the place of the one that had its address."""
        return self.parse(kind, await self.send("PUT", path, json=body))

    async def change(self, kind: type[T], path: str, body: Any, if_match: ApiModel | None = None) -> T:
        """Change an object; with `if_match` only where it is still as that was read."""
        return self.parse(kind, await self.send("PATCH", path, json=body, **self._conditions(if_match)))

    async def delete(self, path: str, if_match: ApiModel | None = None) -> None:
        """Delete an object; with `if_match` only where it is still as that was read."""
        await self.send("DELETE", path, **self._conditions(if_match))

    def _conditions(self, if_match: ApiModel | None) -> dict[str, Any]:
        if if_match is None:
            return {}
        if if_match.etag is None:
            raise ValueError("if_match takes an object that was read by its number: of a list nothing is known")
        # A second try would find what the first one changed.
        return {"headers": {"If-Match": if_match.etag}, "is_repeatable": False}

    async def send_text(self, path: str, body: Any = None) -> str:
        """Ask for a file of text that is an act: the audit log tells of it."""
        return (await self.send("POST", path, **({} if body is None else {"json": body}))).text

    async def upload(self, kind: type[T], path: str, files: Sequence[Path], data: Query | None = None) -> T:
        """Send files, once however often they are sent: each try reads them from their beginning."""
        with ExitStack() as stack:
            # Open for all tries: httpx2 goes back to the beginning of a file when it builds a request again.
            parts = [("files", (file.name, stack.enter_context(file.open("rb")))) for file in files]
            return self.parse(kind, await self.send("POST", path, files=parts, data=data))

    async def upload_parts(self, path: str, file: Path, *, progress: bool = False) -> int:
        """Send a file part by part (tus 1.0.0); return the upload's number. What broke off goes on where it ended."""
        size = file.stat().st_size
        # tus takes the name in Base64, as headers hold ASCII.
        said = {"Upload-Length": str(size), "Upload-Metadata": f"filename {b64encode(file.name.encode()).decode()}"}
        begun = await self.send("POST", path, headers={**TUS, **said})
        # The last part of the address alone: a proxy may have another name for the site.
        number = int(begun.headers["Location"].rstrip("/").rpartition("/")[2])
        address, offset, stalled = f"{path}/{number}", 0, 0
        with file.open("rb", buffering=0) as source, ProgressBar(file.name, is_shown=progress, unit="B") as bar:
            while offset < size:
                # Where the site has come to: after a lost answer that is not where reading this file has come to.
                source.seek(offset)
                said = {"Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"}
                # The size was announced; without this an empty part would be sent for ever.
                if not (part := source.read(PART)):
                    raise QuorumError(f"{file} became shorter while it was sent")
                try:
                    answer = await self.send("PATCH", address, headers={**TUS, **said}, content=part)
                except QuorumError as error:
                    if error.status != 409:
                        raise
                    # Some of it came, or its answer was lost.
                    answer = await self.send("HEAD", address, headers=TUS)
                received = int(answer.headers["Upload-Offset"])
                # A try that broke off may still hold the upload at the site, but not for ever.
                stalled = 0 if received > offset else stalled + 1
                if stalled >= self.retries.attempts:
                    raise QuorumError(f"{file} cannot be sent beyond byte {received}")
                await asyncio.sleep(self.retries.first * stalled)
                offset = received
                bar.show(offset, size)
        return number

    async def iterate(self, kind: type[T], path: str, params: Query | None = None) -> AsyncIterator[T]:
        """Read the rows of a list page by page, while they are asked for."""
        after: int | None = 0
        # Built once for all pages, as building compiles the model's checks.
        rows: TypeAdapter[list[T]] = TypeAdapter(list[kind])  # type: ignore[valid-type]
        while after is not None:
            response = await self.send("GET", path, params={**(params or {}), "after": after, "limit": PAGE})
            page = response.json()
            for row in rows.validate_python(page["items"]):
                yield row
            after = page["next"]

    async def read_text(self, path: str, params: Query | None = None) -> str:
        """Read a file of text as it is."""
        return (await self.send("GET", path, params=params)).text

    async def download(self, path: str, to: Path, *, progress: bool = False) -> Path:
        """Stream a file to `to`, which is there when it is whole. What breaks off goes on where it was."""
        # In the same folder, so that the finished file can take its name in one step.
        attempt, part, etag = 0, to.with_name(f"{to.name}.part"), ""
        # What an earlier process left may be of another version of the file, whose ETag nobody kept.
        part.unlink(missing_ok=True)
        while True:
            attempt += 1
            response, failure = None, None
            # The rest of the version that was begun; of another the server sends the whole.
            here = part.stat().st_size if etag and part.exists() else 0
            rest = {"Range": f"bytes={here}-", "If-Range": etag} if here else {}
            try:
                # Identity: a range counts bytes of the file and not of a compressed copy.
                async with self.http.stream("GET", path, headers={"Accept-Encoding": "identity", **rest}) as response:
                    if not response.is_error:
                        # A 200 to a Range: the file has another version by now, and is sent from its beginning.
                        goes_on, etag = response.status_code == 206, response.headers.get("ETag", "")
                        total = int(response.headers.get("Content-Length", 0)) + here * goes_on
                        with (
                            part.open("ab" if goes_on else "wb") as file,
                            ProgressBar(to.name, is_shown=progress, unit="B") as bar,
                        ):
                            async for chunk in response.aiter_bytes():
                                file.write(chunk)
                                bar.show(file.tell(), total)
                        # Nobody ever sees half a file under this name.
                        return part.replace(to)
                    # Nothing is left of it: the connection broke after the last byte.
                    if response.status_code == 416:
                        return part.replace(to)
                    # A stream reads no body by itself, and the refusal says in it what is wrong.
                    await response.aread()
            except httpx2.TransportError as error:
                response, failure = None, error
            pause = self.retries.pause(attempt, response, failure, is_repeatable=True)
            if pause is None:
                part.unlink(missing_ok=True)
                if response is None:
                    raise QuorumError(f"{self.http.base_url} cannot be reached: {failure}") from failure
                raise read_problem(response)
            await asyncio.sleep(pause)

    def parse(self, kind: type[T], response: httpx2.Response) -> T:
        """Return what an answer holds, with its ETag."""
        found = TypeAdapter(kind).validate_json(response.content)
        if isinstance(found, ApiModel):
            # Of a list no row has an ETag: the header is that of the whole page.
            found.tag(response.headers.get("ETag"))
        return found

    async def aclose(self) -> None:
        """Close the connections."""
        await self.http.aclose()
