"""One soft split: how likely a noisy value goes left or right, and how fast that changes with the value.

The noise is triangular on [-1, 1] in units of the column's half-width: density ``k(z) = 1 - |z|``, and
a tail mass of ``k^2 / 2`` beyond z. With ``z = (threshold - x) / s``, the row goes left with
probability F(z), given that its noisy value lies between the thresholds of the ancestors on the same
column. Each function returns ``(left, right, slope, bend)``, slope being s times the derivative of `right`
by x, and bend s^2 times its second derivative; all work on floats and on lanes.

Masses are kept as tails, never as ``1 - F``: a child that is reached with probability 1e-20 keeps all
its digits. And a probability of 0 goes with exactly 1 and slope 0 on the other side: who skips such a
child gets the same bits.
"""

# pyright: basic

from numba import njit

from texplainer.gradients.trees.vectors import at_most_one, magnitude, where_nan, where_negative, where_zero


@njit(error_model="numpy")
def density(z):
    """Of the noise at z; 0 for NaN."""
    return 1.0 - at_most_one(magnitude(z))


@njit(error_model="numpy")
def rise(z, k):
    """Of the density k at z with x, times s: 1 before the noise's middle, -1 behind it, 0 outside."""
    return where_zero(k, 0.0, where_negative(z, -1.0, 1.0))


@njit(error_model="numpy")
def split_free(threshold, lower, upper, x, inverse):
    """The first split on its column along the path."""
    z = (threshold - x) * inverse
    k = density(z)
    small = 0.5 * k * k
    large = 1.0 - small
    return where_negative(z, small, large), where_negative(z, large, small), k, rise(z, k)


@njit(error_model="numpy")
def split_once(threshold, lower, upper, x, inverse):
    """One ancestor bound, `upper`: (left, right, slope, bend).

    With minus `inverse` and the lower bound in its place, the mirror image: (right, left, slope, -bend).
    """
    z, zu = (threshold - x) * inverse, (upper - x) * inverse
    k, ku = density(z), density(zu)
    square, square_u = k * k, ku * ku
    reached, whole = where_negative(z, square, 2.0 - square), where_negative(zu, square_u, 2.0 - square_u)
    beyond = where_negative(z, whole - reached, square - square_u)  # across 0, or a difference of tails
    scale = 1.0 / where_zero(whole, 1.0, whole)  # a lane without mass: any finite answer will do
    outer = beyond * scale
    inner = where_zero(outer, 1.0, reached * scale)
    slope = where_zero(outer, 0.0, (k - inner * ku) * (2.0 * scale))
    bend = (rise(z, k) - inner * rise(zu, ku) + 2.0 * (slope * ku)) * (2.0 * scale)
    return inner, where_zero(inner, 1.0, outer), slope, where_zero(outer, 0.0, bend)


@njit(error_model="numpy")
def split_between(threshold, lower, upper, x, inverse):
    """Ancestor bounds on both sides."""
    z, zl, zu = (threshold - x) * inverse, (lower - x) * inverse, (upper - x) * inverse
    k, kl, ku = density(z), density(zl), density(zu)
    # Twice the distribution function is tail + whole number, so differences on one side of 0 are exact.
    tail, tail_l, tail_u = k * k, kl * kl, ku * ku
    tail = where_negative(z, tail, 0.0 - tail)
    tail_l = where_negative(zl, tail_l, 0.0 - tail_l)
    tail_u = where_negative(zu, tail_u, 0.0 - tail_u)
    two, two_l, two_u = (
        where_negative(z, 0.0, 2.0),
        where_negative(zl, 0.0, 2.0),
        where_negative(zu, 0.0, 2.0),
    )
    whole = (tail_u - tail_l) + (two_u - two_l)
    scale = 1.0 / where_zero(whole, 1.0, whole)
    left = ((tail - tail_l) + (two - two_l)) * scale
    right = ((tail_u - tail) + (two_u - two)) * scale
    both, narrowing, end = left * right, kl - ku, rise(zu, ku)
    slope = where_zero(both, 0.0, ((k - ku) - right * narrowing) * (2.0 * scale))
    bend = ((rise(z, k) - end) - right * (rise(zl, kl) - end) - 2.0 * (slope * narrowing)) * (2.0 * scale)
    return where_zero(right, 1.0, left), where_zero(left, 1.0, right), slope, where_zero(both, 0.0, bend)


@njit(error_model="numpy")
def take_default(x, default, left, right, slope, bend):
    """Where x is NaN, `default` (1 or 0) is the share that goes left, and nothing reacts to x."""
    left, right = where_nan(x, default, left), where_nan(x, 1.0 - default, right)
    return left, right, where_nan(x, 0.0, slope), where_nan(x, 0.0, bend)
