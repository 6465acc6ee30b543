"""The batch endpoints of the three providers: calls answered together, after a delay."""

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.modelserver.behaviours import STATUSES
from tests.modelserver.formats import answer, error, read

if TYPE_CHECKING:
    from tests.modelserver.server import ModelServer


@dataclass
class Batch:
    """One batch: its calls by id, with the body of each."""

    id: str
    form: str
    name: str
    calls: list[tuple[str, dict[str, Any]]]
    model: str
    headers: dict[str, str]
    begun: float = field(default_factory=time.time)
    cancelled: bool = False
    results: list[tuple[str, int, dict[str, Any]]] | None = None


class Batches:
    """All batches, and OpenAI's files. `delay`: seconds that a batch takes."""

    def __init__(self, server: "ModelServer") -> None:
        self.server = server
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Batch] = {}
        self.delay = 0.0

    def handle(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes] | None:
        """Status and body; None for an address that is not about batches."""
        path = path.partition("?")[0]
        parts = path.strip("/").split("/")
        if path.endswith("/files") and body:
            return self.upload(headers, body)
        if parts[-1] == "content" and parts[-2] in self.files:
            return 200, self.files[parts[-2]]
        if path.endswith(":batchGenerateContent"):
            return _json(self.google(parts[-1].partition(":")[0], headers, json.loads(body)))
        if path.endswith("/messages/batches") and body:
            requests = json.loads(body)["requests"]
            calls = [(one["custom_id"], one["params"]) for one in requests]
            return _json(self.shown(self.add("anthropic", "", calls, "", headers)))
        if parts[-1] == "batches" and body:
            return _json(self.shown(self.openai(headers, json.loads(body))))
        if parts[-1] == "batches":
            return _json(self.listed(path))
        return self.one(parts, headers)

    def one(self, parts: list[str], headers: dict[str, str]) -> tuple[int, bytes] | None:
        """One batch: looked at, cancelled, or its results."""
        for place, part in enumerate(parts):
            name, _, act = part.partition(":")
            if name not in self.batches:
                continue
            batch = self.batches[name]
            if act == "cancel" or parts[-1] == "cancel":
                batch.cancelled = True
            if parts[place + 1 :] == ["results"]:
                return 200, "\n".join(json.dumps(line) for line in self.lines(batch)).encode()
            return _json(self.shown(batch))
        return None

    def upload(self, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        boundary = headers["content-type"].partition("boundary=")[2].strip('"').encode()
        for part in body.split(b"--" + boundary):
            head, _, content = part.partition(b"\r\n\r\n")
            if b'name="file"' in head:
                key = f"file-{len(self.files)}"
                self.files[key] = content.removesuffix(b"\r\n")
                return _json(
                    {"id": key, "object": "file", "bytes": 0, "created_at": 0, "filename": "f", "purpose": "batch"}
                )
        return 400, b"{}"

    def openai(self, headers: dict[str, str], body: dict[str, Any]) -> Batch:
        entries = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        calls = [(entry["custom_id"], entry["body"]) for entry in entries]
        return self.add("openai", (body.get("metadata") or {}).get("quorum", ""), calls, "", headers)

    def google(self, model: str, headers: dict[str, str], body: dict[str, Any]) -> dict[str, Any]:
        requests = body["batch"]["inputConfig"]["requests"]["requests"]
        calls = [(one["metadata"]["key"], one["request"]) for one in requests]
        return self.shown(self.add("google", body["batch"].get("displayName", ""), calls, model, headers))

    def add(
        self, form: str, name: str, calls: list[tuple[str, dict[str, Any]]], model: str, headers: dict[str, str]
    ) -> Batch:
        key = f"batch-{len(self.batches)}"
        self.batches[key] = Batch(key, form, name, calls, model, headers)
        return self.batches[key]

    def ended(self, batch: Batch) -> bool:
        """Its delay is over; then every call is answered, once."""
        if time.time() - batch.begun < self.delay and not batch.cancelled:
            return False
        if batch.results is None:
            batch.results = [] if batch.cancelled else [self.answered(batch, key, body) for key, body in batch.calls]
        return True

    def answered(self, batch: Batch, key: str, body: dict[str, Any]) -> tuple[str, int, dict[str, Any]]:
        path = {
            "openai": "/v1/chat/completions",
            "anthropic": "/v1/messages",
            "google": f"/v1beta/models/{batch.model}:generateContent",
        }[batch.form]
        call = read(path, batch.headers, body)
        assert call is not None
        server = self.server
        server.number += 1
        behaviour = server.script.behaviour(call.model, call.user, call.key)
        status = STATUSES.get(behaviour.fault, 200)
        entry = {"seq": server.number, "arrived": batch.begun, "path": path, "batch": batch.id}
        server.record(call, entry, behaviour, json.dumps(body).encode(), status)
        if status != 200:
            return key, status, error(call.format, status, f"scripted {behaviour.fault}")
        return key, 200, answer(call, behaviour, server.number)

    def lines(self, batch: Batch) -> list[dict[str, Any]]:
        """The results as a file has them: OpenAI's and Anthropic's."""
        found: list[dict[str, Any]] = []
        for key, status, body in batch.results or []:
            if batch.form == "openai":
                found.append(
                    {"id": key, "custom_id": key, "response": {"status_code": status, "body": body}, "error": None}
                )
            elif status == 200:
                found.append({"custom_id": key, "result": {"type": "succeeded", "message": body}})
            else:
                found.append({"custom_id": key, "result": {"type": "errored", "error": body}})
        return found

    def shown(self, batch: Batch) -> dict[str, Any]:
        """As its provider shows a batch."""
        ended = self.ended(batch)
        if batch.form == "google":
            return self._google(batch, ended)
        if batch.form == "anthropic":
            counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
            stamps = dict.fromkeys(("archived_at", "cancel_initiated_at", "ended_at"))
            status = "ended" if ended else "in_progress"
            shown = {"id": batch.id, "type": "message_batch", "processing_status": status, "request_counts": counts}
            url = f"http://127.0.0.1:{self.server.port}/v1/messages/batches/{batch.id}/results" if ended else None
            now = "2026-01-01T00:00:00Z"
            return {**shown, **stamps, "created_at": now, "expires_at": now, "results_url": url}
        if ended:
            self.files[f"{batch.id}-out"] = "\n".join(json.dumps(line) for line in self.lines(batch)).encode()
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_file_id": "file-0",
            "completion_window": "24h",
            "created_at": 0,
            "status": ("cancelled" if batch.cancelled else "completed") if ended else "in_progress",
            "output_file_id": f"{batch.id}-out" if ended else None,
            "error_file_id": None,
            "metadata": {"quorum": batch.name},
        }

    def _google(self, batch: Batch, ended: bool) -> dict[str, Any]:
        metadata: dict[str, Any] = {"displayName": batch.name, "model": f"models/{batch.model}"}
        metadata["state"] = "BATCH_STATE_SUCCEEDED" if ended else "BATCH_STATE_RUNNING"
        if ended:
            responses: list[dict[str, Any]] = [
                {"metadata": {"key": key}, "response": body}
                if status == 200
                else {"metadata": {"key": key}, "error": {"code": 14, "message": body["error"]["message"]}}
                for key, status, body in batch.results or []
            ]
            metadata["output"] = {"inlinedResponses": {"inlinedResponses": responses}}
        return {"name": f"batches/{batch.id}", "metadata": metadata, "done": ended}

    def listed(self, path: str) -> dict[str, Any]:
        """The batches of an account, as OpenAI or Google list them."""
        if "v1beta" in path:
            return {"operations": [self.shown(one) for one in self.batches.values() if one.form == "google"]}
        data = [self.shown(one) for one in self.batches.values() if one.form == "openai"]
        return {"object": "list", "data": data, "has_more": False, "first_id": None, "last_id": None}


def _json(value: dict[str, Any]) -> tuple[int, bytes]:
    return 200, json.dumps(value).encode()
