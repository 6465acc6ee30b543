"""The labels can go out only when audits are settled and good enough; else the reasons are named. Pure."""

from dataclasses import replace

import pytest

from annotation.agreement.measures import Statistic
from annotation.quality.label_quality.readiness import BlockingReason, assess_readiness
from annotation.quality.label_quality.records import Audits, RouteQuality

ACCURACY = Statistic(0.96, 0.92, 0.99, 100, None)
ROUTE = RouteQuality("r1.m5.y", "Round 1 · relevant", 1, 300, 100, 100, 96, ACCURACY, ACCURACY, "enough")
AUDITS = Audits(1, "debate", ACCURACY, 1.0, (ROUTE,), 0.1, 100, 100, 0, "300 pairs")
STATUS = {"labelled": 300, "settled": 20, "pending": 0, "running": 0, "failed": 0, "open": 0}


def reasons(audits=AUDITS, people=3, alpha=0.7, n=30, **status) -> tuple[BlockingReason, ...]:
    return assess_readiness(STATUS | status, audits, people, Statistic(alpha, None, None, n, None))


def keys(audits=AUDITS, **values) -> list[str]:
    return [reason.key for reason in reasons(audits, **values)]


def test_settled_audits_above_the_limit_let_the_labels_go_out():
    assert keys() == []
    assert keys(alpha=0.1) == [], "audits say more than agreement: alpha is low where few are relevant"
    assert keys(None, labelled=0) == [], "people gave every label"

    assert keys(pending=3, running=1, failed=1, open=7) == ["unjudged", "failed", "open"]
    assert keys(None, labelled=0, settled=0) == ["no-labels"]


@pytest.mark.parametrize(
    ("audits", "expected"),
    [
        (None, ["not-computed"]),
        (replace(AUDITS, drawn=0, settled=0, overall=Statistic(None, None, None, 0, "none")), ["not-audited"]),
        (replace(AUDITS, settled=76), ["audits-open"]),
        (replace(AUDITS, settled=97, conflicts=3), ["audit-conflicts"]),
        (replace(AUDITS, covered=0.8), ["uncovered"]),
        (replace(AUDITS, overall=replace(ACCURACY, low=0.89)), ["accuracy"]),
        (replace(AUDITS, routes=(replace(ROUTE, verdict="over"),)), ["routes"]),
    ],
)
def test_what_audits_do_not_settle_is_a_reason_and_low_agreement_stands_beside_it(audits, expected):
    assert keys(audits) == expected
    assert keys(audits, alpha=0.13) == [*expected, "chance"]
    assert keys(audits, alpha=0.13, n=29) == expected, "too few pairs to say"


def test_blind_checks_that_too_few_can_do_say_how_many_there_are():
    waiting = replace(AUDITS, settled=76)
    assert [reasons(waiting, people=n)[0].people for n in (0, 1, 2)] == [0, 1, None]
    assert reasons(waiting)[0].count == 24
