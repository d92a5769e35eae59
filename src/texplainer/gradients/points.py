"""The fixed points of a neighbourhood, in standard coordinates: they know nothing of the data.

A point is a sign times a magnitude in every feature. Signs are the rows of a Hadamard matrix, whose columns
are orthogonal; magnitudes are half-normal quantiles, each as often as any other in every column. Half of the
points are given, the others are their mirror images, so that all odd moments vanish; every column has the
variance 1. Two sets are made of these parts:

- `points`: any number of them in any number of features, for averages. Every column has its own order of the
  magnitudes; with no more features than pairs the columns are then made orthogonal again, so that all second
  moments are those of the normal distribution, exactly.
- `Blocks`: whole Hadamard matrices, one after the other, a column's magnitude fixed within each. All columns
  stay orthogonal for any number of features, so that a linear fit is a sum; each matrix is a fit of its own.

Hadamard matrices are Paley's (1933), from the squares modulo a prime: no feature's sign is the product of
three others', as it is in those of Sylvester. Nothing is drawn: orders come from integer arithmetic,
quantiles and the orthogonalisation are rounded to 12 digits, so the points are the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from texplainer.types import Array

DIGITS = 12
LEVELS = 8  # magnitudes of a set for averages


@lru_cache(maxsize=16)
def points(count: int, features: int) -> Array:
    """Half of an antithetic set of `count` points, (count / 2, features); the other half is its mirror."""
    pairs = count // 2
    order = prime_order(pairs)
    size = magnitudes(min(LEVELS, pairs))
    columns = np.arange(features)
    z = signs(order, np.arange(pairs), columns % order)
    again = columns >= order  # more features than columns: the same ones, their rows in another order
    z[:, again] = np.take_along_axis(z[:, again], shuffle(pairs, 2 * columns[again]), axis=0)
    z *= size[shuffle(pairs, 2 * columns + 1) % len(size)]
    return _frozen(_orthogonal(z) if features <= pairs else z / np.sqrt(np.mean(z**2, axis=0)))


@dataclass(frozen=True)
class Blocks:
    """Half of an antithetic set made of whole Hadamard matrices, for a linear fit.

    Attributes
    ----------
    features
        Number of columns.
    blocks
        Number of matrices, and of magnitudes.
    """

    features: int
    blocks: int

    @property
    def order(self) -> int:
        """Rows of one matrix: pairs of points in a block."""
        return prime_order(self.features)

    @property
    def pairs(self) -> int:
        """Pairs of points in all."""
        return self.blocks * self.order

    @property
    def sizes(self) -> Array:
        """(blocks, features), the magnitude of every column in every block; mean square 1 per column."""
        return _sizes(self.features, self.blocks)

    def signs(self, block: int, first: int, last: int) -> Array:
        """Rows first to last of a block's signs, (rows, features): no more of them need ever be at hand."""
        # another choice of columns in every block: what one confounds, the next one tells apart
        columns = (np.arange(self.features) + 7 * block) % self.order
        return signs(self.order, np.arange(first, last), columns)


@lru_cache(maxsize=16)
def prime_order(least: int) -> int:
    """The smallest order q + 1 >= `least` of a Paley matrix: q a prime of the form 4k + 3."""
    q = max(3, least - 1)
    while q % 4 != 3 or any(q % k == 0 for k in range(3, int(q**0.5) + 1, 2)):
        q += 1
    return q + 1


def signs(order: int, rows: np.ndarray, columns: np.ndarray) -> Array:
    """Some rows and columns of the Paley matrix of an order."""
    out = _symbols(order - 1)[(rows[:, None] - columns) % (order - 1)]
    out[:, columns == 0] = -1.0
    out[rows == 0] = 1.0
    return out


def magnitudes(count: int) -> Array:
    """The half-normal quantiles in the middle of `count` equal parts, scaled to a mean square of 1."""
    middle = ndtri(0.5 + (np.arange(count) + 0.5) / (2 * count))
    return np.round(middle / np.sqrt(np.mean(middle**2)), DIGITS)


def shuffle(count: int, keys: np.ndarray) -> np.ndarray:
    """A fixed order of `count` things for every key, (count, keys): by Steele's mixing of 64-bit integers."""
    start = (np.asarray(keys, dtype=np.uint64) + np.uint64(1)) << np.uint64(24)
    with np.errstate(over="ignore"):
        mixed = (np.arange(1, count + 1, dtype=np.uint64)[:, None] + start) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.argsort(mixed, axis=0, kind="stable")


@lru_cache(maxsize=4)
def _symbols(q: int) -> Array:
    """1 at the squares modulo q, -1 elsewhere; 1 at 0, for the diagonal of Paley's matrix."""
    out = np.full(q, -1.0)
    out[np.arange(q, dtype=np.int64) ** 2 % q] = 1.0
    return out


@lru_cache(maxsize=16)
def _sizes(features: int, blocks: int) -> Array:
    size = magnitudes(blocks)
    out = size[shuffle(blocks, np.arange(features))]
    return _frozen(out / np.sqrt(np.mean(out**2, axis=0)))


def _orthogonal(z: Array) -> Array:
    """The nearest set with mean z z^T = 1 (symmetric orthogonalisation)."""
    value, vector = np.linalg.eigh(z.T @ z / len(z))
    return np.round(z @ (vector / np.sqrt(value)) @ vector.T, DIGITS)


def _frozen(z: Array) -> Array:
    z.setflags(write=False)
    return z
