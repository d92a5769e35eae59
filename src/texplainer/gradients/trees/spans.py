"""Parts of many lines at once, inside compiled code: `LANES` spans in a vector.

A lane is one line; within a node it has a *span*, the part of its way (since, until) on which it is there
(empty: since >= until). Each intrinsic here is one step of the walk for `LANES` lanes, written in the
compiler's own vector types, because it does not make vectors of a branching walk by itself. Memory goes by
address, in bytes: float32 for codes and spans, float64 for leaf values.

Reference: LLVM Language Reference, "Vector Type"; Numba manual, "Low-level extension API".
"""

# pyright: basic, reportCallIssue=false, reportOptionalCall=false

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 16
FAR = 1e35  # beyond every place
_SINGLE = ir.VectorType(ir.FloatType(), LANES)
_DOUBLE = ir.VectorType(ir.DoubleType(), LANES)
_WORD = ir.VectorType(ir.IntType(32), LANES)
_ADDRESS = types.uint64


def _load(builder, kind, address, stride, times=0):
    size = 4 if kind is _SINGLE else 8
    return builder.load(_pointer(builder, kind, address, stride, times), align=size)


def _store(builder, value, address, stride, times=0):
    size = 4 if value.type is _SINGLE else 8
    builder.store(value, _pointer(builder, value.type, address, stride, times), align=size)


def _pointer(builder, kind, address, stride, times):
    for _ in range(times):
        address = builder.add(address, stride)
    return builder.inttoptr(address, kind.as_pointer())


def _sd(builder, value, kind):
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(_WORD, [0] * LANES))


def _crossing(builder, code, stride, rank, threshold):
    """Where each lane crosses the node, and whether it comes from the right.

    A node that the line does not cross is met before the start (then the end's side holds) or beyond the end
    (the start's). Ranks decide that; on lines from the right all comparisons are mirrored by the sign.
    """
    pace, shift, start, end = (_load(builder, _SINGLE, code, stride, i) for i in range(4))
    bits = builder.bitcast(pace, _WORD)
    sign = builder.and_(bits, ir.Constant(_WORD, [1 << 31] * LANES))
    own = builder.xor(builder.bitcast(_sd(builder, rank, _SINGLE), _WORD), sign)
    own = builder.bitcast(own, _SINGLE)
    here = builder.fadd(builder.fmul(_sd(builder, threshold, _SINGLE), pace), shift)
    far = ir.Constant(_SINGLE, [FAR] * LANES)
    here = builder.select(builder.fcmp_ordered(">", own, end), far, here)
    near = ir.Constant(_SINGLE, [-FAR] * LANES)
    here = builder.select(builder.fcmp_ordered("<", own, start), near, here)
    return here, builder.icmp_signed("<", bits, ir.Constant(_WORD, [0] * LANES))


def _smaller(builder, a, b):
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def _larger(builder, a, b):
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _any(builder, mask, bit):
    word = builder.bitcast(mask, ir.IntType(LANES))
    found = builder.icmp_unsigned("!=", word, ir.Constant(word.type, 0))
    return builder.select(found, ir.Constant(ir.IntType(64), bit), ir.Constant(ir.IntType(64), 0))


@intrinsic
def part_spans(typingctx, code, span, below, stride, rank, threshold):
    """Part the spans of a node between its children; bit 1 if any lane goes left, bit 2 if any goes right.

    code: pace, shift, start and end of the lanes in the node's column; span: since and until; below: the same
    of the left child and of the right one; all `stride` bytes apart.
    """

    def generate(context, builder, signature, arguments):
        code, span, below, stride, rank, threshold = arguments
        here, mirrored = _crossing(builder, code, stride, rank, threshold)
        since, until = (_load(builder, _SINGLE, span, stride, i) for i in range(2))
        early, late = _smaller(builder, until, here), _larger(builder, since, here)
        left = builder.select(mirrored, late, since), builder.select(mirrored, until, early)
        right = builder.select(mirrored, since, late), builder.select(mirrored, early, until)
        for i, value in enumerate((*left, *right)):
            _store(builder, value, below, stride, i)
        to_left, to_right = (builder.fcmp_ordered("<", *child) for child in (left, right))
        return builder.or_(_any(builder, to_left, 1), _any(builder, to_right, 2))

    taken = (_ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS, types.float32, types.float32)
    return types.uint64(*taken), generate


@intrinsic
def cross_leaves(typingctx, code, span, share, done, stride, rank, threshold, low, high):
    """A node whose children are leaves: add the jumps to `share`, put first and last values into `done`."""

    def generate(context, builder, signature, arguments):
        code, span, share, done, stride, rank, threshold, low, high = arguments
        here, mirrored = _crossing(builder, code, stride, rank, threshold)
        since, until = (_load(builder, _SINGLE, span, stride, i) for i in range(2))
        left, right = _sd(builder, low, _DOUBLE), _sd(builder, high, _DOUBLE)
        before = builder.select(mirrored, right, left)
        after = builder.select(mirrored, left, right)
        starts = builder.fcmp_ordered("<", since, _smaller(builder, until, here))
        ends = builder.fcmp_ordered("<", _larger(builder, since, here), until)
        _add_jump(builder, share, stride, builder.and_(starts, ends), builder.fsub(after, before))
        _store(builder, builder.select(starts, before, after), done, stride)
        _store(builder, builder.select(ends, after, before), done, stride, 2)
        return context.get_dummy_value()

    taken = (*[_ADDRESS] * 5, types.float32, types.float32, types.float64, types.float64)
    return types.void(*taken), generate


def _add_jump(builder, share, stride, crossed, jump):
    none = ir.Constant(_DOUBLE, [0.0] * LANES)
    total = builder.fadd(_load(builder, _DOUBLE, share, stride), builder.select(crossed, jump, none))
    _store(builder, total, share, stride)


@intrinsic
def join_spans(typingctx, below, left, right, share, done, stride, apart):
    """Both children are done: add the jump between them, put the node's first and last values into `done`.

    left, right, done: first values; last values lie `apart` bytes behind.
    """

    def generate(context, builder, signature, arguments):
        below, left, right, share, done, stride, apart = arguments
        since_l, until_l, since_r, until_r = (_load(builder, _SINGLE, below, stride, i) for i in range(4))
        in_left, in_right = (
            builder.fcmp_ordered("<", since, until)
            for since, until in ((since_l, until_l), (since_r, until_r))
        )
        leads = builder.fcmp_ordered("<", since_l, since_r)
        first_l, last_l, first_r, last_r = (
            _load(builder, _DOUBLE, side, apart, i) for side in (left, right) for i in range(2)
        )
        both = builder.and_(in_left, in_right)
        onward, back = builder.fsub(first_r, last_l), builder.fsub(first_l, last_r)
        _add_jump(builder, share, stride, both, builder.select(leads, onward, back))
        alone_l = builder.and_(in_left, builder.not_(in_right))
        alone_r = builder.and_(in_right, builder.not_(in_left))
        from_left = builder.or_(alone_l, builder.and_(both, leads))
        from_right = builder.or_(alone_r, builder.and_(both, leads))
        _store(builder, builder.select(from_left, first_l, first_r), done, apart)
        _store(builder, builder.select(from_right, last_r, last_l), done, apart, 1)
        return context.get_dummy_value()

    return types.void(*[_ADDRESS] * 7), generate


@intrinsic
def fill_double(typingctx, at, value):
    """Write one float64 to every lane."""

    def generate(context, builder, signature, arguments):
        _store(builder, _sd(builder, arguments[1], _DOUBLE), arguments[0], None)
        return context.get_dummy_value()

    return types.void(_ADDRESS, types.float64), generate
