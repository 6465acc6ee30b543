"""Documents longer than judges read are counted, marked, and handled as the collection says."""

import json
from collections import Counter
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation.models import Role
from corpus.document_limit import SHOWN, cut_windows
from corpus.models import Collection, Item, Pair
from judges.campaigns import lifecycle
from judges.campaigns.configurations import build_configuration
from judges.campaigns.forecasts import forecast_judging
from judges.campaigns.selectors import debate_of
from judges.models import Attempt, Campaign, Work
from judges.models.batches import Batch
from tests.engine_parts import FAST, judge, make_judge, make_panel, state_of
from tests.factories import make_collection, make_document, make_member, make_pair, make_query
from tests.instances import until
from tests.judges.killing import kill, own_worker
from tests.modelserver.fixtures import LocalModels
from tests.repeated import repeated_beyond_flight

TIDES = "The tides of the sea are caused by the pull of the moon and by that of the sun. "
END = "The last sentence names the answer."


def books(**settings: object) -> Collection:
    """Two pairs with short documents and two with long ones, of which one has as many characters as are shown."""
    collection = make_collection("books")
    Collection.objects.filter(pk=collection.pk).update(**settings)
    texts = [TIDES, (TIDES * 400)[:SHOWN], TIDES * 400 + END, TIDES * 500 + END]
    for number, text in enumerate(texts):
        make_pair(collection, make_query(collection, f"What causes tide {number}?"), make_document(collection, text))
    return Collection.objects.get(pk=collection.pk)


def test_long_documents_are_cut_and_that_is_said(models: LocalModels, client: Client, tmp_path: Path) -> None:
    collection = books()
    make_panel(models, debate=(), votes=("yes",))
    estimate = forecast_judging(collection, build_configuration(panel="main", policy="single"))
    assert estimate is not None
    assert "2 pairs have documents of more than 24,000 characters: judges read their beginning" in estimate.line()
    judge("--policy", "single", check=True)
    assert not any(END in request["user"] for request in models.requests())
    out = StringIO()
    call_command("export", "books", "--format", "csv", "--out", str(tmp_path / "out"), "--json", stdout=out)
    told = json.loads(out.getvalue())["long_documents"]
    assert told == {"characters": SHOWN, "handling": "cut", "labels": 2}
    client.force_login(make_member(collection, "alice", Role.ADMIN).user)
    for pair in Pair.objects.select_related("document"):
        page = client.get(reverse("pair", args=["books", pair.pk])).text
        assert ("more than the 24,000" in page) is (len(pair.document.text) > SHOWN)


def test_people_get_the_long_ones_without_a_call(models: LocalModels) -> None:
    books(long_documents="people")
    make_panel(models, debate=(), votes=("yes",))
    done = judge("--policy", "single", check=True)
    assert (done.json["labelled"], done.json["escalated"]) == (2, 2) and done.json["escalations"]["long"] == 2
    assert len(models.requests()) == 2 == Attempt.objects.count()
    items = Item.objects.filter(reason="long").select_related("pair__document")
    assert len(items) == 2 and all(len(item.pair.document.text) > SHOWN for item in items)


def test_judges_read_them_whole_where_that_is_asked_for(models: LocalModels) -> None:
    books(long_documents="context")
    make_panel(models, debate=(), votes=("yes",))
    judge("--policy", "single", check=True)
    assert sum(END in request["user"] for request in models.requests()) == 2
    assert not any("cut: the first" in request["user"] for request in models.requests())


def windowed(**settings: object) -> Collection:
    """A pair with a short document, and one with a document of three windows, of which the last alone has END."""
    collection = make_collection("books")
    Collection.objects.filter(pk=collection.pk).update(long_documents="windows", **settings)
    for number, text in enumerate((TIDES, TIDES * 800 + END)):
        make_pair(collection, make_query(collection, f"What causes tide {number}?"), make_document(collection, text))
    return Collection.objects.get(pk=collection.pk)


def test_one_relevant_window_makes_a_document_relevant(models: LocalModels, client: Client, tmp_path: Path) -> None:
    collection = windowed()
    make_panel(models, debate=("debater", "debater"), votes=("voter",) * 3)
    wanted = build_configuration(panel="main", policy="debate+ensemble")
    estimate = forecast_judging(collection, wanted)
    assert estimate is not None and (estimate.calls.low, estimate.calls.upper) == (4 * (2 + 3), 4 * (4 + 3))
    assert "its 3 windows" in estimate.line()
    turn = json.dumps({"reference": [END], "reason": "It names it.", "response": "yes"})
    yes, no = {"contains": END, "verdict": "yes"}, {"verdict": "no"}
    models.script({"debater": [yes | {"text": turn}, no], "voter": [yes, no]})
    done = judge("--policy", "debate+ensemble", check=True)
    assert done.json["labels"] == {"0": 1, "1": 1} and done.json["calls"] == 4 * 5 == len(models.requests())
    work = Work.objects.get(window__gt=0)
    assert (work.window, work.label, work.agreed_in_round) == (3, 1, 1)
    long = work.pair
    asked = Attempt.objects.filter(pair=long)
    assert Counter(asked.values_list("window", flat=True)) == {1: 5, 2: 5, 3: 5}
    assert set(asked.filter(window__lt=3).values_list("verdict", flat=True)) == {0}
    # Each window was shown whole with its place, and quotes are places in the whole document.
    windows = cut_windows(len(long.document.text))
    for request in models.requests():
        shown = [f"part {one.number} of 3: characters {one.start + 1} to" in request["user"] for one in windows]
        assert "cut: the first" not in request["user"] and (any(shown) or "tide 0" in request["user"])
    (quote,) = asked.get(window=3, role="for").quotes
    assert (
        quote["start"] >= windows[2].start and long.document.text[quote["start"] : quote["end"]] == quote["text"] == END
    )
    # What is read of the pair is its deciding window's evidence alone.
    assert {one.window for one in debate_of(long)} == {3} and Attempt.deciding.filter(pair=long).count() == 5
    client.force_login(make_member(collection, "alice", Role.ADMIN).user)
    page = " ".join(client.get(reverse("pair", args=["books", long.pk])).text.split())
    assert "part 3 of 3" in page
    assert f"characters {windows[2].start + 1:,} to {windows[2].end:,}" in page
    for name, count in (("debates", 2), ("judgments", 3)):
        call_command("export", "books", "--format", name, "--out", str(tmp_path / name), stdout=StringIO())
        rows = [json.loads(line) for line in (tmp_path / name / f"{name}.jsonl").read_text().splitlines()]
        of_long = [row for row in rows if row["doc_id"] == long.document.external_id and row.get("kind") != "policy"]
        assert [row["window"] for row in of_long] == [3] * count
        assert all("window" not in row for row in rows if row not in of_long)


def test_a_window_that_fails_fails_the_document_unless_another_is_relevant_and_is_asked_alone(models):
    windowed()
    make_panel(models, debate=(), votes=("voter",))
    refused, no = {"contains": "part 2 of 3", "fault": "refused"}, {"verdict": "no"}
    models.script({"voter": [refused, no]})
    done = judge("--policy", "single").json
    assert (done["failed"], done["labels"], done["calls"]) == (1, {"0": 1}, 4)
    # Whatever the collection asks for by now: what is paid for in windows goes on in windows.
    Collection.objects.update(long_documents="cut")
    models.script({"voter": [{"contains": END, "verdict": "yes"}, no]})
    campaign = Campaign.objects.get()
    lifecycle.retry_failed(campaign=campaign)
    until(lambda: state_of(campaign) == "finished")
    assert len(models.requests()) == 5 and "part 2 of 3" in models.requests()[-1]["user"]
    assert Work.objects.get(window__gt=0).label == 0
    # Asked anew, with a second window that is refused for good and a third one that is relevant.
    Collection.objects.update(long_documents="windows")
    models.script({"voter": [refused, {"contains": END, "verdict": "yes"}, no]})
    done = judge("--policy", "single", "--again", "--fresh", check=True).json
    assert (done["failed"], done["labels"], done["calls"]) == (0, {"0": 1, "1": 1}, 4)


def test_people_get_the_debate_of_the_window_that_is_for_them(models: LocalModels) -> None:
    windowed()
    make_panel(models, debate=("yes", "no"), votes=("v+no", "w+no", "unsure"))
    unsure = [{"contains": "part 2 of 3", "fault": "garbage"}, {"verdict": "no"}]
    models.script({"unsure": unsure})
    done = judge("--policy", "ensemble", check=True).json
    assert (done["escalations"], done["labels"]) == ({"split": 1}, {"0": 1})
    assert Work.objects.get(state="escalated").window == 2
    assert set(Attempt.objects.filter(role__in=("for", "against")).values_list("window", flat=True)) == {2}


def test_windows_are_judged_in_batches_too(models: LocalModels) -> None:
    windowed()
    models.batch_delay(0.0)
    make_panel(models, debate=(), votes=("voter",) * 3, provider="openai")
    models.script({"voter": [{"contains": END, "verdict": "yes"}, {"verdict": "no"}]})
    done = judge("--policy", "ensemble", "--batch", check=True).json
    assert (done["labels"], done["calls"]) == ({"0": 1, "1": 1}, 4 * 3) and Batch.objects.get().calls == 4 * 3
    assert Work.objects.get(label=1).window == 3


def test_evidence_is_written_from_the_window_that_made_the_document_relevant(models: LocalModels) -> None:
    windowed()
    make_panel(models, debate=(), votes=("voter",))
    make_judge(models, "writer")
    text = {"contribution": "It says what causes tides.", "evidence": "The pull of the moon causes tides."}
    models.script(
        {
            "voter": [{"contains": "tide 0", "verdict": "yes"}, {"contains": END, "verdict": "yes"}, {"verdict": "no"}],
            "writer": {"text": json.dumps(text)},
        }
    )
    assert judge("--policy", "single", check=True).json["labels"] == {"1": 2}
    asked = len(models.requests())
    call_command("write_evidence", "books", "--wait", "--json", "--writer", "writer", stdout=StringIO())
    prompts = [request["user"] for request in models.requests()[asked:]]
    long = [prompt for prompt in prompts if "tide 1" in prompt]
    assert long and all("part 3 of 3" in prompt and END in prompt for prompt in long)
    short = [prompt for prompt in prompts if "tide 0" in prompt]
    assert short and not any("of 3" in prompt for prompt in short)
    assert set(Attempt.objects.filter(role="write").values_list("window", flat=True)) == {0}


@pytest.mark.weekly
def test_a_killed_worker_s_windows_are_not_paid_twice(manage, model_server, instance):
    collection = windowed()
    make_panel(model_server, debate=("yes+a", "no+b"), votes=tuple(f"no+v{place}" for place in range(3)))
    model_server.script({"*": {"verdict": "no", "latency": 0.3}})
    own = own_worker(instance, processes=1)
    lifecycle.start_campaign(collection=collection, configuration=build_configuration())
    until(lambda: len(model_server.requests()) >= 8)
    killed, dead = kill(own)
    done = manage("judge", "books", "--wait", "--json", "--workers", 1, environment=FAST)
    assert done.json["labels"] == {"0": 2}
    repeated, _flying = repeated_beyond_flight(model_server.requests(), killed, dead)
    assert repeated == 0
    assert Counter(Attempt.objects.filter(counts=True).values_list("window", flat=True)) == {n: 5 for n in range(4)}


@pytest.mark.django_db
def test_the_import_counts_them(tmp_path: Path) -> None:
    lines = [
        {"_id": f"d{n}", "text": text} for n, text in enumerate((TIDES, TIDES * 400, "潮" * 24_001, "潮" * 24_000))
    ]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "What causes tides?"}))
    out = StringIO()
    files = ("--corpus", str(tmp_path / "corpus.jsonl"), "--queries", str(tmp_path / "queries.jsonl"))
    call_command("import_collection", "tides", *files, stdout=out)
    assert "2 documents have more than 24,000 characters" in out.getvalue()
