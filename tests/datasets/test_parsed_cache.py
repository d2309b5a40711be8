"""What was parsed is kept: for the same files only, verified, and never damaged."""

from __future__ import annotations

import hashlib
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from advdiff.datasets import files, parsed_cache
from advdiff.datasets.files import DamagedDataError, Source
from advdiff.datasets.parsed_cache import remember

INPUTS = (Source("input.csv", ""),)


@pytest.fixture(autouse=True)
def path(data_folder: Path) -> Path:
    data_folder.mkdir()
    (data_folder / "input.csv").write_text("1,2\n")
    return data_folder / "input.csv"


def build(path: Path, value: float = 1.0) -> dict[str, np.ndarray]:
    assert path.name == "input.csv"
    return {"x": np.full((2, 3), value), "names": np.array(["a", "b"]), "scale": np.float32(0.5)}


def again(path: Path) -> dict[str, np.ndarray]:
    raise AssertionError("built again")


def left(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_remember(path: Path, tmp_path: Path) -> None:
    calls = []

    def counted(path: Path) -> dict[str, np.ndarray]:
        calls.append(path)
        return build(path)

    for _ in range(2):
        arrays = remember("toy", INPUTS, counted, {"a": 1})
        assert set(arrays) == {"x", "names", "scale"} and arrays["scale"] == 0.5
        assert arrays["x"].tolist() == build(path)["x"].tolist() and arrays["names"].tolist() == ["a", "b"]
    assert calls == [path]
    remember("toy", INPUTS, counted, {"a": 2})
    remember("toy", INPUTS, counted, {"a": 1}, version=2)
    os.utime(path, ns=(1, 1))
    remember("toy", INPUTS, counted, {"a": 1})
    path.write_text("1,2\n3,4\n")
    os.utime(path, ns=(1, 1))
    remember("toy", INPUTS, counted, {"a": 1})
    assert len(calls) == 5
    assert all(path.suffix == ".npz" for path in (tmp_path / "cache/parsed").iterdir())


def test_another_folder_with_the_same_names_sizes_and_times(path: Path, tmp_path: Path, monkeypatch) -> None:
    os.utime(path, ns=(1, 1))
    assert remember("toy", INPUTS, build)["x"][0, 0] == 1.0
    (tmp_path / "other").mkdir()
    (tmp_path / "other/input.csv").write_text("8,9\n")
    os.utime(tmp_path / "other/input.csv", ns=(1, 1))
    monkeypatch.setenv("ADVDIFF_DATA", str(tmp_path / "other"))
    assert remember("toy", INPUTS, partial(build, value=2.0))["x"][0, 0] == 2.0


def test_a_file_of_a_folder_that_changes(data_folder: Path) -> None:
    (data_folder / "many").mkdir()
    file = data_folder / "many/one.json"
    file.write_text("1")
    sources = (Source("many", ""),)
    assert remember("toy", sources, lambda path: {"x": np.array(1)})["x"] == 1
    file.write_text("2")
    os.utime(file, ns=(1, 1))
    assert remember("toy", sources, lambda path: {"x": np.array(2)})["x"] == 2


def test_files_are_verified_once(path: Path, data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = (Source("input.csv", "", hashlib.sha256(b"1,2\n").hexdigest()),)
    remember("toy", known, build)
    with monkeypatch.context() as patch:
        patch.setattr(files, "difference", lambda *_: pytest.fail("verified again"))
        remember("toy", known, again)
    other = (Source("input.csv", "", "0" * 64),)
    with pytest.raises(DamagedDataError, match="SHA-256"):
        remember("toy", other, again)
    (data_folder / files.MINIATURE).touch()
    remember("toy", other, build)
    (data_folder / files.MINIATURE).unlink()
    with pytest.raises(DamagedDataError, match="SHA-256"):  # what a miniature left in the cache is no real data
        remember("toy", other, again)


@pytest.mark.parametrize("keep", [0, 3, 200, -10, -200])
def test_a_half_written_cache_is_built_again(tmp_path: Path, keep: int) -> None:
    remember("toy", INPUTS, build)
    (cache,) = (tmp_path / "cache/parsed").iterdir()
    cache.write_bytes(cache.read_bytes()[:keep])
    with pytest.warns(UserWarning, match=r"the cache .* is damaged .* and is built again"):
        assert remember("toy", INPUTS, partial(build, value=2.0))["x"][0, 0] == 2.0
    assert remember("toy", INPUTS, again)["x"][0, 0] == 2.0


def test_any_changed_byte_in_the_cache_is_noticed_or_harmless(path: Path, tmp_path: Path) -> None:
    remember("toy", INPUTS, build)
    (cache,) = (tmp_path / "cache/parsed").iterdir()
    content, noticed = cache.read_bytes(), 0
    for place in range(0, len(content), 3):
        cache.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        try:
            arrays = parsed_cache._load(cache)
        except DamagedDataError:
            noticed += 1
            continue
        for key, array in build(path).items():
            assert arrays[key].dtype == np.asarray(array).dtype and np.array_equal(arrays[key], array), place
    assert noticed > len(content) / 6
    with pytest.warns(UserWarning, match="is damaged .* and is built again"):
        cache.write_bytes(content.replace(b"x.npy", b"z.npy"))
        assert remember("toy", INPUTS, build)["x"][0, 0] == 1.0


@pytest.mark.parametrize(
    "other", [{"y": np.zeros(3)}, {"x": np.zeros((2, 3))}, {"x": np.array([{"an": "object"}], dtype=object)}]
)
def test_arrays_without_their_checksum_and_pickles_are_refused(tmp_path: Path, other: dict) -> None:
    remember("toy", INPUTS, build)
    (cache,) = (tmp_path / "cache/parsed").iterdir()
    with cache.open("wb") as file:
        np.savez(file, **other)
    with pytest.warns(UserWarning, match="is damaged"):
        assert remember("toy", INPUTS, build)["x"][0, 0] == 1.0


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(DamagedDataError):
        remember("toy", INPUTS, lambda path: (_ for _ in ()).throw(files.damaged(path, "cut")))
    assert not left(tmp_path / "cache")


def test_an_interruption_while_writing_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    def interrupted(file, **arrays: np.ndarray) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(parsed_cache.np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        remember("toy", INPUTS, build)
    assert not left(tmp_path / "cache")


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in the way")
    with pytest.warns(UserWarning, match="could not be cached"):
        assert remember("toy", INPUTS, build)["x"].shape == (2, 3)
