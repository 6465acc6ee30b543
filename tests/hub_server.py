"""A stand-in for the Hugging Face Hub: what huggingface_hub asks of it to make repositories and commits, and refusals.

Names and codes are those that the client's source reads: POST /api/repos/create (409 with the
address where it exists), /preupload (the mode of each file, and the oid of what is there), Git LFS
batches, /commit as lines of JSON, /tree.
"""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_stand_in"
READ_ONLY = "hf_reads_alone"
LFS = (".parquet", ".safetensors", ".bin")
INITIAL = {".gitattributes": b"*.parquet filter=lfs\n"}


@dataclass
class Repository:
    """Branches of commits, newest last; a commit is a message and all files."""

    private: bool
    branches: dict[str, list[tuple[str, str, dict[str, bytes]]]] = field(default_factory=dict)

    def files(self, branch: str = "main") -> dict[str, bytes]:
        return self.branches[branch][-1][2]

    def commits(self) -> list[str]:
        return [message for _oid, message, _files in self.branches["main"]]


@dataclass
class HubServer:
    """What was pushed, and which requests came."""

    address: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    uploads: int = 0
    lock: Lock = field(default_factory=Lock)


@contextmanager
def serve_hub() -> Iterator[HubServer]:
    hub = HubServer()

    class Handler(HubHandler):
        server_state = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def oid_of(name: str, content: bytes) -> str:
    """What the Hub calls a file's content: git's hash, or the sha256 of what is stored by LFS."""
    if name.endswith(LFS) and content:
        return sha256(content).hexdigest()
    return sha1(b"blob %d\0" % len(content) + content).hexdigest()


class HubHandler(BaseHTTPRequestHandler):
    server_state: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None: ...

    def handle_request(self) -> None:
        method = self.command
        path = unquote(urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        hub = self.server_state
        with hub.lock:
            hub.requests.append(f"{method} {path}")
            if found := re.fullmatch(r"/upload/([0-9a-f]{64})", path):  # A signed address: no token.
                assert sha256(body).hexdigest() == found[1]
                hub.objects[found[1]], hub.uploads = body, hub.uploads + 1
                return self.answer({})
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            if token not in (TOKEN, READ_ONLY):
                return self.answer({"error": "Invalid username or password."}, 401)
            if method != "GET" and token == READ_ONLY and "validate-yaml" not in path:
                return self.answer({"error": "You don't have the rights to create a repository there"}, 403)
            return self.route(method, path, body)

    do_GET = do_POST = do_PUT = handle_request

    def route(self, method: str, path: str, body: bytes) -> None:
        hub = self.server_state
        if path == "/api/repos/create":
            return self.create(json.loads(body))
        if path == "/api/validate-yaml":
            return self.answer({"errors": [], "warnings": []})
        if found := re.fullmatch(r"/((?:datasets/)?[^/]+/[^/]+)\.git/info/lfs/objects/batch", path):
            return self.answer({"objects": [self.plan(one) for one in json.loads(body)["objects"]]})
        found = re.fullmatch(r"/api/(models|datasets)/([^/]+/[^/]+?)(?:/(\w+)/([^/]+))?(?:/.*)?", path)
        repository = hub.repositories.get(f"{found[1]}/{found[2]}") if found else None
        if found is None or repository is None:
            return self.answer({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})
        act, branch = found[3] or "revision", found[4] or "main"
        if act == "branch":
            if branch in repository.branches:
                return self.answer({"error": "Reference already exists"}, 409)
            repository.branches[branch] = [repository.branches["main"][-1]]
            return self.answer({})
        if branch not in repository.branches:
            return self.answer({"error": "Invalid rev id"}, 404, {"X-Error-Code": "RevisionNotFound"})
        oid, _message, files = repository.branches[branch][-1]
        if act == "revision":
            siblings = [{"rfilename": name} for name in files]
            named = {"id": found[2], "sha": oid, "private": repository.private, "siblings": siblings}
            return self.answer(named | {"tags": [], "downloads": 0, "likes": 0})
        if act == "tree":
            tree = [(name, len(content), oid_of(name, content)) for name, content in files.items()]
            return self.answer([{"type": "file", "path": n, "size": size, "oid": oid} for n, size, oid in tree])
        if act == "preupload":
            return self.answer({"files": [self.look_at(one, files) for one in json.loads(body)["files"]]})
        assert act == "commit" and method == "POST", path
        return self.commit(repository, branch, body, f"{found[1]}/{found[2]}")

    def create(self, asked: dict[str, Any]) -> None:
        hub = self.server_state
        owner, kind = asked.get("organization") or "me", asked.get("type", "model")
        if owner == "others":
            return self.answer({"error": "You don't have the rights to create a repository there"}, 403)
        name = f"{kind}s/{owner}/{asked['name']}"
        address = f"{hub.address}/{'datasets/' if kind == 'dataset' else ''}{owner}/{asked['name']}"
        if name in hub.repositories:
            return self.answer({"error": "You already created this repo", "url": address}, 409)
        repository = hub.repositories[name] = Repository(asked.get("visibility") == "private")
        repository.branches["main"] = [(sha1(name.encode()).hexdigest(), "initial commit", dict(INITIAL))]
        return self.answer({"url": address})

    def plan(self, wanted: dict[str, Any]) -> dict[str, Any]:
        plain = {"oid": wanted["oid"], "size": wanted["size"]}
        if wanted["oid"] in self.server_state.objects:
            return plain
        return plain | {"actions": {"upload": {"href": f"{self.server_state.address}/upload/{wanted['oid']}"}}}

    @staticmethod
    def look_at(one: dict[str, Any], files: dict[str, bytes]) -> dict[str, Any]:
        name = one["path"]
        mode = "lfs" if name.endswith(LFS) else "regular"
        there = {"oid": oid_of(name, files[name])} if name in files else {}
        return {"path": name, "uploadMode": mode, "shouldIgnore": False, **there}

    def commit(self, repository: Repository, branch: str, body: bytes, name: str) -> None:
        lines = [json.loads(line) for line in body.splitlines()]
        head = lines[0]["value"]
        oid, _message, files = repository.branches[branch][-1]
        if head.get("parentCommit") not in (None, oid):
            return self.answer({"error": "A commit has happened since."}, 412)
        files = dict(files)
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "deletedFile":
                del files[value["path"]]
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server_state.objects[value["oid"]]
            else:
                assert line["key"] == "file" and value["encoding"] == "base64"
                files[value["path"]] = base64.b64decode(value["content"])
        new = sha1(body + oid.encode()).hexdigest()
        repository.branches[branch].append((new, head["summary"], files))
        self.answer({"commitUrl": f"{self.server_state.address}/{name}/commit/{new}", "commitOid": new})

    def answer(self, document: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        for key, value in ({"Content-Type": "application/json"} | (headers or {})).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
