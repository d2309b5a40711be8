"""The minutes at the head of a chapter are those of the count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import reading_time

ROOT = Path(__file__).parents[2]


def written(folder: Path, words: int, said: int) -> Path:
    source = [f"About {said} minutes to read. " + "word " * words, "\n````{solution} ex\n", "word " * 5000, "\n````"]
    path = folder / "01_x.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": source}]}), encoding="utf-8")
    return path


def test_the_chapters_say_what_the_count_says() -> None:
    reading_time.main(["--check"], ROOT / "notebooks")


def test_another_number_is_noticed_and_put_right(tmp_path: Path) -> None:
    path = written(tmp_path, words=3000, said=5)
    with pytest.raises(SystemExit, match="5 minutes are said and 15 counted"):
        reading_time.main(["--check"], tmp_path)
    reading_time.main([], tmp_path)
    assert "About 15 minutes to read." in path.read_text(encoding="utf-8")
    reading_time.main(["--check"], tmp_path)


def test_a_chapter_without_the_sentence_is_left_alone(tmp_path: Path) -> None:
    path = written(tmp_path, words=3000, said=5)
    path.write_text(path.read_text(encoding="utf-8").replace("About", "Around"), encoding="utf-8")
    reading_time.main(["--check"], tmp_path)
