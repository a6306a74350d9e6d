"""`FileSource`: a workspace folder and the folders beside it, as an index reads them.

The files of an extra folder have paths `@NAME/way/to/the/file`.

Invariants: nothing outside of a folder is listed or read, so no symbolic link below it is followed, and no file is ever
written; memory files, session logs and the files of other workspaces are never files of an extra folder; a file is in
one folder, the innermost; of a folder that cannot be read nothing is known, so none of its files counts as removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from threading import Event

from indexer.documents.formats import LEFT_OUT_FOLDERS, is_known
from indexer.sources.base import Content, Scan, SourceFile
from indexer.sources.gitignore import (
    RULES_NAMES,
    Level,
    Unreadable,
    is_ignored,
    read_rules,
    rules_above,
    unreadable_reason,
    with_rules_in,
)
from indexer.sources.scan import (
    MEMORY_FOLDER,
    SESSIONS_FOLDER,
    FolderScan,
    inode_of,
    is_memory_path,
    is_session_path,
    is_settled,
    no_follow,
    open_folder,
    path_on_disk,
    read,
    require_folder,
    scan_paths,
    scan_workspace,
    source_file,
)
from indexer.sources.watch import Watch, Watched
from indexer.stores.base import FileState, Version
from indexer.types import EVERGREEN, EXTRA_MARK, to_nfc


class FileSource:
    """A `Source` of files: memory files and session logs of a workspace folder, and the files of folders beside it.

    Args:
        root: The workspace folder.
        sessions: Whether session logs are indexed.
        extra: Folders beside the workspace that are indexed with it.
    """

    def __init__(self, root: Path, *, sessions: bool = True, extra: Folders | None = None) -> None:
        self.root = root
        self._sessions = sessions
        self._extra = extra or Folders(root)

    @property
    def name(self) -> str:
        """See `Source`."""
        return self.root.name

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders whose files are indexed: the workspace's first, then those beside it."""
        return (self.root, *self._extra.places)

    def require(self) -> None:
        """See `Source`."""
        require_folder(self.root)

    def scan(self, versions: dict[str, Version] | None = None, paths: Collection[str] = ()) -> Scan:
        """See `Source`; if only files are named, no others are looked at."""
        if paths and all(map(self._names_file, paths)):
            own = [path for path in paths if not path.startswith(EXTRA_MARK)]
            beside = [path for path in paths if path.startswith(EXTRA_MARK)]
            return scan_paths(self.root, own).merge(self._extra.look(beside))
        if paths:
            self.require()
        versions = {} if versions is None else versions
        scan = scan_workspace(self.root, sessions=self._sessions, versions=versions)
        is_own = paths and not any(path.startswith(EXTRA_MARK) for path in paths)
        return scan if is_own else scan.merge(self._extra.scan(versions))

    def _names_file(self, path: str) -> bool:
        """True if a path can only be that of a file, so that no folder has to be scanned."""
        if path.startswith(EXTRA_MARK):
            return self._extra.names_file(path)
        return is_memory_path(path) or (self._sessions and is_session_path(path))

    def read(self, file: SourceFile, *, max_bytes: int) -> Content:
        """See `Source`."""
        return read(self.root, file, max_bytes=max_bytes, place=self._extra.locate(file.path))

    def tail(self, path: str, max_bytes: int) -> tuple[bytes, bool]:
        """See `Source`."""
        try:
            with open(self.root / path, "rb", opener=no_follow) as stream:
                start = max(0, os.fstat(stream.fileno()).st_size - max_bytes)
                stream.seek(start)
                return stream.read(max_bytes), start == 0
        except OSError:
            return b"", False

    def is_settled(self, state: FileState) -> bool:
        """See `Source`; the clock of a file system has a grain."""
        return is_settled(state)

    def is_gone(self, file: SourceFile) -> bool:
        """See `Source`."""
        place = self._extra.locate(file.path) if file.source == "files" else self.root / file.path
        try:
            now = source_file(file.path, os.lstat(place)) if place else None
        except OSError:
            return True
        return now is None or inode_of(now) != inode_of(file) or now.size_bytes < file.size_bytes

    def spelling(self, path: str) -> str:
        """See `Source`, and `Folders.as_on_disk`."""
        return self._extra.as_on_disk(path)

    def watch(self, changed: Callable[[Collection[str]], float], stop: Event) -> None:
        """See `Source`."""
        root, *extra = self.folders
        home = Watched(root=root, extra=tuple(extra))
        Watch(lambda: [home], lambda _, paths: changed(paths), stop).run()


_OWN_NAMES = (MEMORY_FOLDER, SESSIONS_FOLDER, "receipts", "engines", *EVERGREEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraFolder:
    """A folder beside the workspace that is indexed with it.

    Attributes:
        name: Beginning of its paths, after the `@`.
        folder: Path of the folder; it may be a symbolic link itself.
        globs: Patterns as in `.gitignore`. With any that does not begin with "!", only files that match one are
            indexed, of whatever kind; those that match one with "!" are not.
    """

    name: str
    folder: Path
    globs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A folder on a walk."""

    absolute: str
    way: str
    levels: tuple[Level, ...]
    asked: bool


class Folders:
    """The extra folders of one workspace.

    Args:
        root: The workspace folder.
        extra: Its extra folders, with distinct names.
        private: Folders of others, such as the home of all workspaces: only their files below `root` are indexed.

    Raises:
        ValueError: Two folders have one name.
    """

    def __init__(self, root: Path, extra: Sequence[ExtraFolder] = (), *, private: Sequence[Path] = ()) -> None:
        self._root = root
        self._private = tuple(private)
        self._walks = {folder.name: _Walk(folder) for folder in extra}
        if len(self._walks) < len(extra):
            raise ValueError("Two extra folders have one name. Give one of them another.")

    @property
    def places(self) -> tuple[Path, ...]:
        """The folders themselves, as they are configured."""
        return tuple(walk.extra.folder for walk in self._walks.values())

    def scan(self, versions: dict[str, Version] | None = None) -> Scan:
        """All files of all folders; for `versions` see `FolderScan`."""
        look = FolderScan(known={} if versions is None else versions)
        for walk, top, left_out in self._tops(look):
            walk.scan(top, left_out, look)
        return look.scan()

    def look(self, paths: Collection[str]) -> Scan:
        """Some files alone; those that are not there, or are not indexed, are left out."""
        look = FolderScan()
        ways: dict[str, list[str]] = {}
        for path in paths:
            name, _, way = path.removeprefix(EXTRA_MARK).partition("/")
            ways.setdefault(name, []).append(way)
        for walk, top, left_out in self._tops(look, ways):
            for way in filter(_is_way, ways[walk.extra.name]):
                walk.look(top, left_out, way, look)
        return look.scan()

    def locate(self, path: str) -> Path | None:
        """Path of a file, which need not exist; None for a path of no extra folder, or one over a link."""
        name, _, way = path.removeprefix(EXTRA_MARK).partition("/")
        walk = self._walks.get(name)
        if walk is None or not path.startswith(EXTRA_MARK) or not _is_way(way):
            return None
        place = os.path.join(os.path.realpath(walk.extra.folder), way)
        return Path(place) if os.path.realpath(place) == place else None

    def as_on_disk(self, path: str) -> str:
        """A path in the Unicode form that the disk has it in, of the workspace too; as it is where nothing is there."""
        if not path.startswith(EXTRA_MARK):
            return path_on_disk(self._root, path) or path
        name, _, way = path.removeprefix(EXTRA_MARK).partition("/")
        walk = self._walks.get(name) or self._walks.get(to_nfc(name))
        if walk is None or not _is_way(way):
            return path
        there = path_on_disk(Path(os.path.realpath(walk.extra.folder)), way)
        return path if there is None else f"{EXTRA_MARK}{walk.extra.name}/{there}"

    def names_file(self, path: str) -> bool:
        """True if a path is that of a file, existing or not, and not of a folder."""
        place = self.locate(path)
        return place is not None and not place.is_dir()

    def _tops(
        self, look: FolderScan, names: Collection[str] | None = None
    ) -> Iterator[tuple[_Walk, str, frozenset[str]]]:
        """Folders that can be walked: real path, and the paths in it that are left out."""
        if not self._walks:
            return
        own = _Own(self._root, self._private)
        tops = {name: os.path.realpath(walk.extra.folder) for name, walk in self._walks.items()}
        for name, walk in self._walks.items():
            if names is not None and name not in names:
                continue
            same = next((other_top for other_top in tops if tops[other_top] == tops[name]), name)
            reason = f"it is the same folder as {EXTRA_MARK}{same}" if same != name else own.fault(tops[name])
            if reason:
                look.fail(EXTRA_MARK + name, f"{reason}; take it out of extra_paths")
            else:
                yield walk, tops[name], own.left_out(tops[name]) | frozenset(tops.values())


class _Own:
    """Folders that belong to workspaces, and so to no extra folder."""

    def __init__(self, root: Path, private: Sequence[Path]) -> None:
        self._root = os.path.realpath(root)
        self._names = [os.path.join(self._root, name) for name in _OWN_NAMES]
        self._private = [os.path.realpath(folder) for folder in private]

    def fault(self, top: str) -> str:
        """Why a folder cannot be an extra one; empty if it can."""
        if any(_is_within(top, own) for own in self._names):
            return "it lies inside of what the workspace holds, which is indexed already or never"
        if any(_is_within(top, private) for private in self._private) and not _is_within(top, self._root):
            return "it lies among the workspaces, which are apart from each other"
        return ""

    def left_out(self, top: str) -> frozenset[str]:
        """Paths that a walk of a folder must not enter."""
        if _is_within(top, self._root):
            return frozenset(self._names)
        return frozenset((self._root, *self._private))


class _Walk:
    """One extra folder with its globs."""

    def __init__(self, extra: ExtraFolder) -> None:
        self.extra = extra
        only = [glob for glob in extra.globs if not glob.startswith("!")]
        self._only = read_rules("\n".join(only)) if only else None
        self._never = read_rules("\n".join(glob[1:] for glob in extra.globs if glob.startswith("!")))
        self._prefix = f"{EXTRA_MARK}{extra.name}/"

    def scan(self, top: str, left_out: frozenset[str], look: FolderScan) -> None:
        try:
            waiting = [self._top(top)]
        except Unreadable as error:
            look.fail(self._prefix[:-1], str(error))
            return
        while waiting:
            place = waiting.pop()
            try:
                waiting += self._list_folder(place, left_out, look)
            except Unreadable as error:
                look.fail(self._prefix + place.way.rstrip("/") if place.way else self._prefix[:-1], str(error))

    def look(self, top: str, left_out: frozenset[str], way: str, look: FolderScan) -> None:
        """Look at one file, on the way from the top down, as the rules above it decide too."""
        place: _Place | None = None
        *above, name = way.split("/")
        try:
            place = self._top(top)
            place = self._with_rules(place, _listed_names(place.absolute))
            for part in above:
                lower = self._enter(place, part, left_out)
                if lower is None or not S_ISDIR(os.lstat(place.absolute + part).st_mode):
                    return
                place = self._with_rules(lower, _listed_names(lower.absolute))
            if place.absolute + name not in left_out and self._takes(place, name):
                stat = os.lstat(place.absolute + name)
                if S_ISREG(stat.st_mode):
                    look.files[self._prefix + way] = source_file(self._prefix + way, stat)
        except (FileNotFoundError, NotADirectoryError):
            return
        except (Unreadable, OSError) as error:
            at = self._prefix + place.way.rstrip("/") if place else self._prefix
            look.fail(at.rstrip("/"), str(error) if isinstance(error, Unreadable) else unreadable_reason(error))

    def _top(self, top: str) -> _Place:
        try:
            mode = os.stat(top).st_mode
        except (FileNotFoundError, NotADirectoryError):
            mode = 0
        except OSError as error:
            raise Unreadable(unreadable_reason(error)) from None
        if not S_ISDIR(mode):
            raise Unreadable(_absent(top))
        absolute = top if top.endswith(os.sep) else top + os.sep
        return _Place(absolute=absolute, way="", levels=tuple(rules_above(top)), asked=False)

    def _list_folder(self, place: _Place, left_out: frozenset[str], look: FolderScan) -> list[_Place]:
        """Take the files of a folder; gives the folders in it."""
        try:
            with open_folder(place.absolute.rstrip(os.sep) or os.sep) as dir_entries:
                entries = list(dir_entries)
                hidden_keys = {entry.name for entry in entries if entry.name[0] == "."}
                return self._sorted_out(self._with_rules(place, hidden_keys), entries, left_out, look)
        except FileNotFoundError:
            return []  # it went after the folder above was listed
        except OSError as error:
            raise Unreadable(unreadable_reason(error)) from None

    def _sorted_out(
        self, place: _Place, entries: Sequence[os.DirEntry[str]], left_out: frozenset[str], look: FolderScan
    ) -> list[_Place]:
        prefix = self._prefix + place.way
        own = {path for path in left_out if path.startswith(place.absolute)}
        files = (
            entry
            for entry in entries
            if entry.is_file(follow_symlinks=False)
            and self._takes(place, entry.name)
            and not (own and place.absolute + entry.name in own)
        )
        for path, entry in look.new_entries(prefix, files):
            if _is_fit(prefix, entry.name, look):
                look.take(path, "files", entry)
        folders = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        entered_pairs = ((name, self._enter(place, name, left_out)) for name in folders)
        return [lower for name, lower in entered_pairs if lower is not None and _is_fit(prefix, name, look)]

    def _with_rules(self, place: _Place, names: Collection[str]) -> _Place:
        levels = with_rules_in(place.levels, place.absolute, names, place.way)
        return place if levels is place.levels else replace(place, levels=levels)

    def _enter(self, place: _Place, name: str, left_out: frozenset[str]) -> _Place | None:
        """A folder below one; None if nothing in it is indexed."""
        way, absolute = place.way, place.absolute + name
        if name[0] == "." or absolute in left_out or is_ignored(place.levels, way, name, is_folder=True):
            return None
        if self._never.verdict(way, name, is_folder=True):
            return None
        is_named = self._only is not None and bool(self._only.verdict(way, name, is_folder=True))
        if (name in LEFT_OUT_FOLDERS or name.endswith(".egg-info")) and not is_named:
            return None
        return _Place(
            absolute=absolute + os.sep, way=f"{way}{name}/", levels=place.levels, asked=place.asked or is_named
        )

    def _takes(self, place: _Place, name: str) -> bool:
        """True if a file of this name is indexed."""
        way, only = place.way, self._only
        if name[0] == ".":
            return False
        if not ((only is None or place.asked) and is_known(name)):
            if only is None or not only.verdict(way, name, is_folder=False):
                return False
        if self._never.verdict(way, name, is_folder=False):
            return False
        return not is_ignored(place.levels, way, name, is_folder=False)


def _listed_names(folder: str) -> set[str]:
    return {name for name in RULES_NAMES if os.path.lexists(folder + name)}


def _is_fit(prefix: str, name: str, look: FolderScan) -> bool:
    """True if a name can be part of a path; one that cannot is a failure of the scan."""
    if name.isascii() and name.isprintable():
        return True
    return look.fits(prefix + name, backslash=True)


def _is_way(way: str) -> bool:
    """True if `scan` could give such a path."""
    return all(part and part[0] != "." and _is_fit("", part, FolderScan()) for part in way.split("/"))


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _absent(top: str) -> str:
    if os.path.lexists(top):
        return "it is a file; put the folder that it lies in, with a glob for it, into extra_paths"
    return "its folder is not there; bring it back, or take it out of extra_paths"
