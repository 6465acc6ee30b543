"""The figures of the Overview are those of the rows: of the demo, and of labels that nobody checked."""

from collections import Counter
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import Sum

from annotation.models import Role
from config import demo
from corpus.models import Collection, Item
from judges.models import Attempt, Audit, Campaign, Work
from tests.engine_parts import _standing_worker as _standing_worker
from tests.engine_parts import collection_of
from tests.engine_parts import worker as worker  # a fixture
from tests.factories import client_of, make_member

pytestmark = pytest.mark.django_db(transaction=True)


def home(collection: Collection) -> Any:
    charlie = client_of(collection.memberships.get(user__username="charlie"))
    response = charlie.get(f"/c/{collection.name}/")
    assert response.status_code == 200
    return response.context


def check_figures(page: Any, collection: Collection) -> None:
    """Compare the page's figures with the rows, counted without the counters that the page reads."""
    overview, status, audits = page["overview"], page["status"], page["board"]["audits"]
    campaign = Campaign.judging.filter(collection=collection).latest("pk")
    work, drawn = Work.objects.filter(campaign=campaign), Audit.objects.filter(campaign=campaign).count()
    states = Counter(work.values_list("state", flat=True))
    waiting = Item.objects.filter(campaign=campaign.pk, state__in=["open", "conflict"]).exclude(reason="audit").count()
    sent = Attempt.objects.filter(campaign=campaign, cached=False)
    spent = sent.aggregate(tokens=Sum("tokens_in"), out=Sum("tokens_out"), cost=Sum("cost"))
    assert {name: status[name] for name in ("pairs", "labelled", "escalated", "failed", "open", "calls")} == {
        **{name: states[name] for name in ("labelled", "escalated", "failed")},
        **{"pairs": work.count(), "open": waiting, "calls": sent.count()},
    }
    assert status["pending"] + status["running"] == states["pending"] + states["running"]
    assert status["settled"] == states["escalated"] - waiting
    assert overview.resolved == states["labelled"] + status["settled"]
    assert (status["tokens"]["in"], status["tokens"]["out"]) == (spent["tokens"] or 0, spent["out"] or 0)
    assert (status["cost"] or 0) == pytest.approx(float(spent["cost"] or 0))
    labels = Counter(work.filter(state="labelled").values_list("label", flat=True))
    assert overview.labels == {"1": labels[1], "0": labels[0]}
    rounds = Counter(work.exclude(agreed_in_round=None).values_list("agreed_in_round", flat=True))
    assert {int(number): n for number, n in overview.rounds} == dict(rounds)
    reasons = Counter(work.filter(state="escalated").values_list("reason", flat=True))
    assert {key: n for key, _words, n in overview.reasons} == dict(+(reasons + Counter({"audit": drawn})))
    assert audits.drawn == drawn and audits.settled == 0


@pytest.mark.slow
def test_the_figures_of_the_demos_overview_are_those_of_its_rows(worker, tmp_path) -> None:
    collection, _ = demo.load_collection(tmp_path, StringIO())
    make_member(collection, "charlie", Role.ADMIN)
    call_command("judge", collection.name, "--wait", stdout=StringIO(), stderr=StringIO())
    page = home(collection)
    check_figures(page, collection)
    quality, audits = page["board"]["quality"], page["board"]["audits"]
    assert quality.reasons, "not ready to export without review"
    few = {item.key: item for item in page["board"]["attention"]}["audits-few"]
    assert (few.count, few.part, few.whole) == (audits.open, 1, 2), "charlie is alone"
    asked = Item.objects.filter(collection=collection).values("pair").distinct().count()
    assert 30 <= audits.drawn <= 35, "once people had 308 of 342 labels"
    assert 4 * asked <= collection.pair_set.count(), "people are asked for a quarter at most"


def test_labels_that_nobody_checked_are_not_called_ready(worker) -> None:
    """Everything is labelled and nothing waits; without an audit the accuracy is unknown, and the page says so."""
    collection = collection_of(4)
    Collection.objects.filter(pk=collection.pk).update(audit=0.0)
    make_member(collection, "charlie", Role.ADMIN)
    call_command("judge", collection.name, "--policy", "single", "--wait", stdout=StringIO(), stderr=StringIO())
    page = home(collection)
    check_figures(page, collection)
    assert page["overview"].resolved == 4 and page["board"]["attention"] == []
    assert [reason.key for reason in page["board"]["quality"].reasons] == ["not-audited"]
    Item.objects.create(collection=collection, pair=collection.pair_set.first(), campaign=None, reason="hole", place=1)
    assert [(item.key, item.count) for item in home(collection)["board"]["attention"]] == [("others", 1)]
