"""Vectors of rows inside compiled code: the same formula for one row and for several, with the same bits.

Numba compiles scalar loops well, but it does not turn the branching walk over a tree into vector code.
A `Lanes` value is an explicit LLVM vector of float64, one lane a row. It takes part in ``+ - * /`` with
itself and with floats, and every function here accepts floats as well, so that a formula is written
once and run either way. Each operation is one IEEE operation: nothing is fused or reordered, hence the
equal bits.

Reference: LLVM Language Reference, "Vector Type"; Numba manual, "Low-level extension API".
"""

# pyright: basic, reportCallIssue=false, reportOptionalCall=false

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import intrinsic, models, register_model

WIDTH = 16  # lanes a value: several registers, so that independent work hides the latency of each operation
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, WIDTH)
_INDEX = ir.IntType(32)
_U = np.uint64


class LanesType(types.Type):
    """The Numba type of `WIDTH` float64 lanes."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes({WIDTH})")


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


LANES = LanesType()


# --- between memory and lanes
# -----------------------------------------------------------------------------------


def _pointer(builder, address, index):
    place = builder.add(address, builder.shl(index, ir.Constant(index.type, 3)))
    return builder.inttoptr(place, _VECTOR.as_pointer())


@intrinsic
def load_vector(typingctx, address, index):
    """`WIDTH` consecutive float64, from position `index` of the memory at `address` (``array.ctypes.data``).

    Memory goes by its address because an array handed from function to function is counted at every
    call, and the calls that count would stand in the innermost loops.
    """

    def generate(context, builder, signature, arguments):
        return builder.load(_pointer(builder, *arguments), align=8)

    return LANES(types.uint64, types.uint64), generate


@intrinsic
def store(typingctx, address, index, value):
    """Write the lanes to position `index` of the memory at `address`."""

    def generate(context, builder, signature, arguments):
        builder.store(arguments[2], _pointer(builder, *arguments[:2]), align=8)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, LANES), generate


@intrinsic
def splat(typingctx, value):
    """The same float in every lane."""
    return LANES(types.float64), lambda context, builder, signature, arguments: _splat(builder, arguments[0])


def _splat(builder, value):
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_INDEX, WIDTH), [0] * WIDTH))


@intrinsic
def any_positive(typingctx, value):
    """Whether any lane (or the float) is above zero."""
    wide = isinstance(value, LanesType)

    def generate(context, builder, signature, arguments):
        found = builder.fcmp_ordered(">", arguments[0], _constant(arguments[0], 0.0))
        if wide:
            bits = builder.bitcast(found, ir.IntType(WIDTH))
            found = builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))
        return found

    return types.boolean(LANES if wide else types.float64), generate


# --- lane by lane
# -----------------------------------------------------------------------------------------------


def _constant(like, value: float):
    return ir.Constant(like.type, [value] * WIDTH if like.type == _VECTOR else value)


def _elementwise(arity: int, body: Callable[..., Any]) -> Any:
    """A compiled function of floats or lanes (floats are SD when they meet lanes) from an LLVM `body`."""

    def kind_and_code(*kinds):
        wide = any(isinstance(kind, LanesType) for kind in kinds)

        def generate(context, builder, signature, arguments):
            if wide:
                arguments = [a if a.type == _VECTOR else _splat(builder, a) for a in arguments]
            return body(builder, *arguments)

        taken = [LANES if isinstance(kind, LanesType) else types.float64 for kind in kinds]
        return (LANES if wide else types.float64)(*taken), generate

    return intrinsic(
        {
            1: lambda typingctx, a: kind_and_code(a),
            2: lambda typingctx, a, b: kind_and_code(a, b),
            3: lambda typingctx, a, b, c: kind_and_code(a, b, c),
        }[arity]
    )


def _integer(like):
    return ir.VectorType(ir.IntType(64), WIDTH) if like.type == _VECTOR else ir.IntType(64)


def _magnitude(builder, a):
    word = _integer(a)
    mask = ir.Constant(word, [2**63 - 1] * WIDTH if a.type == _VECTOR else 2**63 - 1)
    return builder.bitcast(builder.and_(builder.bitcast(a, word), mask), a.type)


def _at_most_one(builder, a):
    one = _constant(a, 1.0)
    return builder.select(builder.fcmp_ordered("<", a, one), a, one)


def _where_negative(builder, a, yes, no):
    word = _integer(a)  # the sign bit itself: one blend instead of a comparison and a blend
    zero = ir.Constant(word, [0] * WIDTH if a.type == _VECTOR else 0)
    return builder.select(builder.icmp_signed("<", builder.bitcast(a, word), zero), yes, no)


magnitude = _elementwise(1, _magnitude)  # |a|
at_most_one = _elementwise(1, _at_most_one)  # min(a, 1), and 1 for NaN
where_negative = _elementwise(3, _where_negative)  # yes where the sign bit of a is set, else no
where_nan = _elementwise(3, lambda b, a, yes, no: b.select(b.fcmp_unordered("uno", a, a), yes, no))
where_zero = _elementwise(
    3, lambda b, a, yes, no: b.select(b.fcmp_ordered("==", a, _constant(a, 0.0)), yes, no)
)


class _Arithmetic(AbstractTemplate):
    """Lanes with lanes, or with a float, give lanes."""

    def generic(self, args, kws):
        if any(isinstance(kind, LanesType) for kind in args):
            return LANES(*(kind if isinstance(kind, LanesType) else types.float64 for kind in args))
        return None


def _operator(operation, instruction: str) -> None:
    """Teach an operator to the compiler, emitted in place (an `overload` compiles a function each)."""
    infer_global(operation)(type(f"Lanes_{instruction}", (_Arithmetic,), {"key": operation}))

    def generate(context, builder, signature, arguments):
        return getattr(builder, instruction)(
            *(a if a.type == _VECTOR else _splat(builder, a) for a in arguments)
        )

    for left, right in [(LANES, LANES), (LANES, types.float64), (types.float64, LANES)]:
        lower_builtin(operation, left, right)(generate)


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")


@njit(error_model="numpy")
def aligned(count):
    """So many zeros that begin with a line of the cache: half of all vectors would else lie across two."""
    memory = np.zeros(count + _U(8))
    skipped = _U((64 - memory.ctypes.data % 64) % 64 // 8)
    return memory[skipped : skipped + count]


# --- groups of lanes at work: a bit each
# -----------------------------------------------------------------------
# A node of a tree is reached by few of the rows of a block. Neighbours in a block are alike, so that whole
# groups of lanes have nothing to do there, and are passed over without a look at them.


@njit(error_model="numpy")
def all_groups(filled, lanes):
    """The groups of `lanes` that hold the first `filled` lanes of a block, at most 63."""
    return (_U(1) << _U((filled + lanes - 1) // lanes)) - _U(1)


@njit(error_model="numpy")
def next_group(groups):
    """The number of the first group, and the groups without it."""
    return _zeros_below(groups), groups & (groups - _U(1))


@intrinsic
def _zeros_below(typingctx, word):
    """How many zeros stand below the lowest bit of a word that is not zero."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate
