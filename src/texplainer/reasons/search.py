"""The search for small changes that reach a goal: single values, a beam over several features, then shrinking.

Every candidate is judged by the model; predictions are asked in batches. Nothing is random.

1. Each feature alone takes its listed values, and the value at which its slope says that the goal is reached.
2. The most promising states (by score, and by gain for their cost) are extended by one more feature, until the
   allowed number of features is changed. Of each feature only values are kept that gain more than cheaper ones:
   for trees these are the values next to the thresholds that matter.
3. Each solution is shrunk, one feature at a time: the smallest change of it that still reaches the goal, found
   on ever finer grids, then rounded to the decimals of its column.
4. A solution at which moves by 5% of an SD undo the goal is pushed on until they no longer do, if it can be.

The search asks for a little more than the goal, its `cushion`: what moves by 5% of an SD cost at the row itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from texplainer.reasons.problem import Goal, Moves
from texplainer.types import Array

BEAM, PER_SET = 16, 3  # states that are extended, and those of the same features among them
USEFUL, FEATURES = 8, 40  # values of a feature beyond the first round, and features
EACH = 0.1  # SDs that changing one more feature is worth
KEPT = 24  # solutions that are shrunk
GRID, ROUNDS, PASSES = 16, 3, 2  # points of a grid, grids, and times each feature is shrunk
NOISE, PATTERNS = 0.05, 16  # SDs: how far a value may be off; patterns of signs
PUSHES = (0.06, 0.1, 0.2, 0.4, 0.8)  # SDs beyond


@dataclass(frozen=True)
class State:
    """A changed row: `changes` are pairs of a position among the moves and a value, by position."""

    changes: tuple[tuple[int, float], ...]
    cost: float
    score: float = np.nan
    robust: bool = False

    @property
    def burden(self) -> float:
        """The sort key of proposals: the cost and a small penalty per changed feature."""
        return self.cost + EACH * len(self.changes)

    @property
    def features(self) -> tuple[int, ...]:
        """The positions that are changed."""
        return tuple(k for k, _ in self.changes)


@dataclass
class Search:
    """The row, where its features may go and the goal; counts the predictions and remembers the nearest row."""

    row: Array
    moves: Sequence[Moves]
    goal: Goal
    cushion: float = 0.0
    evaluations: int = 0
    nearest: State | None = field(default=None)

    def scored(self, states: Sequence[State]) -> list[State]:
        """The states with their scores, by one batch of predictions."""
        if not states:
            return []
        scores = self.ask(np.stack([self.rebuilt(state) for state in states]))
        out = [replace(state, score=float(score)) for state, score in zip(states, scores, strict=True)]
        best = max(out, key=lambda state: (state.score, -state.cost))
        if self.nearest is None or best.score > self.nearest.score:
            self.nearest = best
        return out

    def met(self, states: Sequence[State]) -> np.ndarray:
        """Which states reach the goal and the cushion beyond it."""
        return self.goal.met(np.array([state.score for state in states]) - self.cushion)

    def ask(self, rows: Array) -> np.ndarray:
        """Scores of rows, (rows,); a prediction that is not finite is never a solution."""
        self.evaluations += len(rows)
        return np.nan_to_num(self.goal.measure(rows)[0], nan=-np.inf)

    def rebuilt(self, state: State) -> Array:
        """The row with the state's changes, (features,)."""
        out = self.row.copy()
        for k, value in state.changes:
            out[self.moves[k].feature] = value
        return out

    def state(self, changes: dict[int, float]) -> State:
        """A state of these changes; what is as in the row is left out."""
        kept = tuple((k, v) for k, v in sorted(changes.items()) if v != self.moves[k].start)
        return State(kept, float(sum(self.moves[k].cost(np.array(v)) for k, v in kept)))


def solutions(search: Search, max_changes: int, slopes: np.ndarray) -> list[State]:
    """States that reach the goal, the cheapest first; at most one for each set of features."""
    start = float(search.ask(search.row[None])[0])
    max_changes = min(max_changes, len(search.moves))
    singles = search.scored([search.state({k: v}) for k, v in _first_values(search, start, slopes)])
    useful = _useful(singles, start)
    found, front = _split(search, singles)
    for _ in range(max_changes - 1):
        beam = _beam(front, start)
        wider = {
            state.changes: state
            for old in beam
            for k, values in useful.items()
            if k not in old.features
            for state in (search.state({**dict(old.changes), k: v}) for v in values)
        }
        met, front = _split(search, search.scored(list(wider.values())))
        found += met
    kept = _cheapest_of_sets(found, 2)[:KEPT]
    for _ in range(PASSES):
        for place in range(max_changes):
            kept = _shrunk(search, kept, place)
    return _cheapest_of_sets(kept, 1)


def _first_values(search: Search, start: float, slopes: np.ndarray) -> list[tuple[int, float]]:
    """The listed values of each feature, and those at which its slope crosses the goal."""
    out = []
    for k, moves in enumerate(search.moves):
        values = list(moves.values)
        slope = slopes[moves.feature]
        if moves.continuous and np.isfinite(slope) and slope != 0:
            crossing = [moves.rounded(moves.start - far * start / slope) for far in (1.0, 1.25)]
            values += [v for v in crossing if moves.low <= v <= moves.high and v != moves.start]
        out += [(k, float(v)) for v in dict.fromkeys(values)]
    return out


def _useful(singles: Sequence[State], start: float) -> dict[int, list[float]]:
    """Per feature the values that gain more than all cheaper ones, and the ends; of the best features."""
    by_feature: dict[int, list[State]] = {}
    for state in singles:
        by_feature.setdefault(state.features[0], []).append(state)
    out = {}
    for k, states in by_feature.items():
        best, kept = start, []
        for state in sorted(states, key=lambda s: (s.cost, s.changes)):
            if state.score > best:
                best, kept = state.score, [*kept, state]
        if len(kept) > USEFUL:
            kept = [kept[i] for i in np.linspace(0, len(kept) - 1, USEFUL).round().astype(int)]
        ends = [min(states, key=lambda s: s.changes), max(states, key=lambda s: s.changes)]
        out[k] = (best, list(dict.fromkeys(s.changes[0][1] for s in [*kept, *ends])))
    order = sorted(out, key=lambda k: (-out[k][0], k))[:FEATURES]
    return {k: out[k][1] for k in order}


def _split(search: Search, states: Sequence[State]) -> tuple[list[State], list[State]]:
    """The states that reach the goal, and the others."""
    met = search.met(states)
    return (
        [state for state, ok in zip(states, met, strict=True) if ok],
        [state for state, ok in zip(states, met, strict=True) if not ok],
    )


def _beam(states: Sequence[State], start: float) -> list[State]:
    """The most promising states: half by score, half by gain for their cost; few of the same features."""
    better = [state for state in states if state.score > start]
    orders = (
        sorted(better, key=lambda s: (-s.score, s.cost, s.changes)),
        sorted(better, key=lambda s: (-(s.score - start) / s.cost, s.cost, s.changes)),
    )
    chosen: dict[tuple[tuple[int, float], ...], State] = {}
    for order in orders:
        counts: dict[tuple[int, ...], int] = {}
        taken = 0
        for state in order:
            if taken == BEAM // 2:
                break
            counts[state.features] = counts.get(state.features, 0) + 1
            if counts[state.features] <= PER_SET:
                chosen[state.changes] = state
                taken += 1
    return list(chosen.values())


def _cheapest_of_sets(states: Sequence[State], most: int) -> list[State]:
    """The cheapest states, at most so many of the same features."""
    out, counts = [], {}
    for state in sorted(dict.fromkeys(states), key=lambda s: (s.burden, s.changes)):
        counts[state.features] = counts.get(state.features, 0) + 1
        if counts[state.features] <= most:
            out.append(state)
    return out


# ---------------------------------------------------------------- smaller changes


def _shrunk(search: Search, states: Sequence[State], place: int) -> list[State]:
    """The states, each with its `place`-th most costly change made as small as the goal allows."""
    out = list(states)
    where = {i: _by_cost(search, state)[place] for i, state in enumerate(out) if place < len(state.changes)}
    # shares of the change: one that fails (or none), and one that is enough
    spans = dict.fromkeys(where, (0.0, 1.0))
    for _ in range(ROUNDS):
        asked = [
            (i, share, value) for i, k in where.items() for share, value in _grid(search, out[i], k, spans[i])
        ]
        tried = search.scored([search.state({**dict(states[i].changes), where[i]: v}) for i, _, v in asked])
        met = search.met(tried)
        for i in {i for i, _, _ in asked}:
            mine = [(share, t, ok) for (n, share, _), t, ok in zip(asked, tried, met, strict=True) if n == i]
            good = [(share, t) for share, t, ok in mine if ok and t.cost < out[i].cost]
            if good:
                share, state = min(good, key=lambda one: (one[1].cost, one[0]))
                failing = [s for s, _, ok in mine if not ok and s < share]
                spans[i] = (max(failing, default=spans[i][0]), share)
                out[i] = state
            else:
                spans[i] = (max((s for s, _, ok in mine if not ok), default=spans[i][0]), spans[i][1])
    return out


def _by_cost(search: Search, state: State) -> list[int]:
    """The changed features, the largest change first."""
    return [
        k for k, v in sorted(state.changes, key=lambda c: -float(search.moves[c[0]].cost(np.array(c[1]))))
    ]


def _grid(search: Search, state: State, k: int, span: tuple[float, float]) -> list[tuple[float, float]]:
    """Smaller changes of one feature: shares of the first change, and the values they stand for."""
    moves, now = search.moves[k], dict(state.changes).get(k)
    if now is None:
        return []
    if not moves.continuous:
        cheaper = moves.cost(moves.values) < float(moves.cost(np.array(now)))
        smaller = [float(v) for v in moves.values[cheaper]]
        return [(0.0, moves.start), *((0.5, v) for v in smaller)] if span == (0.0, 1.0) else []
    low, high = span
    whole = (now - moves.start) / high
    shares = np.linspace(low, high, GRID + 1)[:-1]
    return list(
        {v: (float(s), v) for s in shares for v in [_toward(moves, moves.start + s * whole)]}.values()
    )


def _toward(moves: Moves, value: float) -> float:
    return moves.start if value == moves.start else moves.rounded(value)


# ---------------------------------------------------------------- a safe distance


def made_robust(search: Search, states: Sequence[State], noisy: Sequence[tuple[int, float]]) -> list[State]:
    """The states, pushed on where a move of the `noisy` columns (position, SD) by 5% of their SD undoes the goal."""
    safe = _survives(search, states, noisy)
    pushed = {
        i: [_pushed(search, state, by) for by in PUSHES]
        for i, state in enumerate(states)
        if not safe[i] and any(search.moves[k].continuous for k in state.features)
    }
    flat = search.scored([state for versions in pushed.values() for state in versions])
    met = search.goal.met(np.array([state.score for state in flat])) & _survives(search, flat, noisy)
    out = [replace(state, robust=bool(ok)) for state, ok in zip(states, safe, strict=True)]
    for n, i in enumerate(pushed):
        here = slice(n * len(PUSHES), (n + 1) * len(PUSHES))
        good = [state for state, ok in zip(flat[here], met[here], strict=True) if ok]
        if good:
            out[i] = replace(min(good, key=lambda s: s.cost), robust=True)
    return sorted(out, key=lambda s: (not s.robust, s.burden, s.changes))


def _pushed(search: Search, state: State, by: float) -> State:
    """The state with its continuous changes made larger by so many SDs, inside the limits."""
    changes = {}
    for k, value in state.changes:
        moves = search.moves[k]
        further = value + np.sign(value - moves.start) * by * moves.sd if moves.continuous else value
        changes[k] = moves.rounded(float(np.clip(further, moves.low, moves.high)))
    return search.state(changes)


def _survives(search: Search, states: Sequence[State], noisy: Sequence[tuple[int, float]]) -> np.ndarray:
    """Whether the goal stays reached when each noisy column moves either way, and when all move."""
    if not states:
        return np.zeros(0, dtype=bool)
    rows = np.stack([search.rebuilt(state) for state in states])  # (states, features)
    if not noisy:
        return np.ones(len(rows), dtype=bool)
    moved = (rows[:, None, :] + _displacements(noisy, rows.shape[1])).reshape(-1, rows.shape[1])
    return np.asarray(search.goal.met(search.ask(moved)).reshape(len(rows), -1).all(axis=1))


def cushion_of(search: Search, noisy: Sequence[tuple[int, float]]) -> float:
    """The most that moves of the noisy columns by 5% of their SD take from the score at the row itself."""
    if not noisy:
        return 0.0
    moved = search.row + _displacements(noisy, len(search.row))
    scores = search.ask(np.vstack([search.row, moved]))
    drop = scores[0] - scores[1:].min()
    return float(drop) if np.isfinite(drop) and drop > 0 else 0.0


def _displacements(noisy: Sequence[tuple[int, float]], features: int) -> Array:
    """Moves by 5% of an SD, (moves, features): each column alone, and all together by 16 patterns of signs."""
    columns, sds = (np.array(part) for part in zip(*noisy, strict=True))
    steps = NOISE * sds.astype(float)
    out = np.zeros((2 * len(noisy) + PATTERNS, features))
    each = np.arange(len(noisy))
    out[2 * each, columns], out[2 * each + 1, columns] = -steps, steps
    codes = (5 * each + each // PATTERNS + 1) % PATTERNS  # rows of a Hadamard matrix, one a column
    common = np.arange(PATTERNS)[:, None] & codes[None, :]  # (patterns, columns)
    odd = np.bitwise_xor.reduce([common >> bit for bit in range(4)]) & 1
    out[2 * len(noisy) :, columns] = np.where(odd, -steps, steps)
    return out


def diverse(states: Sequence[State], count: int) -> list[State]:
    """The first states of which none changes all the features of an earlier one."""
    out: list[State] = []
    for state in states:
        if len(out) < count and not any(set(state.features) >= set(other.features) for other in out):
            out.append(state)
    return out
