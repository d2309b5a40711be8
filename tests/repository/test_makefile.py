"""What `make` would do, without doing it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CPU = "https://download.pytorch.org/whl/cpu"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks what make does on Linux")


def torch_lines(tmp_path: Path, driver: bool, **variables: str) -> list[str]:
    """The commands that would install torch on a machine with or without an NVIDIA driver."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "sed", "uname", "make", "awk", "python3", *(["nvidia-smi"] if driver else [])):
        (tools / name).symlink_to("/bin/true" if name == "nvidia-smi" else _found(name))
    said = subprocess.run(
        ["make", "--dry-run", "--always-make", "install", *(f"{name}={value}" for name, value in variables.items())],
        cwd=ROOT,
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [part.strip() for line in said.splitlines() if " torch==" in line for part in line.split("||")]


def _found(name: str) -> str:
    for folder in os.environ["PATH"].split(os.pathsep):
        if (Path(folder) / name).exists():
            return str(Path(folder) / name)
    pytest.skip(f"there is no {name}")


def test_without_a_driver_the_cpu_build_is_tried_first(tmp_path: Path) -> None:
    first, second = torch_lines(tmp_path, driver=False)
    assert f"--index-url {CPU} torch==" in first and "--index-url" not in second


def test_with_a_driver_pip_chooses(tmp_path: Path) -> None:
    (only,) = torch_lines(tmp_path, driver=True)
    assert "--index-url" not in only


@pytest.mark.parametrize("driver", [False, True])
def test_a_named_index_is_the_only_one(tmp_path: Path, driver: bool) -> None:
    (only,) = torch_lines(tmp_path, driver=driver, TORCH_INDEX="https://example.org/whl")
    assert "--index-url https://example.org/whl torch==" in only
