"""Lines of a file that a person gave us: plain, gzip or inside a zip, always UTF-8, each with its number. Pure."""

import codecs
import gzip
import io
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import BinaryIO
from weakref import WeakValueDictionary

from django.utils.translation import gettext as _
from typing_extensions import Buffer

from corpus.errors import BadInput, OptionWouldHelp
from corpus.formats import recognition

_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_BUFFER = 1 << 18
_WHITE = re.compile(r"\s")
MAX_ID = 255
# Bytes. The longest documents of the field's collections are half of it.
MAX_LINE = 16 << 20
# gzip shrinks text to a tenth, and at most to a thousandth: such a file is a bomb, once it is not small.
MAX_RATIO, UNPACKED = 200, 16 << 20
# Columns of a table: as many as Excel has.
MAX_COLUMNS = 16_384
# Cells without a value that are made, to one with a value; so many are always fine. They cost and weigh nothing.
MAX_FILLING, FREE_FILLING = 50, 2_000_000
# Bytes of a zip archive's list of its members, which is read whole before any of them: about 20,000 names.
MAX_DIRECTORY = 2 << 20
_Stream = io.BufferedReader | zipfile.ZipExtFile | gzip.GzipFile
_END = (1 << 16) + 22  # Bytes at the end of a zip archive among which its end record is.
# The mark of a first member, or the end record with which an archive without members begins.
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
PARQUET, SHEET, TEXT = "parquet", "sheet", "text"  # What the bytes of a file are.


class TooManyMembers(zipfile.BadZipFile):
    """A zip archive whose list of members alone is longer than any that is taken."""


class Archive:
    """A zip archive open for its members, listed once. Raises TooManyMembers."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _END))
            end = file.read()
        at = end.rfind(b"PK\x05\x06")
        # Of an archive with more than 65,534 members the size here is the largest that there is.
        if at >= 0 and int.from_bytes(end[at + 12 : at + 16], "little") > MAX_DIRECTORY:
            raise TooManyMembers
        self.zip = zipfile.ZipFile(path)
        self.names = frozenset(self.zip.namelist())


_Key = tuple[str, int, int, int]
# Archives that somebody reads. Each of a thousand members would open its archive ten times, and read the list again.
_archives: WeakValueDictionary[_Key, Archive] = WeakValueDictionary()


def key_of(path: Path) -> _Key:
    """Return what tells a file from others, and from former ones at its path, here."""
    # A process that was forked shares the places in open files with its parent.
    found = path.stat()
    return str(path), found.st_mtime_ns, found.st_size, os.getpid()


def open_archive(path: Path) -> Archive:
    """Return a zip archive, opened once for as long as somebody holds it. Raises BadZipFile and TooManyMembers."""
    key = key_of(path)
    if (archive := _archives.get(key)) is None:
        archive = _archives[key] = Archive(path)
    return archive


def is_nearly_empty(filled: int, made: int) -> bool:
    """Return whether hardly any cell has a value, as in no table that is meant."""
    return made > FREE_FILLING + MAX_FILLING * filled


def is_zip(path: Path) -> bool:
    """Return whether a file is a zip archive, by first bytes; workbooks are, too."""
    with path.open("rb") as file:
        return file.read(4).startswith(_ZIP)


def is_workbook(path: Path) -> bool:
    """Return whether a file is an Excel workbook (.xlsx), by its content."""
    try:
        return is_zip(path) and "xl/workbook.xml" in open_archive(path).names
    except (zipfile.BadZipFile, OSError):
        return False


def refuse_no_file(path: Path) -> None:
    """Raise BadInput for a folder, and for what is not there."""
    if path.is_dir():
        endings = (".jsonl", ".tsv", ".txt", ".csv", ".gz", ".run", ".toml")
        likely = sorted(one.name for one in path.iterdir() if one.name.endswith(endings) or one.name == "qrels")
        held = f", which holds {', '.join(likely[:5])}" if likely else ""
        raise BadInput(f"{path}: {recognition.KnownFormat(f'a folder{held}', 'name a file in it')}")
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file")


def read_text(path: Path) -> str:
    """Return a short text file, such as settings. BadInput says what it is instead."""
    refuse_no_file(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None
    if known := recognition.recognise_format(data):
        raise BadInput(f"{path}: {known}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: byte {error.start + 1} is not UTF-8; convert the file") from None


class FileSource:
    """A file by its path, a member of a zip archive, or a sheet of a workbook. Errors name it as the user did.

    `name`: what the user calls the file, where it lies elsewhere. `fields`: what the columns of a
    table are, by their headers (corpus.importing.tables); what is not in it is guessed. `is_part`:
    it came with others, in an archive, a folder or a workbook, and may be left out.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        name: str = "",
        member: str = "",
        fields: Mapping[str, str] | None = None,
        is_part: bool = False,
    ) -> None:
        self.path = Path(path)
        self.member = member
        self.is_part = is_part or bool(member)
        self.name = f"{name or path}/{member}" if member else name or str(path)
        self.fields = dict(fields or {})
        self.shared: object = None  # What other files in it are read from, too: held open as long as one of them is.
        refuse_no_file(self.path)

    def __str__(self) -> str:
        return self.name

    @cached_property
    def form(self) -> str:
        """Form of the bytes: SHEET (of a workbook), PARQUET or TEXT."""
        if is_workbook(self.path):
            return SHEET
        # A text may begin with these letters, and a Parquet file is never UTF-8 without NUL.
        return PARQUET if self.head().startswith(b"PAR1") and not recognition.is_text(self.head()) else TEXT

    @cached_property
    def counts_objects(self) -> bool:
        """True for a JSON list in one line, as tools write it: what is wrong there is told by the object's number."""
        if self.form != TEXT:
            return False
        head = self.head().removeprefix(_BOM).lstrip()
        body = head.rstrip() if head.rstrip().endswith(b"]") else head
        return head.startswith(b"[") and b"\n" not in body and b"\r" not in body

    def place(self, line: int | str) -> str:
        """Return the words by which an error names a line; in Parquet and workbooks a row, in a JSON list an object."""
        if self.counts_objects:
            return _("object %(n)s") % {"n": line}
        return (_("line %(n)s") if self.form == TEXT else _("row %(n)s")) % {"n": line}

    def bad(self, line: int, problem: str, option: str = "") -> BadInput:
        """Return the error for a line, or for an object of a JSON list in one line. `option`: the one that helps."""
        if self.counts_objects:
            said = _("%(file)s, line 1: %(problem)s (object %(n)s)")
            sentence = said % {"file": self, "problem": problem, "n": line}
        else:
            said = _("%(file)s, %(place)s: %(problem)s")
            sentence = said % {"file": self, "place": self.place(line), "problem": problem}
        return OptionWouldHelp(option, sentence) if option else BadInput(sentence)

    def lines(self, *, blank: bool = False) -> Iterator[tuple[int, bytes]]:
        """Yield (number, line without its end), blank ones where asked for. Raises BadInput for NUL and bad gzip."""
        number = 0
        with self._damage_told() as reached, self._open() as stream:
            for number, line in enumerate(stream, 1):
                reached[0] = number
                # Windows programs put the mark before UTF-8; it would become part of the first header or id.
                if number == 1 and line.startswith(_BOM):
                    line = line[3:]
                if b"\0" in line:
                    raise self.bad(number, _("a NUL byte; remove it"))
                if blank or not line.isspace():
                    yield number, line.rstrip(b"\n")

    @contextmanager
    def _damage_told(self) -> Iterator[list[int]]:
        """Raise BadInput for no text, and for broken packed files. Yields [the last line that was read whole]."""
        reached = [0]
        try:
            if known := recognition.recognise_format(self.head()):
                raise BadInput(f"{self}: {known}")
            yield reached
        except EOFError:
            raise self.bad(reached[0] + 1, _("the gzip file ends in the middle; copy it again")) from None
        except (gzip.BadGzipFile, zlib.error):
            raise self.bad(reached[0] + 1, _("the gzip file is damaged; copy it again")) from None
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError):
            raise BadInput(
                _("%(file)s: the zip archive is damaged or locked; make it again") % {"file": self}
            ) from None
        except OSError as error:
            raise BadInput(f"{self}: {error.strerror or error}") from None

    def pieces(self, size: int = 1 << 20) -> Iterator[str]:
        """Yield the text in pieces, whatever its lines are. Raises BadInput as `texts` does."""
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        with self._damage_told() as reached, self._open(in_lines=False) as stream:
            while data := stream.read(size):
                reached[0] += data.count(b"\n")
                if b"\0" in data:
                    raise self.bad(reached[0] + 1, _("a NUL byte; remove it"))
                try:
                    yield decoder.decode(data)
                except UnicodeDecodeError as error:
                    line = reached[0] + 1 - data.count(b"\n", error.start)
                    at = error.start - data.rfind(b"\n", 0, error.start)
                    raise self.bad(line, _("byte %(n)s is not UTF-8; convert the file") % {"n": at}) from None

    @contextmanager
    def seekable(self) -> Iterator[BinaryIO]:
        """Open the bytes for a reader that jumps about in them; a packed file is unpacked to a temporary one."""
        if not self.is_packed:
            with self.path.open("rb") as plain:
                yield plain
            return
        # On the disk and not in memory: what is packed may be as large as an upload.
        with tempfile.TemporaryFile() as whole:
            with self._open(in_lines=False) as stream:
                shutil.copyfileobj(stream, whole)
            whole.seek(0)
            yield whole

    @property
    def is_packed(self) -> bool:
        """Return whether the file lies in a zip archive or is compressed with gzip."""
        with self.path.open("rb") as plain:
            return (bool(self.member) and not is_workbook(self.path)) or plain.read(2) == _GZIP

    def texts(self, *, blank: bool = False) -> Iterator[tuple[int, str]]:
        """Yield what `lines` does, decoded. Raises BadInput for bytes that are not UTF-8."""
        for number, line in self.lines(blank=blank):
            yield number, self.decode(number, line)

    def decode(self, number: int, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            raise self.bad(number, _("byte %(n)s is not UTF-8; convert the file") % {"n": error.start + 1}) from None

    def first(self) -> tuple[int, bytes]:
        """Return the first line that is not blank, of a JSON list only the bracket; (0, b"") for an empty file."""
        head = self.head().removeprefix(_BOM)
        if (start := head.lstrip()[:1]) == b"[":
            return 1 + head.count(b"\n", 0, head.index(start)), start
        return next(((number, line.strip()) for number, line in self.lines() if line.strip()), (0, b""))

    def foreign(self) -> str:
        """Return whose JSON this is, or its form, where it is not JSON lines of ours; else ""."""
        return str(recognition.json_of(self.head()) or "")

    def identifier(self, number: int, value: object, field: str) -> str:
        """Return an id: not empty, at most 255 characters, no white space (TREC)."""
        # The usual case in one test: this runs twice for each of millions of rows.
        if type(value) is str and 0 < len(value) <= MAX_ID and not _WHITE.search(value):
            return value
        # JSON files often have numbers as ids. True is an int for Python, and no id.
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str):
            raise self.bad(number, _('"%(field)s" is not a string') % {"field": field})
        if not value:
            raise self.bad(number, _('"%(field)s" is empty') % {"field": field})
        if _WHITE.search(value):
            raise self.bad(
                number, _('"%(field)s" holds white space: %(value)r') % {"field": field, "value": value[:60]}
            )
        if len(value) > MAX_ID:
            said = _('"%(field)s" is longer than %(most)s characters')
            raise self.bad(number, said % {"field": field, "most": MAX_ID})
        return value

    def head(self) -> bytes:
        """Return the first bytes, unpacked; none of a gzip file that breaks off in them, as its lines will tell."""
        with suppress(EOFError, gzip.BadGzipFile, zlib.error), self._open(in_lines=False) as stream:
            return stream.read(recognition.HEAD)
        return b""

    @contextmanager
    def _open(self, *, in_lines: bool = True) -> Iterator[BinaryIO]:
        with ExitStack() as stack:
            plain = stack.enter_context(self.path.open("rb"))
            stream: io.BufferedReader | zipfile.ZipExtFile = plain
            size = self.path.stat().st_size
            # The member of a workbook is a sheet, which is read by another library.
            packed = bool(self.member) and not is_workbook(self.path)
            if packed:
                archive = self.open_archive()
                size = archive.getinfo(self.member).compress_size
                opened = archive.open(self.member)
                assert isinstance(opened, zipfile.ZipExtFile)  # as it is for reading
                stream = stack.enter_context(opened)
            source: _Stream = stream
            # By the bytes and not by the name, and within an archive, too.
            if stream.peek(len(_GZIP))[: len(_GZIP)] == _GZIP:
                packed, source = True, gzip.GzipFile(fileobj=stream)
            # Only what is packed can be a bomb: a plain file is as large as its upload was.
            most = max(UNPACKED, MAX_RATIO * size) if packed else None
            with io.BufferedReader(_Bounded(self, source, most, in_lines=in_lines), _BUFFER) as bounded:
                yield bounded

    def open_archive(self) -> zipfile.ZipFile:
        """Return the zip archive in which the file lies, or that it is. Raises BadZipFile."""
        archive = open_archive(self.path)
        self.shared = archive
        return archive.zip


class _Bounded(io.RawIOBase):
    """A stream that ends with BadInput where it is too long, as a bomb is, whose few bytes unpack to millions."""

    def __init__(self, of: FileSource, stream: _Stream, most: int | None, *, in_lines: bool) -> None:
        self.of, self.stream, self.most, self.in_lines = of, stream, most, in_lines
        self.read_so_far = self.in_line = 0
        self.ends_in_return = False  # So that a LF at the beginning of the next buffer ends no second line.

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        # Whole buffers are looked at, so that reading lines stays as fast as without a bound.
        view = memoryview(buffer)
        data = self.stream.read1(len(view))
        if self.in_lines:
            # LF in place of CR LF, and of CR alone, by which old Excel for Mac ends lines.
            if self.ends_in_return and data[:1] == b"\n":
                # Nothing at all would mean the end of the file.
                data = data[1:] or self.stream.read1(len(view))
            self.ends_in_return = data[-1:] == b"\r"
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data
        self.read_so_far += len(data)
        view[: len(data)] = data
        end = data.rfind(b"\n")
        self.in_line = self.in_line + len(data) if end < 0 else len(data) - end - 1
        if self.in_lines and self.in_line > MAX_LINE:
            said = _("%(file)s: a line is longer than %(most)s MB; is it the right file?")
            raise BadInput(said % {"file": self.of, "most": MAX_LINE >> 20})
        if self.most is not None and self.read_so_far > self.most:
            said = _(
                "%(file)s: it unpacks to more than %(ratio)s times its size, as no text does; "
                "unpack it yourself and look at it"
            )
            raise BadInput(said % {"file": self.of, "ratio": MAX_RATIO})
        return len(data)
