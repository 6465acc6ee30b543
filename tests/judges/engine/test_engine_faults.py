"""What the engine does when leases are lost, answers wait in a dead worker's spool, and our own code breaks."""

import asyncio
import os
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from corpus.errors import BadInput
from corpus.models import Label
from judges.campaigns import configurations, lifecycle
from judges.costs import counters
from judges.costs.prices import Price
from judges.domain.routing import EscalationReason, NoVerdict, RoutingOutcome, RoutingState
from judges.engine import leases, pairs
from judges.engine.answers import SentCall, dump_answer, load_answer, recover_answers
from judges.engine.pending_answers import PendingAnswerLog, orphaned_files
from judges.engine.plan import Plan
from judges.engine.rows import NO_ANSWER, AttemptRow, OutcomeRow, store_rows
from judges.engine.writer import ResultWriter
from judges.errors import BadAnswer, Overloaded, RateLimited
from judges.models import Attempt, AttemptBody, Campaign, Work
from judges.records import Body, Reply, slot_columns
from store.sql import database_parameters
from tests.engine_parts import collection_of, plan_of


@pytest.fixture
def plan(unattended: None) -> Plan:
    """A running campaign of two pairs with the offline panel, whose work nobody has claimed."""
    return plan_of(collection_of(2), panel="offline")


def claim(plan: Plan, lease: float) -> list[leases.Claimed]:
    with psycopg.connect(**database_parameters()) as own:
        return leases.claim(own, plan, lease=lease)


def outcome_of(plan: Plan, claimed: leases.Claimed) -> OutcomeRow:
    return pairs.build_decision(plan, claimed, RoutingOutcome(RoutingState.LABELLED, 1, EscalationReason.NONE, 1, 0.0))


def write(*ended: AttemptRow | OutcomeRow) -> None:
    with psycopg.connect(**database_parameters()) as own:
        store_rows(own, ended, 0)


def test_a_late_write_of_an_old_lease_is_refused(plan: Plan) -> None:
    old = claim(plan, lease=0)
    new = claim(plan, lease=60)
    assert [one.work for one in old] == [one.work for one in new]
    assert [one.fence for one in new] == [2, 2]
    write(outcome_of(plan, old[0]))
    assert not Label.objects.exists() and Work.objects.filter(state="running").count() == 2
    write(outcome_of(plan, new[0]))
    assert Label.objects.get().pair_id == new[0].pair
    write(outcome_of(plan, new[0]))
    assert counters.read(plan.campaign)["labelled:1"] == 1, "written twice, counted once"


def test_a_held_lease_is_not_claimed_and_the_fourth_claim_gives_up(plan: Plan) -> None:
    assert len(claim(plan, lease=60)) == 2
    assert claim(plan, lease=60) == []
    Work.objects.update(lease_until="2000-01-01T00:00Z")
    for _ in range(5):
        assert len(claim(plan, lease=0)) == 2, "a worker that is lost before it sends anything proves nothing"
    for _ in range(leases.MAX_CLAIMS):
        held = claim(plan, lease=0)
        assert len(held) == 2
        count_begun(held)
    assert claim(plan, lease=60) == []
    assert Work.objects.filter(state="failed", reason="error").count() == 2
    assert counters.read(plan.campaign)["failed"] == 2


def count_begun(held: list[leases.Claimed]) -> None:
    """As a worker does that sends the first call of each."""

    async def begin() -> None:
        with psycopg.connect(**database_parameters()) as own:

            async def ask(question: Any) -> Any:
                return question(own)

            begun = leases.SentLeases(ask)
            for one in [*held, *held]:
                begun.note(one)
            assert begun.task is not None
            await begun.task

    asyncio.run(begin())


def test_released_pairs_are_pending_as_before(plan: Plan) -> None:
    held = claim(plan, lease=60)
    with psycopg.connect(**database_parameters()) as own:
        assert leases.renew(own, held, 60) == {one.work for one in held}
    count_begun(held)
    assert list(Work.objects.values_list("state", "claims")) == [("running", 1)] * 2, "once, however many calls"
    with psycopg.connect(**database_parameters()) as own:
        leases.release(own, held)
    assert list(Work.objects.values_list("state", "claims")) == [("pending", 0)] * 2


def test_two_starts_are_one_campaign_and_paused_ones_are_left(plan: Plan) -> None:
    campaign = Campaign.objects.get()
    wanted = configurations.build_configuration(panel="offline")
    again = lifecycle.start_campaign(collection=campaign.collection, configuration=wanted)
    assert (again.campaign, again.added, again.joined) == (campaign, 0, True)
    lifecycle.pause(campaign=campaign)
    with pytest.raises(BadInput, match="paused"):
        lifecycle.start_campaign(collection=campaign.collection, configuration=wanted)
    assert claim(plan, lease=60) == [], "nothing of a paused campaign is claimed"
    lifecycle.resume(campaign=campaign)
    lifecycle.cancel(campaign=campaign)
    with pytest.raises(BadInput, match="cancelled"):
        lifecycle.resume(campaign=campaign)
    fresh = lifecycle.start_campaign(collection=campaign.collection, configuration=wanted)
    assert fresh.campaign != campaign and fresh.added == 2 and Campaign.objects.count() == 2


def test_a_dead_workers_spool_is_taken_over_once(plan: Plan, tmp_path: Path) -> None:
    """An answer that arrived and was not committed becomes the attempt that it would have been."""
    held = claim(plan, lease=60)[0]
    dead = PendingAnswerLog(tmp_path)
    dead.keep(dump_answer(sent_of(plan, held), Body(200, '{"response": "yes", "reason": "It says so."}')))
    with orphaned_files(tmp_path) as found:
        assert found == [], "a living worker's file is its own"
    os.write(dead.segments[0].file, b'{"row": {"id')  # cut off by the kill
    os.close(dead.segments[0].file)
    assert asyncio.run(taken_over(tmp_path)) == 1
    assert asyncio.run(taken_over(tmp_path)) == 0
    attempt = Attempt.objects.get()
    assert (attempt.verdict, attempt.counts, attempt.reason) == (1, True, "It says so.")
    assert b"It says so." in zlib.decompress(AttemptBody.objects.get().raw)
    assert counters.read(plan.campaign)["calls"] == 1
    Work.objects.update(lease_until="2000-01-01T00:00Z")
    again = next(one for one in claim(plan, lease=60) if one.pair == held.pair)
    assert list(again.ended) == [("vote", 0, 0)], "whoever claims the pair goes on from it"


def test_more_calls_may_begin_at_once_than_a_block_has_ids(instance, monkeypatch, tmp_path):
    monkeypatch.setattr("judges.engine.writer.IDS", 4)

    async def draw() -> list[int]:
        writer = ResultWriter(database_parameters(), tmp_path)
        writer.start()
        try:
            return await asyncio.gather(*(writer.next_id() for _ in range(11)))
        finally:
            await asyncio.to_thread(writer.stop)

    assert len(set(asyncio.run(draw()))) == 11


async def taken_over(folder: Path) -> int:
    writer = ResultWriter(database_parameters(), folder)
    writer.start()
    try:
        return await recover_answers(writer, folder)
    finally:
        await asyncio.to_thread(writer.stop)


def sent_of(plan: Plan, held: leases.Claimed) -> SentCall:
    judge = plan.voters[0]
    row = NO_ANSWER | {"id": 7, "work": held.work, "fence": held.fence, "campaign": plan.campaign, "pair": held.pair}
    row |= {"judge": judge.id, "prompt": next(iter(plan.prompt_ids.values())), **slot_columns(("vote", 0, 0))}
    row |= {"number": 1, "cost": None, "key": "k", "holder": "h", "started": "2026-01-01T00:00Z"}
    return SentCall(row, judge, "A document.", None, strict=False, may_repair=True, messages="[]")


def test_a_line_of_the_spool_holds_the_whole_call(plan: Plan) -> None:
    sent, body = sent_of(plan, claim(plan, lease=60)[0]), Body(429, "slower\u2028please", 1.5)
    assert load_answer(dump_answer(sent, body)) == (sent, body)


def test_files_of_the_spool_go_when_all_in_them_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judges.engine.pending_answers.ROOM", 10)
    spool = PendingAnswerLog(tmp_path)
    first, second = spool.keep(b"a long line of it"), spool.keep(b"another")
    assert first is not second and len(list(tmp_path.glob("*.jsonl"))) == 2
    spool.done(first)
    assert [path.read_bytes() for path in tmp_path.glob("*.jsonl")] == [b"another\n"]
    spool.done(second)
    assert second.path.read_bytes() == b""
    spool.close()
    assert not list(tmp_path.glob("*.jsonl"))


def test_an_answer_that_our_parser_breaks_on_leaves_its_attempt(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str, rules: object) -> None:
        raise ZeroDivisionError("by Bob")

    monkeypatch.setattr("judges.domain.verdicts.parse_vote", broken)
    decision, attempted = sent_of(plan, claim(plan, lease=60)[0]).ended(Reply(raw="paid for", text="{}"))
    assert decision == NoVerdict("error")
    write(attempted)
    stored = Attempt.objects.get()
    assert (stored.outcome, stored.counts) == ("error", False) and "(by Bob)" in stored.error
    assert zlib.decompress(AttemptBody.objects.get().raw) == b"paid for"


@pytest.mark.parametrize(
    ("error", "price", "cost"),
    [
        (RateLimited("429", status=429), 1.0, 0.0),
        (Overloaded("500", status=500), 1.0, 0.0),
        (BadAnswer("200 and no answer", status=200), 1.0, None),
        (BadAnswer("200 and no answer", status=200), 0.0, 0.0),
    ],
)
def test_only_what_cannot_be_billed_costs_nothing(plan, error, price, cost):
    sent = replace(sent_of(plan, claim(plan, lease=60)[0]), price=Price(price, price, price))
    sent.ended(error)
    assert sent.row["cost"] == cost


def test_a_text_has_no_verdict_and_a_campaign_its_kind(plan: Plan) -> None:
    judged = Campaign.objects.get(pk=plan.campaign)
    assert judged.kind == "judging"
    kinds = {"evidence": "writing", "retrieval": "costs", "lara": "judging"}
    for policy, kind in kinds.items():
        assert Campaign.objects.create(collection=judged.collection, policy=policy).kind == kind
