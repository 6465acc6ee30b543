"""docs/presets.md: what each provider can do, with the source and date of every fact, written from the presets."""

from collections.abc import Iterable

from judges.presets.record import Preset

HEADINGS = (
    "`provider`",
    "service",
    "key in",
    "schema modes",
    "log-probabilities",
    "reasoning",
    "batches",
    "prompt cache",
)
CACHES = {"": "documentation silent", "marked": "marked in requests"}
INTRODUCTION = """\
# What each provider can do

Written by `manage.py presets --markdown`; do not edit. [judges-file.md](judges-file.md) has a block for each. The first
schema mode is used unless the judges file names another. "Batches" are those that `judge --batch` can use. "Reasoning"
names the judge keys that ask for it. "Documentation silent" means that nothing was found, not that the provider lacks
it. A date is the day on which the source was read, or the page's own.
"""


def markdown(presets: Iterable[Preset]) -> str:
    """The whole document."""
    asked = [one for one in presets if one.asks]
    rows = [HEADINGS, ("---",) * len(HEADINGS), *map(cells, asked)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([INTRODUCTION, table, "", "# Sources", *map(sources, asked)]) + "\n"


def cells(one: Preset) -> tuple[str, ...]:
    """One row of the table."""
    modes = [one.schema_mode, *(mode for mode in one.schema_modes if mode != one.schema_mode)]
    reasoning = [*(["thinking"] if one.thinking else []), *(key for key in one.names if key == "reasoning_effort")]
    return (
        f"`{one.name}`",
        one.title,
        f"`{one.key_env}`" if one.key_env else "none unless named",
        ", ".join(modes),
        f"up to {one.logprobs}" if one.logprobs else "none",
        ", ".join(f"`{key}`" for key in reasoning) or "no key",
        "yes" if one.batch else "no",
        CACHES.get(one.cache, one.cache),
    )


def sources(one: Preset) -> str:
    """Every fact about a provider, with its page and the day on which that was read."""
    facts = [f"- {fact.what.rstrip('.')} ([source]({fact.source}), {fact.date})" for fact in one.facts]
    return "\n".join(
        [
            f"\n## {one.title}\n",
            *(facts or ["No source: each server has its own documentation. check_judges finds out."]),
        ]
    )
