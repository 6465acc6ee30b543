"""The ranked list of suspected label errors: found by a worker, shown with today's labels."""

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
from jobs.results import ResultKind, Tell, ignore_progress

KEPT = 1_000
PEOPLE = (Assessor.Kind.PERSON, Assessor.Kind.HUMAN_IMPORT)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A label and what speaks against it. `dawid_skene`, `model`: the other label's probability."""

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
        """Describe each signal against the label in words and numbers; silent ones are left out."""
        told = []
        if self.votes:
            values = {"against": self.against, "votes": self.votes}
            told.append(_("Judges: %(against)s of %(votes)s votes for the other label") % values)
        if self.dawid_skene is not None:
            told.append(_("Dawid-Skene: %(chance)s for the other label") % {"chance": f"{self.dawid_skene:.0%}"})
        if self.group > 1:
            values = {"others": self.others, "group": self.group}
            told.append(_("Near-duplicates: %(others)s of %(group)s pairs carry the other label") % values)
        if self.model is not None:
            told.append(_("Model: %(chance)s for the other label") % {"chance": f"{self.model:.0%}"})
        return told


def find_suspects(collection: Collection, tell: Tell = ignore_progress) -> dict[str, Any]:
    """Measure all signals now; return the list as stored. Nothing else is written."""
    rows = read_labels(collection)
    signals = gather_signals(collection, rows, tell)
    chances = signals.chances()
    scores = combine_chances(chances)
    prior = float(np.log(PRIOR / (1 - PRIOR)))
    # Labels at the prior are those of which no signal says anything: a list of them would be
    # chance. So it would be of labels that a weak model alone is unsure about: it speaks against
    # one where it holds the other likelier.
    against = (np.nan_to_num(chances[:, :3]) > PRIOR).any(axis=1) | (np.nan_to_num(chances[:, 3]) > 0.5)
    order = [at for at in rank_labels(scores) if scores[at] > prior + 1e-9 and against[at]][:KEPT]
    names = ("votes", "dawid_skene", "near", "model")
    return {
        "compared": len(rows.pairs),
        "complete": rows.complete,
        "counts": dict(zip(names, (~np.isnan(chances)).sum(axis=0).tolist(), strict=True)),
        "suspects": [
            {
                "pair": int(rows.pairs[at]),
                "relevant": int(rows.relevant[at]),
                "score": round(float(scores[at]), 4),
                **{name: int(getattr(signals, name)[at]) for name in ("against", "votes", "others", "group")},
                **{name: _rounded(getattr(signals, name)[at]) for name in ("dawid_skene", "model")},
            }
            for at in order
        ],
    }


def _rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 4)


LABEL_ERRORS = ResultKind(
    "label-errors",
    "annotation.find_label_errors",
    StoredResult,
    lambda collection, _options, tell: find_suspects(collection, tell),
)


def read_suspects(collection: Collection) -> dict[str, Any]:
    """Return the stored list, with its `job`, without labels changed since or gone."""
    result = LABEL_ERRORS.read(collection)
    if result.values is None:
        return {"suspects": (), "at": None, "job": result.job}
    suspects = [Suspect(**one) for one in result.values["suspects"]]
    labels = Label.objects.filter(pair__in=[one.pair for one in suspects], aspect=None).values_list("pair", "grade")
    now = {pair: int(grade >= collection.relevant_from) for pair, grade in labels}
    # A label that was changed since is no suspect any more: somebody has looked at it.
    same = tuple(one for one in suspects if now.get(one.pair) == one.relevant)
    return result.values | {"suspects": same, "at": result.at, "job": result.job}


def describe_suspects(collection: Collection, suspects: Sequence[Suspect], first: int = 1) -> list[dict[str, Any]]:
    """Return suspects with texts; `who` gave the label, and whether it was `sent`."""
    labels = {one.pair: one.relevant for one in suspects}
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
    who: dict[int, list[str]] = {pair: [] for pair in labels}
    for pair, name, grade in judgments.order_by("pk").values_list("pair", "assessor__name", "grade"):
        # An assessor may have answered twice; the name stands once.
        if int(grade >= collection.relevant_from) == labels[pair] and name not in who[pair]:
            who[pair].append(name)
    # Only sent on request counts: pairs that wait for another reason are not about this suspicion.
    words = {Item.State.OPEN: "waiting", Item.State.CONFLICT: "waiting", Item.State.SETTLED: "checked"}
    items = Item.objects.filter(pair__in=list(labels), reason=Item.Reason.REQUESTED).order_by("pk")
    sent = {pair: words.get(Item.State(state), "") for pair, state in items.values_list("pair", "state")}
    return [
        {"place": place, "suspect": one, "row": rows[one.pair], "who": who[one.pair], "sent": sent.get(one.pair, "")}
        for place, one in enumerate(suspects, first)
        if one.pair in rows
    ]
