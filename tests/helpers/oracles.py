"""Slow, obvious twins: one row at a time, close to the paper."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import factorial

import numpy as np


def centred_differences(f: Callable, x: np.ndarray, h: float) -> np.ndarray:
    """Equation 7: one feature at a time."""
    gradient = np.empty(len(x))
    for i in range(len(x)):
        up, down = x.copy(), x.copy()
        up[i] += h
        down[i] -= h
        gradient[i] = (f(up) - f(down)) / (up[i] - down[i])
    return gradient


def algorithm_1(
    f: Callable, x: np.ndarray, h_min: float, h_max: float = 1.0, max_itr: int = 50, C: float = 0.5
) -> tuple[float, np.ndarray, int, float]:
    """The h optimizer, as printed; the numbers are the paper's lines."""
    unit = np.finfo(float).eps / 2
    h_left, h_right, prev_cost = h_min, h_max, 1.0  # 1
    in_loop, itr = True, 0  # 2
    while in_loop:  # 3
        itr = itr + 1  # 4
        fx = f(x)  # 5
        h = (h_left + h_right) / 2  # 6
        epsilon = C * h_left**2  # 7
        gradient = centred_differences(f, x, h)  # 8
        approximation = f(x + h) - np.sum(gradient * h)  # 9
        curr_cost = (fx - approximation) ** 2  # 10
        theta = np.max(np.abs(gradient)) * h <= 4 * unit * max(1.0, abs(fx))
        if curr_cost > epsilon:  # 11
            h_right = h  # 12
        else:  # 13
            if theta:  # 14
                h_left = h  # 15
            elif prev_cost and abs(curr_cost - prev_cost) < epsilon:  # 16
                in_loop = False  # 17
            else:  # 18
                h_left = h  # 19
        prev_cost = curr_cost  # 22
        if itr > max_itr:  # 23
            in_loop = False  # 24
    return h, gradient, itr, curr_cost


def smallest_distance(rows: np.ndarray) -> float:
    """The smallest non-zero distance, from the full matrix."""
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    return float(distances[distances > 0].min())


def shapley_by_subsets(f: Callable, background: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Shapley values of v(S) = mean of f(x_S, b_rest) over the background, subset by subset, (features,)."""
    n = len(x)
    value = {
        kept: float(np.mean(f(np.where(np.array(kept, dtype=bool), x, background))))
        for kept in product((0, 1), repeat=n)
    }
    out = np.zeros(n)
    for kept in value:
        size = sum(kept)
        for j in range(n):
            if not kept[j]:
                with_j = (*kept[:j], 1, *kept[j + 1 :])
                weight = factorial(size) * factorial(n - size - 1) / factorial(n)
                out[j] += weight * (value[with_j] - value[kept])
    return out
