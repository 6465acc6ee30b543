"""What a request of one of the four wire formats asks for."""

import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from judges.prompts import render
from judges.prompts.searching import PASSAGE_SCHEMA, REASONING_SCHEMA
from tests.modelserver.behaviours import FENCE, place


@dataclass
class Asked:
    """One request. `mode` is its schema mode, `schema` the one that binds it: {} where only words say it."""

    wire: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    raw: bytes
    body: dict[str, Any]
    parts: dict[str, str]  # Named groups of the look-alike's path.
    model: str = ""
    system: str = ""
    user: str = ""
    mode: str = "text"
    schema: dict[str, Any] | None = None
    tool: str = ""  # The tool that must be called.
    logprobs: bool = False
    alternatives: int = 0

    @classmethod
    def of(
        cls, wire: str, path: str, query: str, headers: dict[str, str], raw: bytes, parts: dict[str, str]
    ) -> "Asked":
        asked = cls(wire, path, dict(parse_qsl(query, keep_blank_values=True)), headers, raw, json.loads(raw), parts)
        asked.model = parts.get("model") or asked.body.get("model", "")
        if raw != b"{}":
            {"chat": _chat, "responses": _responses, "messages": _messages, "generate": _generate}[wire](asked)
        return asked

    def at(self, path: str) -> Any:
        """What stands at a dotted path of the body; None where nothing does."""
        found: Any = self.body
        for step in path.split("."):
            found = found.get(step) if isinstance(found, dict) else None
        return found


def _chat(asked: Asked) -> None:
    body = asked.body
    texts = {message["role"]: _text(message["content"]) for message in body["messages"]}
    asked.system, asked.user = texts.get("system", texts.get("developer", "")), texts["user"]
    form = body.get("response_format") or {}
    if body.get("tools"):
        function = body["tools"][0]["function"]
        asked.mode, asked.schema, asked.tool = "tool", function["parameters"], function["name"]
    elif form.get("type") == "json_schema":
        asked.mode, asked.schema = "json_schema", (form.get("json_schema") or form)["schema"]
    elif form.get("type") == "json_object":
        asked.mode = "json_object"
        asked.schema = form.get("schema")  # llama.cpp, Together and others take one here too
    elif form.get("type") == "json":
        asked.mode, asked.schema = "json_schema", form["value"]  # TGI
    asked.logprobs, asked.alternatives = bool(body.get("logprobs")), body.get("top_logprobs") or 0


def _responses(asked: Asked) -> None:
    body = asked.body
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    texts = {item["role"]: _text(item["content"]) for item in items}
    asked.system = body.get("instructions") or texts.get("system", texts.get("developer", ""))
    asked.user = texts["user"]
    form = (body.get("text") or {}).get("format") or {}
    if body.get("tools"):
        asked.mode, asked.schema, asked.tool = "tool", body["tools"][0]["parameters"], body["tools"][0]["name"]
    elif form.get("type") == "json_schema":
        asked.mode, asked.schema = "json_schema", form["schema"]
    elif form.get("type") == "json_object":
        asked.mode = "json_object"
    asked.logprobs = "message.output_text.logprobs" in (body.get("include") or [])
    asked.alternatives = body.get("top_logprobs") or 0


def _messages(asked: Asked) -> None:
    body = asked.body
    asked.system, asked.user = _text(body.get("system") or ""), _text(body["messages"][0]["content"])
    form = (body.get("output_config") or {}).get("format") or {}
    if body.get("tools"):
        asked.mode, asked.schema, asked.tool = "tool", body["tools"][0]["input_schema"], body["tools"][0]["name"]
    elif form:
        asked.mode, asked.schema = "json_schema", form["schema"]


SCHEMAS = {"responseJsonSchema", "response_json_schema", "parametersJsonSchema", "parameters_json_schema", "args"}
"""Fields of Google's whose content is the caller's own."""


def camel(value: Any) -> Any:
    """With the names of fields as Google's documentation has them: its servers take my_field for myField too."""
    if isinstance(value, list):
        return [camel(one) for one in value]
    if not isinstance(value, dict):
        return value
    named = {re.sub(r"_([a-z])", lambda found: found[1].upper(), name): one for name, one in value.items()}
    return {name: one if name in SCHEMAS else camel(one) for name, one in named.items()}


def _generate(asked: Asked) -> None:
    body = asked.body = camel(asked.body)
    asked.system = _text((body.get("systemInstruction") or {}).get("parts") or "")
    asked.user = _text(body["contents"][0]["parts"])
    config = body.get("generationConfig") or {}
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    if body.get("tools"):
        declared = body["tools"][0]["functionDeclarations"][0]
        asked.mode, asked.tool = "tool", declared["name"]
        asked.schema = declared.get("parametersJsonSchema") or declared["parameters"]
    elif schema:
        asked.mode, asked.schema = "json_schema", schema
    elif config.get("responseMimeType") == "application/json":
        asked.mode = "json_object"
    asked.logprobs, asked.alternatives = bool(config.get("responseLogprobs")), config.get("logprobs") or 0


def _text(content: Any) -> str:
    """Text, or the texts of blocks, joined."""
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def schema_in_words(system: str, user: str) -> dict[str, Any]:
    """The schema that the instructions ask for in words: by the names of its keys in quotation marks."""
    words = system + FENCE.sub("", user)
    for schema in (PASSAGE_SCHEMA, REASONING_SCHEMA):
        if all(f'"{name}"' in words for name in schema["properties"]):
            return schema
    if place(user)[0] != "vote":
        return render.TURN_SCHEMA
    if '"score"' in words:
        return render.GRADED_SCHEMAS[10 if re.search(r"\b10\b", words) else 3]
    return render.VOTE_SCHEMA
