"""Keeping freed memory is a setting of the C library; it must not change any result."""

import sys

import torch

from advdiff.experiments.machine import keep_freed_memory


def test_keep_freed_memory_says_whether_it_worked():
    before = torch.ones(1000) * 3
    worked = keep_freed_memory()
    assert isinstance(worked, bool)
    if sys.platform.startswith("linux"):
        assert worked
    assert torch.equal(torch.ones(1000) * 3, before)
