"""The store that QUORUM_STORE names: contents by their sha256, through fsspec (docs/adr/0094). Imports no Django."""

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from typing import IO, Any

# Stores in which a file appears whole or not at all; in others it is written under another name first.
ATOMIC = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory"}
EXTRA = ATOMIC - {"memory"}
READ_AHEAD = 4 << 20  # Bytes of an open content in memory; the default of s3fs is 50 MB.
SHA256 = re.compile(r"[0-9a-f]{64}")


class StoreUnavailable(OSError):
    """The store cannot be reached, refuses access, or has lost a content. The message says what to do."""


class ObjectStore:
    """Contents below an address such as `file:///mnt/share`, `s3://bucket/folder` or another of fsspec."""

    def __init__(self, address: str) -> None:
        import fsspec

        self.address = address
        scheme, _, location = address.partition("://") if "://" in address else ("file", "", address)
        try:
            if not location.strip("/") or (scheme == "file" and not location.startswith("/")):
                raise ValueError("it names no bucket or folder" if scheme in EXTRA else "it names no absolute path")
            # Listings are not cached, since other machines write here, too.
            self.files, root = fsspec.core.url_to_fs(address, use_listings_cache=False)
        except ImportError as error:
            needs = "the cloud extra (make install-cloud)" if scheme in EXTRA else f"a package: {error}"
            raise StoreUnavailable(f"QUORUM_STORE={scheme}://... needs {needs}") from error
        except (ValueError, TypeError) as error:
            raise StoreUnavailable(
                f"QUORUM_STORE={address} is no address of a store ({error}): name a folder, or s3://, gs:// or az://"
            ) from error
        self.root = root.rstrip("/")
        self.is_atomic = scheme in ATOMIC

    def _path_of(self, digest: str) -> str:
        if not SHA256.fullmatch(digest):
            raise ValueError(f"{digest!r} is no sha256")
        return f"{self.root}/objects/{digest[:2]}/{digest}"

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Turn the errors of a store's library into StoreUnavailable with one line."""
        try:
            yield
        except StoreUnavailable:
            raise
        except Exception as error:
            # The libraries of cloud stores have no common base of their errors.
            reason = " ".join(str(error).split())[:300]
            raise StoreUnavailable(f"The store {self.address} failed ({reason}): see docs/operators.md") from error

    def has(self, digest: str) -> bool:
        """Return whether the content is in the store."""
        with self._translate_errors():
            return bool(self.files.exists(self._path_of(digest)))

    def put(self, digest: str, source: Path) -> None:
        """Put a file into the store under its hash."""
        target = self._path_of(digest)
        with self._translate_errors():
            if self.is_atomic:
                self.files.put_file(str(source), target)
                return
            self.files.makedirs(target.rpartition("/")[0], exist_ok=True)
            part = f"{target}.{uuid.uuid4().hex}.part"
            try:
                self.files.put_file(str(source), part)
                self.files.mv(part, target)
            except BaseException:
                if self.files.exists(part):
                    self.files.rm_file(part)
                raise

    def get(self, digest: str, target: Path) -> None:
        """Write the content to a file. Raises StoreUnavailable where its bytes do not match the hash."""
        with self._translate_errors():
            self.files.get_file(self._path_of(digest), str(target))
        with target.open("rb") as file:
            content_digest = file_digest(file, "sha256").hexdigest()
        if content_digest != digest:
            raise StoreUnavailable(f"The store {self.address} gave other bytes than {digest}: restore it from a backup")

    def open(self, digest: str) -> IO[bytes]:
        """Open the content for reading, without a local copy."""
        with self._translate_errors():
            file: IO[bytes] = self.files.open(self._path_of(digest), "rb", block_size=READ_AHEAD)
            return file

    def delete(self, digest: str) -> None:
        """Delete the content, if it exists."""
        with self._translate_errors():
            path = self._path_of(digest)
            if self.files.exists(path):
                self.files.rm_file(path)

    def check(self) -> None:
        """Write, read and delete a small file. Raises StoreUnavailable."""
        path: Any = f"{self.root}/check-{uuid.uuid4().hex}"
        with self._translate_errors():
            if not self.is_atomic:
                self.files.makedirs(self.root, exist_ok=True)
            self.files.pipe_file(path, b"quorum")
            content = self.files.cat_file(path)
            self.files.rm_file(path)
        if content != b"quorum":
            raise StoreUnavailable(f"The store {self.address} gave other bytes than were written to it")
