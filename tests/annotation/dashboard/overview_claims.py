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

    @property
    def judged(self) -> bool:
        """Whether somebody judged with a time."""
        found = Judgment.objects.filter(item__collection=self.collection)
        return bool(found.exclude(milliseconds=None).exists())

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
        "Needs attention", "Progress", "Label quality", "Cost", "Nothing needs attention[.]",
        "Not ready to export without review", "Reasons for human review", "Judges' labels", "Debates that agreed",
        "Accuracy by route", "Agreement between judges and between people", "No label audit is completed yet[.]",
        "Reason Pairs Share", "Round Pairs Share", "Who So far, USD Still to come Details",
        "Route Pairs Completed Correct 95% interval Verdict", "View ledger", "Set hourly rate",
        "debate [+] ensemble|single judge|debate", "as of [\\d:]+ UTC", "panel \\w+",
        "A route is the way judges reached a label. “Review” means more than 10% are almost certainly wrong. "
        "View (?:all \\d+ routes|the route)",
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
    policy = facts.campaign.policy
    resolved = states["labelled"] + settled
    return [
        ("(finished|running|paused)", lambda state: facts.campaign.state == state),
        (rf"Campaign {facts.campaign.number}", lambda: True),
        (r"([\d,]+) of ([\d,]+) pairs resolved", lambda a, b: (n(a), n(b)) == (resolved, pairs)),
        (r"([\d,]+) waits? for people", lambda a: n(a) == facts.open),
        (r"([\d,]+) in work", lambda a: n(a) == unjudged > 0),
        (r"([\d,]+) calls?", lambda a: n(a) == sent.count()),
        (r"waiting ([\d,]+) blind checks? of (?:an )?automatic labels? waits? for two people(?: each)? "
         r"(?:Judge pairs|Invite people)", lambda a: n(a) == audits_open > 0 and facts.people >= 2),
        (r"people ([\d,]+) blind checks? needs? 2 people(?: each)?, and (\d+) can judge here Invite people",
         lambda a, b: n(a) == audits_open > 0 and n(b) == facts.people == 1),
        (r"waiting ([\d,]+) escalated pairs? waits? for annotators (?:Judge pairs|Invite people)",
         lambda a: n(a) == annotators > 0 and facts.people >= facts.collection.overlap),
        (r"people ([\d,]+) escalated pairs? needs? (\d+) people(?: each)?, and (\d+) can judge here Invite people",
         lambda a, b, c: n(a) == annotators > 0 and n(c) == facts.people < n(b) == facts.collection.overlap),
        (r"waiting ([\d,]+) pairs? waits? for an adjudicator (?:Adjudicate|View pairs)",
         lambda a: n(a) == conflicts > 0),
        (r"waiting (\d+) other tasks?, on (?:a pair|pairs) with a label, waits? for people: .+ View tasks",
         lambda a: n(a) == Item.objects.filter(collection=facts.collection, state="open")
         .exclude(reason="audit").exclude(pair__labels=None).count()),
        (r"([\d,]+) not judged", lambda a: n(a) > 0),
        (r"([\d,]+) pairs? waits? for people\.", lambda a: n(a) == facts.open > 0),
        (r"([\d,]+) pairs? failed\.", lambda a: n(a) == states["failed"] > 0),
        (r"([\d,]+) blind checks? waits? for two people(?: each)?\.", lambda a: n(a) == audits_open > 0),
        (r"([\d,]+) blind checks? waits? for two people(?: each)?, and one can judge here\. Invite people",
         lambda a: n(a) == audits_open > 0 and facts.people == 1),
        (r"The accuracy is unknown: label audits are switched off\. Switch them on for labels to come, or draw label "
         r"audits now\.", lambda: facts.collection.audit == 0 and not facts.drawn),
        (r"The accuracy is unknown: none of ([\d,]+) automatic labels was drawn for a label audit\. Draw label audits",
         lambda a: facts.collection.audit > 0 and not facts.drawn and n(a) == states["labelled"]),
        (r"Judges agree little beyond chance: alpha (-?[\d.]+)\. View agreement",
         lambda a: f"{alpha(facts.votes('all pairs')):.2f}" == a and float(a) < 0.2),
        (rf"The accuracy of the automatic labels is not measured yet: ([\d,]+) of ([\d,]+) pairs labelled "
         rf"by {re.escape(policy)} in campaign {facts.campaign.number} (?:is|are) drawn for (?:a )?label audits?\.",
         lambda a, b: (n(a), n(b)) == (facts.drawn, states["labelled"]) and not audits_settled),
        (r"Ready to export: at least [\d.]+% of the automatic labels are correct \(95% confidence\), above the limit "
         r"of 90%\.", lambda: not audits_open and not facts.open and not unjudged and audits_settled),
        (r"(?:at least )?\$([\d.]+) models so far",
         lambda cost: abs(float(cost) - float(tokens["cost"] or 0)) < 0.01),
        (r"([\d.]+) h people so far", lambda hours: float(hours) == 0.0 or facts.judged),
        (r"– people, to finish \(unknown until the first judgment\)", lambda: not facts.judged and owed),
        (r"[\d.]+ h people, to finish", lambda: facts.judged or not owed),
        (r"– per correct label \(not measured\)", lambda: not audits_settled),
        (r"([\d,]+) calls? has no known price and is not included\.|([\d,]+) calls have no known price and are not "
         r"included\.", lambda a, b: n(a or b) > 0),
        (
            r"([\d,]+) labelled by judges, ([\d,]+) escalated to people \(([\d,]+) resolved, ([\d,]+) open\), "
            r"([\d,]+) failed, ([\d,]+) not judged yet\.",
            lambda *found: tuple(map(n, found))
            == (states["labelled"], escalated, settled, facts.open, states["failed"], unjudged),
        ),
        (r"([\d,]+) labelled by judges", lambda a: n(a) == states["labelled"]),
        (r"([\d,]+) escalated to people", lambda a: n(a) == escalated),
        (r"([\d,]+) failed", lambda a: n(a) == states["failed"]),
        (r"([\d,]+) (?:open|settled|waiting for judges)", lambda a: n(a) > 0),
        (
            r"(\d+) judges, (all pairs|escalated pairs|audited pairs): (-?[\d.]+) \((-?[\d.]+) to (-?[\d.]+)\), "
            r"n = ([\d,]+)[.]",
            lambda *found: agreement_holds(facts, *found),
        ),
        (r"Judges \$([\d.]+) \$0\.00 ([\d,]+) calls?\. ([\d,]+) answers reused, ([\d,]+) calls "
         r"failed; ([\d,]+) tokens in, ([\d,]+) out\.",
         lambda cost, calls, reused, failed, t_in, t_out: (
             abs(float(cost) - float(tokens["cost"] or 0)) < 0.01
             and n(calls) == sent.count()
             and n(reused) == facts.attempts(cached=True).count()
             and n(failed) == sent.filter(outcome="failed").count()
             and (n(t_in), n(t_out)) == (tokens["i"] or 0, tokens["o"] or 0)
             and not unjudged)),
        (r"People ([\d.]+) h (?:[\d.]+ h|unknown) up to ([\d,]+) judgments? remaining "
         r"\(all campaigns\)(?:\. Median time: \d+ s\.)?",
         lambda hours, left: n(left) >= (owed or 0)
         and (float(hours) == 0.0 or facts.judged)),
        (r"Median per pair: [\d.,]+ m?s of model time, [\d.,]+ m?s elapsed\.", lambda: sent.exists()),
        (r"Agreement needs two judges or two people on the same pairs\.", lambda: not facts.votes("all pairs")),
        (r"None so far\.", lambda: not facts.reasons()),
        (r"(audit|disagreement|conflict|split|error|refused|unparsed) [a-z' ]+ ([\d,]+)(?: \d+)?",
         lambda reason, a: facts.reasons()[reason] == n(a)),
        (r"in round (\d+) ([\d,]+)(?: \d+)?", lambda round, a: rounds[int(round)] == n(a)),
        (r"([\d,]+) labelled relevant \(1\)", lambda a: n(a) == labels[1]),
        (r"([\d,]+) labelled not relevant \(0\)", lambda a: n(a) == labels[0]),
        (r"(.+ · (?:not )?relevant) ([\d,]+) ([\d,]+) of ([\d,]+) audits completed: .+? – not measured undecided",
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
