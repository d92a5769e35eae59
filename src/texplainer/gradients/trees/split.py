"""One soft split: how likely a noisy value goes left or right, and how fast that changes with the value.

The noise is triangular on [-1, 1] in units of the column's half-width: density ``k(z) = 1 - |z|``, and
a tail mass of ``k^2 / 2`` beyond z. With ``z = (threshold - x) / s``, the row goes left with
probability F(z), given that its noisy value lies between the thresholds of the ancestors on the same
column. Each function returns ``(left, right, slope)``, slope being s times the derivative of `right` by x.

Masses are kept as tails, never as ``1 - F``: a child that is reached with probability 1e-20 keeps all
its digits. And a probability of 0 goes with exactly 1 and slope 0 on the other side: who skips such a
child gets bit-identical values. All choices are conditional expressions without calls, which LLVM turns into
selects: loops over rows that inline these functions become vector code.
"""

# pyright: basic

from numba import njit


@njit(error_model="numpy", inline="always")
def density(z):
    """Of the noise at z; 0 for NaN."""
    size = abs(z)
    return 1.0 - (size if size < 1.0 else 1.0)


@njit(error_model="numpy", inline="always")
def split_hard(threshold, x):
    """A split without noise, as the model itself decides."""
    left = 1.0 if x <= threshold else 0.0
    return left, 1.0 - left, 0.0


@njit(error_model="numpy", inline="always")
def split_free(threshold, x, inverse):
    """The first split on its column along the path."""
    z = (threshold - x) * inverse
    k = density(z)
    small = 0.5 * k * k
    large = 1.0 - small
    return (small if z < 0.0 else large), (large if z < 0.0 else small), k


@njit(error_model="numpy", inline="always")
def split_once(threshold, upper, x, inverse):
    """One ancestor bound, `upper`.

    With minus `inverse` and the lower bound in its place, the mirror image: (right, left, slope).
    """
    z, zu = (threshold - x) * inverse, (upper - x) * inverse
    k, ku = density(z), density(zu)
    square, square_u = k * k, ku * ku
    reached = square if z < 0.0 else 2.0 - square
    whole = square_u if zu < 0.0 else 2.0 - square_u
    beyond = whole - reached if z < 0.0 else square - square_u  # across 0, or a difference of tails
    scale = 1.0 / (1.0 if whole == 0.0 else whole)  # a row without mass: any finite answer will do
    outer = beyond * scale
    inner = 1.0 if outer == 0.0 else reached * scale
    slope = 0.0 if outer == 0.0 else (k - inner * ku) * (2.0 * scale)
    return inner, (1.0 if inner == 0.0 else outer), slope


@njit(error_model="numpy", inline="always")
def split_between(threshold, lower, upper, x, inverse):
    """Ancestor bounds on both sides."""
    z, zl, zu = (threshold - x) * inverse, (lower - x) * inverse, (upper - x) * inverse
    k, kl, ku = density(z), density(zl), density(zu)
    # Twice the distribution function is tail + whole number, so differences on one side of 0 are exact.
    tail, tail_l, tail_u = k * k, kl * kl, ku * ku
    tail = tail if z < 0.0 else 0.0 - tail
    tail_l = tail_l if zl < 0.0 else 0.0 - tail_l
    tail_u = tail_u if zu < 0.0 else 0.0 - tail_u
    two = 0.0 if z < 0.0 else 2.0
    two_l = 0.0 if zl < 0.0 else 2.0
    two_u = 0.0 if zu < 0.0 else 2.0
    whole = (tail_u - tail_l) + (two_u - two_l)
    scale = 1.0 / (1.0 if whole == 0.0 else whole)
    left = ((tail - tail_l) + (two - two_l)) * scale
    right = ((tail_u - tail) + (two_u - two)) * scale
    both = left * right
    slope = 0.0 if both == 0.0 else ((k - ku) - right * (kl - ku)) * (2.0 * scale)
    return (1.0 if right == 0.0 else left), (1.0 if left == 0.0 else right), slope
