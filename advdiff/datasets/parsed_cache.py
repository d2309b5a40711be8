"""A cache of what was parsed from data files, so that they are verified and read once."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, cast

import numpy as np

from advdiff.atomic import replacing
from advdiff.datasets.download import locate
from advdiff.datasets.files import DamagedDataError, Source, cache_folder, damaged, is_miniature, read_arrays, verify

Arrays = dict[str, np.ndarray]
_CHECKSUM = "checksum of the others"


def remember(
    name: str,
    sources: Sequence[Source],
    build: Callable[..., Arrays],
    options: Mapping[str, object] | None = None,
    version: int = 1,
) -> Arrays:
    """``build`` of the paths of the files, or what it gave the last time for the same files, options and version.

    Files that are new to the cache are verified first. A file counts as the same while its place, its size, its time of
    change and the checksum that is asked of it are. The arrays are kept as npz in the user's cache folder, with a
    checksum of their own. A damaged cache is built again, with a warning; a folder that cannot be written to only costs
    time.

    Args:
        version: of the loader; to be raised when ``build`` changes.
    """
    paths = [locate(source) for source in sources]
    stamps = [_stamp(file) for path in paths for file in (path, *sorted(path.glob("*")))]
    # Without the mark of the miniatures, the same files have to pass the checksums.
    known = [name, dict(options or {}), version, stamps, [astuple(source) for source in sources], is_miniature()]
    key = hashlib.sha256(json.dumps(known, sort_keys=True, default=str).encode()).hexdigest()
    cache = cache_folder() / "parsed" / f"{name}-{key[:20]}.npz"
    if cache.exists():
        try:
            return _load(cache)
        except DamagedDataError as error:
            warnings.warn(f"the cache {cache} is damaged ({error.reason}) and is built again.", stacklevel=2)
    for source, path in zip(sources, paths, strict=True):
        verify(source, path)
    arrays = build(*paths)
    try:
        with replacing(cache) as file:
            np.savez(file, **cast(Any, arrays | {_CHECKSUM: np.array(checksum(arrays))}))
    except OSError as error:
        warnings.warn(f"what was read of {name} could not be cached in {cache.parent} ({error}).", stacklevel=2)
    return arrays


def checksum(arrays: Arrays) -> str:
    """SHA-256 of names, types, shapes and values.

    Example:
        >>> one, other = {"a": np.array([1, 2])}, {"a": np.array([1, 3])}
        >>> checksum(one) == checksum(dict(one)), checksum(one) == checksum(other)
        (True, False)
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _stamp(path: Path) -> tuple[str, int, int]:
    stat = path.stat()
    return str(path.resolve()), stat.st_size, stat.st_mtime_ns


def _load(cache: Path) -> Arrays:
    arrays = read_arrays(cache)
    if str(arrays.pop(_CHECKSUM, "")) != checksum(arrays):
        raise damaged(cache, "its checksum is wrong")
    return arrays
