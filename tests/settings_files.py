"""Settings files, read as `configure_collection` reads them."""

from pathlib import Path
from typing import Any

from corpus.collections.options import SettingsOptions
from corpus.formats.files import read_text
from corpus.importing.toml_files import read_options


def read_settings(path: Path) -> dict[str, Any]:
    return read_options(SettingsOptions, read_text(path), str(path)).values()
