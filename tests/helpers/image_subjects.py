"""Scenes with a known truth: two digits side by side, the label is the left one; and small networks for them."""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.datasets import load_digits

GRID = (4, 8)  # of the scenes: segments of 2 x 2 pixels, none on both digits
LEFT = np.tile(np.arange(8) < 4, 4)  # which of the 32 segments decide


@cache
def scenes(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scenes (count, 1, 8, 16) with values in [0, 1], and their labels."""
    digits = load_digits()
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, len(digits.images), (2, count))
    pixels = np.concatenate([digits.images[left], digits.images[right]], axis=2) / 16
    return pixels[:, None].astype(np.float32), digits.target[left]


@cache
def network():
    """A small convolutional network that reads the left digit, trained in seconds."""
    import torch

    images, labels = (torch.as_tensor(a) for a in scenes(4000, 0))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(),
            torch.nn.Flatten(), torch.nn.Linear(32 * 4 * 8, 10),
        )  # fmt: skip
        torch.nn.init.zeros_(net[-1].weight)  # what is of no use stays small
        optimiser = torch.optim.AdamW(net.parameters(), 3e-3, weight_decay=1.0)
        for step in range(300):
            part = slice(step * 100 % 4000, step * 100 % 4000 + 100)
            seen, other = images[part], images[part].clone()
            other[..., 8:] = seen.roll(1, 0)[..., 8:]  # the same label beside another right digit
            scores = net(seen)
            loss = torch.nn.functional.cross_entropy(scores, labels[part])
            loss = loss + 3.0 * ((scores - net(other)) ** 2).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return net.eval()


def predictions(net, images):
    """Outputs of a torch network for arrays."""
    import torch

    with torch.no_grad():
        return net(torch.as_tensor(np.asarray(images), dtype=torch.float32)).numpy()
