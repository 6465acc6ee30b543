"""The batch endpoints of the three providers: calls answered together, after a delay. They refuse what these refuse."""

import json
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from tests.modelserver.behaviours import STATUSES
from tests.modelserver.formats import error, read
from tests.modelserver.presets.writing import answer

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
    failure: tuple[str, str] | None = None  # (code, message) where OpenAI's validation refused it.


LOST = (0, b"")  # The answer that is lost: the connection ends without one.
CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # Anthropic's.


class Batches:
    """All batches, and OpenAI's files.

    `settings`: delay, seconds that a batch takes; size and calls, what one may hold; enqueued, how
    many calls may be out (OpenAI); lose, how many creations are answered by nothing, begun all the
    same; refuse, [status, times], which begins nothing; look and cancel, [status, times] of what
    asks for batches that are out, and of what ends one; spoil, what is wrong with the answers of a
    batch: `broken`, the first line is cut off, `foreign`, one more is to a call of somebody else,
    `keyless`, Google's have no metadata; late, how often the file of answers is not there yet;
    unpaid, the account's money is spent (OpenAI).
    """

    NORMAL: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(("delay", "size", "calls", "enqueued", "lose", "late"), 0),
        **{name: [0, 0] for name in ("refuse", "look", "cancel")},
        **{"spoil": "", "unpaid": False},
    }

    def __init__(self, server: "ModelServer") -> None:
        self.server = server
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Batch] = {}
        self.settings: dict[str, Any] = dict(self.NORMAL)
        self.posts = 0
        """Requests that were to create a batch."""
        self.keys: list[str] = []
        """Their idempotency keys."""

    def handle(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes] | None:
        """Status and body; None for an address that is not about batches."""
        path = path.partition("?")[0]
        parts = path.strip("/").split("/")
        if path.endswith("/files") and body:
            return self.upload(headers, body)
        if parts[-1] == "content" and parts[-2] in self.files:
            if self.settings["late"]:
                self.settings["late"] -= 1
                return 404, json.dumps(error("openai", 404, "No such File object")).encode()
            return 200, self.files[parts[-2]]
        if body and (path.endswith(":batchGenerateContent") or parts[-1] == "batches"):
            return self.created(path, parts, headers, body)
        if parts[-1] == "batches":
            return self.refused("look", headers) or _json(self.listed(path))
        return self.one(parts, headers)

    def refused(self, asked: str, headers: dict[str, str]) -> tuple[int, bytes] | None:
        """The scripted refusal of a request that creates nothing."""
        status, times = self.settings[asked]
        if not times:
            return None
        self.settings[asked] = [status, times - 1]
        names = {name.lower() for name in headers}
        form = "google" if "x-goog-api-key" in names else "anthropic" if "x-api-key" in names else "openai"
        return status, json.dumps(error(form, status, f"scripted refusal to {asked}")).encode()

    def created(self, path: str, parts: list[str], headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        self.posts += 1
        self.keys.append(headers.get("idempotency-key", ""))
        google, anthropic = path.endswith(":batchGenerateContent"), path.endswith("/messages/batches")
        form = "google" if google else "anthropic" if anthropic else "openai"
        if refusal := self.refused("refuse", headers):
            return refusal
        if form != "openai" and 0 < self.settings["size"] < len(body):
            status = 400 if google else 413
            return status, json.dumps(error(form, status, "Request size exceeds the limit.")).encode()
        told = json.loads(body)
        if google:
            requests = told["batch"]["inputConfig"]["requests"]["requests"]
            calls = [(one["metadata"]["key"], one["request"]) for one in requests]
            model = parts[-1].partition(":")[0]
            shown = self.shown(self.add(form, told["batch"].get("displayName", ""), calls, headers, model))
        elif anthropic:
            calls = [(one["custom_id"], one["params"]) for one in told["requests"]]
            if any(not CUSTOM_ID.fullmatch(key) for key, _ in calls) or len({key for key, _ in calls}) < len(calls):
                return 400, json.dumps(error(form, 400, "requests: custom_id")).encode()
            shown = self.shown(self.add(form, "", calls, headers))
        else:
            shown = self.shown(self.openai(headers, told))
        if self.settings["lose"]:
            self.settings["lose"] -= 1
            return LOST
        return _json(shown)

    def one(self, parts: list[str], headers: dict[str, str]) -> tuple[int, bytes] | None:
        """One batch: looked at, cancelled, or its results."""
        for place, part in enumerate(parts):
            name, _, act = part.partition(":")
            if name not in self.batches:
                continue
            batch = self.batches[name]
            cancels = act == "cancel" or parts[-1] == "cancel"
            if refusal := self.refused("cancel" if cancels else "look", headers):
                return refusal
            if cancels:
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
                if 0 < self.settings["size"] < len(content):
                    message = f"Maximum content size limit ({self.settings['size']}) exceeded"
                    return 413, json.dumps(error("openai", 413, message)).encode()
                key = f"file-{len(self.files)}"
                self.files[key] = content.removesuffix(b"\r\n")
                more = {"bytes": 0, "created_at": 0, "filename": "f", "purpose": "batch"}
                return _json({"id": key, "object": "file", **more})
        return 400, b"{}"

    def openai(self, headers: dict[str, str], body: dict[str, Any]) -> Batch:
        entries = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        calls = [(entry["custom_id"], entry["body"]) for entry in entries]
        out = sum(len(one.calls) for one in self.batches.values() if one.form == "openai" and not self.ended(one))
        batch = self.add("openai", (body.get("metadata") or {}).get("quorum", ""), calls, headers)
        most, enqueued = self.settings["calls"], self.settings["enqueued"]
        if self.settings["unpaid"]:
            batch.failure = ("billing_hard_limit_reached", "Billing hard limit has been reached.")
        elif 0 < most < len(calls):
            batch.failure = ("too_many_requests", f"The batch has {len(calls)} requests, the most is {most}.")
        elif len({call["model"] for _, call in calls}) > 1:
            batch.failure = ("mismatched_model", "All requests of a batch must be of one model.")
        elif 0 < enqueued < out + len(calls):
            batch.failure = ("token_limit_exceeded", "Enqueued token limit reached.")
        return batch

    def add(self, form: str, name: str, calls: list[Any], headers: dict[str, str], model: str = "") -> Batch:
        key = f"batch-{len(self.batches)}"
        self.batches[key] = Batch(key, form, name, calls, model, headers)
        return self.batches[key]

    def ended(self, batch: Batch) -> bool:
        """Its delay is over; then every call is answered, once."""
        if batch.failure is not None:
            return True
        if time.time() - batch.begun < self.settings["delay"] and not batch.cancelled:
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
        status = 400 if call.problem else STATUSES.get(behaviour.fault, behaviour.status)
        entry = {"seq": server.number, "arrived": batch.begun, "path": path, "batch": batch.id}
        server.record(call, entry, behaviour, json.dumps(body).encode(), status)
        if behaviour.body:
            return key, status, json.loads(behaviour.body)
        if status != 200:
            return key, status, error(call.format, status, call.problem or f"scripted {behaviour.fault}")
        return key, 200, answer(call, behaviour, server.number)

    def lines(self, batch: Batch) -> list[dict[str, Any]]:
        """The results as a file has them: OpenAI's and Anthropic's."""
        found: list[dict[str, Any]] = []
        for key, status, body in batch.results or []:
            kind, name = ("succeeded", "message") if status == 200 else ("errored", "error")
            result = {"result": {"type": kind, name: body}}
            if batch.form == "openai":
                result = {"id": key, "response": {"status_code": status, "body": body}, "error": None}
            found.append({"custom_id": key, **result})
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
            for _, code, _body in batch.results or []:
                counts["succeeded" if code == 200 else "errored"] += 1
            if not ended:
                counts["processing"] = len(batch.calls)
            elif batch.cancelled:
                counts["canceled"] = len(batch.calls)
            shown = {"id": batch.id, "type": "message_batch", "processing_status": status, "request_counts": counts}
            url = f"http://127.0.0.1:{self.server.port}/v1/messages/batches/{batch.id}/results" if ended else None
            now = _moment(batch)
            return {**shown, **stamps, "created_at": now, "expires_at": now, "results_url": url}
        if ended:
            lines = [json.dumps(line, ensure_ascii=False) for line in self.lines(batch)]
            if self.settings["spoil"] == "broken" and lines:
                lines[0] = lines[0][:40]
            if self.settings["spoil"] == "foreign":
                body = {"status_code": 200, "body": {"choices": []}}
                lines.insert(0, json.dumps({"custom_id": "request-of-another", "response": body}))
            self.files[f"{batch.id}-out"] = "".join(f"{line}\n" for line in lines).encode()
        plain = dict.fromkeys(("output_file_id", "error_file_id")) | {
            "id": batch.id, "object": "batch", "endpoint": "/v1/chat/completions", "input_file_id": "file-0",
            "completion_window": "24h", "created_at": int(batch.begun), "metadata": {"quorum": batch.name},
        }  # fmt: skip
        if batch.failure is not None:
            code, message = batch.failure
            listed = {"object": "list", "data": [{"code": code, "message": message, "line": None, "param": None}]}
            return {**plain, "status": "failed", "errors": listed}
        state = ("cancelled" if batch.cancelled else "completed") if ended else "in_progress"
        return {**plain, "status": state, "output_file_id": f"{batch.id}-out" if ended else None}

    def _google(self, batch: Batch, ended: bool) -> dict[str, Any]:
        metadata: dict[str, Any] = {"displayName": batch.name, "model": f"models/{batch.model}"}
        metadata["createTime"] = _moment(batch)
        metadata["state"] = "BATCH_STATE_SUCCEEDED" if ended else "BATCH_STATE_RUNNING"
        if ended:
            responses: list[dict[str, Any]] = [
                {"metadata": {"key": key}, "response": body}
                if status == 200
                else {"metadata": {"key": key}, "error": {"code": 14, "message": body["error"]["message"]}}
                for key, status, body in batch.results or []
            ]
            if self.settings["spoil"] == "keyless":
                for response in responses:
                    del response["metadata"]
            metadata["output"] = {"inlinedResponses": {"inlinedResponses": responses}}
        return {"name": f"batches/{batch.id}", "metadata": metadata, "done": ended}

    def listed(self, path: str) -> dict[str, Any]:
        newest = list(reversed(self.batches.values()))
        if "v1beta" in path:
            return {"operations": [self.shown(one) for one in newest if one.form == "google"]}
        form = "anthropic" if path.endswith("/messages/batches") else "openai"
        data = [self.shown(one) for one in newest if one.form == form]
        return {"object": "list", "data": data, "has_more": False, "first_id": None, "last_id": None}


def _moment(batch: Batch) -> str:
    return datetime.fromtimestamp(batch.begun, UTC).isoformat().replace("+00:00", "Z")


def _json(value: dict[str, Any]) -> tuple[int, bytes]:
    return 200, json.dumps(value).encode()
