"""An OpenID Connect provider on this machine: real keys and signatures, a page with a button, faults on demand."""

import base64
import hashlib
import json
import secrets
import time
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "quorum-test", "the-client-secret-of-the-tests"

PAGE = """<!doctype html><html lang="en"><title>Provider</title><link rel="icon" href="data:,">
<h1>The provider asks</h1>
<form method="post" action="/authorize?{query}"><button name="who" value="{subject}">Continue as {subject}</button>
<button name="who" value="">Cancel</button></form></html>"""


@cache
def private_keys() -> tuple[rsa.RSAPrivateKey, rsa.RSAPrivateKey]:
    """The provider's, and one that is not; they take longer than what is done with them."""
    key, stranger = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
    return key, stranger


@dataclass
class Grant:
    """What stands behind a code that was given out."""

    subject: str
    challenge: str
    redirect_uri: str


@dataclass
class Provider:
    """One provider. `subject` and `claims` say who signs in; `fault` spoils the next id_tokens."""

    subject: str = "subject-of-alice"
    claims: dict[str, Any] = field(default_factory=lambda: {"preferred_username": "alice"})
    fault: str = ""
    """forged, unsigned, shared-secret, other-audience, other-issuer, expired, missing."""
    grants: dict[str, Grant] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.key, self.stranger = private_keys()
        provider = self

        class Handler(_Handler):
            owner = provider

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def environment(self) -> dict[str, str]:
        """What an instance is told about this provider."""
        return {"QUORUM_OIDC_URL": self.url, "QUORUM_OIDC_CLIENT_ID": CLIENT, "QUORUM_OIDC_NAME": "Test University"}

    def close(self) -> None:
        """No more answers."""
        self.server.shutdown()
        self.server.server_close()

    def configuration(self) -> dict[str, object]:
        """The discovery document (OpenID Connect Discovery 1.0, section 3)."""
        places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        places["userinfo_endpoint"] = "userinfo"
        addresses = {name: f"{self.url}/{place}" for name, place in places.items()}
        return {"issuer": self.url, **addresses, "token_endpoint_auth_methods_supported": ["client_secret_post"]}

    def keys(self) -> dict[str, object]:
        """The public key, as a JWK set."""
        key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**key, "kid": "one", "use": "sig", "alg": "RS256"}]}

    def code(self, grant: Grant) -> str:
        """A code for the way back."""
        code = secrets.token_urlsafe(16)
        self.grants[code] = grant
        return code

    def id_token(self) -> str:
        """Who it is, signed; or spoilt as `fault` says."""
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "sub": self.subject, "iat": now, "exp": now + 300, **self.claims}
        faults = {"other-audience": {"aud": "somebody-else"}, "other-issuer": {"iss": "https://elsewhere.example"}}
        faults["expired"] = {"exp": now - 3600}
        claims |= faults.get(self.fault, {})
        if self.fault == "unsigned":
            return jwt.encode(claims, None, algorithm="none", headers={"kid": "one"})
        if self.fault == "shared-secret":
            return jwt.encode(claims, SECRET * 2, algorithm="HS256", headers={"kid": "one"})
        key = self.stranger if self.fault == "forged" else self.key
        return jwt.encode(claims, key, algorithm="RS256", headers={"kid": "one"})

    def exchange(self, given: dict[str, str]) -> tuple[int, dict[str, object]]:
        """The token endpoint: code, client secret and PKCE verifier must fit, each code once."""
        grant = self.grants.pop(given.get("code", ""), None)
        digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        fits = (
            grant is not None
            and given.get("client_id") == CLIENT
            and given.get("client_secret") == SECRET
            and given.get("redirect_uri") == grant.redirect_uri
            and base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == grant.challenge
        )
        if not fits:
            return 400, {"error": "invalid_grant"}
        token = {"access_token": secrets.token_urlsafe(16), "token_type": "Bearer", "expires_in": 300}
        return 200, token if self.fault == "missing" else {**token, "id_token": self.id_token()}


class _Handler(BaseHTTPRequestHandler):
    owner: Provider

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/.well-known/openid-configuration":
            self.json(200, self.owner.configuration())
        elif url.path == "/keys":
            self.json(200, self.owner.keys())
        elif url.path == "/authorize":
            page = PAGE.format(query=url.query.replace("&", "&amp;"), subject=self.owner.subject)
            self.answer(200, page.encode(), {"Content-Type": "text/html"})
        else:
            self.json(404, {})

    def do_POST(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        given = {name: values[0] for name, values in parse_qs(body).items()}
        if url.path == "/token":
            self.json(*self.owner.exchange(given))
        elif url.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(url.query).items()}
            self.answer(302, b"", {"Location": back(self.owner, asked, given.get("who", ""))})
        else:
            self.json(404, {})

    def json(self, status: int, document: dict[str, object]) -> None:
        self.answer(status, json.dumps(document).encode(), {"Content-Type": "application/json"})

    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Quiet."""


def back(provider: Provider, asked: dict[str, str], who: str) -> str:
    """The address to which the provider sends the browser: with a code, or with access_denied."""
    if not who:
        return f"{asked['redirect_uri']}?{urlencode({'error': 'access_denied', 'state': asked['state']})}"
    code = provider.code(Grant(who, asked.get("code_challenge", ""), asked["redirect_uri"]))
    return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"
