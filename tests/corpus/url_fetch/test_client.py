"""The client of addresses that people give: where it goes, what it takes along, and when it gives up."""

import asyncio
import gzip
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from corpus.url_fetch import addresses, client
from corpus.url_fetch.client import FetchLimits, WebClient, WebResponse
from corpus.url_fetch.pages import fetch_page
from corpus.url_fetch.problems import NoPage
from tests.open_web import HOSTILE, PUBLIC, Web, open_web

# What the site's owner allowed.
INSIDE = frozenset({"inside.example:80"})
KEYS = {"Authorization": "Bearer k-1", "X-Api-Key": "k-2", "Cookie": "k-3", "Content-Type": "application/json"}


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    with open_web(monkeypatch) as found:
        found.names["inside.example"] = ["192.168.0.10"]
        found.page("/", "hits")
        yield found


def send(url: str, method: str = "GET", allowed: frozenset[str] = INSIDE, **options: Any) -> WebResponse:
    """The response to one request of a client of its own."""
    limits = FetchLimits(**options.pop("limits", {}))

    async def run() -> WebResponse:
        async with WebClient(allowed=allowed, any_port=True, limits=limits) as session:
            return await session.send(method, url, **options)

    return asyncio.run(run())


def refusal(url: str, method: str = "GET", **options: Any) -> str:
    """The code with which a request is refused."""
    with pytest.raises(NoPage) as refused:
        send(url, method, **options)
    assert "\n" not in str(refused.value)
    return refused.value.code


# --- Where requests go ------------------------------------------------------------------------------------------


def test_no_page_is_fetched_from_a_hostile_address(web: Web) -> None:
    assert len(HOSTILE) == 26 and not any(addresses.is_public(address) for address in HOSTILE.values())
    for host, address in HOSTILE.items():
        web.names["trap.example"] = [address]
        for url in (f"http://{host}/", "http://trap.example/"):
            web.redirect("/moved", url)
            for start in (url, "http://ice.example/moved"):
                with pytest.raises(NoPage, match="public network"):
                    fetch_page(start)
    assert {path for _host, path in web.asked} == {"/moved"}


@pytest.mark.parametrize("host", HOSTILE)
def test_a_hostile_address_is_refused_as_endpoint_as_redirect_and_as_a_names_address(web: Web, host: str) -> None:
    web.names["trap.example"] = [HOSTILE[host]]
    web.names["mixed.example"] = [PUBLIC, HOSTILE[host]]
    for origin in (f"http://{host}", f"http://{host}:9200", "http://trap.example:9200", "https://mixed.example"):
        for method in ("GET", "POST"):
            assert refusal(f"{origin}/_search", method) == "not-public"
        assert web.asked == []
        # From a public host as well as from one that the owner allowed.
        for start in ("ice", "inside"):
            web.redirect("/moved", f"{origin}/_search", status=307)
            for method in ("GET", "POST"):
                assert refusal(f"http://{start}.example/moved", method) == "not-public"
            assert {path for _host, path in web.asked} == {"/moved"}, "nothing is sent on"
            web.asked.clear()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "LOCALHOST"])
def test_an_address_that_the_owner_allowed_is_reached_and_no_other_port_of_it(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    Server = type("Server", (ThreadingHTTPServer,), {"address_family": family, "daemon_threads": True})
    hosts: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            hosts.append(self.headers["Host"])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.rfile.read(int(self.headers["Content-Length"])))

        def log_message(self, *_: Any) -> None:
            pass

    with Server(("::1" if ":" in host else "127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        allowed = frozenset({f"{host.lower()}:{server.server_port}"})
        response = send(f"http://{host}:{server.server_port}/", "POST", allowed=allowed, content=b"{}", headers=KEYS)
        assert (response.status, response.body) == (200, b"{}") and response.seconds > 0
        assert hosts == [f"{host.lower()}:{server.server_port}"]
        for port in (server.server_port - 1, 80):
            assert refusal(f"http://{host}:{port}/", allowed=allowed) == "not-public"
        server.shutdown()


def test_a_name_that_the_owner_allowed_may_lead_inside_and_another_port_needs_leave(web: Web) -> None:
    assert send("http://inside.example/").body == send("http://INSIDE.example/").body == b"hits"
    assert refusal("http://inside.example:9200/") == "not-public"
    assert refusal("http://inside.example/", allowed=frozenset()) == "not-public"
    assert refusal("http://other.inside.example/") == "name"
    web.asked.clear()
    assert send("http://ice.example:9200/").body == b"hits"
    assert web.asked == [("ice.example:9200", "/")]

    async def run() -> None:
        async with WebClient(allowed=frozenset({"inside.example:9200"})) as session:
            assert (await session.send("GET", "http://inside.example:9200/")).status == 200
            await session.send("GET", "http://ice.example:9200/")

    with pytest.raises(NoPage, match="ports"):
        asyncio.run(run())


def test_a_name_that_changes_its_address_is_checked_again(web: Web) -> None:
    async def run() -> None:
        async with WebClient() as session:
            await session.send("GET", "http://ice.example/")
            # From now on the name leads inside.
            web.names["ice.example"] = ["127.0.0.1"]
            await session.send("GET", "http://ice.example/")
            assert (len(web.asked), web.looked_up) == (2, ["ice.example"])
            session._targets = {origin: (targets, 0.0) for origin, (targets, _) in session._targets.items()}
            with pytest.raises(NoPage, match="public network"):
                await session.send("GET", "http://ice.example/")
            assert (len(web.asked), len(web.looked_up)) == (2, 2)

    asyncio.run(run())


def test_an_address_that_takes_no_connection_gives_way_to_the_next(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `localhost` is ::1 first, where many servers listen on 127.0.0.1 alone."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    targets = [("::1", ("127.0.0.1", port)), ("127.0.0.1", ("127.0.0.1", web.port))]
    monkeypatch.setattr(addresses, "resolve_host", lambda host, port: targets)
    assert send("http://inside.example/").body == b"hits"
    monkeypatch.setattr(addresses, "resolve_host", lambda host, port: targets[:1])
    assert refusal("http://inside.example/") == "unread"


def test_what_is_no_address_is_refused_before_it_is_looked_up(web: Web) -> None:
    long = f"http://ice.example/?q={'x' * 3_000}"
    urls = {
        "http://user:pw@ice.example/": "password", "http://ice.example:99999/": "address-none", "ice": "scheme",
        "//ice.example/": "scheme", "javascript:alert(1)": "scheme", "http:///x": "scheme", "": "scheme",
        "http://ice.example/\r\nHost: other": "address-odd", "http://a b/": "address-odd", long: "address-odd",
    }  # fmt: skip
    assert {url: refusal(url) for url in urls} == urls
    assert web.looked_up == []
    response = send(long, limits={"url": 4_000})
    assert response.status == 404 and b"404" in response.body, "the caller's limit holds, and any status is a response"
    assert response.headers["CONTENT-TYPE"].startswith("text/html")


# --- What they take along ---------------------------------------------------------------------------------------


def test_keys_go_to_no_other_host(web: Web) -> None:
    web.redirect("/same", "/", status=307)
    web.redirect("/other", "http://ice.example/", status=307)
    web.redirect("/port", "http://inside.example:8080/", status=307)
    for path, is_same in (("same", True), ("other", False), ("port", False)):
        web.headers.clear(), web.bodies.clear()
        allowed = INSIDE | {"inside.example:8080"}
        response = send(f"http://inside.example/{path}", "POST", headers=KEYS, content=b"{}", allowed=allowed)
        assert response.body == b"hits" and web.bodies == [b"{}", b"{}"]
        first, second = web.headers
        assert (first["authorization"], first["x-api-key"], first["cookie"]) == ("Bearer k-1", "k-2", "k-3")
        assert ({"authorization", "x-api-key", "cookie"} <= set(second)) is is_same
        assert second["content-type"] == "application/json"


@pytest.mark.parametrize("name", ["Authorization", "X-Api-Key", "cookie", "X-Anything"])
def test_keys_go_by_http_to_a_host_alone_that_the_owner_allowed(web: Web, name: str) -> None:
    assert refusal("http://ice.example/", headers={name: "k-1"}) == "plain-http"
    assert (web.asked, web.looked_up) == ([], [])
    assert send("http://inside.example/", headers={name: "k-1"}).status == 200


def test_a_redirect_that_would_lose_the_query_is_named(web: Web) -> None:
    for status in (301, 302, 303):
        web.redirect("/search", "https://user:pw@www.ice.example/search?key=secret", status=status)
        with pytest.raises(NoPage, match=r"redirects to https://www\.ice\.example/search\. Use") as refused:
            send("http://ice.example/search", "POST", content=b"{}")
        assert refused.value.code == "moved"


@pytest.mark.parametrize("value", ["k-1\r\nX-Other: 1", "k-1\x00", "schlüssel-k-1"])
def test_a_header_that_cannot_be_sent_is_named_without_its_value(web: Web, value: str) -> None:
    with pytest.raises(NoPage, match="x-api-key") as refused:
        send("http://inside.example/", headers={"X-Api-Key": value})
    assert refused.value.code == "header" and "k-1" not in str(refused.value) + refused.value.stored
    assert web.asked == []
    send("http://inside.example/", headers={"X-Api-Key": "k-1\n"})
    assert web.headers[0]["x-api-key"] == "k-1"


def test_no_cookie_is_kept_and_no_proxy_asked(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    web.page("/", "hits", Set_Cookie="session=1; Path=/")

    async def run() -> None:
        async with WebClient() as session:
            for _ in range(2):
                await session.send("GET", "http://ice.example/")

    asyncio.run(run())
    assert len(web.headers) == 2 and not any("cookie" in headers for headers in web.headers)
    assert {headers["accept-encoding"] for headers in web.headers} == {"identity"}


# --- When they end ----------------------------------------------------------------------------------------------


def endless(handler: BaseHTTPRequestHandler, piece: bytes = b"x" * 65_536, pause: float = 0) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(piece)
        handler.wfile.flush()
        time.sleep(pause)


def silent(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(2)


def drip_head(handler: BaseHTTPRequestHandler) -> None:
    while True:
        handler.wfile.write(b"x")
        handler.wfile.flush()
        time.sleep(0.05)


@pytest.mark.parametrize(
    "answer",
    [silent, drip_head, lambda handler: endless(handler, b"x", 0.05)],
    ids=["silent", "dripping head", "dripping body"],
)
def test_a_server_that_does_not_answer_in_time_is_given_up(web: Web, answer: Callable[..., None]) -> None:
    web.answers["/"] = answer
    start = time.monotonic()
    assert refusal("http://ice.example/", "POST", limits={"seconds": 0.4}, content=b"{}") == "slow"
    assert time.monotonic() - start < 1.5


def test_a_body_without_an_end_and_a_bomb_are_too_large(web: Web) -> None:
    web.answers["/"] = endless
    web.page("/bomb", gzip.compress(b"0" * 50_000_000), Content_Encoding="gzip")
    web.page("/says", b"x" * 1_000_001)
    web.page("/fine", gzip.compress(b"small"), Content_Encoding="gzip")
    assert send("http://ice.example/fine").body == b"small"
    for path in ("", "bomb", "says"):
        assert refusal(f"http://ice.example/{path}", limits={"bytes": 1_000_000}) == "large"


def test_a_response_that_breaks_off_or_is_packed_otherwise_is_refused(web: Web) -> None:
    def broken(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.end_headers()
        handler.wfile.write(b"x")

    web.answers["/"] = broken
    assert refusal("http://ice.example/") == "cut-off"
    web.page("/", "x", Content_Encoding="br")
    assert refusal("http://ice.example/") == "packed"
    web.page("/", b"no gzip", Content_Encoding="gzip")
    assert refusal("http://ice.example/") == "unread"
    web.page("/", gzip.compress(b"half of it")[:-9], Content_Encoding="gzip")
    assert refusal("http://ice.example/") == "cut-off"


@asynccontextmanager
async def listen(answer: bytes, context: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[int]]]:
    """A server that answers each request alike after a moment: its port, and the requests of each connection."""
    connections: list[int] = []
    writers: list[asyncio.StreamWriter] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(connections)
        connections.append(0)
        writers.append(writer)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                connections[number] += 1
                await asyncio.sleep(0.002)
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1], connections
        for writer in writers:
            writer.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhits"


def test_connections_stay_open_and_requests_wait_for_their_turn_without_a_limit() -> None:
    async def run() -> list[int]:
        async with listen(OK) as (port, connections):
            allowed = frozenset({f"127.0.0.1:{port}"})
            limits = FetchLimits(seconds=1)
            async with WebClient(allowed=allowed, connections=5, limits=limits) as session:
                url = f"http://127.0.0.1:{port}/"
                responses = await asyncio.gather(*[session.send("GET", url) for _ in range(200)])
            assert {response.body for response in responses} == {b"hits"}
            assert max(response.seconds for response in responses) < 1
            return connections

    connections = asyncio.run(run())
    assert sum(connections) == 200 and len(connections) <= 5


def test_a_request_that_is_given_up_leaves_its_turn(web: Web) -> None:
    web.answers["/silent"] = silent

    async def run() -> None:
        async with WebClient(connections=1, limits=FetchLimits(seconds=0.3)) as session:
            for _ in range(2):
                with pytest.raises(NoPage, match="did not load"):
                    await session.send("GET", "http://ice.example/silent")
            request = asyncio.create_task(session.send("GET", "http://ice.example/silent"))
            await asyncio.sleep(0.05)
            request.cancel()
            assert (await session.send("GET", "http://ice.example/")).body == b"hits"

    asyncio.run(run())


def test_a_certificate_must_be_the_names_and_a_problem_of_tls_is_said_to_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=engine"
    names = ["-addext", "subjectAltName=DNS:engine.example", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cafile=str(certificate))
    monkeypatch.setattr(addresses, "resolve_host", lambda host, port: [(PUBLIC, ("127.0.0.1", port))])

    async def run() -> list[str]:
        def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with listen(OK, serving) as (port, _), await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
            plain = server.sockets[0].getsockname()[1]
            monkeypatch.setattr(client, "tls_context", lambda: trusting)
            problems = []
            async with WebClient(any_port=True) as session:
                response = await session.send("GET", f"https://engine.example:{port}/", headers=KEYS)
                assert response.body == b"hits"
                # The same address by another name gets a connection of its own.
                for host in ("other.example", "engine.example"):
                    with pytest.raises(NoPage) as refused:
                        await session.send("GET", f"https://{host}:{port if host[0] == 'o' else plain}/")
                    problems.append(f"{refused.value.code}: {refused.value}")
            monkeypatch.setattr(client, "tls_context", ssl.create_default_context)
            async with WebClient(any_port=True) as session:
                with pytest.raises(NoPage) as refused:
                    await session.send("GET", f"https://engine.example:{port}/")
                problems.append(f"{refused.value.code}: {refused.value}")
            return problems

    other, plain, untrusted = asyncio.run(run())
    assert other.startswith("tls: other.example ") and "not valid for 'other.example'" in other
    assert plain.startswith("tls: engine.example ") and "wrong version" in plain
    assert untrusted.startswith("tls: engine.example ") and "self-signed" in untrusted
