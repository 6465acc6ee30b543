"""Writing the text of a judges file: the configured judges and panel, and an additional judge."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from judges.models import JudgeVersion, Panel
from judges.panels.offline_panel import OFFLINE
from judges.presets import PRESETS
from judges.records import JudgeSettings

PANEL_KEYS = ("name", "debate", "ensemble", "adjudicator", "majority", "early_stop")


def write_judges_text(panel: Panel | None) -> str:
    """Return a judges file that would only change the default: every configured judge, and this panel.

    The offline judges are built in, so the file includes only those that the panel names. "" if nothing is configured.
    """
    member_names = {*panel.debate, *panel.ensemble, panel.adjudicator} if panel else set()
    rows = JudgeVersion.objects.filter(is_current=True).order_by("pk")
    tables = [
        f"[[judge]]\n{render_keys(judge_keys(row))}"
        for row in rows
        if row.provider != OFFLINE or row.name in member_names
    ]
    if panel:
        values = {key: getattr(panel, key) for key in PANEL_KEYS}
        # Empty keys are refused: a majority without votes, debaters without a debate.
        panel_keys = {key: value for key, value in values.items() if value and (key != "majority" or panel.ensemble)}
        tables.append(f"[panel]\n{render_keys(panel_keys)}")
    return "\n".join(tables)


def judge_keys(row: JudgeVersion) -> dict[str, Any]:
    """Return the keys of the row's [[judge]] that differ from its preset."""
    values = asdict(JudgeSettings(**{name: getattr(row, name) for name in JudgeSettings.__dataclass_fields__}))
    parameters: dict[str, Any] = values.pop("parameters")
    if values["api_key_env"] == PRESETS[row.provider].key_env:
        del values["api_key_env"]
    return {key: value for key, value in values.items() if value not in (None, "")} | parameters


def render_keys(keys: Mapping[str, object]) -> str:
    """Return the keys as lines of TOML."""
    return "".join(f"{key} = {_render_value(value)}\n" for key, value in keys.items())


def _render_value(value: object) -> str:
    if isinstance(value, dict):
        pairs = (f"{_render_value(str(key))} = {_render_value(inner_value)}" for key, inner_value in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return "[" + ", ".join(map(_render_value, value)) + "]"
    # Strings, numbers and booleans are written as in JSON; TOML escapes one more character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
