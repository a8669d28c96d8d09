"""One process or several (torchrun): what they have to agree on."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from kster.errors import KsterError


def is_first() -> bool:
    """Whether this process speaks for all of them."""
    return int(os.environ.get("RANK", "0")) == 0


@dataclass(frozen=True)
class Workers:
    """This process among all of them."""

    rank: int
    count: int
    device: torch.device

    @classmethod
    def start(cls, device: str) -> Workers:
        """Join the group that torchrun describes, or stand alone."""
        count = int(os.environ.get("WORLD_SIZE", "1"))
        rank = int(os.environ.get("RANK", "0"))
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
            raise KsterError(f"device: {device!r} is not a device; accepted: auto, cpu, cuda, cuda:1 …")
        if device.startswith("cuda") and not torch.cuda.is_available():
            raise KsterError(f"device: {device} was asked for, but there is no CUDA device; use cpu or auto")
        if device == "cuda":
            device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
        place = torch.device(device)
        if place.type == "cuda":
            torch.cuda.set_device(place)
        if count > 1 and not dist.is_initialized():
            # Preparing the data may take hours; the others wait for it.
            backend = "nccl" if place.type == "cuda" else "gloo"
            dist.init_process_group(backend, timeout=timedelta(hours=12))
        return cls(rank, count, place)

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def sum(self, tensor: Tensor) -> None:
        """Add up `tensor` over all processes, in place."""
        if self.count > 1:
            dist.all_reduce(tensor)

    def any(self, flag: bool) -> bool:
        """Whether any process says so; all of them get the same answer."""
        if self.count == 1:
            return flag
        tensor = torch.tensor(float(flag), device=self.device)
        dist.all_reduce(tensor)
        return bool(tensor.item() > 0)

    def wait(self) -> None:
        if self.count > 1:
            dist.barrier()

    def stop(self) -> None:
        if self.count > 1 and dist.is_initialized():
            dist.destroy_process_group()
