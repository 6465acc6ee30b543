"""Judges that are SmolLM2 behind llama.cpp, and what they judge."""

import json
import tempfile
from pathlib import Path
from typing import Any

from django.core.management import call_command

from tests.models.fixtures import LlamaServer


def configure(server: LlamaServer, judges: dict[str, dict[str, Any]], **panel: Any) -> None:
    """A judges file with these judges, each with its further keys, and a panel of `panel` (else: all vote).

    The model that a judge asks for has the judge's name: llama.cpp has one model, and the log tells judges apart.
    Without a penalty this model says the same sentence until it is cut.
    """
    tables = []
    for name, values in judges.items():
        own = {"name": name, "provider": "llama-cpp", "model": name, "base_url": server.base_url}
        keys = own | {"input_price": 0, "output_price": 0, "extra_body.repeat_penalty": 1.1} | values
        tables.append("\n".join(["[[judge]]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]))
    members = panel or {"ensemble": list(judges)}
    tables.append("\n".join(["[panel]", *(f"{key} = {json.dumps(value)}" for key, value in members.items())]))
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write("\n\n".join(tables))
        file.flush()
        call_command("configure_judges", str(Path(file.name)))
