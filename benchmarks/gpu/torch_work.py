"""Functions of PyTorch as `crosswind measure --gpu --task` takes them; a device of 40 GB or less is enough."""

from __future__ import annotations

import torch

WIDTH, BATCH = 4096, 4096
torch.manual_seed(0)

_x = torch.randn(BATCH, WIDTH, device="cuda", dtype=torch.bfloat16)
_w = torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16) / WIDTH**0.5
_y = torch.empty_like(_x)

_model = torch.nn.Sequential(
    torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.LayerNorm(4096), torch.nn.Linear(4096, 1024)
).to("cuda", torch.bfloat16)
_optimizer = torch.optim.SGD(_model.parameters(), lr=1e-4)
_batch = torch.randn(16384, 1024, device="cuda", dtype=torch.bfloat16)


def matmul_layernorm() -> None:
    """Enqueue one matrix product and one layer norm of it."""
    torch.mm(_x, _w, out=_y)
    torch.nn.functional.layer_norm(_y, (WIDTH,))


def train_step() -> None:
    """Enqueue one training step of a small model: forward, backward, optimizer."""
    _optimizer.zero_grad(set_to_none=False)
    _model(_batch).square().mean().backward()
    _optimizer.step()


def reads_its_loss() -> None:
    """Read a result, and so wait for the device: refused."""
    _model(_batch).square().mean().item()


def elsewhere() -> None:
    """Enqueue on a stream of its own: refused."""
    with torch.cuda.stream(_own):
        torch.mm(_x, _w, out=_y)


_own = torch.cuda.Stream()
