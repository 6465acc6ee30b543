"""judgments_per_s, submit_p50_ms, judgment_ms, page_kb, page_requests: judging with production middleware.

granian, PostgreSQL and the client share this machine. Each assigned pair has a debate of two rounds, which its page
shows. Measured twice: with 12,000 pairs in the queue, and with a million.
"""

import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median, quantiles
from typing import Any
from urllib.request import Request, urlopen

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection

from annotation.models import Membership, Role, User
from config import env, serving
from corpus.collections.removal import delete_collection
from corpus.models import Assessor, Collection, Judgment
from jobs.processes import spawn_child, stop_children
from judges.models import JudgeVersion, PromptVersion
from tests.evidence import make_campaign, make_judge
from tests.judging_clients import Annotator, run, run_at
from tests.plugin_browser import free_port

ANNOTATORS = 32
PAIRS = 12_000
MANY = int(os.environ.get("QUORUM_BENCH_QUEUE", 1_000_000))
DEBATED = 12_000  # The first pairs of the queue have a debate, more than are judged in a run.
SECONDS = 8.0
OFFERED_PER_S = 50
NAME = "bench-judging"

TABLES = (
    """
    INSERT INTO corpus_query (collection_id, external_id, version, is_current, text, metadata, content_hash, answers,
                              instruction)
    SELECT %(collection)s, 'q' || n, 1, true, 'Which words does text ' || n || ' repeat?', '{}', md5('q' || n),
           ARRAY['The words of the text.', 'A sentence that comes again.'], ''
    FROM generate_series(1, 200) n
    """,
    """
    INSERT INTO corpus_document (collection_id, external_id, version, is_current, text, metadata, content_hash, title)
    SELECT %(collection)s, 'd' || n, 1, true, 'This sentence stands in text ' || n || '. '
           || repeat('A sentence of eight words comes again here. ', 16), '{}', md5('d' || n), 'Text ' || n
    FROM generate_series(1, %(pairs)s) n
    """,
    """
    INSERT INTO corpus_pair (collection_id, query_id, document_id, uncertainty)
    SELECT %(collection)s, q.id, d.id, 0
    FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM corpus_document WHERE collection_id = %(collection)s) d
    JOIN (SELECT id, row_number() OVER (ORDER BY id) AS n FROM corpus_query WHERE collection_id = %(collection)s) q
      ON q.n = d.n %% 200 + 1
    """,
    """
    INSERT INTO corpus_item (collection_id, pair_id, campaign, reason, seq, state, priority, overlap, taken, done)
    SELECT %(collection)s, id, %(campaign)s, 'disagreement', 0, 'open', 0, 1, 0, 0
    FROM corpus_pair WHERE collection_id = %(collection)s
    """,
    """
    INSERT INTO judges_attempt (campaign_id, pair_id, judge_id, prompt_id, role, round, agent_pair, number, outcome,
                                counts, cached, verdict, reason, quotes, error, finish_reason, tokens_in, tokens_cached,
                                tokens_out, tokens_reasoning, milliseconds, cache_key, started_at)
    SELECT %(campaign)s, p.id, %(judge)s, %(prompt)s, side, round, 0, 1, 'labelled', true, false, (side = 'for')::int,
           'The ' || side || ' side says in round ' || round || ' what a reason ' || repeat('of some words says, ', 6),
           '[{"text": "This sentence stands", "start": 0, "end": 20}, {"text": "gone", "start": null, "end": null}]',
           '', 'stop', 400, 0, 80, 0, 900, '', now()
    FROM (SELECT pair_id AS id FROM corpus_item WHERE collection_id = %(collection)s ORDER BY priority, place
          LIMIT %(debated)s) p, unnest(ARRAY['for', 'against']) side, generate_series(1, 2) round
    """,
    "ANALYZE corpus_query, corpus_document, corpus_pair, corpus_item, judges_attempt",
)

# Otherwise autovacuum would run during the measurement.
SWEEP = "VACUUM corpus_query, corpus_document, corpus_pair, corpus_item, judges_attempt"


def measure() -> list[dict[str, Any]]:
    """Return the five figures, and the first two with a large queue."""
    figures = _measured(PAIRS)
    large = f"{MANY:,} items in the queue"
    return [*figures, *({**figure, "case": large} for figure in _measured(MANY)[:2])]


def _measured(pairs: int) -> list[dict[str, Any]]:
    """Return the figures with this many pairs in the queue."""
    with scene(pairs) as (collection, sessions), served() as port:
        annotators = [Annotator(port, NAME, session) for session in sessions]
        # A run to warm up query plans, templates and connections.
        run([Annotator(port, NAME, session) for session in sessions], seconds=1.5)
        before = Judgment.objects.filter(item__collection=collection).count()
        duration = run(annotators, seconds=SECONDS)
        many = _many(collection, annotators, duration, before)
        single_annotator = Annotator(port, NAME, sessions[0])
        run([single_annotator], seconds=4.0, most=400)
        paced = [Annotator(port, NAME, session) for session in sessions]
        run_at(paced, OFFERED_PER_S, SECONDS)
        kilobytes, requests = weigh(port, sessions[0])
    return [
        many,
        _figure("submit_p50_ms", round(median(single_annotator.seconds) * 1000, 2), "ms", "under 15"),
        _paced(paced),
        _figure("page_kb", kilobytes, "kB", "60 at most"),
        _figure("page_requests", requests, "requests", "6 at most"),
    ]


def _many(collection: Collection, annotators: list[Annotator], duration: float, before: int) -> dict[str, Any]:
    """Return the figure of many annotators, with counts of tasks judged too often and of judgments that were lost."""
    seconds = [second for annotator in annotators for second in annotator.seconds]
    judged = Counter(item for annotator in annotators for item in annotator.judged)
    stored = Judgment.objects.filter(item__collection=collection).count() - before
    figure = _figure("judgments_per_s", round(len(seconds) / duration), "judgments/s", "200 and up; p95 under 250 ms")
    return figure | {
        "p95_ms": round(quantiles(seconds, n=20)[-1] * 1000, 1),
        "above_overlap": sum(times > 1 for times in judged.values()),
        "lost": len(seconds) - stored,
        "problems": sum(len(annotator.problems) for annotator in annotators),
        "calibration": {"inserts_per_s": inserts_per_s()},
    }


def _paced(annotators: list[Annotator]) -> dict[str, Any]:
    seconds = [second for annotator in annotators for second in annotator.seconds]
    case = f"{OFFERED_PER_S} judgments/s offered by {len(annotators)} annotators, open loop: p50"
    figure = _figure("judgment_ms", round(median(seconds) * 1000, 1), "ms", "20 and less; p95 60 and less")
    problems = sum(len(annotator.problems) for annotator in annotators)
    return figure | {"case": case, "p95_ms": round(quantiles(seconds, n=20)[-1] * 1000, 1), "problems": problems}


def _figure(name: str, value: float, unit: str, aim: str) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "aim": aim}


def inserts_per_s() -> int:
    """Return the committed one-row inserts per second on one connection, for this disk and PostgreSQL."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS bench_calibration (n int)")
        started_at = time.perf_counter()
        for n in range(500):
            cursor.execute("INSERT INTO bench_calibration VALUES (%s)", [n])
        duration = time.perf_counter() - started_at
        cursor.execute("DROP TABLE bench_calibration")
    return round(500 / duration)


@contextmanager
def scene(pairs: int) -> Iterator[tuple[Collection, list[str]]]:
    """Create a collection whose pairs were all escalated, and yield it with a session for each annotator."""
    _clear()  # The rows of a run that was killed.
    collection = Collection.objects.create(name=NAME, grades=1, title="Bench", min_judgment_ms=0)
    try:
        values = {"collection": collection.pk, "pairs": pairs, "debated": DEBATED, **_debate(collection)}
        with connection.cursor() as cursor:
            for statement in TABLES:
                cursor.execute(statement, values)
            cursor.execute(SWEEP)
        yield collection, [_sign_in(_member(collection, number)) for number in range(ANNOTATORS)]
    finally:
        _clear()


def _clear() -> None:
    for collection in Collection.objects.filter(name=NAME):
        delete_collection(collection)
    User.objects.filter(username__startswith=f"{NAME}-").delete()
    JudgeVersion.objects.filter(name=NAME).delete()
    PromptVersion.objects.filter(name=NAME).delete()


def _debate(collection: Collection) -> dict[str, int]:
    judge = make_judge(NAME)
    campaign = make_campaign(collection, [judge, judge], policy="debate")
    prompt = PromptVersion.objects.create(name=NAME, sha256="b" * 64, text="")
    return {"campaign": campaign.pk, "judge": judge.pk, "prompt": prompt.pk}


def _member(collection: Collection, number: int) -> User:
    user = User.objects.create(username=f"{NAME}-{number}", password="!")
    assessor = Assessor.objects.create(collection=collection, kind="person", name=user.username)
    Membership.objects.create(user=user, collection=collection, role=Role.ANNOTATOR, assessor=assessor)
    return user


def _sign_in(user: User) -> str:
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    UserSession.objects.create(user=user, session_key=session.session_key, ip="127.0.0.1", user_agent=NAME)
    return str(session.session_key)


@contextmanager
def served() -> Iterator[int]:
    """Start the site as in production, and yield its port."""
    environment = {**os.environ, **serving.web_environment(), "QUORUM_PRODUCTION": "1", "QUORUM_LOG_LEVEL": "ERROR"}
    collect = [sys.executable, "manage.py", "collectstatic", "--noinput", "-v", "0"]
    subprocess.run(collect, env=environment, check=True, cwd=env.ROOT, stdout=subprocess.DEVNULL)
    port = free_port()
    server = spawn_child(serving.web_command("127.0.0.1", port), environment, cwd=env.ROOT, stdout=subprocess.DEVNULL)
    try:
        _wait(port)
        yield port
    finally:
        stop_children([server])


def _wait(port: int) -> None:
    for _ in range(300):
        try:
            with urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the site did not start")


def weigh(port: int, session: str) -> tuple[float, int]:
    """Return the transferred kilobytes and the requests of a first visit: the page and the files that it links."""
    page, size = _fetch(port, f"/c/{NAME}/judge/", session)
    links = re.findall(r'(?:<link[^>]* href|<script[^>]* src|<img[^>]* src)="([^"]+)"', page)
    sizes = [_fetch(port, link, session)[1] for link in links]
    return round((size + sum(sizes)) / 1000, 1), 1 + len(links)


def _fetch(port: int, path: str, session: str) -> tuple[str, int]:
    headers = {"Accept-Encoding": "br, gzip", "Cookie": f"sessionid={session}", "X-Forwarded-Proto": "https"}
    with urlopen(Request(f"http://127.0.0.1:{port}{path}", headers=headers), timeout=10) as answer:
        body = answer.read()
        plain = "" if answer.headers.get("Content-Encoding") else body.decode()
        return plain, len(body) + len(str(answer.headers))
