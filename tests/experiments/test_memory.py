"""Keeping freed memory is a setting of the C library, and changes no result; a meter begins when it is made."""

import sys
import time

import torch

from advdiff.experiments.machine import Meter, keep_freed_memory


def test_keep_freed_memory_says_whether_it_worked():
    before = torch.ones(1000) * 3
    worked = keep_freed_memory()
    assert isinstance(worked, bool)
    if sys.platform.startswith("linux"):
        assert worked
    assert torch.equal(torch.ones(1000) * 3, before)


def test_processor_time_is_counted_from_the_moment_a_meter_is_made():
    begun = time.process_time()
    while time.process_time() < begun + 0.2:
        pass
    meter = Meter(torch.device("cpu"))
    assert 0 <= meter.cpu_seconds() < 0.1
    begun = time.process_time()
    while time.process_time() < begun + 0.2:
        pass
    assert 0.1 < meter.cpu_seconds() < 0.4
