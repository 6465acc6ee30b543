"""Numbered lines of a user's file: plain, gzip or inside a zip, always UTF-8. Pure."""

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
# Bytes; the longest documents of public collections have half as many.
MAX_LINE = 16 << 20
# gzip shrinks text to a tenth. A large file with a greater ratio, of up to a thousand, is a bomb.
MAX_RATIO, UNPACKED = 200, 16 << 20
# Columns of a table, as in Excel.
MAX_COLUMNS = 16_384
# The most empty cells per filled cell, and how many are always fine. Empty cells take memory and no bytes in a file.
MAX_FILLING, FREE_FILLING = 50, 2_000_000
# Bytes of a zip archive's directory, which is read before any member: about 20,000 names.
MAX_DIRECTORY = 2 << 20
_Stream = io.BufferedReader | zipfile.ZipExtFile | gzip.GzipFile
_END = (1 << 16) + 22  # Bytes at the end of a zip archive that contain its end record.
# The signature of a first member, or of the end record, with which an empty archive begins.
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
PARQUET, SHEET, TEXT = "parquet", "sheet", "text"  # Forms of the bytes of a file.


class TooManyMembers(zipfile.BadZipFile):
    """A zip archive whose directory is longer than MAX_DIRECTORY."""


class Archive:
    """An open zip archive whose directory is read once. Raises TooManyMembers."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _END))
            end = file.read()
        position = end.rfind(b"PK\x05\x06")
        # For an archive with more than 65,534 members this is the largest possible number.
        if position >= 0 and int.from_bytes(end[position + 12 : position + 16], "little") > MAX_DIRECTORY:
            raise TooManyMembers
        self.zip = zipfile.ZipFile(path)
        self.names = frozenset(self.zip.namelist())


_Key = tuple[str, int, int, int]
# Open archives, so that not each of a thousand members opens its archive and reads the directory again.
_archives: WeakValueDictionary[_Key, Archive] = WeakValueDictionary()


def key_of(path: Path) -> _Key:
    """Return a key that identifies a version of a file in this process."""
    # The process id, because a forked process shares positions in open files with its parent.
    status = path.stat()
    return str(path), status.st_mtime_ns, status.st_size, os.getpid()


def open_archive(path: Path) -> Archive:
    """Return a zip archive, open as long as it is referenced. Raises BadZipFile and TooManyMembers."""
    key = key_of(path)
    if (archive := _archives.get(key)) is None:
        archive = _archives[key] = Archive(path)
    return archive


def is_nearly_empty(filled_count: int, cell_count: int) -> bool:
    """Return whether hardly any cell has a value, which no real table has."""
    return cell_count > FREE_FILLING + MAX_FILLING * filled_count


def is_zip(path: Path) -> bool:
    """Return whether a file is a zip archive, by its first bytes; this includes workbooks."""
    with path.open("rb") as file:
        return file.read(4).startswith(_ZIP)


def is_workbook(path: Path) -> bool:
    """Return whether a file is an Excel workbook (.xlsx), by its content."""
    try:
        return is_zip(path) and "xl/workbook.xml" in open_archive(path).names
    except (zipfile.BadZipFile, OSError):
        return False


def check_is_file(path: Path) -> None:
    """Raise BadInput for a folder or a missing file."""
    if path.is_dir():
        endings = (".jsonl", ".tsv", ".txt", ".csv", ".gz", ".run", ".toml")
        likely = sorted(child.name for child in path.iterdir() if child.name.endswith(endings) or child.name == "qrels")
        contents = f", which contains {', '.join(likely[:5])}" if likely else ""
        raise BadInput(f"{path}: {recognition.KnownFormat(f'a folder{contents}', 'name a file in it')}")
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file")


def read_text(path: Path) -> str:
    """Return the text of a short file, such as settings. Raises BadInput for files of other formats."""
    check_is_file(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None
    if known_format := recognition.recognise_format(data):
        raise BadInput(f"{path}: {known_format}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: byte {error.start + 1} is not UTF-8; convert the file") from None


def is_identifier(value: str) -> bool:
    """Return whether a text can be an id: not empty, at most MAX_ID characters, without white space."""
    return 0 < len(value) <= MAX_ID and not _WHITE.search(value)


class FileSource:
    """A file, a member of a zip archive, or a sheet of a workbook. Errors use the name that the user knows.

    `name`: the user's name of the file, if it differs from the path. `fields`: the meaning of a
    table's columns by their headers (corpus.importing.tables); other columns are guessed.
    `is_part`: the file came with others in an archive, a folder or a workbook, and may be left out.
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
        self.shared: object = None  # The archive or workbook, which stays open as long as one of its files is.
        check_is_file(self.path)

    def __str__(self) -> str:
        return self.name

    @cached_property
    def form(self) -> str:
        """Return the form of the bytes: SHEET (of a workbook), PARQUET or TEXT."""
        if is_workbook(self.path):
            return SHEET
        # A text may begin with these letters, too, but a Parquet file is never UTF-8 without NUL.
        return PARQUET if self.head().startswith(b"PAR1") and not recognition.is_text(self.head()) else TEXT

    @cached_property
    def counts_objects(self) -> bool:
        """Return whether this is a JSON list in one line, in which errors name the number of an object."""
        if self.form != TEXT:
            return False
        head = self.head().removeprefix(_BOM).lstrip()
        body = head.rstrip() if head.rstrip().endswith(b"]") else head
        return head.startswith(b"[") and b"\n" not in body and b"\r" not in body

    def name_line(self, line: int | str) -> str:
        """Return the words for a line in an error; a row of Parquet and workbooks, an object of a JSON list."""
        if self.counts_objects:
            return _("object %(n)s") % {"n": line}
        return (_("line %(n)s") if self.form == TEXT else _("row %(n)s")) % {"n": line}

    def bad(self, line: int, problem: str, option: str = "") -> BadInput:
        """Return the error for a line, or for an object of a JSON list in one line. `option`: one that would help."""
        if self.counts_objects:
            template = _("%(file)s, line 1: %(problem)s (object %(n)s)")
            sentence = template % {"file": self, "problem": problem, "n": line}
        else:
            template = _("%(file)s, %(place)s: %(problem)s")
            sentence = template % {"file": self, "place": self.name_line(line), "problem": problem}
        return OptionWouldHelp(option, sentence) if option else BadInput(sentence)

    def lines(self, *, blank: bool = False) -> Iterator[tuple[int, bytes]]:
        """Yield (number, line without its end), with blank lines if `blank`. Raises BadInput for NUL and bad gzip."""
        number = 0
        with self._report_damage() as last_line, self._open() as stream:
            for number, line in enumerate(stream, 1):
                last_line[0] = number
                # Windows programs write a byte order mark, which would become part of the first header or id.
                if number == 1 and line.startswith(_BOM):
                    line = line[3:]
                if b"\0" in line:
                    raise self.bad(number, _("a NUL byte; remove it"))
                if blank or not line.isspace():
                    yield number, line.rstrip(b"\n")

    @contextmanager
    def _report_damage(self) -> Iterator[list[int]]:
        """Raise BadInput for other formats and damaged files. Yields a list of the number of the last complete line."""
        last_line = [0]
        try:
            if known_format := recognition.recognise_format(self.head()):
                raise BadInput(f"{self}: {known_format}")
            yield last_line
        except EOFError:
            raise self.bad(last_line[0] + 1, _("the gzip file ends in the middle; copy it again")) from None
        except (gzip.BadGzipFile, zlib.error):
            raise self.bad(last_line[0] + 1, _("the gzip file is damaged; copy it again")) from None
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError):
            raise BadInput(
                _("%(file)s: the zip archive is damaged or locked; make it again") % {"file": self}
            ) from None
        except OSError as error:
            raise BadInput(f"{self}: {error.strerror or error}") from None

    def pieces(self, size: int = 1 << 20) -> Iterator[str]:
        """Yield the text in pieces, regardless of lines. Raises BadInput as `texts` does."""
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        with self._report_damage() as last_line, self._open(in_lines=False) as stream:
            while data := stream.read(size):
                last_line[0] += data.count(b"\n")
                if b"\0" in data:
                    raise self.bad(last_line[0] + 1, _("a NUL byte; remove it"))
                try:
                    yield decoder.decode(data)
                except UnicodeDecodeError as error:
                    line = last_line[0] + 1 - data.count(b"\n", error.start)
                    column = error.start - data.rfind(b"\n", 0, error.start)
                    raise self.bad(line, _("byte %(n)s is not UTF-8; convert the file") % {"n": column}) from None

    @contextmanager
    def seekable(self) -> Iterator[BinaryIO]:
        """Open the bytes for random access; a packed file is unpacked to a temporary file."""
        if not self.is_packed:
            with self.path.open("rb") as file:
                yield file
            return
        # On the disk, because the file may be as large as an upload.
        with tempfile.TemporaryFile() as unpacked:
            with self._open(in_lines=False) as stream:
                shutil.copyfileobj(stream, unpacked)
            unpacked.seek(0)
            yield unpacked

    @property
    def is_packed(self) -> bool:
        """Return whether the file is in a zip archive or compressed with gzip."""
        with self.path.open("rb") as plain:
            return (bool(self.member) and not is_workbook(self.path)) or plain.read(2) == _GZIP

    def texts(self, *, blank: bool = False) -> Iterator[tuple[int, str]]:
        """Yield the decoded `lines`. Raises BadInput for bytes that are not UTF-8."""
        for number, line in self.lines(blank=blank):
            yield number, self.decode(number, line)

    def decode(self, number: int, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            raise self.bad(number, _("byte %(n)s is not UTF-8; convert the file") % {"n": error.start + 1}) from None

    def first(self) -> tuple[int, bytes]:
        """Return the first line that is not blank, or the bracket of a JSON list; (0, b"") for an empty file."""
        head = self.head().removeprefix(_BOM)
        if (start := head.lstrip()[:1]) == b"[":
            return 1 + head.count(b"\n", 0, head.index(start)), start
        return next(((number, line.strip()) for number, line in self.lines() if line.strip()), (0, b""))

    def foreign(self) -> str:
        """Describe the tool or form of JSON that is not JSON lines of ours; otherwise return ""."""
        return str(recognition.json_of(self.head()) or "")

    def identifier(self, number: int, value: object, field: str) -> str:
        """Return a valid id: not empty, at most MAX_ID characters, without white space. Raises BadInput."""
        # The common case first, because this runs twice for each of millions of rows.
        if type(value) is str and is_identifier(value):
            return value
        # JSON files often have numbers as ids. True is an int in Python, and not an id.
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str):
            raise self.bad(number, _('"%(field)s" is not a string') % {"field": field})
        if not value:
            raise self.bad(number, _('"%(field)s" is empty') % {"field": field})
        if _WHITE.search(value):
            raise self.bad(
                number, _('"%(field)s" contains white space: %(value)r') % {"field": field, "value": value[:60]}
            )
        if len(value) > MAX_ID:
            message = _('"%(field)s" is longer than %(most)s characters')
            raise self.bad(number, message % {"field": field, "most": MAX_ID})
        return value

    def head(self) -> bytes:
        """Return the first bytes, unpacked; b"" for a damaged gzip file, which `lines` will report."""
        with suppress(EOFError, gzip.BadGzipFile, zlib.error), self._open(in_lines=False) as stream:
            return stream.read(recognition.HEAD)
        return b""

    @contextmanager
    def _open(self, *, in_lines: bool = True) -> Iterator[BinaryIO]:
        with ExitStack() as stack:
            file = stack.enter_context(self.path.open("rb"))
            stream: io.BufferedReader | zipfile.ZipExtFile = file
            size = self.path.stat().st_size
            # The member of a workbook is a sheet, which openpyxl reads.
            is_packed = bool(self.member) and not is_workbook(self.path)
            if is_packed:
                archive = self.open_archive()
                size = archive.getinfo(self.member).compress_size
                member = archive.open(self.member)
                assert isinstance(member, zipfile.ZipExtFile)  # As archives are opened for reading.
                stream = stack.enter_context(member)
            source: _Stream = stream
            # By the bytes and not by the name, also within an archive.
            if stream.peek(len(_GZIP))[: len(_GZIP)] == _GZIP:
                is_packed, source = True, gzip.GzipFile(fileobj=stream)
            # Only packed files can be bombs: a plain file is as large as its upload.
            limit = max(UNPACKED, MAX_RATIO * size) if is_packed else None
            with io.BufferedReader(_Bounded(self, source, limit, in_lines=in_lines), _BUFFER) as bounded:
                yield bounded

    def open_archive(self) -> zipfile.ZipFile:
        """Return the zip archive that contains the file, or that the file is. Raises BadZipFile."""
        archive = open_archive(self.path)
        self.shared = archive
        return archive.zip


class _Bounded(io.RawIOBase):
    """A stream that raises BadInput when a line is too long, or the file unpacks to too many bytes."""

    def __init__(self, source: FileSource, stream: _Stream, limit: int | None, *, in_lines: bool) -> None:
        self.source, self.stream, self.limit, self.in_lines = source, stream, limit, in_lines
        self.read_so_far = self.in_line = 0
        self.ends_in_return = False  # So that LF at the beginning of the next buffer does not end another line.

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        # Whole buffers are checked, so that reading lines is as fast as without limits.
        view = memoryview(buffer)
        data = self.stream.read1(len(view))
        if self.in_lines:
            # LF instead of CR LF, and of CR, with which old Excel for Mac ends lines.
            if self.ends_in_return and data[:1] == b"\n":
                # An empty result would mean the end of the file.
                data = data[1:] or self.stream.read1(len(view))
            self.ends_in_return = data[-1:] == b"\r"
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data
        self.read_so_far += len(data)
        view[: len(data)] = data
        end = data.rfind(b"\n")
        self.in_line = self.in_line + len(data) if end < 0 else len(data) - end - 1
        if self.in_lines and self.in_line > MAX_LINE:
            message = _("%(file)s: a line is longer than %(most)s MB; is it the right file?")
            raise BadInput(message % {"file": self.source, "most": MAX_LINE >> 20})
        if self.limit is not None and self.read_so_far > self.limit:
            message = _(
                "%(file)s: it unpacks to more than %(ratio)s times its size, as no text does; "
                "unpack it yourself and look at it"
            )
            raise BadInput(message % {"file": self.source, "ratio": MAX_RATIO})
        return len(data)
