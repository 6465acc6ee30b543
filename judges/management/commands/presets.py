"""`presets [NAME]`: the providers that a judges file may name, with the facts about each."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand
from corpus.errors import BadInput
from judges.presets import PRESETS, Preset

HEADINGS = ("provider", "schema mode", "also", "logprobs", "batch", "cache", "thinking", "key", "address")
PAGE_HEADINGS = (
    *("`provider`", "service", "key in", "schema modes", "log-probabilities"),
    *("reasoning", "batches", "prompt cache"),
)
PAGE_CACHES = {"": "documentation silent", "marked": "marked in requests"}
INTRODUCTION = """\
# What each provider can do

Written by `manage.py presets --markdown`; do not edit. [The judges file](judge.md#the-judges-file) has a block for
each. The first schema mode is used unless the judges file names another. "Batches" are those that `judge --batch`
can use. "Reasoning" names the judge keys that ask for it. "Documentation silent" means that nothing was found, not
that the provider lacks it. A date is the day on which the source was read, or the page's own.
"""


class Command(QuorumCommand):
    """The command that prints the table of providers, or one provider with its block and the sources of its facts."""

    help = "List the providers that a judges file may name, or print one with the block to paste and its sources."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "name", nargs="?", help="name of a provider: print its block for a judges file and its facts"
        )
        parser.add_argument("--markdown", action="store_true", help="print all providers as Markdown, with sources")

    def run(self, **options: Any) -> object:
        if options["name"] is None:
            presets = PRESETS.values()
            rows = [HEADINGS, *map(table_row, presets)]
            for line in markdown(presets).splitlines() if options["markdown"] else align_columns(rows):
                self.say(line)
            return {"presets": list(map(preset_document, presets))}
        if options["name"] not in PRESETS:
            raise BadInput(f"No provider {options['name']}; there are: {', '.join(PRESETS)}")
        preset = PRESETS[options["name"]]
        lines = [preset.title, "", *judge_block(preset), ""]
        lines += [f"{heading:12} {cell}" for heading, cell in zip(HEADINGS, table_row(preset), strict=True)][1:]
        if preset.names:
            lines.append(f"{'parameters':12} {', '.join(f'{key} ({path})' for key, path in preset.names.items())}")
        if preset.facts:
            lines += ["", "Sources:", *(f"- {fact.what} ({fact.source}, read {fact.date})" for fact in preset.facts)]
        for line in lines:
            self.say(line)
        return preset_document(preset)


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows as lines with aligned cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def table_row(preset: Preset) -> tuple[str, ...]:
    if not preset.asks:
        needs = "the file says it (base_url)" if "base_url" in preset.needs else "none"
        return (preset.name, "-", "-", "-", "-", "-", "-", preset.key_env or "-", needs)
    others = [mode for mode in preset.schema_modes if mode != preset.schema_mode]
    return (
        preset.name,
        preset.schema_mode,
        ", ".join(others) or "-",
        f"up to {preset.logprobs}" if preset.logprobs else "none",
        "yes" if preset.batch else "no",
        preset.cache or "not documented",
        ", ".join(thinking_keys(preset)) or "-",
        preset.key_env or "none",
        preset.base_url or "the file says it (base_url)",
    )


def thinking_keys(preset: Preset) -> list[str]:
    """Return the judge keys that request thinking."""
    keys = {"thinking": bool(preset.thinking), "reasoning_effort": "reasoning_effort" in preset.names}
    return [key for key, is_supported in keys.items() if is_supported]


def judge_block(preset: Preset) -> list[str]:
    """Return the [[judge]] block for a judges file, with capitals for the values that only its owner knows."""
    examples = {**EXAMPLES, **OWN_EXAMPLES.get(preset.name, {})}
    lines = ["[[judge]]", 'name = "judge-1"', f'provider = "{preset.name}"']
    lines.append(f'model = "{"answers" if preset.wire == "offline" else "MODEL"}"')
    lines += [f'{key} = "{examples[key]}"' for key in preset.needs]
    if preset.client in CREDENTIALS:
        lines.append(f"# credentials: {CREDENTIALS[preset.client]}")
    elif preset.key_env:
        lines.append(f"# the key is read from the environment variable {preset.key_env}; api_key_env names another one")
    elif preset.wire != "offline":
        lines.append('# api_key_env = "SOME_API_KEY": the environment variable of its key, where it has one')
    if "token_command" in preset.takes:
        lines.append("# or token_command, a list of words: a command that prints a token")
    return lines


EXAMPLES = {
    "base_url": "http://127.0.0.1:8001/v1",
    "api_version": "2024-10-21",
    "region": "REGION",
    "project": "PROJECT",
}
OWN_EXAMPLES = {
    "azure": {"base_url": "https://RESOURCE.openai.azure.com"},
    "llama-cpp": {"base_url": "http://127.0.0.1:8080/v1"},
    "tgi": {"base_url": "http://127.0.0.1:8080/v1"},
}
# Credentials of clients that find them by themselves.
CREDENTIALS = {
    "bedrock": "those that AWS's own tools find, or a Bedrock API key in AWS_BEARER_TOKEN_BEDROCK",
    "vertex": "Google's application default credentials",
}


def preset_document(preset: Preset) -> dict[str, object]:
    facts = [fact._asdict() for fact in preset.facts]
    return preset.model_dump() | {"facts": facts, "block": "\n".join(judge_block(preset))}


def markdown(presets: Iterable[Preset]) -> str:
    """Return docs/reference.md: what each provider can do, with the source and date of every fact."""
    rows: list[Sequence[str]] = [PAGE_HEADINGS, ("---",) * len(PAGE_HEADINGS)]
    sources = []
    for preset in presets:
        if not preset.asks:
            continue
        modes = [preset.schema_mode, *(mode for mode in preset.schema_modes if mode != preset.schema_mode)]
        rows.append(
            (
                f"`{preset.name}`",
                preset.title,
                f"`{preset.key_env}`" if preset.key_env else "none unless named",
                ", ".join(modes),
                f"up to {preset.logprobs}" if preset.logprobs else "none",
                ", ".join(f"`{key}`" for key in thinking_keys(preset)) or "no key",
                "yes" if preset.batch else "no",
                PAGE_CACHES.get(preset.cache, preset.cache),
            )
        )
        facts = [f"- {fact.what.rstrip('.')} ([source]({fact.source}), {fact.date})" for fact in preset.facts]
        facts = facts or ["No source: each server has its own documentation. check_judges finds out."]
        sources += [f"\n## {preset.title}\n", *facts]
    table = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([INTRODUCTION, *table, "", "# Sources", *sources]) + "\n"
