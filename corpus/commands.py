"""The base of all commands: --json, one clear line for errors, the exit codes of the contract."""

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import Error
from django.utils import translation
from django.utils.translation import gettext as _

from actions.options import Options, add_arguments, flags_of, read_arguments
from actions.services import ACTIONS, Actor
from charts.downloads import DownloadTable
from corpus.collections.audit_log import record_act, shell_user
from corpus.errors import BadInput, BadOption, Incomplete, QuorumError
from corpus.models import Collection
from store.disk import is_full
from store.objects import StoreUnavailable

# How an act ended, by its error; any other error is a failure.
OUTCOMES = ((Incomplete, "incomplete"), (QuorumError, "refused"), (KeyboardInterrupt, "interrupted"))


class Terminated(KeyboardInterrupt):
    """SIGTERM came: a command ends as by Ctrl-C."""


@contextmanager
def interrupt_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does: it stops what it started, and says what goes on."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield  # Whoever runs it has other plans for the signal.
        return

    def raise_terminated(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # A second one must not cut the end short.
        raise Terminated

    signal.signal(signal.SIGTERM, raise_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class QuorumCommand(BaseCommand):
    """A command has `arguments` and `run`, which returns the JSON; `say` prints."""

    as_json = False
    positional: Sequence[str] = ()  # Options that are given without a flag.
    act = ""  # What the audit log calls it, for commands that change something by themselves.
    # Django's checks import every page: `make check` runs them, and no command waits for that.
    requires_system_checks: list[str] | tuple[str, ...] | Literal["__all__"] = ()

    def get_version(self) -> str:
        """Return what `--version` of every command prints."""
        return f"Quorum {settings.VERSION}"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--json", action="store_true", help="print the result as one JSON document on standard output"
        )
        self.arguments(parser)
        self.flags = {flag for option in parser._actions for flag in option.option_strings}

    def arguments(self, parser: CommandParser) -> None: ...

    def run(self, **options: Any) -> object:
        raise NotImplementedError

    def say(self, line: str) -> None:
        """Print a line for people: on standard output, or on standard error when a program reads standard output."""
        (self.stderr if self.as_json else self.stdout).write(line)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run in English, whatever pages speak, and leave with the contract's exit code."""
        with translation.override("en"), interrupt_on_sigterm():
            self.do(options)

    def do(self, options: dict[str, Any]) -> None:
        self.as_json = options["json"]
        try:
            with self.in_audit_log(options):
                document = self.run(**options)
        except QuorumError as error:
            if isinstance(error, Incomplete):
                self.print_document(error.document)
            said = flags_of(error, self.flags) if isinstance(error, BadOption) else str(error)
            self.stderr.write(" ".join(said.split("\n")))
            sys.exit(error.exit_code)
        except StoreUnavailable as error:
            self.stderr.write(str(error))
            sys.exit(1)
        except KeyboardInterrupt as error:
            # As a shell has them: 128 and the number of the signal.
            sys.exit(143 if isinstance(error, Terminated) else 130)
        except (OSError, Error) as error:
            if not is_full(error):
                raise
            self.stderr.write("the disk is full: make room, and run the command again")
            sys.exit(1)
        self.print_document(document)

    @contextmanager
    def in_audit_log(self, options: dict[str, Any]) -> Iterator[None]:
        """Record a line before the act and one on how it ended; estimates are no acts."""
        if not self.act or options.get("dry_run") or options.get("estimate"):
            yield
            return
        # A command that is killed leaves this line, so that the log holds the act whatever came of it.
        began = self._record(options, outcome="began")
        outcome = "finished"
        try:
            yield
        except BaseException as error:
            outcome = next((name for kind, name in OUTCOMES if isinstance(error, kind)), "failed")
            raise
        finally:
            with suppress(Error):  # of a database that is gone: the command's own error says more
                self._record(options, outcome=outcome, began=began)

    def _record(self, options: dict[str, Any], **details: object) -> int:
        name = str(options.get("name") or "")
        collection = Collection.objects.filter(name=name).first()
        where = {} if collection or not name else {"name": name}  # it does not exist yet, or no more
        command = type(self).__module__.rpartition(".")[2]
        return record_act(None, self.act, collection, shell=shell_user(), command=command, **where, **details)

    @property
    def actor(self) -> Actor:
        """The shell, as the audit log names it."""
        command = type(self).__module__.rpartition(".")[2]
        return Actor(shell_user(), None, {"shell": shell_user(), "command": command})

    def print_document(self, document: object) -> None:
        if self.as_json and document is not None:
            self.stdout.write(json.dumps(document, ensure_ascii=False))


class ActionCommand(QuorumCommand):
    """A command that is the door of one action: `COMMAND COLLECTION --options`."""

    action: Callable[..., Any]  # Its service.

    def arguments(self, parser: CommandParser) -> None:
        """Add the collection and the options of the action."""
        parser.add_argument("name", help="name of the collection")
        add_arguments(parser, self.record, self.positional)

    @property
    def record(self) -> type[Options]:
        """The record of the action's options."""
        record = ACTIONS[type(self).action].options
        assert record is not None
        return record

    def run(self, **given: Any) -> object:
        """Call the service and report what it made."""
        collection = collection_named(given["name"])
        options = read_arguments(self.record, given)
        return self.report(type(self).action(self.actor, collection, options))

    def report(self, result: Any) -> object:
        """Say what came of it, and return the JSON document."""
        raise NotImplementedError


def collection_named(name: str) -> Collection:
    """Return the collection of this name. Raises BadInput that names those that exist."""
    found = Collection.objects.filter(name=name).first()
    if found is None:
        names = ", ".join(Collection.objects.order_by("name").values_list("name", flat=True)[:10])
        others = _('There is no collection "%(name)s"; there are: %(names)s')
        raise BadInput((others if names else _('There is no collection "%(name)s"')) % {"name": name, "names": names})
    return found


def write_tables(folder: Path, found: list[DownloadTable]) -> None:
    """Write KEY.csv and KEY.tex of each table. Raises BadInput for a folder that is none."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file: name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    for table in found:
        (folder / f"{table.key}.csv").write_text(table.csv(), encoding="utf-8")
        (folder / f"{table.key}.tex").write_text(table.latex(), encoding="utf-8")
