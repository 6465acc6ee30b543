"""`backup F`: the whole instance in one file."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from config.backup import prune_backups, write_backup
from corpus.commands import QuorumCommand
from corpus.errors import BadInput
from store.files import delete, publish


class Command(QuorumCommand):
    """The command that writes a backup; the site and its workers go on meanwhile."""

    help = (
        "Write the whole instance (database, exports, models, keys) to one file. Keep it safe: it holds secrets. "
        "Base models in VAR/bases are not in it: copy them."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="F", help="output file; must not exist")
        add_keep(parser, "beside the new backup remove older ones of this instance, until N are left")

    def run(self, **options: Any) -> object:
        path: Path = options["file"]
        keep = check_keep(options["keep"])
        manifest = write_backup(path, settings.VAR, self.stderr.write)
        publish(path.resolve())  # below VAR only: then every machine can restore it
        rows, files, size = sum(manifest["rows"].values()), len(manifest["files"]) - 1, path.stat().st_size
        self.say(f"{path}: {rows:,} rows and {files:,} files, {size / 1e6:,.1f} MB")
        removed = [str(one) for one in prune_backups(path.parent, keep)] if keep else []
        for one in removed:
            delete(Path(one).resolve())
            self.say(f"removed the older {one}")
        return {"backup": str(path), "rows": rows, "files": files, "bytes": size, "removed": removed}


def add_keep(parser: CommandParser, what: str) -> None:
    """Add the option --keep N; without it no older file is removed."""
    parser.add_argument("--keep", type=int, metavar="N", help=what)


def check_keep(keep: int | None) -> int | None:
    """Return the number of backups that stay. Raises BadInput below 1."""
    if keep is not None and keep < 1:
        raise BadInput(f"--keep must be 1 or more, not {keep}")
    return keep
