"""Client of a rerank API. A call returns the raw answer or raises a ProviderError; retries are up to the caller."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from annotation.exports.reranker_scores.formats import Api
from corpus.collections.secrets import read_secret
from corpus.errors import BadInput
from judges.errors import BadAnswer, Unreachable
from judges.providers.connections import (
    describe_failure,
    is_loopback,
    only_loopback,
    proxy_for,
    tls_context,
)
from judges.providers.received import MAX_BODY, retry_after
from judges.providers.replies import refusal_error

TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Teacher:
    """A model of a rerank API. Its key is read when a client is made, and stored nowhere."""

    api: Api
    url: str
    model: str
    key_env: str

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def key(self) -> str:
        """Return the API key. Raises BadInput without a valid key, and where calls to other machines are forbidden."""
        if only_loopback() and not is_loopback(self.url):
            raise BadInput(f"{self.host} is not on this machine, and QUORUM_LOOPBACK_ONLY forbids such calls.")
        key = read_secret(self.key_env)
        if not key and not is_loopback(self.url):
            raise BadInput(f"Set the environment variable {self.key_env} to the API key of {self.host}.")
        if key and (not key.isascii() or not key.isprintable() or " " in key):
            raise BadInput(
                f"The environment variable {self.key_env} contains characters that no API key has: copy the key again."
            )
        return key


class Client:
    """Connections to the API of one teacher."""

    def __init__(self, teacher: Teacher) -> None:
        import httpx2

        proxy_for(teacher.url)  # httpx2 reads the proxy itself; this raises a readable error if it is invalid.
        verify = tls_context(teacher.url) or True
        self.teacher, self._key = teacher, teacher.key()
        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        # No redirects: they would carry the key to another host.
        self._http = httpx2.Client(timeout=TIMEOUT_S, follow_redirects=False, headers=headers, verify=verify)

    def send(self, body: dict[str, Any]) -> str:
        """Return the body of a successful answer, without the key. Raises a ProviderError with the raw body."""
        import httpx2

        data = bytearray()
        try:
            with self._http.stream("POST", self.teacher.url, json=body) as response:
                for chunk in response.iter_bytes():
                    data += chunk
                    # Leaving the block closes the connection, so an endless answer takes no more memory.
                    if len(data) > MAX_BODY:
                        break
        except httpx2.TransportError as error:
            failure = Unreachable(f"{self.teacher.host}: {describe_failure(error, begun=bool(data))}")
            # Only a call that never connected is surely free; any other may have been billed.
            failure.billed = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            raise failure from None
        # Text that the database can store, without the key, which a server may repeat.
        raw = data[:MAX_BODY].decode("utf-8", "replace").replace("\0", "\ufffd")
        raw = raw.replace(self._key, "[key]") if self._key else raw
        status = response.status_code
        if not 200 <= status < 300:
            refusal = refusal_error(self.teacher.host, status, raw, retry_after(response.headers))
            # The message names the variable of the wrong key.
            if status in (401, 403):
                refusal.args = (f"{refusal} (key: {self.teacher.key_env})",)
            raise refusal
        if len(data) > MAX_BODY:
            raise BadAnswer(f"{self.teacher.host}: the answer is longer than {MAX_BODY} bytes", status=200, raw=raw)
        return raw

    def close(self) -> None:
        self._http.close()
