"""A receiver of webhooks: a real HTTP server on this machine, which answers what a test says and keeps what it got."""

import json
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from typing import Any

import pytest
from standardwebhooks import Webhook as Verifier

from annotation.models import Membership, Role
from api.models import Webhook
from api.webhooks import services
from tests.factories import make_collection, make_member


@dataclass
class Received:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> Any:
        return json.loads(self.body)

    def verify(self, secret: str) -> Any:
        """What the library of receivers makes of it; raises where the signature is wrong."""
        return Verifier(secret).verify(self.body, self.headers)


@dataclass
class Receiver:
    """What it answers to the next requests (then 200), and all that it got."""

    url: str = ""
    answers: deque[int] = field(default_factory=deque)
    body: bytes = b"thank you"
    got: list[Received] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    hold: threading.Event = field(default_factory=threading.Event)
    """Answers wait until it is set."""

    def ids(self) -> list[str]:
        return [one.id for one in self.got]


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    found = Receiver()
    found.hold.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            sent = {name.lower(): value for name, value in self.headers.items()}
            found.got.append(Received(self.path, sent, body))
            status = found.answers.popleft() if found.answers else 200
            found.hold.wait(60)
            try:
                self.send_response(status)
                for name, value in found.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(found.body)
            except OSError:
                pass  # the sender left

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    settings.WEBHOOK_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.WEBHOOK_RETRY_SECONDS = 0.0
    yield found
    found.hold.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def admin() -> Membership:
    """Alice, an admin of the collection birds."""
    return make_member(make_collection("birds"), "alice", Role.ADMIN)


@dataclass
class Hooked:
    """A webhook with its secret."""

    row: Webhook
    secret: str


@pytest.fixture
def hooked(receiver: Receiver, admin: Membership) -> Hooked:
    """A webhook of birds to the receiver, for every event."""
    made = services.create_webhook(admin.collection, admin.user, url=receiver.url, events=Webhook.Event.values)
    return Hooked(*made)
