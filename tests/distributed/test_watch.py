"""The watch over lost ranks, in one process."""

from __future__ import annotations

import subprocess
import sys

# The watch beats without a pause, so that the interpreter ends while it is inside the store.
ENDS = """
import torch.distributed as dist
from advdiff.distributed import watch

watch.BEAT = 0.0
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
one = watch.Watch(0, 1, ("127.0.0.1", store.port), "rank 0")
store.add(one._key(0), 1)
one.start()
one.join(0.2)
one.stop()
assert not one.is_alive()
"""


def test_a_process_ends_in_peace_when_its_watch_was_stopped():
    done = subprocess.run([sys.executable, "-c", ENDS], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
