"""Presets: what `provider = "..."` in a judges file stands for. Data, a TOML file for each provider beside this one."""

import tomllib
from pathlib import Path
from typing import Any

from judges.presets.record import SCHEMA_MODES, UNBOUND, UNWRAPS, Context, Fact, Preset


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))


def _read() -> dict[str, Preset]:
    index = _table("index")
    return {
        name: Preset.model_validate({"name": name, **_table(name)}, context=index["thinkers"])
        for name in index["order"]
    }


PRESETS = _read()  # By name, in the order in which they are listed.


__all__ = ["PRESETS", "SCHEMA_MODES", "UNBOUND", "UNWRAPS", "Context", "Fact", "Preset"]
