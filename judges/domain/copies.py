"""Voters that are copies: one model, asked more than once in the same way (umbrela, ERank). Pure.

Five samples of one model are five votes, each with its own place on the panel and its own answer in the cache. They
are not five opinions: pages say which voters are copies, and kappa between copies compares a model with itself.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from django.utils.translation import gettext as _

from charts.translation import gettext_noop
from judges.presets import PRESETS


class AskedModel(Protocol):
    """What determines a model's answers: common to Judge, JudgeVersion and an entry of the judges file."""

    @property
    def provider(self) -> str: ...
    @property
    def base_url(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...


# Provider, address, model and parameters: equal for judges that share their answers in the cache.
Kind = tuple[str, str, str, str]

# Why a second sample would be the same as the first, by wire format.
ONE_ANSWER = {
    "offline": gettext_noop("offline judges answer alike each time: name it once"),
    "rerank": gettext_noop("a rerank endpoint gives one score: name it once"),
}


def kind_of(judge: AskedModel) -> Kind:
    """Return what makes two judges copies of each other, whatever their names and API keys."""
    return judge.provider, judge.base_url, judge.model, json.dumps(dict(judge.parameters), sort_keys=True)


def sample_indexes(judges: Sequence[AskedModel]) -> tuple[int, ...]:
    """Return, for each judge, how many of the judges before it are copies of it."""
    kinds = [kind_of(judge) for judge in judges]
    return tuple(kinds[:position].count(kind) for position, kind in enumerate(kinds))


def copy_groups(judges: Sequence[AskedModel]) -> tuple[tuple[int, ...], ...]:
    """Return groups of at least two judges that are copies of each other, as positions in `judges`."""
    positions: dict[Kind, list[int]] = defaultdict(list)
    for position, judge in enumerate(judges):
        positions[kind_of(judge)].append(position)
    return tuple(tuple(group) for group in positions.values() if len(group) > 1)


def number_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, with `#1`, `#2`, ... appended to those that occur more than once."""
    counts = Counter(names)
    return tuple(
        sample_name(name, names[:position].count(name)) if counts[name] > 1 else name
        for position, name in enumerate(names)
    )


def sample_name(name: str, sample: int) -> str:
    """Return the name of one sample of a judge, counted from 0."""
    return f"{name} #{sample + 1}"


def why_alike(judge: AskedModel) -> str:
    """Explain why a second answer would repeat the first, and the remedy; "" if it would not."""
    # Without a temperature in the request, the provider's default applies, which is above 0.
    preset, parameters = PRESETS[judge.provider], judge.parameters
    if preset.wire in ONE_ANSWER:
        return _(ONE_ANSWER[preset.wire])
    if parameters.get("endpoint") == "decisions":
        return _("a Decisions endpoint gives one probability: name it once")
    if "seed" in parameters:
        return _("its seed is fixed: take seed out")
    temperature = parameters.get("temperature", 0 if "temperature" in preset.names else "default")
    return _("its temperature is 0: set a temperature above 0, e.g. temperature = 0.7") if temperature == 0 else ""
