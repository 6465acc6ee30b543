"""Fill a fresh instance with a little of everything that an upgrade must keep, and write its backup and rows.

    export QUORUM_VAR=$(mktemp -d) && cd tests/config/version_0_1_0
    python ../../../manage.py shell -v0 -c "$(cat make.py)" && gzip -9 instance.tar

Run it in the checkout of a release: what it writes here is what later versions restore.
"""

import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep

from django.conf import settings
from django.core.management import call_command
from django.test import Client

from annotation.models import User
from corpus.models import Collection
from training.jobs import lifecycle
from training.models import Job, Model

settings.ALLOWED_HOSTS = ["testserver"]
plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}  # nothing is collected here
settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}
TEXTS = ("Owls hunt mice at night.", "Hawks hunt by day.", "Mice eat seeds.", "Owls see well in the dark.")
QUERIES = ("what do owls hunt", "when do hawks hunt", "what do mice eat")

with TemporaryDirectory() as folder:
    corpus = [{"_id": f"d{n}", "title": "Birds", "text": f"{text} Note {n}."} for n, text in enumerate(TEXTS * 4)]
    queries = [{"_id": f"q{n}", "text": text} for n, text in enumerate(QUERIES)]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        Path(folder, f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    parts = {name: [Path(folder, f"{name}.jsonl")] for name in ("corpus", "queries")}
    call_command("import_collection", "owls", **parts, bm25=8)
call_command("judge", "owls", wait=True, workers=1)
call_command("create_users", "owls", role="annotator", count=2)
call_command("create_users", role="owner", count=1)


def fields(page: str) -> dict[str, str]:
    """Return what the judging page sends with a decision."""
    found = reversed(re.findall(r'name="(item|token)"\s+value="([^"]*)"', page))  # the first of each counts
    return dict(found)


for user in User.objects.filter(username__startswith="annotator").order_by("username"):
    client = Client()
    client.force_login(user)
    htmx = {"HX-Request": "true"}
    page = client.post("/c/owls/judge/next/", headers=htmx).text
    for grade in (1, 0, 1):
        sent = fields(page)
        sleep(1)  # faster than anybody reads is refused
        answer = client.post("/c/owls/judge/submit/", {**sent, "grade": grade, "comment": "By me."}, headers=htmx)
        assert answer.status_code == 200, answer.text
        page = answer.text
        if grade == 0:
            page = client.post("/c/owls/judge/undo/", {"item": sent["item"]}, headers=htmx).text
            sleep(1)
            page = client.post("/c/owls/judge/submit/", {**fields(page), "grade": 1}, headers=htmx).text

for format, options in (("qrels", {}), ("prism", {"teacher": "votes", "allow_incomplete": True}), ("debates", {})):
    call_command("export", "owls", format=format, **options, out=str(settings.VAR / "exports" / "owls" / format))
owls = Collection.objects.get(name="owls")
kept = settings.VAR / "models" / "owls" / "kept"
kept.mkdir(parents=True)
(kept / "config.json").write_text("{}")
lifecycle.begin_job(kind="train", options={"recipe": "prism"}, collection=owls)
Job.objects.update(state="finished")
summary = {"gain": {"words": "nDCG@10 rose from 0.50 to 0.60"}, "merge_difference": 0.0}
names = {"name": "kept", "recipe": "prism", "base": "tiny", "words": "tiny model, CPU"}
Model.objects.create(collection=owls, job=Job.objects.get(), folder=str(kept), summary=summary, **names)

call_command("backup", "instance.tar")
rows_text, status = StringIO(), StringIO()
with redirect_stdout(rows_text):
    exec(Path("rows.py").read_text(), {})
with redirect_stdout(status):
    call_command("status", "owls", json=True)
found = json.loads(rows_text.getvalue()) | {"status": json.loads(status.getvalue())}
Path("rows.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
