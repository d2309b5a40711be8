"""One rank of :mod:`tools.distributed_costs`, which starts it by torchrun; rank 0 prints what was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch.distributed as dist

from tools.distributed_costs import rank_speed, rank_step

if __name__ == "__main__":
    dist.init_process_group("gloo")
    measured = rank_speed() if sys.argv[1] == "speed" else rank_step(Path(sys.argv[2]))
    if dist.get_rank() == 0:
        print(json.dumps(measured), flush=True)
    dist.barrier()
    dist.destroy_process_group()
