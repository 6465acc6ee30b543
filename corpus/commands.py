"""The base classes of all commands: --json, errors as one line, and the exit codes of the contract."""

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
from store.disk import means_full_disk
from store.objects import StoreUnavailable

# The outcome in the audit log by the error of a command; any other error is a failure.
OUTCOMES = ((Incomplete, "incomplete"), (QuorumError, "refused"), (KeyboardInterrupt, "interrupted"))


class Terminated(KeyboardInterrupt):
    """SIGTERM was received: the command ends as after Ctrl-C."""


@contextmanager
def interrupt_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, so that it stops what it started."""
    # The process may have a handler of its own, as in `serve` and in tests.
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return

    def raise_terminated(number: int, frame: FrameType | None) -> None:
        # A second signal must not interrupt the clean-up.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    signal.signal(signal.SIGTERM, raise_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class QuorumCommand(BaseCommand):
    """The base of a command: subclasses define `arguments`, and `run`, which returns the document for --json."""

    as_json = False
    positional: Sequence[str] = ()  # Options that are given without a flag.
    act = ""  # The name in the audit log, for commands that change something without an action.
    # Django's checks import every page; `make check` runs them, so that commands need not wait.
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
        """Print a line of text: on standard output, or with --json on standard error."""
        (self.stderr if self.as_json else self.stdout).write(line)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command in English, and exit with the contract's code."""
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
            message = flags_of(error, self.flags) if isinstance(error, BadOption) else str(error)
            self.stderr.write(" ".join(message.split("\n")))
            sys.exit(error.exit_code)
        except StoreUnavailable as error:
            self.stderr.write(str(error))
            sys.exit(1)
        except KeyboardInterrupt as error:
            # As in a shell: 128 plus the number of the signal.
            sys.exit(143 if isinstance(error, Terminated) else 130)
        except (OSError, Error) as error:
            if not means_full_disk(error):
                raise
            self.stderr.write("the disk is full: make room, and run the command again")
            sys.exit(1)
        self.print_document(document)

    @contextmanager
    def in_audit_log(self, options: dict[str, Any]) -> Iterator[None]:
        """Record the start and the outcome of a command in the audit log, except for estimates and dry runs."""
        if not self.act or options.get("dry_run") or options.get("estimate"):
            yield
            return
        # Recorded first, so that the log has the command even if it is killed.
        began = self._record(options, outcome="began")
        outcome = "finished"
        try:
            yield
        except BaseException as error:
            outcome = next((name for kind, name in OUTCOMES if isinstance(error, kind)), "failed")
            raise
        finally:
            # If the database is unreachable, the command's own error says more.
            with suppress(Error):
                self._record(options, outcome=outcome, began=began)

    def _record(self, options: dict[str, Any], **details: object) -> int:
        name = str(options.get("name") or "")
        collection = Collection.objects.filter(name=name).first()
        # The collection may not exist yet, or no longer.
        missing = {} if collection or not name else {"name": name}
        command = type(self).__module__.rpartition(".")[2]
        return record_act(None, self.act, collection, shell=shell_user(), command=command, **missing, **details)

    @property
    def actor(self) -> Actor:
        """The user of the shell, for the audit log."""
        command = type(self).__module__.rpartition(".")[2]
        return Actor(shell_user(), None, {"shell": shell_user(), "command": command})

    def print_document(self, document: object) -> None:
        if self.as_json and document is not None:
            self.stdout.write(json.dumps(document, ensure_ascii=False))


class ActionCommand(QuorumCommand):
    """A command that runs one action: `COMMAND COLLECTION --options`."""

    action: Callable[..., Any]  # The service of the action.

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

    def run(self, **arguments: Any) -> object:
        """Call the service and report its result."""
        collection = collection_named(arguments["name"])
        options = read_arguments(self.record, arguments)
        return self.report(type(self).action(self.actor, collection, options))

    def report(self, result: Any) -> object:
        """Print the result, and return the document for --json."""
        raise NotImplementedError


def collection_named(name: str) -> Collection:
    """Return the collection of this name. Raises BadInput that lists the existing ones."""
    collection = Collection.objects.filter(name=name).first()
    if collection is None:
        names = ", ".join(Collection.objects.order_by("name").values_list("name", flat=True)[:10])
        message = _('There is no collection "%(name)s"; there are: %(names)s')
        raise BadInput((message if names else _('There is no collection "%(name)s"')) % {"name": name, "names": names})
    return collection


def write_tables(folder: Path, tables: list[DownloadTable]) -> None:
    """Write KEY.csv and KEY.tex for each table. Raises BadInput if `folder` is a file."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file: name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables:
        (folder / f"{table.key}.csv").write_text(table.csv(), encoding="utf-8")
        (folder / f"{table.key}.tex").write_text(table.latex(), encoding="utf-8")
