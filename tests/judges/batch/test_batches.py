"""Batch endpoints as a way to execute a campaign: each round one batch, half the price, resumed after a restart."""

import json
import socket
import time
from collections import Counter

import psycopg
import pytest
from django.core.management import call_command
from django.db.models import Sum
from django.db.models.functions import Now
from google.genai.errors import ClientError

from config.env import ROOT
from corpus.errors import BadOption
from corpus.models import Collection, Document
from jobs.processes import spawn_child, stop_children
from judges.batch import batch_loop, store
from judges.batch.batch_loop import is_of_account
from judges.batch.endpoints import MOST, read_refusal
from judges.campaigns import lifecycle, selectors
from judges.campaigns.progress import summary_lines
from judges.costs.price_rows import enter_price
from judges.engine import notifications
from judges.models import Attempt, Campaign, JudgeVersion, Reservation, Work
from judges.models.batches import Batch, BatchCall
from judges.workers import worker_pool
from store.sql import database_parameters
from tests.engine_parts import FAST, begin, collection_of, judge, make_judge, make_panel, scene, state_of, sums_up
from tests.instances import until
from tests.modelserver.fixtures import LocalModels
from tests.stages import first_quick

PAIRS = 5


@pytest.fixture(autouse=True)
def _at_once(model_server: LocalModels) -> None:
    model_server.batch_delay(0.0)


def asked(models: LocalModels) -> Counter[tuple[str, str, int, str]]:
    """How often each question reached the server: the same one twice would be paid twice."""
    return Counter((r["model"], r["side"], r["round"], r["sha256"]) for r in models.requests())


@pytest.mark.parametrize("provider", first_quick(["openai", "anthropic", "google"]))
def test_each_round_is_a_batch_at_half_the_price(models: LocalModels, provider: str) -> None:
    scene(models, PAIRS, debate=("converge", "converge"), votes=("hash",) * 5, provider=provider)
    found = judge("--batch")
    assert found.code == 0, found.err
    status = found.json
    assert status["labelled"] == PAIRS and status["agreed_in_round"] == {"2": PAIRS} and sums_up(status)
    sent = models.requests()
    assert len(sent) == status["calls"] == PAIRS * (4 + 5) and all("batch" in request for request in sent)
    first, second = Batch.objects.filter(model="converge").order_by("id")
    assert (first.calls, second.calls) == (2 * PAIRS, 2 * PAIRS)
    assert {r["round"] for r in sent if r["batch"] == first.provider_id.rpartition("/")[2]} == {1}
    tokens = Attempt.objects.aggregate(taken=Sum("tokens_in"), given=Sum("tokens_out"))
    assert tokens["taken"] > 0
    assert status["cost"] == pytest.approx((tokens["taken"] * 1.0 + tokens["given"] * 2.0) / 1e6 / 2)
    assert not BatchCall.objects.exists() and not Batch.objects.filter(ended_at=None).exists()


def test_judges_without_a_batch_endpoint_are_asked_at_once(models: LocalModels) -> None:
    scene(models, 2, provider="openai")
    make_judge(models, "own", "yes", provider="openai-compatible")
    status = judge("--batch", "--policy", "ensemble", "--judges", "v1,v2,own").json
    assert status["labels"] == {"1": 2}
    assert Counter("batch" in request for request in models.requests()) == {True: 4, False: 2}
    own = Attempt.objects.filter(judge__name="own").first()
    batched = Attempt.objects.filter(judge__name="v1").first()
    assert own is not None and batched is not None and own.cost is not None and batched.cost is not None
    assert own.cost == pytest.approx(2 * batched.cost, rel=0.2)


def test_a_judge_asked_at_once_whose_key_is_dead_pauses_the_batch_campaign_too(models: LocalModels) -> None:
    scene(models, 2, provider="openai")
    make_judge(models, "own", "yes-own", provider="openai-compatible")
    models.script({"yes-own": {"fault": "401"}})
    found = judge("--batch", "--policy", "ensemble", "--judges", "v1,v2,own")
    assert (found.code, found.json["state"], found.json["failed"]) == (3, "paused", 0), found.err
    assert "own" in found.json["paused_because"] and "401" in found.json["paused_because"]
    models.script({"yes-own": {"verdict": "yes"}})
    campaign = Campaign.objects.get()
    lifecycle.resume(campaign=campaign)
    until(lambda: state_of(campaign) == "finished")
    assert set(asked(models).values()) <= {1, 2}, "only the refused calls are asked again"
    assert Work.objects.filter(state="labelled").count() == 2


def test_a_panel_that_no_batch_endpoint_serves_is_refused(model_server: LocalModels, instance: object) -> None:
    collection = scene(model_server, 1)
    with pytest.raises(BadOption) as refused:
        begin(collection, batch=True)
    assert refused.value.problems[0][0] == "batch" and not Campaign.objects.exists()


@pytest.mark.slow
def test_a_restart_between_rounds_goes_on_and_pays_nothing_twice(instance, instance_environment, model_server):
    """Every worker is killed while the first round's batch is out, and once more while the second is."""
    scene(model_server, PAIRS, debate=("converge", "converge"), provider="openai")
    model_server.batch_delay(1.5)
    campaign = begin(Collection.objects.get(), policy="debate", batch=True)
    environment = {**instance_environment, **FAST, "QUORUM_LOOPBACK_ONLY": "1"}
    for round in (1, 2):
        child = spawn_child(worker_pool.worker_command(1, f"batch{round}"), environment, cwd=ROOT)
        until(lambda round=round: Batch.objects.exclude(provider_id="").count() == round)  # type: ignore[misc]
        child.kill()
        child.wait()
        stop_children([child])
    child = spawn_child(worker_pool.worker_command(1, "batch3"), environment, cwd=ROOT)
    try:
        until(lambda: state_of(campaign) == "finished")
    finally:
        stop_children([child])
    assert Work.objects.filter(state="labelled", agreed_in_round=2).count() == PAIRS
    assert len(asked(model_server)) == PAIRS * 4 and set(asked(model_server).values()) == {1}
    assert Attempt.objects.filter(counts=True).count() == PAIRS * 4


PROVIDERS = ["openai", "anthropic", "google"]


def begun(models: LocalModels, provider: str, pairs: int = 3, **settings: object) -> tuple[Campaign, int]:
    """A campaign of one judge whose batches meet such a server, and how many creations there were before."""
    collection = scene(models, pairs, provider=provider)
    before = models.stats()["batch_posts"]
    models.batches(**settings)
    return begin(collection, policy="single", judges=["v1"], batch=True), before


@pytest.mark.parametrize("provider", first_quick(PROVIDERS))
def test_a_lost_answer_makes_one_creation_and_the_batch_is_adopted(models: LocalModels, provider: str) -> None:
    """The provider begins the batch and its answer never arrives: it is found, and nothing is sent a second time."""
    campaign, before = begun(models, provider, lose=1, delay=1.0)
    until(lambda: state_of(campaign) == "finished")
    stats = models.stats()
    assert stats["batch_posts"] - before == 1
    assert stats["batch_keys"][-1] == ("" if provider == "google" else Batch.objects.get().name)
    assert set(asked(models).values()) == {1} and len(asked(models)) == 3
    assert Work.objects.filter(state="labelled").count() == 3 and not BatchCall.objects.exists()


@pytest.mark.slow
def test_a_lost_batch_without_a_name_is_adopted_while_it_is_under_way(models: LocalModels) -> None:
    """Anthropic's was lost for up to a day, until it had ended; and could be sent, and paid for, a second time."""
    campaign, before = begun(models, "anthropic", pairs=7, lose=1, delay=4.0)
    until(lambda: Batch.objects.filter(likely=True).exists())
    (shown,) = selectors.campaign_status(campaign.collection, campaign)["batches"]
    assert shown["state"] != "lost" and shown["problem"] == batch_loop.LIKELY
    assert lifecycle.send_again(campaign=campaign) == 0
    until(lambda: state_of(campaign) == "finished")
    assert models.stats()["batch_posts"] - before == 1
    assert set(asked(models).values()) == {1} and len(asked(models)) == 7
    assert Work.objects.filter(state="labelled").count() == 7


@pytest.mark.slow
def test_somebody_elses_batch_that_fits_is_given_back_and_never_cancelled(models: LocalModels) -> None:
    campaign, before = begun(models, "anthropic", pairs=8, lose=1, delay=2.0)
    until(lambda: Batch.objects.filter(likely=True).exists())
    ours = Batch.objects.get()
    renamed = f"{ours.name[:-1]}{'a' if ours.name[-1] != 'a' else 'b'}"
    Batch.objects.filter(pk=ours.pk).update(name=renamed)  # so what fits holds calls of another name
    lifecycle.cancel(campaign=campaign)
    until(lambda: not Batch.objects.filter(ended_at=None).exists())
    assert len(asked(models)) == 8, "it was not cancelled"
    assert set(Attempt.objects.values_list("outcome", "cost")) == {("error", None)}, "its answers are not ours"
    assert models.stats()["batch_posts"] - before == 1


@pytest.mark.slow
@pytest.mark.parametrize("provider", first_quick(PROVIDERS))
def test_a_batch_that_is_not_found_is_sent_again_by_an_admin_alone(models, provider, capsys):
    campaign, before = begun(models, provider, refuse=[502, 1])
    until(lambda: Batch.objects.exclude(problem="").exists())
    time.sleep(1.0)  # ten polls
    assert models.stats()["batch_posts"] - before == 1 and state_of(campaign) == "running"
    (shown,) = selectors.campaign_status(campaign.collection, campaign)["batches"]
    assert (shown["state"], shown["calls"]) == ("lost", 3) and "is not known" in shown["problem"]
    assert (batch_loop.NAMELESS in shown["problem"]) == (provider == "anthropic")
    said = "\n".join(summary_lines(selectors.campaign_status(campaign.collection, campaign)))
    assert "campaign books send-again" in said and shown["name"] in said
    call_command("campaign", "books", "send-again")
    assert "1 lost batches" in capsys.readouterr().out
    until(lambda: state_of(campaign) == "finished")
    assert models.stats()["batch_posts"] - before == 2
    assert Work.objects.filter(state="labelled").count() == 3


def test_a_lost_batch_of_a_cancelled_campaign_counts_as_paid_for(models: LocalModels) -> None:
    campaign, before = begun(models, "google", refuse=[500, 1])
    until(lambda: Batch.objects.exclude(problem="").exists())
    lifecycle.cancel(campaign=campaign)
    until(lambda: not Batch.objects.filter(ended_at=None).exists())
    assert models.stats()["batch_posts"] - before == 1
    assert set(Attempt.objects.values_list("outcome", "cost")) == {("error", None)}


@pytest.mark.parametrize("provider", first_quick(PROVIDERS))
def test_a_provider_that_was_never_reached_gets_the_batch_later(models: LocalModels, provider: str) -> None:
    """Nobody listens at first: nothing can have been created, so no admin is needed. It is priced as it leaves."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}"
    right = {name: models.base_url(name) for name in PROVIDERS}[provider]
    scene(models, 2, provider=provider)
    judges = JudgeVersion.objects.filter(name="v1")
    judges.update(base_url=right.replace(f"http://127.0.0.1:{models.port}", nowhere))
    begin(Collection.objects.get(), policy="single", batch=True)
    until(lambda: Batch.objects.exclude(problem="").exists())
    batch = Batch.objects.get()
    assert batch.sent_at is None and not batch.is_unconfirmed
    enter_price(provider=provider, model="yes", prices={"input_price": 10, "output_price": 20}, source="page")
    batch.judge["base_url"] = right
    batch.save()
    until(lambda: state_of(Campaign.objects.get()) == "finished")
    assert set(asked(models).values()) == {1} and len(asked(models)) == 2
    assert {round(one.cost / ((one.tokens_in + 2 * one.tokens_out) / 1e6), 3) for one in Attempt.objects.all()} == {5}


@pytest.mark.parametrize("provider", first_quick(PROVIDERS))
def test_a_refused_batch_is_split_and_not_failed(models: LocalModels, provider: str) -> None:
    """The server takes what is two calls large; six come."""
    scene(models, 7, provider=provider)
    judge("--policy", "single", "--judges", "v1", "--batch", "--limit", "1", check=True)
    (size,) = [len(json.dumps(request["body"])) for request in models.requests()]
    models.batches(size=int(2.5 * size) + 300)
    status = judge("--policy", "single", "--judges", "v1", "--batch").json
    assert (status["labelled"], status["failed"], status["calls_failed"]) == (7, 0, 0)
    assert set(asked(models).values()) == {1} and len(asked(models)) == 7
    assert max(Batch.objects.values_list("calls", flat=True)) <= 2 and not Batch.objects.filter(ended_at=None).exists()


@pytest.mark.slow
def test_what_validation_refuses_is_split_too(models: LocalModels) -> None:
    campaign, before = begun(models, "openai", pairs=6, calls=2)
    until(lambda: state_of(campaign) == "finished")
    assert Work.objects.filter(state="labelled").count() == 6
    assert models.stats()["batch_posts"] - before == 1 + 2 + 2 * 2 and set(asked(models).values()) == {1}


@pytest.mark.slow
def test_a_full_queue_is_waited_for(models: LocalModels) -> None:
    """OpenAI refuses what is beyond the tokens that may be out: it goes when the others have come home."""
    scene(models, 3, provider="openai", votes=("yes+a", "yes+b", "yes+c", "yes+d", "yes+e"))
    models.batches(enqueued=7, delay=0.7)
    status = judge("--policy", "ensemble", "--batch").json
    assert (status["labelled"], status["failed"], status["calls"], status["calls_failed"]) == (3, 0, 15, 0)
    assert set(Batch.objects.values_list("calls", flat=True)) == {3}, "waited for, not split"


@pytest.mark.parametrize(
    ("provider", "status", "pairs", "creations"),
    first_quick(
        [("openai", 401, 8, 1), ("anthropic", 400, 40, 20), ("anthropic", 401, 8, 1), ("google", 401, 8, 1)], 2
    ),
)
def test_a_dead_key_is_one_creation_and_a_fault_of_all_batches_ends_after_twenty(
    models: LocalModels, provider: str, status: int, pairs: int, creations: int
) -> None:
    campaign, before = begun(models, provider, pairs=pairs, refuse=[status, 999])
    until(lambda: state_of(campaign) == "paused")
    until(lambda: not Work.objects.filter(state="running").exists())
    assert models.stats()["batch_posts"] - before == creations
    assert Work.objects.filter(state="failed").count() == 0
    assert status == 400 or Work.objects.filter(state="pending").count() == pairs


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 1], ids=["looked at", "looked for"])
@pytest.mark.parametrize("provider", first_quick(PROVIDERS))
def test_a_key_that_dies_while_a_batch_is_out_pauses_the_campaign(models, provider, lost):
    """Nothing is sent again: with a key that lives, what the provider has is taken in."""
    campaign, before = begun(models, provider, delay=3600, lose=lost, look=[401, 9999])
    until(lambda: state_of(campaign) == "paused")
    campaign.refresh_from_db()
    assert "v1, account" in campaign.paused_because and "401" in campaign.paused_because
    models.batches(look=[0, 0], delay=0)
    lifecycle.resume(campaign=campaign)
    until(lambda: state_of(campaign) == "finished")
    assert models.stats()["batch_posts"] - before == 1 and set(asked(models).values()) == {1}


def test_a_wrong_key_of_google_is_of_the_account() -> None:
    """It answers 400, and says in the body that the key is wrong."""
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    body = {"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT", "details": details}}
    known = read_refusal(ClientError(400, body))
    assert known is not None and is_of_account(known) and not known.retry
    other = read_refusal(ClientError(400, {"error": {"code": 400, "message": "A field is missing."}}))
    assert other is not None and not is_of_account(other)


@pytest.mark.parametrize("provider", first_quick(PROVIDERS))
def test_only_a_line_feed_ends_an_answer(models: LocalModels, provider: str) -> None:
    """Other separators of lines are text, and stand in the file of answers as they are."""
    said = "one\u2028two\u2029three\u0085four\x0bfive\x1csix"
    models.script(**{"*": {"text": json.dumps({"reason": said, "response": "yes"}, ensure_ascii=False)}})
    campaign, _ = begun(models, provider)
    until(lambda: state_of(campaign) == "finished")
    assert set(Attempt.objects.values_list("outcome", "reason")) == {("labelled", said)}


@pytest.mark.parametrize(
    ("provider", "spoil"), first_quick([("openai", "broken"), ("openai", "foreign"), ("google", "keyless")])
)
def test_a_spoilt_line_spoils_only_itself(models: LocalModels, provider: str, spoil: str) -> None:
    """What else the batch brought is taken in; only the call whose answer cannot be read is asked again."""
    models.batches(spoil=spoil)
    campaign, _ = begun(models, provider)
    until(lambda: Batch.objects.exclude(ended_at=None).exists())
    models.batches(spoil="")
    until(lambda: state_of(campaign) == "finished")
    assert set(Work.objects.values_list("state", flat=True)) == {"labelled"}
    assert sum(asked(models).values()) - len(asked(models)) == (spoil == "broken")


def test_a_look_that_failed_for_a_moment_and_answers_that_come_a_little_later_pause_nothing(models):
    campaign, _ = begun(models, "openai", delay=0.5, look=[429, 2], late=3)
    until(lambda: state_of(campaign) == "finished")
    assert set(Work.objects.values_list("state", flat=True)) == {"labelled"}


def test_an_account_whose_money_is_spent_creates_one_batch(models: LocalModels) -> None:
    campaign, before = begun(models, "openai", pairs=8, unpaid=True)
    until(lambda: state_of(campaign) == "paused")
    assert models.stats()["batch_posts"] - before <= 2  # one for each model of the panel
    assert "Billing hard limit" in Campaign.objects.get().paused_because


def said(message: str, kind: str = "invalid_request_error") -> str:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}})


# What every call of a batch meets, and a part of why the campaign pauses.
OF_ALL = {
    "setting": ({"status": 400, "body": said("'temperature' does not support 0")}, 'temperature = "default"'),
    "spend": ({"status": 400, "body": said("You have reached your specified API usage limits.")}, "raise the limit"),
    "key": ({"status": 401, "body": said("invalid x-api-key", "authentication_error")}, "invalid x-api-key"),
    "useless": ({"text": "It depends."}, "none usable"),
}


@pytest.mark.parametrize(
    ("provider", "case"),
    first_quick([("anthropic", "setting"), ("openai", "spend"), ("anthropic", "key"), ("openai", "useless")]),
)
def test_a_batch_that_is_refused_to_the_last_call_pauses_and_costs_nobody_a_vote(models, provider, case):
    behaviour, words = OF_ALL[case]
    models.script(**{"*": behaviour})
    campaign, before = begun(models, provider, pairs=24)
    until(lambda: state_of(campaign) == "paused")
    campaign.refresh_from_db()
    assert campaign.paused_because.startswith("v1, account ") and words in campaign.paused_because
    assert models.stats()["batch_posts"] - before == 1
    until(lambda: not Work.objects.filter(state="running").exists())
    assert set(Work.objects.values_list("state", flat=True)) == {"pending"}
    models.script(**{"*": {"verdict": "yes"}})
    lifecycle.resume(campaign=campaign)
    until(lambda: state_of(campaign) == "finished")
    assert set(Work.objects.values_list("state", flat=True)) == {"labelled"}


def test_twenty_answers_of_a_batch_in_a_row_with_none_usable_pause_though_others_are_usable(models):
    useful = {"contains": "mapping number 40 map", "verdict": "yes"}
    models.script(**{"*": [useful, {"text": "It depends."}]})
    campaign, before = begun(models, "openai", pairs=45)
    until(lambda: state_of(campaign) == "paused")
    campaign.refresh_from_db()
    assert campaign.paused_because.startswith("v1, account ")
    assert "20 answers in a row" in campaign.paused_because
    assert models.stats()["batch_posts"] - before == 1, "what was useless is not asked about once more"
    assert Counter(Attempt.objects.values_list("outcome", flat=True)) == {"unparsed": 44, "labelled": 1}


def test_some_refused_calls_of_a_batch_are_their_pairs_own(models: LocalModels) -> None:
    flagged = {"status": 400, "body": said("Content Exists Risk"), "every": 2}
    models.script(**{"*": [flagged, {"verdict": "yes"}]})
    campaign, _ = begun(models, "openai", pairs=30)
    until(lambda: state_of(campaign) == "finished")
    states = Counter(Work.objects.values_list("state", "reason"))
    assert states == {("labelled", ""): 15, ("failed", "refused"): 15}
    assert len(models.requests()) == 30, "none was asked again"


def test_batches_are_cut_by_calls_and_by_bytes_and_leave_room_within_what_providers_take() -> None:
    most = (3, 100)  # calls and bytes
    assert store.chunk_calls([(number, 10) for number in range(7)], *most) == [[0, 1, 2], [3, 4, 5], [6]]
    assert store.chunk_calls([(1, 60), (2, 40), (3, 1), (4, 99), (5, 400), (6, 5)], *most) == [[1, 2], [3, 4], [5], [6]]
    assert store.chunk_calls([], *most) == []
    documented = {"chat": (50_000, 200e6), "messages": (100_000, 256e6), "generate": (None, 20e6)}
    for wire, (calls, size) in documented.items():
        assert MOST[wire][1] <= 0.8 * size and (calls is None or MOST[wire][0] <= 0.8 * calls)


@pytest.mark.parametrize("provider", first_quick(PROVIDERS))
def test_no_call_is_larger_in_its_batch_than_was_counted(models: LocalModels, provider: str) -> None:
    """Chinese text, quotation marks and half a kilobyte of line feeds: whichever way the provider's SDK writes them."""
    collection_of(1)
    long = '映射"把键"映到值。\n' * 200
    Document.objects.update(text=long)
    make_panel(models, provider=provider)
    models.batch_delay(0.5)
    begin(Collection.objects.get(), policy="single", batch=True)
    until(lambda: BatchCall.objects.filter(size__gt=0).exists())
    counted = BatchCall.objects.get().size
    until(lambda: state_of(Campaign.objects.get()) == "finished")
    (request,) = models.requests()
    assert len(json.dumps(request["body"])) < counted < 2 * len(json.dumps(request["body"])) + 4096


@pytest.mark.slow
def test_failed_calls_of_a_batch_are_in_the_next_one(models: LocalModels) -> None:
    scene(models, 3, debate=("a", "b"), provider="anthropic")
    models.script(
        a=[{"fault": "503", "times": 2}, {"fault": "garbage", "times": 1}, {"verdict": "yes"}], b={"verdict": "yes"}
    )
    status = judge("--batch", "--policy", "debate").json
    assert status["labels"] == {"1": 3} and status["calls_failed"] == 2
    outcomes = sorted(Attempt.objects.filter(judge__name="a").values_list("outcome", flat=True))
    assert outcomes == [*["error"] * 2, *["labelled"] * 3, "unparsed"]
    repaired = Attempt.objects.get(prompt__name="debate-answers-repair")
    assert repaired.counts and repaired.number == 2


@pytest.mark.slow
def test_a_batch_that_was_sent_by_a_process_that_died_at_once_is_found_again(models: LocalModels) -> None:
    campaign, before = begun(models, "openai", delay=3600)
    until(lambda: Batch.objects.exclude(provider_id="").exists())
    Batch.objects.update(provider_id="", sent_at=Now())  # as the kill left it
    models.batches(delay=0)
    notifications.notify_workers(campaign.pk)
    until(lambda: state_of(campaign) == "finished")
    assert models.stats()["batch_posts"] - before == 1
    assert set(asked(models).values()) == {1} and len(asked(models)) == 3


@pytest.mark.slow
def test_paused_batches_come_home_and_a_resumed_campaign_asks_only_what_is_missing(models: LocalModels) -> None:
    scene(models, PAIRS, debate=("converge", "converge"), provider="google")
    models.batch_delay(1.0)
    begin(Collection.objects.get(), policy="debate", batch=True)
    until(lambda: Batch.objects.exclude(provider_id="").exists())
    campaign = lifecycle.pause(campaign=Campaign.objects.get())
    until(lambda: not Batch.objects.filter(ended_at=None).exists())
    until(lambda: not Work.objects.filter(state="running").exists())
    assert Attempt.objects.filter(counts=True).count() == 2 * PAIRS and state_of(campaign) == "paused"
    models.batch_delay(0)
    lifecycle.resume(campaign=campaign)
    until(lambda: state_of(campaign) == "finished")
    assert set(asked(models).values()) == {1} and len(asked(models)) == 4 * PAIRS


@pytest.mark.parametrize(("status", "asked_for"), first_quick([(503, 3), (429, 3), (409, 1)]))
def test_a_cancel_that_was_not_heard_is_said_again(models: LocalModels, status: int, asked_for: int) -> None:
    """At 409 there is nothing left to cancel."""
    campaign, _ = begun(models, "openai", delay=3600)
    until(lambda: Batch.objects.exclude(provider_id="").exists())
    models.batches(cancel=[status, asked_for if status == 409 else asked_for - 1])
    lifecycle.cancel(campaign=campaign)
    if status == 409:
        time.sleep(1.0)  # ten polls: it is only looked at
        assert not Batch.objects.filter(ended_at__isnull=False).exists()
        models.batches(delay=0)
    until(lambda: not Batch.objects.filter(ended_at=None).exists())
    assert bool(models.requests()) == (status == 409)


@pytest.mark.slow
def test_limits_hold_and_raised_ones_go_on(models: LocalModels) -> None:
    scene(models, 4, provider="openai")
    options = ("--batch", "--policy", "single", "--judges", "v1")
    poor = judge(*options, "--budget", "0.000001")
    assert poor.code == 3 and poor.json["state"] == "budget" and poor.json["calls"] == 0
    some = judge(*options, "--max-calls", "2")
    assert some.code == 3 and some.json["state"] == "budget" and some.json["calls"] == 2 and sums_up(some.json)
    assert some.json["running"] == 0 and not Reservation.objects.filter(calls__gt=0).exists()
    rich = judge(*options, "--budget", "1").json
    assert rich["labelled"] == 4 and rich["campaign"] == poor.json["campaign"]
    assert set(asked(models).values()) == {1} and len(asked(models)) == 4


def test_only_one_process_works_on_it(instance: dict[str, str]) -> None:
    with psycopg.connect(**database_parameters()) as one, psycopg.connect(**database_parameters()) as two:
        assert one.execute(store.TAKE, [7]).fetchone() == (True,)
        assert two.execute(store.TAKE, [7]).fetchone() == (False,)
        one.execute(store.LEAVE, [7])
        assert two.execute(store.TAKE, [7]).fetchone() == (True,)
