"""Examples of the API reference: values for a schema, and each operation as curl and as Python with the client."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]
COLLECTION = "books"
INDENT = " \\\n  "
FORMATS = {"date": "2027-01-31", "date-time": "2027-01-31T12:00:00Z"}
"""An example of a text for each of its JSON formats."""
VALUES: dict[str, Any] = {
    "name": COLLECTION,
    "file": "qrels.txt",
    "token": "TOKEN-OF-THE-TASK",
    "runs": ["bm25"],
    "url": "https://hooks.example/quorum",
    "people": ["alice@team.example"],
    "data": "exports/books/1",
    "base": "Qwen/Qwen3-Reranker-0.6B",
    "contribution": "It names the author of the book.",
    "evidence": "Written by Mary Shelley in 1818.",
}
"""Examples of required fields and of parts of addresses whose type alone does not show what they contain."""
BODIES: dict[str, dict[str, Any]] = {
    "POST": {"title": "Books", "grades": 1},
    "PATCH settings": {"overlap": 2, "daily_target": 40},
    "PATCH members/{number}": {"paused": True, "note": "On leave until Monday."},
    "POST task/judge": {"comment": "The second paragraph answers it."},
    "POST task/flag": {"note": "The text is cut off."},
    "POST campaigns": {"policy": "ensemble", "limit": 100, "budget": 5},
    "POST campaigns/estimate": {"policy": "ensemble", "limit": 100},
    "POST agreement": {"people": True, "judges": True},
    "POST imports/{number}/options": {"bm25": 10, "empty": "keep"},
    "POST runs": {"system": "bm25", "depth": 100},
    "POST runs/estimate": {"system": "bm25", "depth": 100},
    "POST reports": {"k": 10},
    "POST gates": {"run": "new", "against": "old", "measures": "nDCG@10", "max_drop": 0.01},
    "POST trainings": {"epochs": 2},
    "PATCH webhooks/{number}": {"active": False},
}
"""Optional fields that show what an operation is for, by method and address below the collection."""
HEADERS = {
    "Tus-Resumable": "1.0.0",
    "Upload-Length": "1024",
    "Upload-Metadata": "filename Y29ycHVzLmpzb25s",
    "Upload-Offset": "0",
}
"""Headers without which the operations of uploads are refused."""
CALLS = {
    "GET": "quorum.collections()",
    "POST": "quorum.create_collection({fields})",
    "GET {name}": "books.read()",
    "GET queries": "books.queries()",
    "GET documents": "books.documents()",
    "GET pairs": "books.pairs()",
    "GET pairs/{number}": "books.pair({number})",
    "GET judgments": "books.judgments()",
    "GET settings": "books.settings.read()",
    "PATCH settings": "books.settings.change({fields})",
    "POST campaigns": "books.campaigns.start({fields})",
    "GET campaigns": "books.campaigns.list()",
    "POST campaigns/estimate": "books.campaigns.estimate({fields})",
    "GET campaigns/{number}": "books.campaigns.read({number})",
    "POST campaigns/{number}/{act}": "books.campaigns.pause({number})",
    "GET quality": "books.quality()",
    "GET agreement": "books.agreement.read()",
    "POST imports/{number}/options": "books.imports.correct({number}, {fields})",
    "GET imports": "books.imports.list()",
    "POST imports": 'books.imports.create([Path("corpus.jsonl")])',
    "POST uploads": 'books.imports.create([Path("corpus.jsonl")])',
    "POST uploads/import": 'books.imports.create([Path("corpus.jsonl")])',
    "HEAD uploads/{number}": 'quorum.transport.send("HEAD", "collections/books/uploads/1", headers=TUS).headers',
    "PATCH uploads/{number}": 'books.imports.create([Path("corpus.jsonl")])',
    "DELETE uploads/{number}": 'quorum.transport.send("DELETE", "collections/books/uploads/1", headers=TUS)',
    "GET imports/{number}": "books.imports.read({number})",
    "POST imports/{number}/{act}": "books.imports.start({number})",
    "GET exports": "books.exports.list()",
    "POST exports": "books.exports.create({fields})",
    "GET exports/{number}": "books.exports.read({number})",
    "GET exports/{number}/files/{file}": 'books.exports.download({number}, "books", files=["{file}"])',
    "GET runs": "books.runs.list()",
    "POST runs": "books.runs.make({fields})",
    "POST runs/estimate": "books.runs.estimate({fields})",
    "POST runs/import": 'books.runs.import_files(["bm25.trec"])',
    "GET runs/{number}": "books.runs.read({number})",
    "DELETE runs/{number}": "books.runs.delete({number})",
    "GET runs/{number}/file": 'books.runs.download({number}, "bm25.trec")',
    "POST runs/{number}/{act}": "books.runs.cancel({number})",
    "GET leaderboard": "books.leaderboard.read()",
    "POST leaderboard": "books.leaderboard.compute()",
    "GET reports": "books.reports.list()",
    "POST reports": "books.reports.make({fields})",
    "GET reports/{number}": "books.reports.read({number})",
    "GET trainings": "books.trainings.list()",
    "POST trainings": "books.trainings.start({fields})",
    "GET trainings/{number}": "books.trainings.read({number})",
    "POST trainings/{number}/{act}": "books.trainings.cancel({number})",
    "GET models": "books.models.list()",
    "GET models/{number}": "books.models.read({number})",
    "GET models/{number}/files": "books.models.list_files({number})",
    "GET models/{number}/files/{file}": 'books.models.download({number}, "model", files=["{file}"])',
    "POST models/{number}/{act}": 'books.models.use({number}, "{act}")',
}
"""The client's methods by operation; others are sent by its `request`, `rows` and `download`."""


def make_value(schema: Schema, schemas: Mapping[str, Schema], name: str = "") -> Any:
    """Return a value that a JSON schema accepts: of an object the required fields, of a list one row."""
    schema = resolve(schema, schemas)
    if "enum" in schema or "const" in schema:
        return schema.get("enum", [schema.get("const")])[0]
    if name in VALUES:
        return VALUES[name]
    if variants := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        return make_value(variants[0], schemas, name)
    match schema.get("type"):
        case "object":
            required = set(schema.get("required", ()))
            fields = schema.get("properties", {}).items()
            return {key: make_value(field, schemas, key) for key, field in fields if key in required}
        case "array":
            rows = [make_value(row, schemas, "") for row in schema.get("prefixItems", ())]
            return rows or [make_value(schema.get("items", {}), schemas, "")]
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return True
        case "null":
            return None
    return FORMATS.get(schema.get("format", ""), name or "text")


def resolve(schema: Schema, schemas: Mapping[str, Schema]) -> Schema:
    """Return the schema that a reference names, else the schema itself."""
    return schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def write_curl(method: str, address: str, body: Any, headers: Mapping[str, str], media: str, shape: str) -> str:
    """Return an operation as a curl command, for a shell with QUORUM_URL and QUORUM_TOKEN."""
    verb = {"GET": "-O " if shape == "file" else "", "HEAD": "--head "}.get(method, f"-X {method} ")
    lines = [f'curl {verb}"$QUORUM_URL{address}"', '-H "Authorization: Bearer $QUORUM_TOKEN"']
    lines += [f'-H "{name}: {value}"' for name, value in headers.items()]
    if media == "multipart/form-data":
        lines.append("-F files=@corpus.jsonl")
    elif media == "application/json":
        lines += ['-H "Content-Type: application/json"', f"-d {shlex.quote(json.dumps(body))}"]
    elif media:
        lines += [f'-H "Content-Type: {media}"', "--data-binary @corpus.jsonl"]
    return INDENT.join(lines)


def write_python(method: str, path: str, values: Mapping[str, str], body: Any, shape: str) -> str:
    """Return an operation as Python with quorum_client.

    `path`: below the collections; `shape`: of the response, "rows", "file" or "".
    """
    below = path.removeprefix("{name}/")
    address = below.format(**values)
    fields = ", ".join(f"{name}={python_text(value)}" for name, value in (body or {}).items())
    call = CALLS.get(f"{method} {below}".strip(), "")
    if call:
        for name, value in {"fields": fields, **values}.items():
            call = call.replace(f"{{{name}}}", value)
    elif shape == "rows":
        call = f'books.rows("{address}")'
    elif shape == "file":
        call = f'books.download("{address}", "{below.split("/")[0]}.txt")'
    else:
        call = f'books.request("{method}", "{address}"{f", {python_text(body)}" if body is not None else ""})'
    lines = ["from pathlib import Path\n"] if "Path(" in call else []
    lines += ["from quorum_client import Quorum\n"]
    lines += ['TUS = {"Tus-Resumable": "1.0.0"}'] if "TUS" in call else []
    lines += ["with Quorum.from_environment() as quorum:"]
    if "books." in call:
        lines.append(f'    books = quorum.collection("{COLLECTION}")')
    lines.append(f"    for row in {call}:\n        print(row)" if shape == "rows" else f"    print({call})")
    return "\n".join(lines)


def json_text(value: Any) -> str:
    """Return a value as JSON, with the letters of all languages."""
    return json.dumps(value, ensure_ascii=False)


def python_text(value: Any) -> str:
    """Return a JSON value as Python."""
    return json_text(value).replace("true", "True").replace("false", "False").replace("null", "None")
