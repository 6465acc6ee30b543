"""The sockets under the SDKs: one piece a request, encryption, proxies, and connections that the other side closed."""

import asyncio
import contextlib
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpcore2
import httpx2
import pytest

from judges.prompts import VOTE_SCHEMA, vote_prompt
from judges.providers import close_providers, environment, network, open_provider
from judges.providers import wire as wires
from judges.providers.network import Stream
from judges.providers.wire import Passes, Wire, http_client
from judges.records import Inputs, Judge, Refused, Request

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
ANSWER = b'{"said": "yes"}'


class Recorder(asyncio.Transport):
    """A transport that sends nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.asked: list[str] = []

    def write(self, data: Any) -> None:
        self.sent.append(bytes(data))

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.asked.append("pause")

    def resume_reading(self) -> None:
        self.asked.append("resume")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificate and key of `localhost` in one file."""
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([*command.split(), *names], cwd=path.parent, check=True, capture_output=True)
    path.write_bytes((path.parent / "cert.pem").read_bytes() + (path.parent / "key.pem").read_bytes())
    return path


async def read_request(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Head and body. Raises IncompleteReadError at the end."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
    return head, await reader.readexactly(int(length.partition(b":")[2]))


def answer(body: bytes = ANSWER) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


async def post(client: httpx2.AsyncClient, url: str, body: bytes = b"{}") -> Wire:
    """One call; what its wire kept."""
    wire = Wire(credentials={"authorization": "Bearer of-the-call"})
    token = wires.current.set(wire)
    try:
        await client.post(url, content=body, headers={"authorization": "Bearer of-the-sdk"})
    except httpx2.TransportError:
        assert wire.failure
    finally:
        wires.current.reset(token)
    return wire


def against(
    serve: Serve, calls: Callable[[httpx2.AsyncClient, str], Awaitable[None]], *, tls: ssl.SSLContext | None = None
) -> None:
    """Run the calls against a server of this loop."""

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
        server = await asyncio.start_server(closing, "127.0.0.1", 0, ssl=tls)
        url = f"http{'s' if tls else ''}://localhost:{server.sockets[0].getsockname()[1]}/v1"
        client = http_client(url, Passes())
        async with asyncio.timeout(60):
            await calls(client, url)
        await client.aclose()
        server.close()
        await asyncio.gather(*served, return_exceptions=True)

    asyncio.run(main())


async def always(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers until the other side goes."""
    with contextlib.suppress(asyncio.IncompleteReadError, OSError):
        while True:
            await read_request(reader)
            writer.write(answer())


def test_what_is_written_leaves_in_one_piece_when_the_answer_is_awaited() -> None:
    async def main() -> None:
        stream, transport = Stream(), Recorder()
        stream.connection_made(transport)
        await stream.write(b"POST / HTTP/1.1\r\n\r\n")
        await stream.write(b"{}")
        assert transport.sent == []
        stream.data_received(b"HTTP/1.1 200 OK")
        assert await stream.read(4) == b"HTTP"
        assert transport.sent == [b"POST / HTTP/1.1\r\n\r\n{}"]
        assert await stream.read(100) == b"/1.1 200 OK"

    asyncio.run(main())


def test_neither_direction_gathers_without_bounds() -> None:
    async def main() -> None:
        stream, transport = Stream(), Recorder()
        stream.connection_made(transport)
        stream.data_received(bytes(network.FULL + 1))
        assert transport.asked == ["pause"] and stream.get_extra_info("is_readable")
        await stream.read(network.FULL)
        assert transport.asked == ["pause", "resume"]
        stream.pause_writing()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await stream.write(bytes(network.FULL + 1))
        assert sum(map(len, transport.sent)) == network.FULL + 1
        stream.resume_writing()
        await stream.write(bytes(network.FULL + 1))

    asyncio.run(main())


def test_what_came_before_a_connection_broke_is_read_first() -> None:
    async def main() -> None:
        stream = Stream()
        stream.connection_made(Recorder())
        stream.data_received(b"half")
        stream.connection_lost(ConnectionResetError("reset by peer"))
        assert await stream.read(100) == b"half"
        with pytest.raises(httpcore2.ReadError, match="reset by peer"):
            await stream.read(100)
        with pytest.raises(httpcore2.WriteError):
            await stream.write(b"more")

    asyncio.run(main())


def test_a_large_request_arrives_whole_at_a_slow_server() -> None:
    got = []

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        got.append((await read_request(reader))[1])
        writer.write(answer())

    async def calls(client: httpx2.AsyncClient, url: str) -> None:
        assert (await post(client, url, bytes(8_000_000))).body == ANSWER

    against(slow, calls)
    assert got == [bytes(8_000_000)]


def test_the_call_has_its_own_key_and_the_sdks_request_does_not() -> None:
    heads = []

    async def look(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await read_request(reader))[0].lower())
        writer.write(answer())

    async def calls(client: httpx2.AsyncClient, url: str) -> None:
        request = client.build_request("POST", url, content=b"{}", headers={"authorization": "Bearer of-the-sdk"})
        wires.current.set(Wire(credentials={"authorization": "Bearer of-the-call"}))
        await client.send(request)
        assert request.headers["authorization"] == "Bearer of-the-sdk"

    against(look, calls)
    assert b"bearer of-the-call" in heads[0] and b"of-the-sdk" not in heads[0]
    assert heads[0].count(b"accept-encoding: identity") == 1 == heads[0].count(b"accept-encoding")


def test_an_idle_connection_that_the_server_closed_is_not_used_again() -> None:
    served = []

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        served.append(1)
        writer.write(answer())  # it says nothing of closing, and closes
        writer.close()

    async def calls(client: httpx2.AsyncClient, url: str) -> None:
        for _ in range(3):
            assert (await post(client, url)).body == ANSWER
            await asyncio.sleep(0.05)

    against(once, calls)
    assert len(served) == 3


def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next_one() -> None:
    async def talkative(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer())
        await asyncio.sleep(0.02)
        writer.write(answer(b"stale"))

    async def calls(client: httpx2.AsyncClient, url: str) -> None:
        for _ in range(2):
            assert (await post(client, url)).body == ANSWER
            await asyncio.sleep(0.05)

    against(talkative, calls)


def test_encrypted_connections_are_checked_and_used_again(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    opened = []

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(1)
        await always(reader, writer)

    async def good(client: httpx2.AsyncClient, url: str) -> None:
        for _ in range(3):
            assert (await post(client, url)).body == ANSWER
        assert (await post(client, url, bytes(3_000_000))).body == ANSWER

    async def bad(client: httpx2.AsyncClient, url: str) -> None:
        wire = await post(client, url)
        assert wire.unsent and "CERTIFICATE_VERIFY_FAILED" in wire.failure
        assert "name a PEM file with the authority's certificate in SSL_CERT_FILE" in wire.failure

    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    against(count, bad, tls=context)
    assert opened == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    against(count, good, tls=context)
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "(No such file or directory)"), ("no certificate\n", "(it holds none)"), ("", "(it holds none)")],
)
def test_a_wrong_ssl_cert_file_is_one_line_and_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, said: str
) -> None:
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
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    other = certificate.parent / "other.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=other"
    subprocess.run(
        [*command.split(), "-keyout", "other.key", "-out", other.name],
        cwd=other.parent,
        check=True,
        capture_output=True,
    )

    monkeypatch.delenv("SSL_CERT_FILE", raising=False)

    async def calls(_: httpx2.AsyncClient, url: str) -> None:
        assert "in SSL_CERT_FILE" in await refused(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(other))
        await close_providers()
        assert f"SSL_CERT_FILE names {other}: add the certificate of the authority" in await refused(url)

    against(always, calls, tls=context)


def test_a_certificate_of_another_name_is_not_blamed_on_the_authorities(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def calls(_: httpx2.AsyncClient, url: str) -> None:
        said = await refused(url.replace("localhost", "127.0.0.1"))
        assert "correct the base_url" in said and "SSL_CERT_FILE" not in said

    against(always, calls, tls=context)


@pytest.mark.parametrize(
    ("variable", "address", "said"),
    [
        ("https_proxy", "socks5://us:secret@127.0.0.1:1080", "install it beside Quorum"),
        ("all_proxy", "socks5h://127.0.0.1:1080", "pip install socksio"),
        ("https_proxy", "gopher://127.0.0.1:1", "the environment variable https_proxy names no usable proxy"),
    ],
)
def test_a_socks_proxy_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, variable: str, address: str, said: str
) -> None:
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
    judge = Judge(1, "j", "openai-compatible", "m", base_url=url)
    inputs = Inputs("?", (), "", "")
    with pytest.raises(Refused) as error:
        await open_provider(judge).complete(Request(judge, vote_prompt(inputs), VOTE_SCHEMA, inputs, "vote"))
    return str(error.value)


def test_a_proxy_is_asked_with_its_password_and_the_call_stays_encrypted(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    asked: list[bytes] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        there, back = await asyncio.open_connection("127.0.0.1", int(asked[-1].split()[1].rpartition(b":")[2]))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer), return_exceptions=True)

    async def calls(_: httpx2.AsyncClient, url: str) -> None:
        proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        port = proxy.sockets[0].getsockname()[1]
        monkeypatch.setenv("https_proxy", f"http://us:secret@127.0.0.1:{port}")
        monkeypatch.setattr(environment, "is_loopback", lambda base_url: False)
        monkeypatch.setattr(environment, "proxy_bypass", lambda host: False)
        client = http_client(url, Passes())
        assert (await post(client, url)).body == ANSWER
        await client.aclose()
        proxy.close()

    against(always, calls, tls=context)
    (head,) = asked
    assert head.startswith(b"CONNECT localhost:") and b"Proxy-Authorization: Basic dXM6c2VjcmV0" in head
    assert b"of-the-call" not in head


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while part := await reader.read(1 << 16):
        writer.write(part)
    writer.close()
