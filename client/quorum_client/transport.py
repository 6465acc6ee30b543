"""HTTP requests: retries, idempotency keys, errors, pages of lists, uploads and downloads."""

import time
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import httpx2
from pydantic import TypeAdapter

from quorum_client.errors import QuorumError, read_problem
from quorum_client.progress import ProgressBar
from quorum_client.records import Record
from quorum_client.retries import RetryPolicy
from quorum_client.version import VERSION

T = TypeVar("T")
# Rows of a list per request.
PAGE = 500
# Bytes of a file per request, which are at most lost with a connection.
PART = 16 << 20
TUS = {"Tus-Resumable": "1.0.0"}
Query = Mapping[str, Any]


class Transport:
    """The connection to a site, with an access token."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        retries: RetryPolicy,
        timeout: float,
        transport: httpx2.BaseTransport | None,
    ) -> None:
        self.retries = retries
        self.http = httpx2.Client(
            base_url=f"{base_url.rstrip('/')}/api/v1/",
            headers={"Authorization": f"Bearer {token}", "User-Agent": f"quorum_client/{VERSION}"},
            timeout=timeout,
            transport=transport,
        )

    def send(
        self, method: str, path: str, *, is_repeatable: bool = True, headers: Query | None = None, **content: Any
    ) -> httpx2.Response:
        """Send a request, with retries where these are safe, and return the response. Raises QuorumError."""
        headers = dict(headers or {})
        if method == "POST" and is_repeatable:
            # One key for all attempts, so that the request is processed once.
            headers["Idempotency-Key"] = str(uuid4())
        attempt = 0
        while True:
            attempt += 1
            response, failure = None, None
            try:
                response = self.http.request(method, path, headers=headers, **content)
            except httpx2.TransportError as error:
                failure = error
            if response is not None and not response.is_error:
                return response
            if method == "DELETE" and attempt > 1 and response is not None and response.status_code == 404:
                # An earlier attempt has deleted it, but its response was lost.
                return response
            self._pause(attempt, response, failure, is_repeatable=is_repeatable)

    def _pause(
        self, attempt: int, response: httpx2.Response | None, failure: Exception | None, *, is_repeatable: bool = True
    ) -> None:
        """Wait before the next attempt. Raises QuorumError where there is none."""
        pause = self.retries.pause(attempt, response, failure, is_repeatable=is_repeatable)
        if pause is not None:
            time.sleep(pause)
        elif response is None:
            raise QuorumError(f"{self.http.base_url} cannot be reached: {failure}") from failure
        else:
            raise read_problem(response)

    def read(self, kind: type[T], path: str, params: Query | None = None) -> T:
        """Read an object or a list without pages."""
        return self.parse(kind, self.send("GET", path, params=params))

    def post(self, kind: type[T], path: str, body: Any = None) -> T:
        """Send a POST, which retries do not repeat."""
        content = {} if body is None else {"json": body}
        return self.parse(kind, self.send("POST", path, **content))

    def change(self, kind: type[T], path: str, body: Any, if_match: Record | None = None) -> T:
        """Change an object; with `if_match`, only if it has not changed since that was read."""
        if if_match is None:
            return self.parse(kind, self.send("PATCH", path, json=body))
        if if_match.etag is None:
            raise ValueError("if_match takes an object that was read alone: of a row of a list nothing is known")
        # Not retried: a second attempt would find the change of the first.
        headers = {"If-Match": if_match.etag}
        return self.parse(kind, self.send("PATCH", path, json=body, headers=headers, is_repeatable=False))

    def request(
        self, method: str, path: str, body: Any = None, *, params: Query | None = None, is_repeatable: bool = True
    ) -> Any:
        """Send any request and return the response: JSON, else text; None where it is empty."""
        content = {} if body is None else {"json": body}
        response = self.send(method, path, is_repeatable=is_repeatable, params=params, **content)
        # An error here is the 404 of a repeated deletion (`send`).
        if response.is_error or not response.content:
            return None
        is_json = response.headers.get("Content-Type", "").partition(";")[0].endswith("json")
        return response.json() if is_json else response.text

    def upload(self, kind: type[T], path: str, files: Sequence[Path], data: Query | None = None) -> T:
        """Send files in a POST, which retries do not repeat."""
        with ExitStack() as stack:
            # Open for all attempts: httpx2 rewinds the files when it builds a request again.
            parts = [("files", (file.name, stack.enter_context(file.open("rb")))) for file in files]
            return self.parse(kind, self.send("POST", path, files=parts, data=data))

    def upload_parts(self, path: str, file: Path, *, progress: bool = False) -> int:
        """Send a file part by part (tus 1.0.0); return the upload's number. An interrupted upload is resumed."""
        size = file.stat().st_size
        # tus has the name in Base64, since headers are ASCII.
        name = b64encode(file.name.encode()).decode()
        creation = {"Upload-Length": str(size), "Upload-Metadata": f"filename {name}"}
        created = self.send("POST", path, headers={**TUS, **creation})
        # Only the last part of the address is used: behind a proxy the host may differ.
        number = int(created.headers["Location"].rstrip("/").rpartition("/")[2])
        address, offset, stalled = f"{path}/{number}", 0, 0
        with file.open("rb", buffering=0) as source, ProgressBar(file.name, is_shown=progress, unit="B") as bar:
            while offset < size:
                # The server's offset: after a lost response it differs from that of the file.
                source.seek(offset)
                part_headers = {"Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"}
                # Otherwise empty parts would be sent forever.
                if not (part := source.read(PART)):
                    raise QuorumError(f"{file} became shorter while it was sent")
                try:
                    response = self.send("PATCH", address, headers={**TUS, **part_headers}, content=part)
                except QuorumError as error:
                    if error.status != 409:
                        raise
                    # A part of it was received, or the response was lost.
                    response = self.send("HEAD", address, headers=TUS)
                received = int(response.headers["Upload-Offset"])
                # An interrupted attempt may still lock the upload on the server for a while.
                stalled = 0 if received > offset else stalled + 1
                if stalled >= self.retries.attempts:
                    raise QuorumError(f"{file} cannot be sent beyond byte {received}")
                time.sleep(self.retries.first * stalled)
                offset = received
                bar.show(offset, size)
        return number

    def iterate(self, kind: type[T], path: str, params: Query | None = None) -> Iterator[T]:
        """Yield the rows of a list, which is read page by page."""
        after: int | None = 0
        # Built once for all pages, since building compiles the model's validators.
        rows: TypeAdapter[list[T]] = TypeAdapter(list[kind])  # type: ignore[valid-type]
        while after is not None:
            response = self.send("GET", path, params={**(params or {}), "after": after, "limit": PAGE})
            page = response.json()
            yield from rows.validate_python(page["items"])
            after = page["next"]

    def download(self, path: str, to: Path, *, progress: bool = False) -> Path:
        """Download a file to `to`, which exists only when complete. An interrupted download is resumed."""
        # In the same folder, so that the finished file can be renamed atomically.
        attempt, part, etag = 0, to.with_name(f"{to.name}.part"), ""
        # A part of an earlier process may be of another version of the file.
        part.unlink(missing_ok=True)
        while True:
            attempt += 1
            response, failure = None, None
            # The rest of the same version; of another version the server sends the whole file.
            offset = part.stat().st_size if etag and part.exists() else 0
            range_headers = {"Range": f"bytes={offset}-", "If-Range": etag} if offset else {}
            try:
                # Identity: a range counts bytes of the file, not of a compressed copy.
                with self.http.stream(
                    "GET", path, headers={"Accept-Encoding": "identity", **range_headers}
                ) as response:
                    if not response.is_error:
                        # 200 instead of 206: another version of the file, sent from its beginning.
                        is_rest, etag = response.status_code == 206, response.headers.get("ETag", "")
                        total = int(response.headers.get("Content-Length", 0)) + offset * is_rest
                        with (
                            part.open("ab" if is_rest else "wb") as file,
                            ProgressBar(to.name, is_shown=progress, unit="B") as bar,
                        ):
                            for chunk in response.iter_bytes():
                                file.write(chunk)
                                bar.show(file.tell(), total)
                        return part.replace(to)
                    # The connection broke after the last byte.
                    if response.status_code == 416:
                        return part.replace(to)
                    # A stream does not read the body, which describes the problem.
                    response.read()
            except httpx2.TransportError as error:
                response, failure = None, error
            try:
                self._pause(attempt, response, failure)
            except QuorumError:
                part.unlink(missing_ok=True)
                raise

    def parse(self, kind: type[T], response: httpx2.Response) -> T:
        """Return the record of a response, with its ETag."""
        record = TypeAdapter(kind).validate_json(response.content)
        if isinstance(record, Record):
            # Rows of a list have none, since the header is that of the page.
            record.tag(response.headers.get("ETag"))
        return record

    def close(self) -> None:
        """Close the connections."""
        self.http.close()
