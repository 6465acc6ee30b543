"""What a reader of an instance compares: labels, judgments, campaigns, exports and models, as rows of plain SQL.

It prints JSON in an instance of any version: `manage.py shell -v0 -c "$(cat rows.py)"`.
"""

import hashlib
import json
from typing import Any

from django.conf import settings
from django.db import connection

PAIR = """JOIN corpus_pair p ON p.id = one.pair_id JOIN corpus_query q ON q.id = p.query_id
JOIN corpus_document d ON d.id = p.document_id"""
ROWS = {
    "labels": f"""SELECT q.external_id AS query, d.external_id AS document, aspect_id, grade, origin, updated_at
FROM corpus_label one {PAIR} ORDER BY 1, 2, 3""",
    "judgments": f"""SELECT one.id, q.external_id AS query, d.external_id AS document, aspect_id, a.kind, a.name,
item_id, step, grade, supersedes_id, arm, guideline, milliseconds, idle_milliseconds, spans, comment, one.created_at
FROM corpus_judgment one JOIN corpus_assessor a ON a.id = one.assessor_id {PAIR} ORDER BY 1""",
    "campaigns": """SELECT id, policy, state, rounds, panel, scope, debaters, voters, majority, early_stop, instruction,
seed, budget, max_calls, stopped_by, created_at, finished_at FROM judges_campaign ORDER BY 1""",
    "exports": """SELECT id, format, options, manifest, folder, state, error, made_by_id, created_at
FROM annotation_snapshot ORDER BY 1""",
    "models": """SELECT id, job_id, name, recipe, base, folder, words, summary, created_at
FROM training_model ORDER BY 1""",
}


def read(statement: str) -> list[Any]:
    """The rows; the folder of the instance is called VAR."""
    with connection.cursor() as cursor:
        cursor.execute("SET TIME ZONE 'UTC'")
        cursor.execute(f"SELECT to_jsonb(row) FROM ({statement}) row")
        texts = [str(row).replace(str(settings.VAR), "VAR") for (row,) in cursor.fetchall()]
        return [json.loads(text.replace("$QUORUM_VAR", "VAR")) for text in texts]


def digest(rows: list[Any]) -> str:
    """One hash for all rows, in their order."""
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


found = {name: read(statement) for name, statement in ROWS.items()}
hashes = {name: {"rows": len(rows), "sha256": digest(rows)} for name, rows in found.items()}
print(json.dumps({**found, "judgments": [row for row in found["judgments"] if row["kind"] == "person"], "all": hashes}))
