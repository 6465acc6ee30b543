"""Presets: the meaning of `provider = "..."` in a judges file, as data in one TOML file per provider."""

import tomllib
from pathlib import Path
from typing import Any

from judges.presets.record import SCHEMA_MODES, UNBOUND, UNWRAPS, Context, Fact, Preset


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))


_INDEX = _table("index")
# By name, in the order of index.toml.
PRESETS = {
    name: Preset.model_validate({"name": name, **_table(name)}, context=_INDEX["thinkers"]) for name in _INDEX["order"]
}


__all__ = ["PRESETS", "SCHEMA_MODES", "UNBOUND", "UNWRAPS", "Context", "Fact", "Preset"]
