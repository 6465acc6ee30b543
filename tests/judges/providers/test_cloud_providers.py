"""Azure, Bedrock, Vertex and Responses: requests as documented, byte by byte; tokens and keys that nobody else sees."""

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import botocore.auth
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from corpus.errors import BadInput
from judges import providers
from judges.domain.verdicts import parse_vote
from judges.errors import ProviderError, Refused, Rejected
from judges.panels.configuration import store_judges_file
from judges.panels.judges_file import parse
from judges.presets import PRESETS
from judges.providers import open_provider
from judges.providers import tokens as access
from judges.providers.tokens import Tokens, from_command
from judges.records import Judge, Prompt, Reply
from tests.judges.presets.asked import ask, plain_vote, reply_of, run, vote_of
from tests.judges.presets.asked import judge_of as judge_at
from tests.modelserver.fixtures import KEY, LocalModels
from tests.modelserver.presets.claude import ACCESS_KEY, SECRET_KEY
from tests.modelserver.presets.native import NATIVE

pytestmark = pytest.mark.usefixtures("cloud")
ASKED = Prompt("vote-plain", "0" * 64, "You judge.", "Query: Öl? Document: oil.")
SESSION = "FwoGZXIvYXdzEXAMPLE//token=="
RECORDED = Path(__file__).parents[2] / "cloud_requests"
NAMES = [one.name for one in NATIVE]


# Requests as documented, byte by byte


class Recorder:
    """A proxy that is every host itself: it keeps the one request of a connection as it comes, and answers."""

    def __init__(self, certificate: Path) -> None:
        self.answer: dict[str, Any] = {}
        self.sent: list[tuple[str, dict[str, str], bytes]] = []
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.load_cert_chain(certificate)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        """Until it is closed."""
        while True:
            connection, _ = self.listener.accept()
            with connection:
                if not read_head(connection):
                    return
                connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                with self.context.wrap_socket(connection, server_side=True) as inside:
                    self.take(inside)

    def take(self, connection: socket.socket) -> None:
        """One request."""
        first, *lines = read_head(connection).decode().removesuffix("\r\n\r\n").split("\r\n")
        pairs = (line.partition(": ") for line in lines)
        headers = {name.lower(): value for name, _, value in pairs}
        body = read_exactly(connection, int(headers["content-length"]))
        self.sent.append((first, headers, body))
        said = json.dumps(self.answer).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(said)}\r\n\r\n"
        connection.sendall(head.encode() + said)

    def close(self) -> None:
        """A connection that says nothing ends it."""
        socket.create_connection(self.listener.getsockname()).close()
        self.thread.join(10)
        self.listener.close()


def read_head(connection: socket.socket) -> bytes:
    found = b""
    while not found.endswith(b"\r\n\r\n") and (byte := connection.recv(1)):
        found += byte
    return found


def read_exactly(connection: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length and (more := connection.recv(length - len(found))):
        found += more
    return found


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """Every call leaves through it, and trusts it."""
    names = ",".join(f"DNS:{name}" for name in ("*.openai.com", "*.openai.azure.com", "*.googleapis.com", AMAZON))
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=clouds"
    files = ["-addext", f"subjectAltName={names}", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([*command.split(), *files], cwd=tmp_path, check=True, capture_output=True)
    both = tmp_path / "both.pem"
    both.write_bytes((tmp_path / "cert.pem").read_bytes() + (tmp_path / "key.pem").read_bytes())
    found = Recorder(both)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{found.listener.getsockname()[1]}")
    monkeypatch.setenv("no_proxy", "")
    yield found
    found.close()


AMAZON = "bedrock-runtime.us-east-1.amazonaws.com"
SAID = json.dumps({"reason": "It says so.", "response": "yes"})
CHAT = {"choices": [{"message": {"content": SAID}, "finish_reason": "stop"}], "usage": {}}
MESSAGE = {"content": [{"type": "text", "text": SAID}], "stop_reason": "end_turn", "usage": {}}
CANDIDATE = {"candidates": [{"content": {"parts": [{"text": SAID}]}, "finishReason": "STOP"}], "usageMetadata": {}}
ITEM = {"type": "message", "content": [{"type": "output_text", "text": SAID}]}
CLOUDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "openai-responses": ({"model": "gpt-5.1", "reasoning_effort": "low", "temperature": "default"}, {"output": [ITEM]}),
    "azure": ({"model": "my-gpt", "base_url": "https://team.openai.azure.com", "api_version": "2024-10-21"}, CHAT),
    "bedrock": ({"model": "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "region": "us-east-1"}, MESSAGE),
    "vertex": ({"model": "gemini-2.5-flash", "region": "europe-west1", "project": "a-team"}, CANDIDATE),
    "vertex-anthropic": ({"model": "claude-sonnet-4-6", "region": "global", "project": "a-team"}, MESSAGE),
}
"""Judge keys, and an answer, by preset."""
TOKENS = {"token_command": ["echo", "entra-or-google-token"]}
NOISE = re.compile("user-agent|connection|accept|accept-encoding|content-length|x-goog-api-client|x-stainless-.*")
"""Headers that say what program asks; a documented request has others or none."""


def judge_of(preset: str, **more: Any) -> Judge:
    """The judge that a judges file of a team on that cloud describes."""
    keys = {"name": "a", "provider": preset, **CLOUDS[preset][0], **more}
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    entry = parse("\n".join(["[[judge]]", *lines])).judges[0]
    return Judge("a", preset, entry.model, entry.base_url, entry.api_key_env, entry.parameters, id=1)


def leaving(monkeypatch: pytest.MonkeyPatch, recorder: Recorder, judge: Judge) -> tuple[str, dict[str, str], bytes]:
    """The one request of a call as it leaves, with our other headers left out of it."""
    monkeypatch.delenv("QUORUM_LOOPBACK_ONLY", raising=False)
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    recorder.answer = CLOUDS[judge.provider][1]
    assert parse_vote(reply_of(judge, ASKED).text).verdict == 1
    (sent,) = recorder.sent
    return sent


def shown(sent: tuple[str, dict[str, str], bytes]) -> str:
    """A request as text, as documentation shows it; JSON as it is."""
    first, headers, body = sent
    lines = [f"{name}: {headers[name]}" for name in sorted(headers) if not NOISE.fullmatch(name)]
    return "\n".join([first, *lines, "", body.decode()]) + "\n"


@pytest.mark.parametrize(
    ("name", "preset", "more"),
    [
        ("responses", "openai-responses", {}),
        ("azure-key", "azure", {}),
        ("azure-entra", "azure", TOKENS),
        ("vertex", "vertex", TOKENS),
        ("vertex-anthropic", "vertex-anthropic", TOKENS),
    ],
)
def test_a_request_leaves_as_it_is_documented(monkeypatch, recorder, name, preset, more):
    sent = leaving(monkeypatch, recorder, judge_of(preset, **more))
    assert shown(sent) == (RECORDED / f"{name}.http").read_text()
    assert int(sent[1]["content-length"]) == len(sent[2])


@pytest.fixture
def signing(cloud: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fixed clock, session credentials, and an SDK that says nothing of this machine."""
    now = datetime(2026, 11, 22, 19, 30, 0, tzinfo=UTC)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: now)
    monkeypatch.setenv("AWS_SESSION_TOKEN", SESSION)
    monkeypatch.setattr("anthropic._base_client.BaseClient.platform_headers", lambda _: {"X-Stainless-Lang": "python"})


@pytest.mark.usefixtures("signing")
def test_a_request_to_bedrock_is_signed_as_documented_and_leaves_as_it_was_signed(monkeypatch, recorder):
    """Signature Version 4, worked out step by step from what leaves (IAM user guide, "Create a signed request")."""
    first, headers, body = leaving(monkeypatch, recorder, judge_of("bedrock"))
    method, target, _ = first.split(" ")
    form = r"AWS4-HMAC-SHA256 Credential=(.+), SignedHeaders=(.+), Signature=([0-9a-f]{64})"
    found = re.fullmatch(form, headers["authorization"])
    assert found
    scope, signed, signature = found.groups()
    assert scope == f"{ACCESS_KEY}/20261122/us-east-1/bedrock/aws4_request"
    # 1. The canonical request. The path is encoded once more than it is sent, for every service but S3.
    names = signed.split(";")
    assert names == sorted(names) and {"host", "x-amz-date", "x-amz-security-token", "accept-encoding"} <= set(names)
    path = target.replace("%", "%25").replace(":", "%3A")
    fields = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in names)
    canonical = "\n".join([method, path, "", fields, signed, hashlib.sha256(body).hexdigest()])
    assert canonical == (RECORDED / "bedrock-canonical.txt").read_text().removesuffix("\n")
    # 2. The string to sign, and 3. the key: four times HMAC, then the signature.
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope.partition("/")[2], digest])
    key = f"AWS4{SECRET_KEY}".encode()
    for part in ("20261122", "us-east-1", "bedrock", "aws4_request", to_sign):
        key = hmac.digest(key, part.encode(), "sha256")
    assert signature == key.hex()
    # 4. The whole request, as recorded.
    whole = "\n".join([first, *(f"{name}: {headers[name]}" for name in sorted(headers) if name != "user-agent")])
    assert f"{whole}\n\n{body.decode()}\n" == (RECORDED / "bedrock.http").read_text()


# Against look-alikes


@pytest.mark.parametrize("preset", NAMES)
def test_cached_input_is_part_of_input(model_server: LocalModels, preset: str) -> None:
    judge = model_server.alike(preset, "m", schema_mode=PRESETS[preset].schema_mode)
    model_server.script(m={"verdict": "yes"})
    plain = reply_of(judge).usage
    model_server.script(m={"verdict": "yes", "cached": 40})
    usage = reply_of(judge).usage
    assert (usage.input, usage.cached, usage.output) == (plain.input, 40, plain.output)


REFUSED: list[tuple[str, dict[str, Any], type[ProviderError], str]] = [
    ("azure", {"api_key_env": "", "token_command": ["printf", ""]}, Refused, "printed no token"),
    ("openai-responses", {"temperature": 0, "reasoning_effort": "low"}, Rejected, "'temperature' does not support"),
    ("bedrock", {"region": "nowhere"}, Refused, "(key: the credentials of AWS)"),
    ("vertex", {"project": "no-such-project"}, Refused, "denied on resource"),
]


@pytest.mark.parametrize(("preset", "keys", "kind", "words"), REFUSED)
def test_what_the_provider_refuses_is_said_in_one_line(model_server, preset, keys, kind, words):
    with pytest.raises(kind, match=re.escape(words)) as caught:
        reply_of(model_server.alike(preset, keys.pop("model", "yes"), **keys))
    assert "\n" not in str(caught.value) and not caught.value.retry


def test_responses_say_why_an_answer_is_none(model_server: LocalModels) -> None:
    replies = {
        name: reply_of(model_server.alike("openai-responses", name)) for name in ("refused", "filtered", "truncated")
    }
    assert [reply.finish_reason for reply in replies.values()] == ["refusal", "refusal", "length"]
    assert replies["refused"].text.startswith("I cannot help")
    reply = reply_of(model_server.alike("openai-responses", "yes", logprobs=3))
    assert "".join(token.text for token in reply.tokens) == reply.text and len(reply.tokens[0].others) == 3


def test_a_request_that_is_not_signed_by_the_key_is_refused(model_server, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", SESSION)
    with pytest.raises(Refused, match="403 The request signature") as caught:
        reply_of(model_server.alike("bedrock"))
    assert SESSION not in caught.value.raw and "x-amz-security-token:[key]" in caught.value.raw
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDUNKNOWN")
    with pytest.raises(Refused, match=r"token .*is invalid"):
        reply_of(model_server.alike("bedrock"))


def test_without_credentials_nothing_is_sent_and_the_remedy_is_said(model_server, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(Refused, match="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        reply_of(model_server.alike("bedrock"))
    with pytest.raises(Refused, match="GOOGLE_APPLICATION_CREDENTIALS"):
        reply_of(model_server.alike("vertex", token_command=None, api_key_env=""))
    assert model_server.requests() == []


def test_a_bedrock_api_key_is_sent_instead_of_a_signature(model_server, monkeypatch):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-1")
    assert parse_vote(reply_of(model_server.alike("bedrock")).text).verdict == 1
    (sent,) = model_server.requests()
    assert sent["headers"]["authorization"] == "Bearer bedrock-api-key-1"


def test_keys_of_a_profile_sign_too(model_server, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    path = tmp_path / "credentials"
    path.write_text(f"[team]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    monkeypatch.setenv("AWS_PROFILE", "team")
    assert parse_vote(reply_of(model_server.alike("bedrock")).text).verdict == 1


def test_projects_of_one_account_are_kept_apart(model_server: LocalModels) -> None:
    ours = model_server.alike("vertex")
    theirs = model_server.alike("vertex", project="no-such-project")

    async def both() -> list[Any]:
        calls = [open_provider(judge).complete(plain_vote(judge)) for judge in (ours, theirs, ours)]
        return await asyncio.gather(*calls, return_exceptions=True)

    first, second, third = run(both())
    assert isinstance(first, Reply) and isinstance(second, Refused) and isinstance(third, Reply)


# Tokens


@pytest.fixture
def counter(tmp_path: Path) -> Path:
    """A command's log: a line for each time that it ran."""
    return tmp_path / "runs"


def printing(counter: Path, printed: str) -> list[str]:
    code = f"open({str(counter)!r}, 'a').write('x\\n'); print({printed!r})"
    return [sys.executable, "-c", code]


def test_a_command_is_run_once_until_its_token_expires(model_server, counter, monkeypatch):
    later = int(time.time()) + 3600
    printed = json.dumps({"accessToken": "entra-1", "expires_on": later, "tokenType": "Bearer"})
    judge = model_server.alike("azure", token_command=printing(counter, printed))

    async def work() -> None:
        provider = open_provider(judge)
        await asyncio.gather(*(provider.complete(plain_vote(judge)) for _ in range(4)))
        assert len(counter.read_text()) == 2
        monkeypatch.setattr(access.time, "time", lambda: later - access.EARLY_S + 1)
        await provider.complete(plain_vote(judge))
        assert len(counter.read_text()) == 4

    run(work())
    assert {sent["headers"]["authorization"] for sent in model_server.requests()} == {"Bearer entra-1"}
    assert not any("api-key" in sent["headers"] for sent in model_server.requests())


def test_a_token_that_is_not_accepted_is_fetched_anew(model_server: LocalModels, counter: Path) -> None:
    model_server.script(m=[{"fault": "401", "times": 1}, {"verdict": "yes"}])
    judge = model_server.alike("azure", "m", token_command=printing(counter, "entra-1"))

    async def work() -> None:
        provider = open_provider(judge)
        with pytest.raises(Refused):
            await provider.complete(plain_vote(judge))
        await provider.complete(plain_vote(judge))

    run(work())
    assert len(counter.read_text()) == 4


def claims(**said: Any) -> str:
    """An unsigned JSON Web Token."""
    part = base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")
    return f"e30.{part}.sig"


def test_the_end_of_a_token_and_a_region_of_the_address_are_read() -> None:
    now = time.time()
    assert from_command(("echo", claims(exp=now + 7200)))[1] == now + 7200
    assert from_command(("echo", json.dumps({"access_token": "a", "expires_in": 60})))[1] == pytest.approx(
        now + 60, abs=5
    )
    assert from_command(("echo", json.dumps({"token": "a", "expires_on": str(int(now))})))[1] == int(now)
    assert from_command(("echo", "opaque"))[1] == pytest.approx(now + access.EARLY_S + access.SHORT_S, abs=5)
    assert judge_of("bedrock").base_url == "https://bedrock-runtime.us-east-1.amazonaws.com"
    assert judge_of("vertex").base_url == "https://europe-west1-aiplatform.googleapis.com"
    assert judge_of("vertex-anthropic").base_url == "https://aiplatform.googleapis.com"
    assert judge_of("vertex-anthropic").schema_mode == "tool"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("/no/such/program",), "cannot be run"),
        (("sh", "-c", "echo secret-1; echo secret-2 >&2; exit 3"), "ended with 3"),
        (("echo", "secret-1 secret-2"), "printed no token"),
        (("echo", '{"accessToken": 7, "note": "secret-1"}'), "printed no token"),
        (("printf", "\\377"), "cannot be run"),
    ],
)
def test_a_command_that_fails_never_shows_what_it_printed(command: tuple[str, ...], words: str) -> None:
    with pytest.raises(Refused, match=words) as caught:
        from_command(command)
    assert "secret" not in str(caught.value) and caught.value.__cause__ is None


def test_whoever_needs_a_token_that_is_being_fetched_waits_for_it() -> None:
    fetched: list[int] = []

    def fetch() -> access.AccessToken:
        time.sleep(0.05)
        fetched.append(1)
        return access.make_token("t")

    async def work() -> list[str]:
        tokens = Tokens()
        return await asyncio.gather(*(tokens.of("source", fetch) for _ in range(20)))

    assert set(asyncio.run(work())) == {"t"} and fetched == [1]


@pytest.fixture
def token_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Google's token endpoint on this machine, for a service account that Google's library finds; what it was sent."""
    asked: list[str] = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["content-length"])).decode())
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(b'{"access_token": "ya29.of-the-account", "expires_in": 3600, "token_type": "Bearer"}')

        def log_message(self, *args: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {
        "type": "service_account",
        "project_id": "a-team",
        "private_key_id": "1",
        "private_key": private.decode(),
    }
    account |= {"client_email": "judge@a-team.iam.gserviceaccount.com"}
    account |= {"token_uri": f"http://127.0.0.1:{server.server_port}/token"}
    (tmp_path / "account.json").write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
    yield asked
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("preset", ["vertex", "vertex-anthropic"])
def test_a_service_account_asks_vertex(model_server: LocalModels, token_endpoint: list[str], preset: str) -> None:
    keys = {"token_command": None, "api_key_env": "", "schema_mode": "tool"}
    judge = model_server.alike(preset, **keys)

    async def twice() -> None:
        provider = open_provider(judge)
        for _ in range(2):
            await provider.complete(plain_vote(judge))

    run(twice())
    assert len(token_endpoint) == 1 and "jwt-bearer" in token_endpoint[0]
    assert {one["headers"]["authorization"] for one in model_server.requests()} == {"Bearer ya29.of-the-account"}


@pytest.mark.parametrize("preset", NAMES)
def test_no_log_error_or_stored_body_has_a_credential(model_server, monkeypatch, caplog, preset):
    monkeypatch.setenv("AWS_SESSION_TOKEN", SESSION)
    caplog.set_level(logging.DEBUG)
    reply_of(model_server.alike(preset, schema_mode="tool"))
    (sent,) = model_server.requests()
    names = ("authorization", "api-key", "x-api-key", "x-goog-api-key", "x-amz-security-token")
    secrets = [sent["headers"][name].rpartition(" ")[2] for name in names if name in sent["headers"]]
    assert secrets
    model_server.script({"*": {"fault": "echo-key"}})
    with pytest.raises(ProviderError) as caught:
        reply_of(model_server.alike(preset, schema_mode="tool"))
    assert "[key]" in caught.value.raw and caplog.text
    for secret in [*secrets, KEY, SECRET_KEY]:
        for place in (caplog.text, str(caught.value), caught.value.raw, repr(caught.value)):
            assert secret not in place


# The judges file


@pytest.mark.parametrize(
    ("preset", "left_out", "words"),
    [
        ("azure", "api_version", "api_version is missing"),
        ("azure", "base_url", "base_url is missing"),
        ("bedrock", "region", "region is missing"),
        ("vertex", "project", "project is missing"),
    ],
)
def test_what_a_cloud_needs_stands_in_the_file(monkeypatch, preset, left_out, words):
    keys = {key: value for key, value in CLOUDS[preset][0].items() if key != left_out}
    monkeypatch.setitem(CLOUDS, preset, (keys, {}))
    with pytest.raises(BadInput, match=words):
        judge_of(preset)


@pytest.mark.django_db
def test_a_missing_extra_is_said_when_the_file_is_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    real = providers.find_spec
    monkeypatch.setattr(providers, "find_spec", lambda name: None if name == "boto3" else real(name))
    with pytest.raises(BadInput, match=r"bedrock .*make install-cloud"):
        store_judges_file(parse('[[judge]]\nname = "a"\nprovider = "bedrock"\nmodel = "m"\nregion = "us-east-1"\n'))


def test_json_object_has_its_word_in_the_input_of_responses(model_server: LocalModels) -> None:
    judge = judge_at(model_server, "openai-responses", "gpt-4.1", schema_mode="json_object")
    asked = vote_of(judge)
    bare = replace(asked, prompt=replace(asked.prompt, user="What? A mapping maps."))
    assert "json" in asked.prompt.system.lower()
    assert ask(asked, bare)[1].status == 200
    sent = model_server.requests()[-1]["body"]
    assert [item["role"] for item in sent["input"]] == ["system", "user"] and "instructions" not in sent
