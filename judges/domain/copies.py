"""Voters that are copies: one model, asked more than once in the same way (umbrela, ERank). Pure.

Five samples of one model are five votes, each with its own place on the panel and its own answer in
the cache. They are no five opinions: pages say which voters are copies, and kappa between copies is
that of one model with itself.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from django.utils.translation import gettext as _

from charts.translation import gettext_noop
from judges.presets import PRESETS


class AskedModel(Protocol):
    """All that decides how a model answers, in Judge, JudgeVersion or judges file."""

    @property
    def provider(self) -> str: ...
    @property
    def base_url(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...


# Provider, address, model and parameters: equal for judges whose equal questions have one key in the cache.
Kind = tuple[str, str, str, str]

# By wire: who has nothing to draw from.
ONE_ANSWER = {
    "offline": gettext_noop("offline judges answer alike each time: name it once"),
    "rerank": gettext_noop("a rerank endpoint gives one score: name it once"),
}


def kind_of(judge: AskedModel) -> Kind:
    """Return what two judges have in common when they are copies, whatever their names and keys."""
    return judge.provider, judge.base_url, judge.model, json.dumps(dict(judge.parameters), sort_keys=True)


def sample_indexes(judges: Sequence[AskedModel]) -> tuple[int, ...]:
    """Return for each judge the number of equal judges before it."""
    kinds = [kind_of(judge) for judge in judges]
    return tuple(kinds[:place].count(kind) for place, kind in enumerate(kinds))


def copy_groups(judges: Sequence[AskedModel]) -> tuple[tuple[int, ...], ...]:
    """Return the places of judges that are copies of each other, two and more together."""
    found: dict[Kind, list[int]] = defaultdict(list)
    for place, judge in enumerate(judges):
        found[kind_of(judge)].append(place)
    return tuple(tuple(places) for places in found.values() if len(places) > 1)


def number_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, with `#1`, `#2`, ... behind one that stands there more than once."""
    times = Counter(names)
    return tuple(
        sample_name(name, names[:place].count(name)) if times[name] > 1 else name for place, name in enumerate(names)
    )


def sample_name(name: str, sample: int) -> str:
    """Return the name of one sample of a judge, counted from 0."""
    return f"{name} #{sample + 1}"


def why_alike(judge: AskedModel) -> str:
    """Explain why a second answer would repeat the first, with remedy; "" if not."""
    # A judge to whom no temperature is sent answers at the provider's own, which is above 0.
    preset, parameters = PRESETS[judge.provider], judge.parameters
    if preset.wire in ONE_ANSWER:
        return _(ONE_ANSWER[preset.wire])
    if parameters.get("endpoint") == "decisions":
        return _("a Decisions endpoint gives one probability: name it once")
    if "seed" in parameters:
        return _("its seed is fixed: take seed out")
    sent = parameters.get("temperature", 0 if "temperature" in preset.names else "default")
    return _("its temperature is 0: set a temperature above 0, e.g. temperature = 0.7") if sent == 0 else ""
