"""The Overview read sentence by sentence against the database: what is claimed, and whether the rows say so.

`untrue(page, collection)` cuts the visible text of the story into statements and takes each apart with the grammar
below. A statement that no rule knows is reported as well: whoever adds a sentence adds its rule.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from django.db.models import F, Sum
from lxml import html

from corpus.models import Collection, Item, Judgment, Label
from judges.models import Attempt, Audit, Campaign, Work

BLOCKS = "p | li[not(.//li)] | tr | h2 | h3 | summary | span[contains(@class, 'badge')]"
Rule = tuple[str, Callable[..., object]]


@dataclass(frozen=True)
class Facts:
    """What the rows of the newest campaign say, counted without the counters that the page reads."""

    collection: Collection
    campaign: Campaign

    @property
    def work(self) -> Any:
        return Work.objects.filter(campaign=self.campaign)

    def states(self) -> Counter[str]:
        return Counter(self.work.values_list("state", flat=True))

    def items(self, **values: object) -> int:
        return int(Item.objects.filter(collection=self.collection, **values).count())

    @property
    def labelled(self) -> int:
        return int(Label.objects.filter(pair__in=self.work.values("pair"), aspect=None).count())

    @property
    def open(self) -> int:
        own = Item.objects.filter(campaign=self.campaign.pk, state__in=["open", "conflict"])
        return int(own.exclude(reason="audit").count())

    def reasons(self) -> Counter[str]:
        escalated = Counter(self.work.filter(state="escalated").values_list("reason", flat=True))
        return escalated + Counter({"audit": self.drawn})

    @property
    def drawn(self) -> int:
        return int(Audit.objects.filter(campaign=self.campaign).count())

    @property
    def people(self) -> int:
        """Who could judge: active, not paused."""
        return int(self.collection.memberships.filter(is_active=True, paused_at=None).count())

    def attempts(self, **values: object) -> Any:
        return Attempt.objects.filter(campaign=self.campaign, **values)

    def votes(self, population: str) -> list[list[int]]:
        """The panel's votes on each pair of the population that has two and more."""
        pairs = self.work.values("pair")
        if population == "escalated pairs":
            pairs = Item.objects.filter(campaign=self.campaign.pk).exclude(reason="audit").values("pair")
        if population == "audited pairs":
            pairs = Audit.objects.filter(campaign=self.campaign).values("pair")
        found: dict[int, list[int]] = {}
        cast = self.attempts(role="vote", counts=True, outcome="labelled", pair__in=pairs)
        for pair, verdict in cast.values_list("pair", "verdict"):
            found.setdefault(pair, []).append(verdict)
        return [votes for votes in found.values() if len(votes) > 1]


def alpha(units: list[list[int]]) -> float:
    """Krippendorff's alpha of two nominal values, by its definition."""
    observed = sum(sum(a != b for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units)
    values = [value for unit in units for value in unit]
    ones, n = sum(values), len(values)
    return 1 - observed * (n - 1) / (2 * ones * (n - ones))


def number(text: str) -> int:
    return int(text.replace(",", ""))


def plain(facts: Facts) -> list[Rule]:
    """Headings and words without a claim."""
    words = [
        "Where the pairs stand", "Can the labels be trusted[?]", "The judges' labels, by people's answers",
        "Judges with judges, people with people", "What it cost, and what it will cost", "Needs attention",
        "Why pairs came to people", "Labels of the judges", "Debates that agreed", "Reason Pairs Share",
        "Round Pairs Share", "Who So far, USD Still to come For what", "Audited pairs of all routes",
        "Ledger and cost per correct label", "Route Labelled Audited Right So far", "open", "debate|ensemble",
    ]  # fmt: skip
    return [(one, lambda: True) for one in words]


def rules(facts: Facts) -> list[Rule]:
    """Every sentence of the Overview, and what makes it true."""
    states, n = facts.states(), number
    pairs = facts.work.count()
    escalated = states["escalated"]
    settled = escalated - facts.open
    unjudged = states["pending"] + states["running"]
    rounds = Counter(facts.work.exclude(agreed_in_round=None).values_list("agreed_in_round", flat=True))
    audits_open = facts.items(campaign=facts.campaign.pk, reason="audit", state="open")
    audits_settled = facts.items(campaign=facts.campaign.pk, reason="audit", state="settled")
    annotators = facts.items(campaign=facts.campaign.pk, state="open") - audits_open
    conflicts = facts.items(state="conflict")
    sent = facts.attempts(cached=False)
    owed = Item.objects.filter(collection=facts.collection, state="open").aggregate(n=Sum(F("overlap") - F("done")))[
        "n"
    ]
    tokens = sent.aggregate(i=Sum("tokens_in"), o=Sum("tokens_out"), cost=Sum("cost"))
    labels = Counter(facts.work.filter(state="labelled").values_list("label", flat=True))
    people = [
        *(("annotators",) if annotators else ()), *(("audits",) if audits_open else ()),
        *(("conflicts",) if conflicts else ()), *(("failed",) if states["failed"] else ()),
    ]  # fmt: skip
    lacking = facts.people < max(facts.collection.overlap if annotators else 0, 2 if audits_open else 0)
    policy, panel = facts.campaign.policy, facts.campaign.panel
    return [
        (rf"finished campaign {facts.campaign.pk}, (.+), panel (.+), as of [\d:]+", lambda a, b: True),
        ("(finished|running|paused)", lambda state: facts.campaign.state == state),
        (rf"campaign {facts.campaign.pk}, {re.escape(policy)}, panel {panel}, as of [\d:]+", lambda: True),
        (r"([\d,]+) of ([\d,]+) pairs have a label\.", lambda a, b: (n(a), n(b)) == (facts.labelled, pairs)),
        (r"([\d,]+) waits? for people\.", lambda a: n(a) == facts.open),
        (r"([\d,]+) (?:is|are) not judged yet\.", lambda a: n(a) == unjudged),
        (r"(\d+) items? needs? attention\.", lambda a: n(a) == len(people) + lacking),
        (
            r"([\d,]+) labelled by judges, ([\d,]+) escalated to people \(([\d,]+) settled, ([\d,]+) open\), "
            r"([\d,]+) failed, ([\d,]+) still to be judged\.",
            lambda *found: tuple(map(n, found))
            == (states["labelled"], escalated, settled, facts.open, states["failed"], unjudged),
        ),
        (r"([\d,]+) labelled by judges", lambda a: n(a) == states["labelled"]),
        (r"([\d,]+) escalated to people", lambda a: n(a) == escalated),
        (r"([\d,]+) (?:open|failed|settled|waiting for judges)", lambda a: n(a) > 0),
        (
            rf"Not measured yet: of ([\d,]+) pairs that {re.escape(policy)} labelled in campaign {facts.campaign.pk}, "
            r"([\d,]+) are drawn for people to check\.",
            lambda a, b: (n(a), n(b)) == (states["labelled"], facts.drawn) and not audits_settled,
        ),
        (
            rf"Not measured: none of ([\d,]+) pairs that {re.escape(policy)} labelled in campaign {facts.campaign.pk} "
            r"is drawn for people to check\.",
            lambda a: n(a) == states["labelled"] and not facts.drawn,
        ),
        (
            r"([\d,]+) pairs? (?:is|are) drawn for people to check without seeing what the judges said\. Their answers "
            r"will give the accuracy by route here\.",
            lambda a: n(a) == facts.drawn > 0 and not audits_settled,
        ),
        (
            r"(\d+) judges, (all pairs|escalated pairs|audited pairs): (-?[\d.]+) \((-?[\d.]+) to (-?[\d.]+)\), "
            r"n = ([\d,]+)[.]",
            lambda *found: agreement_holds(facts, *found),
        ),
        (r"Judges \$([\d.]+) \$0\.00 ([\d,]+) calls of campaign (\d+), ([\d,]+) answers reused, ([\d,]+) calls failed; "
         r"([\d,]+) tokens in, ([\d,]+) out",
         lambda cost, calls, campaign, reused, failed, t_in, t_out: (
             abs(float(cost) - float(tokens["cost"] or 0)) < 0.01
             and (n(calls), n(campaign)) == (sent.count(), facts.campaign.pk)
             and n(reused) == facts.attempts(cached=True).count()
             and n(failed) == sent.filter(outcome="failed").count()
             and (n(t_in), n(t_out)) == (tokens["i"] or 0, tokens["o"] or 0)
             and not unjudged)),
        (r"People ([\d.]+) h (?:[\d.]+ h|unknown) up to ([\d,]+) judgments? remaining"
         r"(?:, at the median of \d+ s each)?; all campaigns",
         lambda hours, left: n(left) >= (owed or 0)
         and (float(hours) == 0.0 or Judgment.objects.filter(item__collection=facts.collection).exclude(
             milliseconds=None).exists())),
        (r"Median per pair: [\d.,]+ m?s of model time, [\d.,]+ m?s elapsed\.", lambda: sent.exists()),
        (r"([\d,]+) escalated pairs? waits? for annotators\. (?:Judge|Invite people)",
         lambda a: n(a) == annotators > 0),
        (r"([\d,]+) audited pairs? waits? for two people each, who do not see what the judges said\. "
         r"(?:Judge|Invite people)", lambda a: n(a) == audits_open > 0),
        (r"([\d,]+) pairs? waits? for an adjudicator\. (?:Adjudicate|See them|See it)",
         lambda a: n(a) == conflicts > 0),
        (r"Some pairs need the judgments of (\d+) people, and (\d+) can judge here\. Invite people",
         lambda a, b: lacking and n(b) == facts.people < n(a)),
        (r"Audits are switched off, so accuracy is not measured\. Switch them on in the settings: of the labels "
         r"given from then on a share goes to people\.", lambda: facts.collection.audit == 0 and not facts.drawn),
        (r"No labelled pair is drawn for people to check\.", lambda: facts.collection.audit > 0 and not facts.drawn),
        (r"Agreement needs two judges or two people on the same pairs\.", lambda: not facts.votes("all pairs")),
        (r"None so far\.", lambda: not facts.reasons()),
        (r"Nothing: no pair failed and none waits for people\.", lambda: not people and not lacking),
        (r"The labels can be exported\. Or see what they do to your systems' ranking\.",
         lambda: facts.labelled and audits_settled),
        (r"The labels can be exported, but people checked none of the judges' labels, so their accuracy is not known\. "
         r"Or see what they do to your systems' ranking\.", lambda: facts.labelled and not audits_settled),
        (r"(audit|disagreement|conflict|split|error|refused|unparsed) [a-z' ]+ ([\d,]+)(?: \d+)?",
         lambda reason, a: facts.reasons()[reason] == n(a)),
        (r"in round (\d+) ([\d,]+)(?: \d+)?", lambda round, a: rounds[int(round)] == n(a)),
        (r"([\d,]+) labelled relevant \(1\)", lambda a: n(a) == labels[1]),
        (r"([\d,]+) labelled not relevant \(0\)", lambda a: n(a) == labels[0]),
        (r"Each number opens the pairs behind it\. A route that is almost certainly wrong on more than 10% raises an "
         r"alarm\.", lambda: True),
        (r"(.+, (?:not )?relevant) ([\d,]+) ([\d,]+) of ([\d,]+) audited: .+? not measured open",
         lambda words, a, s, d: n(s) == 0 and n(d) <= n(a)),
    ]  # fmt: skip


def agreement_holds(facts: Facts, judges: str, population: str, value: str, low: str, high: str, n: str) -> bool:
    units = facts.votes(population)
    voters = {judge for (judge,) in facts.attempts(role="vote", counts=True).values_list("judge")}
    found = alpha(units)
    return (len(units), len(voters)) == (number(n), int(judges)) and f"{found:.2f}" == value and low <= value <= high


def statements(page: str) -> Iterator[str]:
    """The visible text, block by block; pictures and their tables apart."""
    story = html.fromstring(page).xpath("//*[contains(concat(' ', @class, ' '), ' story ')]")[0]
    for gone in story.xpath(".//svg | .//details[contains(@id, '-table')] | .//*[contains(@class, 'chart-files')]"):
        gone.drop_tree()
    for block in story.xpath(".//p | .//li | .//tr | .//h2 | .//h3 | .//header/span | .//a[@class='stat']"):
        if text := re.sub(r" ([.,;:])", r"\1", " ".join(" ".join(block.itertext()).split())):
            yield text


def untrue(page: str, collection: Collection) -> list[str]:
    """Statements that the database contradicts, or that no rule knows."""
    facts = Facts(collection, Campaign.judging.filter(collection=collection).latest("pk"))
    known = [(re.compile(pattern), check) for pattern, check in (*rules(facts), *plain(facts))]
    wrong = []
    for text in statements(page):
        rest = text
        while rest:
            found = next(((m, check) for pattern, check in known if (m := pattern.match(rest)) and m.end()), None)
            if found is None:
                wrong.append(f"no rule: {text!r} at {rest[:60]!r}")
                break
            match, check = found
            if not check(*match.groups()):
                wrong.append(f"untrue: {match.group(0)!r}")
            rest = rest[match.end() :].strip()
    return wrong
