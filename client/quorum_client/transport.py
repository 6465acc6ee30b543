"""Requests and their answers: retries, keys of requests that may be sent again, errors, pages of lists, downloads."""

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
# Rows of a list that are asked for at once.
PAGE = 500
# Bytes of a file that are sent at once, and that a lost connection costs at most.
PART = 16 << 20
TUS = {"Tus-Resumable": "1.0.0"}
Query = Mapping[str, Any]


class Transport:
    """The connection to one site, in the name of one access token."""

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
                response = self.http.request(method, path, headers=sent, **content)
            except httpx2.TransportError as error:
                failure = error
            if response is not None and not response.is_error:
                return response
            if method == "DELETE" and attempt > 1 and response is not None and response.status_code == 404:
                # The answer to an earlier try was lost.
                return response
            self._pause(attempt, response, failure, is_repeatable=is_repeatable)

    def _pause(
        self, attempt: int, response: httpx2.Response | None, failure: Exception | None, *, is_repeatable: bool = True
    ) -> None:
        """Wait before the next try. Raises QuorumError where there is none."""
        pause = self.retries.pause(attempt, response, failure, is_repeatable=is_repeatable)
        if pause is not None:
            time.sleep(pause)
        elif response is None:
            raise QuorumError(f"{self.http.base_url} cannot be reached: {failure}") from failure
        else:
            raise read_problem(response)

    def read(self, kind: type[T], path: str, params: Query | None = None) -> T:
        """Read an object or a whole list."""
        return self.parse(kind, self.send("GET", path, params=params))

    def post(self, kind: type[T], path: str, body: Any = None) -> T:
        """Start or decide something, once however often it is sent."""
        content = {} if body is None else {"json": body}
        return self.parse(kind, self.send("POST", path, **content))

    def change(self, kind: type[T], path: str, body: Any, if_match: Record | None = None) -> T:
        """Change an object; with `if_match` only where it is still as that was read."""
        if if_match is None:
            return self.parse(kind, self.send("PATCH", path, json=body))
        if if_match.etag is None:
            raise ValueError("if_match takes an object that was read alone: of a row of a list nothing is known")
        # A second try would find what the first one changed.
        headers = {"If-Match": if_match.etag}
        return self.parse(kind, self.send("PATCH", path, json=body, headers=headers, is_repeatable=False))

    def request(
        self, method: str, path: str, body: Any = None, *, params: Query | None = None, is_repeatable: bool = True
    ) -> Any:
        """Send any request and return its answer: JSON, or else text; None where it is empty."""
        content = {} if body is None else {"json": body}
        response = self.send(method, path, is_repeatable=is_repeatable, params=params, **content)
        # Of a deletion whose first answer was lost there is a refusal only.
        if response.is_error or not response.content:
            return None
        is_json = response.headers.get("Content-Type", "").partition(";")[0].endswith("json")
        return response.json() if is_json else response.text

    def upload(self, kind: type[T], path: str, files: Sequence[Path], data: Query | None = None) -> T:
        """Send files, once however often they are sent: each try reads from their beginning."""
        with ExitStack() as stack:
            # Open for all tries: httpx2 goes back to the beginning of a file when it builds a request again.
            parts = [("files", (file.name, stack.enter_context(file.open("rb")))) for file in files]
            return self.parse(kind, self.send("POST", path, files=parts, data=data))

    def upload_parts(self, path: str, file: Path, *, progress: bool = False) -> int:
        """Send a file part by part (tus 1.0.0); return the upload's number. What broke off goes on where it ended."""
        size = file.stat().st_size
        # tus takes the name in Base64, as headers hold ASCII.
        name = b64encode(file.name.encode()).decode()
        announced = {"Upload-Length": str(size), "Upload-Metadata": f"filename {name}"}
        created = self.send("POST", path, headers={**TUS, **announced})
        # The last part of the address alone: a proxy may have another name for the site.
        number = int(created.headers["Location"].rstrip("/").rpartition("/")[2])
        address, offset, stalled = f"{path}/{number}", 0, 0
        with file.open("rb", buffering=0) as source, ProgressBar(file.name, is_shown=progress, unit="B") as bar:
            while offset < size:
                # Where the site has come to: after a lost answer that is not where reading this file has come to.
                source.seek(offset)
                place = {"Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"}
                # The size was announced; without this an empty part would be sent for ever.
                if not (part := source.read(PART)):
                    raise QuorumError(f"{file} became shorter while it was sent")
                try:
                    answer = self.send("PATCH", address, headers={**TUS, **place}, content=part)
                except QuorumError as error:
                    if error.status != 409:
                        raise
                    # Some of it came, or its answer was lost.
                    answer = self.send("HEAD", address, headers=TUS)
                received = int(answer.headers["Upload-Offset"])
                # A try that broke off may still hold the upload at the site, but not for ever.
                stalled = 0 if received > offset else stalled + 1
                if stalled >= self.retries.attempts:
                    raise QuorumError(f"{file} cannot be sent beyond byte {received}")
                time.sleep(self.retries.first * stalled)
                offset = received
                bar.show(offset, size)
        return number

    def iterate(self, kind: type[T], path: str, params: Query | None = None) -> Iterator[T]:
        """Read the rows of a list page by page, while they are asked for."""
        after: int | None = 0
        # Built once for all pages, as building compiles the model's checks.
        rows: TypeAdapter[list[T]] = TypeAdapter(list[kind])  # type: ignore[valid-type]
        while after is not None:
            response = self.send("GET", path, params={**(params or {}), "after": after, "limit": PAGE})
            page = response.json()
            yield from rows.validate_python(page["items"])
            after = page["next"]

    def download(self, path: str, to: Path, *, progress: bool = False) -> Path:
        """Stream a file to `to`, which exists when whole. What breaks off goes on later."""
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
                with self.http.stream("GET", path, headers={"Accept-Encoding": "identity", **rest}) as response:
                    if not response.is_error:
                        # A 200 to a Range: the file has another version by now, and is sent from its beginning.
                        goes_on, etag = response.status_code == 206, response.headers.get("ETag", "")
                        total = int(response.headers.get("Content-Length", 0)) + here * goes_on
                        with (
                            part.open("ab" if goes_on else "wb") as file,
                            ProgressBar(to.name, is_shown=progress, unit="B") as bar,
                        ):
                            for chunk in response.iter_bytes():
                                file.write(chunk)
                                bar.show(file.tell(), total)
                        # Nobody ever sees half a file under this name.
                        return part.replace(to)
                    # Nothing is left of it: the connection broke after the last byte.
                    if response.status_code == 416:
                        return part.replace(to)
                    # A stream reads no body by itself, and the refusal says in it what is wrong.
                    response.read()
            except httpx2.TransportError as error:
                response, failure = None, error
            try:
                self._pause(attempt, response, failure)
            except QuorumError:
                part.unlink(missing_ok=True)
                raise

    def parse(self, kind: type[T], response: httpx2.Response) -> T:
        """Return what an answer holds, with its ETag."""
        answer = TypeAdapter(kind).validate_json(response.content)
        if isinstance(answer, Record):
            # Of a list no row has an ETag: the header is that of the whole page.
            answer.tag(response.headers.get("ETag"))
        return answer

    def close(self) -> None:
        """Close the connections."""
        self.http.close()
