"""Contents of the judging page: the pair with its debate, the figures around it, the member's own decisions."""

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

from annotation.models import Assignment, Membership
from annotation.models.quality_control import GoldPair
from annotation.work.judging.debates import Debate, DebateText, debate_of, text_of
from annotation.work.judging.document import document_html, formatted_answers
from annotation.work.judging.forms import DRAFTED
from annotation.work.queue.aggregation import UNDO_WITHIN
from annotation.work.queue.annotators import WorkLimits, count_judged, start_of_site_day
from annotation.work.queue.assignment import EVIDENCE, read_rows
from corpus.collections.arm_allocation import ALL_ROUNDS, FINAL_ROUND, REVEAL
from corpus.evidence.measures import DIMENSIONS
from corpus.evidence.targets import SET_ASIDE
from corpus.holding import deleted_meanwhile
from corpus.labels import grade_label, name_grade
from corpus.models import Collection, Item, Target
from corpus.search.text import find_terms
from store.sql import read_sql

QUEUE_SHOWN = 1000  # The queue is counted up to here and shown as "1,000+" beyond.

TYPED = tuple(DRAFTED)
CONFIRMED_FOR_SECONDS = 8  # The page confirms the last decision for so long.
COUNTED_FOR_SECONDS = 30.0

CONFIRMATIONS = {
    "saved": gettext_lazy("Saved."),
    "flagged": gettext_lazy("Flagged."),
    "skipped": gettext_lazy("Skipped."),
}
WHY = {
    "disagreement": gettext_lazy("The two sides did not agree."),
    "conflict": gettext_lazy("The debate and the vote disagree."),
    "split": gettext_lazy("The panel is split: no answer has enough votes."),
    "unparsed": gettext_lazy("A model's answer was cut off or could not be parsed."),
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
    """A pair as an annotator sees it. `seconds`: the rest of the lease (negative: it ran out)."""

    item: int  # The item's public id (Assignment.item_of); for adjudicators its id.
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
    # The debate is not shown: in an audit, where the item asks for texts, or in an arm that hides it.
    blind: bool = False
    step: str = ""  # In the reveal arm: first (before the debate) or final (the debate is shown).
    # Contribution and evidence to edit, where the item asks for them.
    draft: dict[str, Any] | None = None
    # The draft: what was typed or marked and not sent, by field of the page.
    typed: Mapping[str, str] = field(default_factory=dict)
    in_test: bool = False  # It belongs to practice or the qualification test.
    ended: str = ""  # The confirmation that this person flagged or skipped it.
    spans: str = ""  # The evidence marked in an undone judgment, as the form sends it: "12-40,55-60".

    form: str = "text"
    document_source: str = ""  # The HTML of which the document is the text.
    answer_sources: tuple[str, ...] = ()  # The same of the answers; "" for an answer without markup.

    @property
    def shown_answers(self) -> list[tuple[DebateText, SafeString | str]]:
        """Return the answers with their HTML, "" for those that are shown as they are written."""
        return formatted_answers(self.answers, self.answer_sources, self.form)

    @property
    def is_formatted(self) -> bool:
        """Return whether the document's white space only separates its elements."""
        return self.form == "markdown" or bool(self.document_source)

    @property
    def needs_whole_page(self) -> bool:
        """Return whether it needs a page of its own: texts to edit, practice and the qualification test."""
        return self.in_test or self.draft is not None

    @property
    def html(self) -> SafeString:
        """Return the document's text with the quotations of its debate marked."""
        return document_html(self.document.text, self.debate.spans, form=self.form, source=self.document_source)

    @property
    def terms(self) -> str:
        """Return the spans of the query's terms in the document, in characters: "12-40,55-60"."""
        spans = find_terms(self.query.text, self.document.text, language=self.query.lang)
        return ",".join(f"{start}-{end}" for start, end in spans)


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """Figures around the pair: today's work, how many pairs are left for this person, and their last decision."""

    today: int
    spent_ms: int  # Time of today's judgments, without idle time.
    waiting: int  # Up to QUEUE_SHOWN + 1.
    last_item: int | None
    last_what: str | None  # saved, flagged or skipped.
    last_seconds: int | None

    @property
    def just_now(self) -> bool:
        """Return whether the last decision is so recent that the page still confirms it."""
        return self.last_seconds is not None and self.last_seconds < CONFIRMED_FOR_SECONDS

    @property
    def last_decision_text(self) -> str:
        """Return the confirmation of the last decision."""
        return str(CONFIRMATIONS.get(self.last_what or "", ""))

    @property
    def queue_length_text(self) -> str:
        """Return the length of the queue, as far as it was counted."""
        return f"{QUEUE_SHOWN:,}+" if self.waiting > QUEUE_SHOWN else f"{self.waiting:,}"

    @property
    def minutes(self) -> int:
        """Return the minutes of judging today, without idle time."""
        return round(self.spent_ms / 60_000)

    @property
    def pace(self) -> int:
        """Return today's average of seconds for a pair; 0 where nothing was measured."""
        return round(self.spent_ms / 1000 / self.today) if self.today else 0


_TASKS = read_sql(__file__, "read_tasks")
_MINE = read_sql(__file__, "read_own_task")
_ITEM = read_sql(__file__, "read_conflict")
_WAITING_FOR = read_sql(__file__, "count_waiting")
_NO_ITEM = 0  # No item has this id, so only the member's figures are read.


def read_open_task(membership: Membership) -> tuple[TaskView | None, QueueFigures]:
    """Return the member's open task, if any, and the figures around it; never claims."""
    row = _read_one(_TASKS, membership=membership.pk, midnight=start_of_site_day(), item=None, grouped=False, most=1)
    if row["item"] is not None:
        return _build_task_view(row, membership.collection), _build_figures(row, membership)
    # Counted again, because the page says that nothing is left only where that is true now.
    _counted.pop(membership.pk, None)
    return None, _build_figures(row, membership)


def read_open_tasks(membership: Membership, *, item: int | None = None) -> list[TaskView]:
    """Return the member's open tasks of a query, in an order of their own, or only the task of `item`."""
    rows = read_rows(_TASKS, membership=membership.pk, midnight=start_of_site_day(), item=item, grouped=True, most=None)
    return [_build_task_view(row, membership.collection) for row in rows if row["item"] is not None]


def read_figures(membership: Membership) -> QueueFigures:
    """Return the figures around a lease group."""
    row = _read_one(
        _TASKS, membership=membership.pk, midnight=start_of_site_day(), item=_NO_ITEM, grouped=False, most=1
    )
    return _build_figures(row, membership)


# By membership: until when the count is used, how many pairs were left, how many the member had decided that day.
_counted: dict[int, tuple[float, int, int]] = {}
MOST_COUNTED = 10_000


def _build_figures(row: dict[str, Any], membership: Membership) -> QueueFigures:
    # The pairs left for this member, with their open one, are counted every half minute.
    has_open, decided = row["item"] is not None, row["decided"]
    until, count, decided_then = _counted.get(membership.pk, (0.0, 0, 0))
    if time.monotonic() > until or decided < decided_then:
        rows = read_rows(
            _WAITING_FOR, membership=membership.pk, collection=membership.collection_id, most=QUEUE_SHOWN + 1
        )
        count, decided_then = rows[0]["waiting"] + has_open, decided
        limits = WorkLimits.of(membership)
        if limits.has_quota:
            counts = count_judged(membership.pk)
            count = min(count, limits.pairs_left(counts.work_today, counts.work) or 0)
        # Emptied now and then, since a process serves thousands of people; a new count is one statement.
        if len(_counted) >= MOST_COUNTED:
            _counted.clear()
        _counted[membership.pk] = (time.monotonic() + COUNTED_FOR_SECONDS, count, decided_then)
    # Decisions since the count are subtracted.
    queue_length = count if count > QUEUE_SHOWN else max(int(has_open), count - (decided - decided_then))
    figures = row["today"], row["spent_ms"], queue_length
    if row.get("first_seconds") is not None:
        # The last decision is the blind judgment of the open pair.
        return QueueFigures(*figures, row["public_id"], "saved", row["first_seconds"])
    return QueueFigures(*figures, row["last_item"], row["last_what"], row["last_seconds"])


def own_task(membership: Membership, item: int) -> TaskView | None:
    """Return the task of an item that was assigned to this member, with their grade if they gave one; else None."""
    rows = read_rows(_MINE, membership=membership.pk, item=item)
    return _build_task_view(rows[0], membership.collection) if rows else None


def conflict_task(collection: Collection, item: int) -> TaskView:
    """Return a conflict for an adjudicator, under the item's id, with all rounds of its debate."""
    return _build_task_view(_read_one(_ITEM, item=item), collection, ALL_ROUNDS)


def gold_task(collection: Collection, row: GoldPair) -> TaskView:
    """Return a gold pair, which has no lease: no token, and no time that runs out."""
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
        form=collection.document_format,
        document_source=pair.document.html,
        answer_sources=tuple(pair.query.answers_html),
    )


def _read_one(statement: str, **values: Any) -> dict[str, Any]:
    """Return the only row of a statement. Raises Deleted where the member or the item was deleted in the meantime."""
    for row in read_rows(statement, **values):
        return row
    raise deleted_meanwhile()


def draft_of(item: int) -> dict[str, Any]:
    """Return the texts to edit on an item that asks for evidence, with the judge's problems and scores of them."""
    pair = Item.objects.values_list("pair", flat=True).get(pk=item)
    # The newest text, good or not, for a person to edit.
    texts = Target.objects.filter(pair=pair, withdraws=None).exclude(withdrawn_by__measures=SET_ASIDE)
    newest = texts.order_by("-version").first()
    judge = Target.objects.filter(pair=pair, kind=Target.Kind.JUDGE).order_by("-version").first()
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
    """List the buttons of a scale; a binary scale shows relevant first."""
    highest = collection.grades
    choices = [
        {
            "value": value,
            "words": grade_label(value, highest, collection.grade_names),
            # "Name: help" is the form of a collection's own names.
            "help": dict(enumerate(collection.grade_names)).get(value, "").partition(":")[2].strip(),
            "key": str(value) if value < 10 else "",
            "relevant": value >= collection.relevant_from,
        }
        for value in range(highest + 1)
    ]
    return choices[::-1] if highest == 1 else choices


def _build_task_view(row: dict[str, Any], collection: Collection, rounds: str = "") -> TaskView:
    turns = row["debate"] or []
    last = max((turn["round"] for turn in turns), default=0)
    only_final = (rounds or collection.rounds) == FINAL_ROUND
    shown_turns = [turn for turn in turns if turn["round"] == last] if only_final else turns
    debate_rounds = {(turn["round"], turn.get("couple", 0)) for turn in turns}
    step = ""
    if row["arm"] == REVEAL and row["reason"] != "audit" and "first" in row:
        step = "first" if row["first"] is None else "final"
    return TaskView(
        item=row["public_id"],
        token=row["token"],
        seconds=row["seconds"],
        why=_explain_reason(row, step, len(debate_rounds), collection),
        query=text_of(row["query"]),
        answers=tuple(text_of(answer) for answer in row["answers"]),
        need=text_of(row["instruction"] or collection.instruction),
        title=text_of(row["title"]),
        document=text_of(row["document"]),
        source=row["source"],
        debate=debate_of(shown_turns, len(row["document"])),
        comment=row.get("comment") or "",
        grade=row.get("grade"),
        blind=not row["reads"],
        step=step,
        draft=draft_of(row["item"]) if row["reason"] == EVIDENCE else None,
        typed={**dict.fromkeys(TYPED, ""), **(row.get("draft") or {})},
        ended=str(CONFIRMATIONS.get(row.get("ended") or "", "")),
        in_test=row["reason"] == "qualification",
        spans=",".join(f"{start}-{end}" for start, end in row.get("spans") or []),
        form=collection.document_format,
        document_source=row["html"],
        answer_sources=tuple(row["answers_html"]),
    )


def _explain_reason(row: dict[str, Any], step: str, rounds: int, collection: Collection) -> str:
    """Return why a pair was assigned, in words that reveal nothing about a debate that is not shown."""
    if step == "first":
        return _("Judge from the text first. You then read the debate and judge again.")
    if step == "final":
        grade = name_grade(row["first"], collection.grades, collection.grade_names)
        return _("Your first judgment: %(given)s. Now read the debate, then confirm or change it.") % {"given": grade}
    if not row["reads"] and row["reason"] != EVIDENCE:
        return str(WHY["audit"])
    if rounds and row["reason"] == "disagreement":
        message = ngettext("No agreement after %(rounds)d round.", "No agreement after %(rounds)d rounds.", rounds)
        return message % {"rounds": rounds}
    return str(WHY.get(row["reason"], WHY_ELSE))


# A member's own decisions, which nobody else sees

HISTORY = 50  # Decisions on a page of them.
DECIDED = [Assignment.State.DONE, Assignment.State.SKIPPED]


def list_decisions(membership: Membership, *, before: str = "") -> tuple[list[Assignment], bool]:
    """Return fifty decisions, newest first, that are older than the cursor `before`, and whether there are more."""
    rows = decided_assignments(membership)
    # The cursor is the time and the item of the last decision on the previous page; anything else is ignored.
    moment, _blank, item = before.partition("_")
    try:
        ended = parse_datetime(moment)
    except ValueError:
        # Django raises for a date that does not exist, such as 31 February.
        ended = None
    if ended and timezone.is_aware(ended) and item.isascii() and item.isdigit() and len(item) <= 18:
        last = Assignment.item_of(membership, int(item))
        rows = rows.filter(Q(ended_at__lt=ended) | Q(ended_at=ended, item_id__lt=last))
    decisions = list(rows[: HISTORY + 1])
    return decisions[:HISTORY], len(decisions) > HISTORY


def neighbour_items(decision: Assignment) -> tuple[int | None, int | None]:
    """Return the public ids of the next newer and the next older decision."""
    rows = Assignment.objects.filter(membership=decision.membership_id, state__in=DECIDED)
    newer = rows.filter(Q(ended_at__gt=decision.ended_at) | Q(ended_at=decision.ended_at, item_id__gt=decision.item_id))
    older = rows.filter(Q(ended_at__lt=decision.ended_at) | Q(ended_at=decision.ended_at, item_id__lt=decision.item_id))
    return (
        newer.order_by("ended_at", "item_id").values_list("public_id", flat=True).first(),
        older.order_by("-ended_at", "-item_id").values_list("public_id", flat=True).first(),
    )


def decided_assignments(membership: Membership) -> QuerySet[Assignment]:
    """Return the assignments that a member decided, newest first.

    Each has its `grade` (None for a flag, a skip and edited texts), the member's comment or note
    (`said`), and whether it is so `recent` that it can still be undone.
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
