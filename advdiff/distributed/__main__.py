"""``torchrun --nproc-per-node P -m advdiff.distributed DIR``: train on a graph that ``advdiff shard`` has divided."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from advdiff.distributed.settings import add_arguments, settings_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit codes: 0 done, 1 a rank was lost, 2 the command or a file was wrong."""
    parser = argparse.ArgumentParser(
        prog="torchrun --nproc-per-node P -m advdiff.distributed",
        description="Train AdvDIFFormer on a graph that is spread over P processes.",
    )
    parser.add_argument("directory", type=Path, help="made by: advdiff shard FILE --parts P --out DIR")
    add_arguments(parser)
    options = parser.parse_args(arguments)
    try:
        settings = settings_of(options)
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            raise ValueError("there is no rank; start it with torchrun --nproc-per-node P -m advdiff.distributed DIR.")
    except ValueError as error:
        print(f"advdiff: {error}", file=sys.stderr)
        return 2

    import torch
    import torch.distributed as dist

    from advdiff.distributed.shard import Shard
    from advdiff.distributed.training import Spread, save_weights, train
    from advdiff.distributed.watch import Watch, hold_sigterm, is_broken_connection

    on_gpu = options.device.startswith("cuda")
    device = torch.device(f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if on_gpu else options.device)
    if on_gpu:
        torch.cuda.set_device(device)
    watch = None
    hold_sigterm()
    try:
        # A lost rank is found by the watch, so that a collective may wait as long as the slowest rank takes.
        dist.init_process_group("nccl" if on_gpu else "gloo", timeout=timedelta(hours=24))
        watch = Watch.of_environment()
        watch.begin()
        shard = Shard(options.directory, device=device)
        checkpoint = options.checkpoint or options.directory / "checkpoint.pt"
        model = train(
            Spread(shard, settings, device),
            settings,
            report=lambda epoch: print(epoch, flush=True),
            checkpoint=checkpoint,
            resume=options.resume,
        )
        if options.save is not None and shard.rank == 0:
            save_weights(options.save, model)
        dist.barrier()
        watch.stop()
        dist.destroy_process_group()
    except ValueError as error:
        print(f"advdiff: {error}", file=sys.stderr, flush=True)
        if watch is not None:
            watch.announce(f"rank {watch.rank} stopped: {error}")
        os._exit(2)  # other ranks may wait for this one in a collective, which a tidy end would join
    except RuntimeError as error:
        if watch is None or not is_broken_connection(error):
            if watch is not None:
                watch.announce(f"rank {watch.rank} failed: {type(error).__name__}: {str(error).splitlines()[0]}")
            raise
        watch.alarm()
        watch.join()  # it ends the process when it knows who was lost
    return 0


if __name__ == "__main__":
    sys.exit(main())
