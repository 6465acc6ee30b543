"""Context of the judging page, as frozen records: one statement for a pair with its debate."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Case, Q, QuerySet, When
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from annotation.judging.debates import Debate, DebateText, debate_of, text_of
from annotation.judging.document import document_html
from annotation.judging.forms import DRAFTED
from annotation.models import Assignment, Membership
from annotation.models.quality_control import GoldPair
from annotation.queue.aggregation import UNDO_WITHIN
from annotation.queue.assignment import EVIDENCE, read_rows
from corpus.collections.arm_allocation import ALL_ROUNDS, FINAL_ROUND, REVEAL
from corpus.evidence.measures import DIMENSIONS
from corpus.evidence.targets import last_of_judge, last_text
from corpus.holding import deleted_meanwhile
from corpus.labels import grade_label, name_grade
from corpus.models import Collection, Item
from corpus.search.text import find_terms
from store.sql import read_sql

QUEUE_SHOWN = 1000  # The queue is counted up to here: "1,000+" says enough.

TYPED = tuple(DRAFTED)
SAID_FOR_SECONDS = 8
COUNTED_FOR_SECONDS = 30.0

SAID = {"saved": gettext_lazy("Saved."), "flagged": gettext_lazy("Flagged."), "skipped": gettext_lazy("Skipped.")}
WHY = {
    "disagreement": gettext_lazy("The two sides did not agree."),
    "conflict": gettext_lazy("The debate and the vote disagree."),
    "split": gettext_lazy("The panel is split: no answer has enough votes."),
    "unparsed": gettext_lazy("A model's answer could not be parsed."),
    "refused": gettext_lazy("A model declined to answer."),
    "error": gettext_lazy("A model could not be reached."),
    "long": gettext_lazy("Its document is longer than the models read."),
    "hole": gettext_lazy("A system retrieved it for this query, and it has no judgment yet."),
    "audit": gettext_lazy("Judge from the text alone; no debate is shown."),
    "qualification": gettext_lazy("Part of the practice and qualification test."),
    "evidence": gettext_lazy("It is relevant, but the model's evidence failed its checks."),
}
WHY_ELSE = gettext_lazy("Sent to people for review.")
RATINGS = {
    1: gettext_lazy("useless"),
    2: gettext_lazy("poor"),
    3: gettext_lazy("usable"),
    4: gettext_lazy("good"),
    5: gettext_lazy("no changes needed"),
}


@dataclass(frozen=True)
class TaskView:
    """A pair as an annotator sees it. `seconds` are left of the lease (negative: it ran out)."""

    item: int  # Its public id (Assignment.item_of); its own id for adjudicators.
    token: str
    seconds: int
    why: str
    query: DebateText
    answers: tuple[DebateText, ...]
    need: DebateText
    title: DebateText
    document: DebateText
    source: str
    debate: Debate
    comment: str = ""
    grade: int | None = None
    # Without the debate: an audit, an item that asks for texts, an arm that hides it.
    blind: bool = False
    step: str = ""  # In the reveal arm: first (the debate follows) or final (it is shown now).
    # Contribution and evidence to be edited, where the item asks for them.
    draft: dict[str, Any] | None = None
    # What was typed or marked and not sent, by field of the page.
    typed: Mapping[str, str] = field(default_factory=dict)
    only_alone: bool = False  # It belongs on a page of its own: texts to edit, practice and test.
    ended: str = ""  # Flagged or skipped by this person, in words.
    spans: str = ""  # What its author marked before it was taken back, as the form has it: "12-40,55-60".

    markdown: bool = False

    @property
    def html(self) -> SafeString:
        """The document's text with its quoted sentences marked."""
        return document_html(self.document.text, self.debate.spans, markdown=self.markdown)

    @property
    def terms(self) -> str:
        """Return where the document has the query's terms, as spans of characters for the page: "12-40,55-60"."""
        found = find_terms(self.query.text, self.document.text, language=self.query.lang)
        return ",".join(f"{start}-{end}" for start, end in found)


@dataclass(frozen=True, slots=True)
class Desktop:
    """Figures around the pair: today's work, how many pairs wait for this person, and which decision can be undone."""

    today: int
    spent_ms: int  # On today's judgments, without idle time.
    waiting: int  # Up to QUEUE_SHOWN + 1.
    last_item: int | None
    last_what: str | None  # saved, flagged or skipped.
    last_seconds: int | None

    @property
    def just_now(self) -> bool:
        """Return whether the last decision was made so recently that the page still confirms it."""
        return self.last_seconds is not None and self.last_seconds < SAID_FOR_SECONDS

    @property
    def last_decision_text(self) -> str:
        """The last decision as a sentence."""
        return str(SAID.get(self.last_what or "", ""))

    @property
    def queue_length_text(self) -> str:
        """The length of the queue, as far as it was counted."""
        return f"{QUEUE_SHOWN:,}+" if self.waiting > QUEUE_SHOWN else f"{self.waiting:,}"

    @property
    def minutes(self) -> int:
        """Minutes of judging today, without idle time."""
        return round(self.spent_ms / 60_000)

    @property
    def pace(self) -> int:
        """Seconds for a pair, on today's average; 0 where nothing was measured."""
        return round(self.spent_ms / 1000 / self.today) if self.today else 0


_TASKS = read_sql(__file__, "read_tasks")
_MINE = read_sql(__file__, "read_own_task")
_ITEM = read_sql(__file__, "read_conflict")
_WAITING_FOR = read_sql(__file__, "count_waiting")
_NO_ITEM = 0  # No item has this id: of the member the figures alone are read.


def read_open_task(membership: Membership) -> tuple[TaskView | None, Desktop]:
    """Return the member's open task, if any, and the queue's figures; never claims."""
    row = _read_one(_TASKS, membership=membership.pk, item=None, grouped=False, most=1)
    if row["item"] is not None:
        return _build_task_view(row, membership.collection), _build_desktop(row, membership)
    _counted.pop(membership.pk, None)  # whoever is told that nothing is left is told the truth
    return None, _build_desktop(row, membership)


def read_open_tasks(membership: Membership, *, item: int | None = None) -> list[TaskView]:
    """Return the member's open tasks of a query, in their own order, or the one of this item."""
    found = read_rows(_TASKS, membership=membership.pk, item=item, grouped=True, most=None)
    return [_build_task_view(row, membership.collection) for row in found if row["item"] is not None]


def read_desktop(membership: Membership) -> Desktop:
    """Read what stands around a lease group."""
    row = _read_one(_TASKS, membership=membership.pk, item=_NO_ITEM, grouped=False, most=1)
    return _build_desktop(row, membership)


def _build_desktop(row: dict[str, Any], membership: Membership) -> Desktop:
    around = row["today"], row["spent_ms"], _count_left(membership, row["decided"], holds=row["item"] is not None)
    if row.get("first_seconds") is not None:
        # The last decision is the first vote on the open pair itself.
        return Desktop(*around, row["public_id"], "saved", row["first_seconds"])
    return Desktop(*around, row["last_item"], row["last_what"], row["last_seconds"])


# By membership: how long the count holds, how many were left, how many judged that day.
_counted: dict[int, tuple[float, int, int]] = {}
MOST_COUNTED = 10_000


def _count_left(membership: Membership, today: int, *, holds: bool) -> int:
    """Count the pairs left for this member, with the one they hold: every half minute, less what was judged since."""
    until, left, judged = _counted.get(membership.pk, (0.0, 0, 0))
    if time.monotonic() > until or today < judged:
        rows = read_rows(
            _WAITING_FOR, membership=membership.pk, collection=membership.collection_id, most=QUEUE_SHOWN + 1
        )
        left, judged = rows[0]["waiting"] + holds, today
        # Emptied now and then: a process serves thousands of people in its life, and a new count is one statement.
        if len(_counted) >= MOST_COUNTED:
            _counted.clear()
        _counted[membership.pk] = (time.monotonic() + COUNTED_FOR_SECONDS, left, judged)
    return left if left > QUEUE_SHOWN else max(int(holds), left - (today - judged))


def own_work(membership: Membership, item: int) -> TaskView | None:
    """Return a task that this member was assigned, with their grade if they gave one."""
    found = read_rows(_MINE, membership=membership.pk, item=item)
    return _build_task_view(found[0], membership.collection) if found else None


def conflict_work(collection: Collection, item: int) -> TaskView:
    """Return a conflict for an adjudicator, under its own id, with all rounds of its debate."""
    return _build_task_view(_read_one(_ITEM, item=item), collection, ALL_ROUNDS)


def gold_work(collection: Collection, row: GoldPair) -> TaskView:
    """Return a gold pair; it has no lease: neither a token nor a time that runs out."""
    pair = row.pair
    return TaskView(
        item=row.pk,
        token="",
        seconds=0,
        why="",
        query=text_of(pair.query.text),
        answers=tuple(text_of(answer) for answer in pair.query.answers),
        need=text_of(pair.query.instruction or collection.instruction),
        title=text_of(pair.document.title),
        document=text_of(pair.document.text),
        source=pair.document.external_id,
        debate=debate_of(row.turns),
    )


def _read_one(statement: str, **values: int | None) -> dict[str, Any]:
    """Return a statement's only row. Raises Deleted where a member or an item went meanwhile."""
    for row in read_rows(statement, **values):
        return row
    raise deleted_meanwhile()


def draft_of(item: int) -> dict[str, Any]:
    """Return the texts to edit on an item that asks for evidence, with what the judge's measures say of them."""
    pair = Item.objects.values_list("pair", flat=True).get(pk=item)
    newest, judge = last_text(pair), last_of_judge(pair)
    measures: dict[str, Any] = judge.measures if judge else {}
    judged = measures.get("judged") or {}
    scores = judged.get("scores") or {}
    return {
        "contribution": newest.contribution if newest else "",
        "evidence": newest.evidence if newest else "",
        "writer": judge.writer if judge else "",
        "problems": tuple(measures.get("problems", ())),
        "scores": {name.replace("_", " "): scores[name] for name in DIMENSIONS if name in scores},
        "scored_by": judged.get("judge", ""),
        "meaning": judged.get("as", ""),
    }


def grade_choices(collection: Collection) -> list[dict[str, Any]]:
    """List the buttons of a scale. Binary ones show relevant first, as keys 1 and 0 do."""
    highest = collection.grades
    found = [
        {
            "value": value,
            "words": grade_label(value, highest),
            "key": str(value) if value < 10 else "",
            "relevant": value >= collection.relevant_from,
        }
        for value in range(highest + 1)
    ]
    return found[::-1] if highest == 1 else found


def _build_task_view(row: dict[str, Any], collection: Collection, rounds: str = "") -> TaskView:
    turns = row["debate"] or []
    last = max((turn["round"] for turn in turns), default=0)
    ends = (rounds or collection.rounds) == FINAL_ROUND
    shown = [turn for turn in turns if turn["round"] == last] if ends else turns
    debate = debate_of(shown, len(row["document"]))
    held = {(turn["round"], turn.get("couple", 0)) for turn in turns}
    step = ""
    if row["arm"] == REVEAL and row["reason"] != "audit" and "first" in row:
        step = "first" if row["first"] is None else "final"
    return TaskView(
        item=row["public_id"],
        token=row["token"],
        seconds=row["seconds"],
        why=_explain_reason(row, step, len(held), collection.grades),
        query=text_of(row["query"]),
        answers=tuple(text_of(answer) for answer in row["answers"]),
        need=text_of(row["instruction"] or collection.instruction),
        title=text_of(row["title"]),
        document=text_of(row["document"]),
        source=row["source"],
        debate=debate,
        comment=row.get("comment") or "",
        grade=row.get("grade"),
        blind=not row["reads"],
        step=step,
        draft=draft_of(row["item"]) if row["reason"] == EVIDENCE else None,
        typed={**dict.fromkeys(TYPED, ""), **(row.get("draft") or {})},
        ended=str(SAID.get(row.get("ended") or "", "")),
        only_alone=row["reason"] in (EVIDENCE, "qualification"),
        spans=",".join(f"{start}-{end}" for start, end in row.get("spans") or []),
        markdown=collection.markdown,
    )


def _explain_reason(row: dict[str, Any], step: str, rounds: int, highest: int) -> str:
    """Explain why a pair came, in words that tell nothing of a debate that is not shown."""
    if step == "first":
        return _("Judge from the text first. You then read the debate and judge again.")
    if step == "final":
        given = name_grade(row["first"], highest)
        return _("Your first judgment: %(given)s. Now read the debate, then confirm or change it.") % {"given": given}
    if not row["reads"] and row["reason"] != EVIDENCE:
        return str(WHY["audit"])
    if rounds and row["reason"] == "disagreement":
        words = ngettext("No agreement after %(rounds)d round.", "No agreement after %(rounds)d rounds.", rounds)
        return words % {"rounds": rounds}
    return str(WHY.get(row["reason"], WHY_ELSE))


# A member's own decisions, as nobody else sees them

HISTORY = 50  # Decisions on a page of them.
DECIDED = [Assignment.State.DONE, Assignment.State.SKIPPED]


def list_decisions(membership: Membership, *, before: str = "") -> tuple[list[Assignment], bool]:
    """Return fifty decisions, newest first, after the cursor `before`; and if there are more."""
    rows = decided_assignments(membership)
    # The time and the item of the last decision on the page before; anything else is ignored.
    moment, _blank, item = before.partition("_")
    try:
        ended = parse_datetime(moment)
    except ValueError:
        # Django raises for a date that is written as one and does not exist, such as 31 February.
        ended = None
    if ended and timezone.is_aware(ended) and item.isascii() and item.isdigit() and len(item) <= 18:
        last = Assignment.item_of(membership, int(item))
        rows = rows.filter(Q(ended_at__lt=ended) | Q(ended_at=ended, item_id__lt=last))
    found = list(rows[: HISTORY + 1])
    return found[:HISTORY], len(found) > HISTORY


def neighbour_items(here: Assignment) -> tuple[int | None, int | None]:
    """Items of the next newer and the next older decision."""
    rows = Assignment.objects.filter(membership=here.membership_id, state__in=DECIDED)
    newer = rows.filter(Q(ended_at__gt=here.ended_at) | Q(ended_at=here.ended_at, item_id__gt=here.item_id))
    older = rows.filter(Q(ended_at__lt=here.ended_at) | Q(ended_at=here.ended_at, item_id__lt=here.item_id))
    return (
        newer.order_by("ended_at", "item_id").values_list("public_id", flat=True).first(),
        older.order_by("-ended_at", "-item_id").values_list("public_id", flat=True).first(),
    )


def decided_assignments(membership: Membership) -> QuerySet[Assignment]:
    """Return the assignments that a member decided, newest first.

    Each has its `grade` (None for a flag, a skip and edited texts), what they wrote to it (`said`),
    and whether it is so `recent` that it may still be taken back.
    """
    judged = Assignment.judgments()
    return (
        Assignment.objects.filter(membership=membership, state__in=DECIDED)
        .annotate(
            grade=Case(When(judged, then="judgment__grade")),
            said=Case(When(judged, then="judgment__comment"), default="flag_note"),
            recent=Q(ended_at__gt=timezone.now() - UNDO_WITHIN),
        )
        .select_related("item__pair__query", "item__pair__document")
        .order_by("-ended_at", "-item_id")
    )
