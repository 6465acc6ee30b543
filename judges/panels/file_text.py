"""The text of a judges file, written: the judges and the panel as they are configured, and one judge more."""

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
    """Return a judges file that would change nothing but the default: every configured judge, and this panel.

    The offline judges are built in and stand in it only where the panel names them. "" while nothing is configured.
    """
    named = {*panel.debate, *panel.ensemble, panel.adjudicator} if panel else set()
    rows = JudgeVersion.objects.filter(is_current=True).order_by("pk")
    tables = [
        f"[[judge]]\n{render_keys(judge_keys(row))}" for row in rows if row.provider != OFFLINE or row.name in named
    ]
    if panel:
        values = {key: getattr(panel, key) for key in PANEL_KEYS}
        # Without votes no majority, without a debate no debaters: such keys are refused.
        kept = {key: value for key, value in values.items() if value and (key != "majority" or panel.ensemble)}
        tables.append(f"[panel]\n{render_keys(kept)}")
    return "\n".join(tables)


def append_judge(text: str, keys: Mapping[str, object], more: str = "") -> str:
    """Return the text with one [[judge]] more at its end; `more`: further lines of its table, as they are typed."""
    table = "\n".join(["[[judge]]", render_keys(keys).rstrip(), more.strip()]).rstrip()
    return "\n\n".join([text.rstrip(), table]).lstrip() + "\n"


def judge_keys(row: JudgeVersion) -> dict[str, Any]:
    """Return the keys of the row's [[judge]]: those that say something its preset does not."""
    values = asdict(JudgeSettings(**{name: getattr(row, name) for name in JudgeSettings.__dataclass_fields__}))
    parameters: dict[str, Any] = values.pop("parameters")
    if values["api_key_env"] == PRESETS[row.provider].key_env:
        del values["api_key_env"]
    return {key: value for key, value in values.items() if value not in (None, "")} | parameters


def render_keys(keys: Mapping[str, object]) -> str:
    """Return a line for each key."""
    return "".join(f"{key} = {_render_value(value)}\n" for key, value in keys.items())


def _render_value(value: object) -> str:
    if isinstance(value, dict):
        inner = (f"{_render_value(str(key))} = {_render_value(one)}" for key, one in value.items())
        return "{ " + ", ".join(inner) + " }"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return "[" + ", ".join(map(_render_value, value)) + "]"
    # Texts, numbers and switches are written as in JSON; TOML escapes one character more.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
