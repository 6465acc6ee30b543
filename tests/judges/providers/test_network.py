"""Connections of the SDKs' clients: encryption, proxies, packed answers, and what the other side closed."""

import asyncio
import contextlib
import gzip
import re
import socket
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import aiohttp
import httpx2
import pytest
from aiohttp.client_reqrep import ConnectionKey

from judges.errors import ProviderError, Refused, Unreachable
from judges.prompts.render import VOTE_SCHEMA, vote_prompt
from judges.providers import close_providers, connections, open_provider
from judges.providers.connections import describe_failure, is_of_connection
from judges.providers.received import Received
from judges.records import Body, Inputs, Judge, ModelRequest
from tests.modelserver.fixtures import KEY, KEY_ENV

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
ANSWER = b'{"said": "yes"}'


SDKS = ["openai-compatible", "anthropic", "google"]
INPUTS = Inputs("?", (), "", "")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the calls."""
    monkeypatch.setenv(KEY_ENV, KEY)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificate and key of `localhost` in one file."""
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    sign(path.parent, "cert.pem")
    path.write_bytes((path.parent / "cert.pem").read_bytes() + (path.parent / "key.pem").read_bytes())
    return path


def sign(folder: Path, name: str) -> None:
    """A certificate of `localhost`, and its key in key.pem."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", name]
    subprocess.run([*command.split(), *names], cwd=folder, check=True, capture_output=True)


async def read_request(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Head and body. Raises IncompleteReadError at the end."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
    return head, await reader.readexactly(int(length.partition(b":")[2]))


def answer(body: bytes = ANSWER) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


async def post(url: str, sdk: str = "openai-compatible", question: str = "?") -> Body:
    """The answer to one call, as it was kept. Raises ProviderError where none came."""
    judge = Judge("j", sdk, "m", id=1, base_url=url, api_key_env=KEY_ENV)
    kept: list[Body] = []
    prompt = replace(vote_prompt(INPUTS), user=question)
    try:
        await open_provider(judge).complete(
            ModelRequest(judge, prompt, VOTE_SCHEMA, INPUTS, "vote", arrived=kept.append)
        )
    except ProviderError:
        if not kept:
            raise
    return kept[0]


def against(serve: Serve, calls: Callable[[str], Awaitable[None]], *, tls: Path | None = None) -> None:
    """Run the calls against a server of this loop, which has the certificate in `tls`."""
    context = None
    if tls:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(tls)
    served: set[asyncio.Task[None]] = set()

    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        served.add(task)
        try:
            await serve(reader, writer)
            await reader.read()
        finally:
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(closing, "127.0.0.1", 0, ssl=context, limit=1 << 24)
        url = f"http{'s' if tls else ''}://localhost:{server.sockets[0].getsockname()[1]}"
        try:
            async with asyncio.timeout(60):
                await calls(url)
        finally:
            await close_providers()
        server.close()
        await asyncio.gather(*served, return_exceptions=True)

    asyncio.run(main())


async def always(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers until the other side goes."""
    with contextlib.suppress(asyncio.IncompleteReadError, OSError):
        while True:
            await read_request(reader)
            writer.write(answer())


def replying(written: bytes, requests: list[tuple[bytes, bytes]], *, after: float = 0.0, closes: bool = False) -> Serve:
    """Takes one request and writes this, whatever comes of it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(after)
        requests.append(await read_request(reader))
        writer.write(written)
        if closes:
            writer.close()

    return serve


def posted(serve: Serve, sdk: str, question: str = "?", times: int = 1) -> list[Body]:
    """The answers to so many calls, one a moment after the other."""
    bodies = []

    async def calls(url: str) -> None:
        for _ in range(times):
            bodies.append(await post(url, sdk, question))
            await asyncio.sleep(0.05 * (times > 1))

    against(serve, calls)
    return bodies


@pytest.mark.parametrize("sdk", SDKS)
def test_a_large_request_arrives_whole_at_a_slow_server(sdk: str) -> None:
    requests: list[tuple[bytes, bytes]] = []
    (answered,) = posted(replying(answer(), requests, after=0.1), sdk, "x" * 1_000_000)
    assert answered.text == ANSWER.decode() and requests[0][1].count(b"x") >= 1_000_000


@pytest.mark.parametrize("sdk", SDKS)
def test_a_call_shows_its_own_key_alone_and_asks_for_an_answer_that_is_not_packed(sdk: str) -> None:
    requests: list[tuple[bytes, bytes]] = []
    posted(replying(answer(), requests), sdk)
    head = requests[0][0].lower()
    names = [line.partition(b":")[0] for line in head.split(b"\r\n")]
    shown = {"openai-compatible": b"authorization", "anthropic": b"x-api-key", "google": b"x-goog-api-key"}[sdk]
    assert [name for name in names if name in (b"authorization", b"x-api-key", b"x-goog-api-key")] == [shown]
    assert KEY.encode() in head and b"set-for-each-call" not in head
    assert head.count(b"accept-encoding: identity") == 1 == head.count(b"accept-encoding")


@pytest.mark.parametrize("sdk", SDKS)
@pytest.mark.parametrize(("size", "kept"), [(100, 100), (50_000_000, 4_000_000)])
def test_an_answer_that_is_packed_all_the_same_is_unpacked_within_bounds(sdk: str, size: int, kept: int) -> None:
    body = gzip.compress(b" " * size)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    (answered,) = posted(replying(head + body, []), sdk)
    assert (len(answered.text), answered.whole) == (kept, size == kept)


@pytest.mark.parametrize("sdk", SDKS)
def test_an_idle_connection_that_the_server_closed_is_not_used_again(sdk: str) -> None:
    """It says nothing of closing, and closes."""
    requests: list[tuple[bytes, bytes]] = []
    answers = posted(replying(answer(), requests, closes=True), sdk, times=3)
    assert {body.text for body in answers} == {ANSWER.decode()} and len(requests) == 3


@pytest.mark.parametrize("sdk", SDKS)
def test_a_second_answer_right_behind_the_first_is_not_taken_for_the_next_one(sdk: str) -> None:
    answers = posted(replying(answer() + answer(b"stale"), []), sdk, times=2)
    assert [body.text for body in answers] == [ANSWER.decode()] * 2


@pytest.mark.parametrize("sdk", SDKS)
def test_a_connection_that_breaks_before_the_answer_is_no_refused_connection(sdk: str) -> None:
    """What was sent may have been charged; where nobody listens it cannot."""

    async def calls(url: str) -> None:
        with pytest.raises(Unreachable) as broken:
            await post(url, sdk)
        with pytest.raises(Unreachable) as refused:
            await post("http://127.0.0.1:9", sdk)
        assert (broken.value.billed, refused.value.billed) == (True, False)
        assert "before an answer" in str(broken.value)
        assert str(refused.value).startswith("127.0.0.1:9: nothing answers")

    against(replying(b"", [], closes=True), calls)


def caused(error: BaseException, *causes: BaseException) -> BaseException:
    """The error, each of the others the cause of the one before."""
    for outer, inner in pairwise((error, *causes)):
        outer.__cause__ = inner
    return error


PLACE = ConnectionKey("host", 443, True, True, None, None, None)
NO_ROUTE = OSError(101, "Network is unreachable")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (caused(httpx2.ConnectError("x"), socket.gaierror(-2, "Name or service not known")), "no machine of this name"),
        (aiohttp.ClientConnectorDNSError(PLACE, socket.gaierror(-2, "x")), "no machine of this name"),
        (aiohttp.ClientConnectorError(PLACE, ConnectionRefusedError(111, "x")), "nothing answers at this address"),
        (aiohttp.ClientConnectorError(PLACE, NO_ROUTE), "can be made (Network is unreachable)"),
        (caused(httpx2.ConnectError("x"), ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]")), "does not speak TLS"),
        (httpx2.ProxyError("407"), "the proxy on the way"),
        (httpx2.UnsupportedProtocol("x"), "no address of a server"),
        (httpx2.ReadTimeout(""), "within the time"),
        (httpx2.RemoteProtocolError("<x>"), "closed before an answer came"),
        (aiohttp.ServerDisconnectedError(), "closed before an answer came"),
        (ConnectionResetError(104, "Connection reset by peer"), "closed before an answer came"),
    ],
)
def test_errors_of_http_clients_are_told_in_words(error: Exception, words: str) -> None:
    told = describe_failure(error)
    assert words in told and not re.search(r"Error\b|Exception|<|\[|ssl:", told)
    assert is_of_connection(error) and not is_of_connection(ValueError())


def test_an_answer_that_broke_off_is_told_apart_and_an_empty_header_hides_nothing() -> None:
    error = aiohttp.ClientPayloadError("Response payload is not completed: <ContentLengthError: 400>")
    assert "in the middle" in describe_failure(error, begun=True)
    received = Received({"Authorization": "Bearer "}, chunks=[ANSWER])
    received.hide({"x-api-key": "", "api-key": KEY})
    assert received.text == ANSWER.decode()
    received.chunks.append(f" {KEY}".encode())
    assert received.text == ANSWER.decode() + " [key]"


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
@pytest.mark.parametrize("sdk", SDKS)
def test_encrypted_connections_are_checked_and_used_again(certificate, monkeypatch, sdk, variable):
    opened = []

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(1)
        await always(reader, writer)

    async def good(url: str) -> None:
        for _ in range(3):
            assert (await post(url, sdk)).text == ANSWER.decode()
        assert (await post(url, sdk, "x" * 1_000_000)).text == ANSWER.decode()

    async def bad(url: str) -> None:
        with pytest.raises(Refused, match=r"not trusted.* SSL_CERT_FILE"):
            await post(url, sdk)

    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    against(count, bad, tls=certificate)
    assert opened == []
    monkeypatch.setenv(variable, str(certificate if variable == "SSL_CERT_FILE" else hashed(certificate)))
    against(count, good, tls=certificate)
    assert len(opened) == 1


def hashed(certificate: Path) -> Path:
    """A folder of authorities as OpenSSL reads it."""
    folder = certificate.parent / "authorities"
    folder.mkdir(exist_ok=True)
    (folder / "localhost.pem").write_bytes((certificate.parent / "cert.pem").read_bytes())
    subprocess.run(["openssl", "rehash", str(folder)], check=True)
    return folder


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "(No such file or directory)"), ("no certificate\n", "(it holds none)"), ("", "(it holds none)")],
)
def test_a_wrong_ssl_cert_file_is_one_line_and_nothing_is_sent(tmp_path, monkeypatch, content, said):
    path = tmp_path / "authorities.pem"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    found = refusal_at("https://localhost:9/v1")
    assert found == (
        f"localhost:9: SSL_CERT_FILE names {path}, which cannot be read as certificates in PEM form {said}: "
        "correct it, or unset it to trust what the system trusts"
    )


def test_a_certificate_that_is_not_trusted_is_no_outage(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another try would fail alike; with the variable set to another file the line names that file."""
    other = certificate.parent / "other.pem"
    sign(other.parent, other.name)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)

    async def calls(url: str) -> None:
        assert "in SSL_CERT_FILE" in await refused(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(other))
        await close_providers()
        assert f"SSL_CERT_FILE names {other}: add " in await refused(url)

    against(always, calls, tls=certificate)


def test_a_certificate_of_another_name_is_not_blamed_on_the_authorities(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def calls(url: str) -> None:
        said = await refused(url.replace("localhost", "127.0.0.1"))
        assert "correct the base_url" in said and "SSL_CERT_FILE" not in said

    against(always, calls, tls=certificate)


@pytest.mark.parametrize(
    ("variable", "address", "said"),
    [
        ("https_proxy", "socks5://us:secret@127.0.0.1:1080", "install it beside Quorum"),
        ("all_proxy", "socks5h://127.0.0.1:1080", "pip install socksio"),
        ("https_proxy", "gopher://127.0.0.1:1", "The environment variable https_proxy names no usable proxy"),
    ],
)
def test_a_socks_proxy_says_what_to_install(monkeypatch, variable, address, said):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("QUORUM_LOOPBACK_ONLY", raising=False)  # nothing gets as far as the network
    monkeypatch.setenv(variable, address)
    found = refusal_at("https://models.invalid/v1")
    assert found.startswith("models.invalid: ") and said in found and "secret" not in found and "\n" not in found


def refusal_at(url: str) -> str:
    """Why a call there is refused before anything is sent."""

    async def main() -> str:
        try:
            return await refused(url)
        finally:
            await close_providers()

    return asyncio.run(main())


async def refused(url: str) -> str:
    judge = Judge("j", "openai-compatible", "m", id=1, base_url=url)
    inputs = Inputs("?", (), "", "")
    with pytest.raises(Refused) as error:
        await open_provider(judge).complete(ModelRequest(judge, vote_prompt(inputs), VOTE_SCHEMA, inputs, "vote"))
    return str(error.value)


@pytest.mark.parametrize("sdk", SDKS)
def test_a_proxy_is_asked_with_its_password_and_the_call_stays_encrypted(certificate, monkeypatch, sdk):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    asked: list[bytes] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        there, back = await asyncio.open_connection("127.0.0.1", int(asked[-1].split()[1].rpartition(b":")[2]))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer), return_exceptions=True)

    async def calls(url: str) -> None:
        proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        port = proxy.sockets[0].getsockname()[1]
        monkeypatch.setenv("https_proxy", f"http://us:secret@127.0.0.1:{port}")
        monkeypatch.setattr(connections, "is_loopback", lambda base_url: False)
        monkeypatch.setattr(connections, "proxy_bypass", lambda host: False)
        assert (await post(url, sdk)).text == ANSWER.decode()
        proxy.close()

    against(always, calls, tls=certificate)
    head = asked[0].replace(b"Proxy-Authorization", b"proxy-authorization")
    assert head.startswith(b"CONNECT localhost:") and b"proxy-authorization: Basic dXM6c2VjcmV0" in head
    assert KEY.encode() not in head


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while part := await reader.read(1 << 16):
        writer.write(part)
    writer.close()
