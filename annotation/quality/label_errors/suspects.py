"""The ranked list of suspected label errors: computed by a worker, shown with the current labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import F
from django.db.models.functions import Left
from django.utils.translation import gettext as _

from annotation.models import StoredResult
from annotation.quality.label_errors.signals import gather_signals, read_labels
from annotation.quality.label_errors.suspicion import PRIOR, combine_chances, rank_labels
from corpus.models import Assessor, Collection, CurrentJudgment, Item, Label
from jobs.results import ProgressCallback, ResultKind, ignore_progress

MOST_SUSPECTS = 1_000
PEOPLE = (Assessor.Kind.PERSON, Assessor.Kind.HUMAN_IMPORT)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A label and the signals against it. `dawid_skene`, `model`: the other label's probability."""

    pair: int
    relevant: int  # The label as it was when the signals were measured: 0 or 1.
    score: float  # Log-odds of an error; annotation.quality.label_errors.suspicion.
    against: int
    votes: int
    dawid_skene: float | None
    others: int
    group: int
    model: float | None

    @property
    def reasons(self) -> list[str]:
        """Sentences about the signals against the label; absent signals are left out."""
        sentences = []
        if self.votes:
            values = {"against": self.against, "votes": self.votes}
            sentences.append(_("Judges: %(against)s of %(votes)s votes for the other label") % values)
        if self.dawid_skene is not None:
            sentences.append(_("Dawid-Skene: %(chance)s for the other label") % {"chance": f"{self.dawid_skene:.0%}"})
        if self.group > 1:
            values = {"others": self.others, "group": self.group}
            sentences.append(_("Near-duplicates: %(others)s of %(group)s pairs carry the other label") % values)
        if self.model is not None:
            sentences.append(_("Model: %(chance)s for the other label") % {"chance": f"{self.model:.0%}"})
        return sentences


def find_suspects(collection: Collection, tell: ProgressCallback = ignore_progress) -> dict[str, Any]:
    """Measure all signals and return the list as it is stored."""
    rows = read_labels(collection)
    signals = gather_signals(collection, rows, tell)
    chances = signals.chances()
    scores = combine_chances(chances)
    prior = float(np.log(PRIOR / (1 - PRIOR)))
    # No signal speaks against a label at the prior: a list of such labels would be chance. So would be
    # one of labels about which only a weak model is unsure: it must find the other label more likely.
    is_contradicted = (np.nan_to_num(chances[:, :3]) > PRIOR).any(axis=1) | (np.nan_to_num(chances[:, 3]) > 0.5)
    order = [row for row in rank_labels(scores) if scores[row] > prior + 1e-9 and is_contradicted[row]][:MOST_SUSPECTS]
    names = ("votes", "dawid_skene", "near", "model")
    return {
        "compared": len(rows.pairs),
        "complete": rows.complete,
        "counts": dict(zip(names, (~np.isnan(chances)).sum(axis=0).tolist(), strict=True)),
        "suspects": [
            {
                "pair": int(rows.pairs[row]),
                "relevant": int(rows.relevant[row]),
                "score": round(float(scores[row]), 4),
                **{name: int(getattr(signals, name)[row]) for name in ("against", "votes", "others", "group")},
                **{
                    name: None if np.isnan(value := getattr(signals, name)[row]) else round(float(value), 4)
                    for name in ("dawid_skene", "model")
                },
            }
            for row in order
        ],
    }


LABEL_ERRORS = ResultKind(
    "label-errors",
    "annotation.find_label_errors",
    StoredResult,
    lambda collection, _options, tell: find_suspects(collection, tell),
)


def read_suspects(collection: Collection) -> dict[str, Any]:
    """Return the stored list, with its `job`, without labels that have changed or gone since."""
    result = LABEL_ERRORS.read(collection)
    if result.values is None:
        return {"suspects": (), "at": None, "job": result.job}
    suspects = [Suspect(**suspect) for suspect in result.values["suspects"]]
    labels = Label.objects.filter(pair__in=[suspect.pair for suspect in suspects], aspect=None)
    current = {pair: int(grade >= collection.relevant_from) for pair, grade in labels.values_list("pair", "grade")}
    # A label that has changed is no longer suspect: someone has looked at it.
    unchanged = tuple(suspect for suspect in suspects if current.get(suspect.pair) == suspect.relevant)
    return result.values | {"suspects": unchanged, "at": result.at, "job": result.job}


def describe_suspects(collection: Collection, suspects: Sequence[Suspect], first: int = 1) -> list[dict[str, Any]]:
    """Return suspects with the texts of their pair, the people who gave the label (`who`), and its state (`sent`)."""
    labels = {suspect.pair: suspect.relevant for suspect in suspects}
    texts = Label.objects.filter(pair__in=list(labels), aspect=None).values(
        "pair",
        "grade",
        "origin",
        query_id=F("pair__query__external_id"),
        doc_id=F("pair__document__external_id"),
        query=Left("pair__query__text", 200),
        title=Left("pair__document__title", 120),
        text=Left("pair__document__text", 200),
    )
    rows = {row["pair"]: row for row in texts}
    judgments = CurrentJudgment.objects.filter(pair__in=list(labels), aspect=None, assessor__kind__in=PEOPLE)
    people: dict[int, list[str]] = {pair: [] for pair in labels}
    for pair, name, grade in judgments.order_by("pk").values_list("pair", "assessor__name", "grade"):
        # An assessor may have answered twice; the name is listed once.
        if int(grade >= collection.relevant_from) == labels[pair] and name not in people[pair]:
            people[pair].append(name)
    # Only pairs sent on request count: those that wait for another reason were not sent for this suspicion.
    words = {Item.State.OPEN: "waiting", Item.State.CONFLICT: "waiting", Item.State.SETTLED: "checked"}
    tasks = Item.objects.filter(pair__in=list(labels), reason=Item.Reason.REQUESTED).order_by("pk")
    states = {pair: words.get(Item.State(state), "") for pair, state in tasks.values_list("pair", "state")}
    return [
        {
            "place": position,
            "suspect": suspect,
            "row": rows[suspect.pair],
            "who": people[suspect.pair],
            "sent": states.get(suspect.pair, ""),
        }
        for position, suspect in enumerate(suspects, first)
        if suspect.pair in rows
    ]
