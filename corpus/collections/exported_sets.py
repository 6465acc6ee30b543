"""Manifests of a collection's exports, as the pages that offer training sets list them."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from corpus.models import Collection
from store.files import fetch_matching


def read_manifests(collection: Collection) -> list[tuple[Path, dict[str, Any], datetime]]:
    """Return folder, manifest and time of each export of the collection, the newest first.

    Exports that are being written or deleted meanwhile are left out.
    """
    manifests = []
    for path in fetch_matching(Path(settings.VAR) / "exports" / collection.name, "*/manifest.json"):
        try:
            changed_at, manifest = path.stat().st_mtime, json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        manifests.append((path.parent, manifest, datetime.fromtimestamp(changed_at, timezone.get_current_timezone())))
    return sorted(manifests, key=lambda row: row[2], reverse=True)
