"""Dimensions: static, symbolic, bounded.

A dimension is a plain int when it is static, else a `Dim`: an affine expression of symbols such as 2N+1.

>>> n = named("N")
>>> n + 1 == named("N") + 1, 2 * n.lo
(True, 0)

Two symbols are equal if they have the same name and bounds. A fresh symbol has a unique name and prints as `?` (or
`a..b` with bounds), so that printed graphs do not depend on earlier graphs.

The same class represents values of shape arithmetic that are not fully known (`TensorType.known`). A value may be
negative, a dimension not: `low` and `high` are the bounds of a dimension, `least` and `most` those of a value.

A size of an input that the model declares is a symbol too, because the IR may be reshaped. It has the declared size as
`now`, and prints as this number: a decision may use it if it raises `Assumption`, or if each of its outcomes is right
for every size.

>>> height = opened("x", 2, 224)
>>> height, (height // 2 + 1).now
(224, 113)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

_made = 0
"""The number of fresh symbols; they are numbered from 1 on."""

LEAST = -(2**62)
"""The lower bound of a value without a known one."""

MOST_TERMS = 64
MOST_LETTERS = 1000
MOST_FACTOR = 2**63
"""The most terms of a dimension, letters of the name of a product or a quotient, and the largest factor or bound. A
larger dimension becomes a fresh symbol: nodes that double a size, or multiply it by itself, make expressions without
end."""


class Symbol:
    """A quantity unknown until run time, `lo` <= it <= `hi` (None: no upper bound).

    `now` is its value for the sizes of the conversion, if it is known, and `sources` the symbols from which it follows
    and that follow from no others themselves: sizes of a long chain of nodes all have those of its beginning.
    """

    __slots__ = ("_hash", "hi", "lo", "name", "now", "sources")

    def __init__(
        self, name: str, lo: int = 0, hi: int | None = None, now: int | None = None, sources: tuple[Symbol, ...] = ()
    ) -> None:
        self.name, self.lo, self.hi, self.now = name, lo, hi, now
        first = (each for source in sources for each in source.sources or (source,))
        self.sources: tuple[Symbol, ...] = sources and tuple(dict.fromkeys(first))
        self._hash = hash((name, lo, hi))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Symbol) and self.name == other.name and self.lo == other.lo and self.hi == other.hi

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        """For pickle. Another process has fresh symbols of the same numbers, and other hashes of names."""
        if self.is_fresh:
            return _renumbered, (NUMBERING, int(self.name[1:]), self.lo, self.hi, self.now, self.sources)
        return Symbol, (self.name, self.lo, self.hi, self.now, self.sources)

    @property
    def is_fresh(self) -> bool:
        return self.name[0] == "?"

    def __repr__(self) -> str:
        if self.now is not None:
            return str(self.now)
        if not self.is_fresh:
            return self.name
        return "?" if self.lo == 0 and self.hi is None else f"{self.lo}..{'' if self.hi is None else self.hi}"


class Dim:
    """An affine expression `sum(coefficient * symbol) + const` with at least one symbol. Immutable, hashable."""

    __slots__ = ("const", "terms")

    def __init__(self, terms: tuple[tuple[Symbol, int], ...], const: int = 0) -> None:
        self.terms, self.const = terms, const

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Dim) and self.const == other.const and self.terms == other.terms)

    def __hash__(self) -> int:
        return hash((self.terms, self.const))

    def __reduce__(self) -> Any:
        return Dim, (self.terms, self.const)

    @property
    def lo(self) -> int:
        """The least value it can have (never below 0 for a dimension, but an intermediate may be negative)."""
        total = self.const
        for symbol, factor in self.terms:
            bound = symbol.lo if factor > 0 else symbol.hi
            if bound is None or bound <= LEAST:
                return LEAST
            total += factor * bound
        return max(total, LEAST)

    @property
    def hi(self) -> int | None:
        total = self.const
        for symbol, factor in self.terms:
            bound = symbol.hi if factor > 0 else symbol.lo
            if bound is None or bound <= LEAST:
                return None
            total += factor * bound
        return total

    @property
    def symbol(self) -> Symbol | None:
        """The symbol if the dimension is just one symbol, else None."""
        if self.const == 0 and len(self.terms) == 1 and self.terms[0][1] == 1:
            return self.terms[0][0]
        return None

    @property
    def is_fresh(self) -> bool:
        """Whether the dimension is just one symbol without a name."""
        symbol = self.symbol
        return symbol is not None and symbol.is_fresh

    @property
    def now(self) -> int | None:
        """Its value for the sizes of the conversion; None if it is not known."""
        total = self.const
        for symbol, factor in self.terms:
            if symbol.now is None:
                return None
            total += factor * symbol.now
        return total

    def symbols(self) -> Iterable[Symbol]:
        return (symbol for symbol, _ in self.terms)

    def __add__(self, other: Dimension) -> Dimension:
        if isinstance(other, int):
            return _bounded(self.terms, self.const + other)
        return _affine([*self.terms, *other.terms], self.const + other.const)

    __radd__ = __add__

    def __neg__(self) -> Dimension:
        return Dim(tuple((symbol, -factor) for symbol, factor in self.terms), -self.const)

    def __sub__(self, other: Dimension) -> Dimension:
        return self + (-other)

    def __rsub__(self, other: Dimension) -> Dimension:
        return (-self) + other

    def __mul__(self, other: Dimension) -> Dimension:
        if isinstance(other, int):
            if other == 0:
                return 0
            return _bounded(tuple((symbol, factor * other) for symbol, factor in self.terms), self.const * other)
        lo = min(self.lo * other.lo, MOST_FACTOR) if self.lo >= 0 and other.lo >= 0 else 0
        hi = self.hi * other.hi if self.hi is not None and other.hi is not None else None
        hi = None if hi is not None and hi > MOST_FACTOR else hi
        left, right = sorted((_bracketed(self), _bracketed(other)))
        now = None if self.now is None or other.now is None else self.now * other.now
        sources = (*self.symbols(), *other.symbols())
        if self.has_fresh() or other.has_fresh() or len(left) + len(right) > MOST_LETTERS:
            return fresh(lo, hi, now, sources)
        return Dim(((Symbol(f"{left}*{right}", lo, hi, now, sources), 1),))

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> Dimension:
        if other == 1:
            return self
        if other > 0 and self.const % other == 0 and all(factor % other == 0 for _, factor in self.terms):
            return _affine([(symbol, factor // other) for symbol, factor in self.terms], self.const // other)
        lo = max(self.lo, 0) // other if other > 0 else 0
        hi = max(self.hi // other, lo) if other > 0 and self.hi is not None else None
        name = f"floor({self.name}/{other})"
        now = None if self.now is None or other == 0 else self.now // other
        if self.has_fresh() or other <= 0 or len(name) > MOST_LETTERS:
            return fresh(lo, hi, now, tuple(self.symbols()))
        return Dim(((Symbol(name, lo, hi, now, tuple(self.symbols())), 1),))

    def has_fresh(self) -> bool:
        return any(symbol.is_fresh for symbol in self.symbols())

    @property
    def name(self) -> str:
        """The expression with the names of its symbols."""
        text = ""
        for symbol, factor in self.terms:
            sign = "-" if factor < 0 else "+" if text else ""
            text += f"{sign}{'' if abs(factor) == 1 else abs(factor)}{symbol.name}"
        return text + (f"{self.const:+d}" if self.const else "")

    def __repr__(self) -> str:
        if self.now is not None:
            return str(self.now)
        if self.has_fresh():  # the name of a fresh symbol has no meaning, its bounds have
            lo, hi = max(self.lo, 0), self.hi
            return "?" if lo == 0 and hi is None else f"{lo}..{'' if hi is None else hi}"
        return self.name


Dimension: TypeAlias = int | Dim


def _bracketed(dim: Dim) -> str:
    return dim.name if dim.symbol else f"({dim.name})"


def _affine(terms: Iterable[tuple[Symbol, int]], const: int) -> Dimension:
    total: dict[Symbol, int] = {}
    for symbol, factor in terms:
        total[symbol] = total.get(symbol, 0) + factor
    kept = sorted(((s, f) for s, f in total.items() if f), key=lambda term: term[0].name)
    return _bounded(tuple(kept), const) if kept else const


def _bounded(terms: tuple[tuple[Symbol, int], ...], const: int) -> Dimension:
    """The dimension of these terms; a symbol with its bounds if they are too many or too large."""
    dim = Dim(terms, const)
    if len(terms) <= MOST_TERMS and all(abs(each) <= MOST_FACTOR for each in (const, *(factor for _, factor in terms))):
        return dim
    lo, hi = max(LEAST, min(dim.lo, MOST_FACTOR)), dim.hi
    return unknown(lo, hi if hi is not None and abs(hi) <= MOST_FACTOR else None, dim.now, tuple(dim.symbols()))


def named(name: str, lo: int = 0, hi: int | None = None) -> Dim:
    """The symbolic dimension called `name`."""
    return Dim(((Symbol(name, lo, hi), 1),))


def opened(name: str, axis: int, size: int) -> Dim:
    """The size of an axis of the input `name` that the model declares, and that may change when the IR is reshaped."""
    return Dim(((Symbol(f"{name}[{axis}]", 0, None, size), 1),))


def fresh(
    lo: int = 0, hi: int | None = None, now: int | None = None, sources: tuple[Symbol, ...] = ()
) -> Dimension:
    """A dimension with known bounds only; equal only to itself. It is static if the bounds are equal."""
    return unknown(max(lo, 0), hi, now, sources)


def unknown(
    lo: int = LEAST, hi: int | None = None, now: int | None = None, sources: tuple[Symbol, ...] = ()
) -> Dimension:
    """A value, possibly negative, with known bounds only. It is static if the bounds are equal."""
    global _made
    if lo == hi:
        return lo
    _made += 1
    return Dim(((Symbol(f"?{_made}", lo, hi, now, sources), 1),))


def one_of(a: Dimension, b: Dimension, now: int | None = None) -> Dimension:
    """A dimension within the bounds of at least one of two, from which it follows."""
    hi_a, hi_b = high(a), high(b)
    sources = tuple(symbol for each in (a, b) if isinstance(each, Dim) for symbol in each.symbols())
    return fresh(min(low(a), low(b)), None if hi_a is None or hi_b is None else max(hi_a, hi_b), now, sources)


def now(dim: Dimension) -> int | None:
    """The size for the sizes of the conversion; None if it is not known."""
    return dim if isinstance(dim, int) else dim.now


def open_symbols(dims: Iterable[Dimension]) -> set[Symbol]:
    """The sizes of inputs from which the dimensions follow, as far as this is known."""
    found = symbols_of(dims)
    return {symbol for symbol in found if symbol.now is not None and not symbol.is_fresh}


def symbols_of(dims: Iterable[Dimension]) -> set[Symbol]:
    """The symbols from which dimensions follow, as far as this is known."""
    symbols = (symbol for dim in dims if isinstance(dim, Dim) for symbol in dim.symbols())
    return {each for symbol in symbols for each in symbol.sources or (symbol,)}


class Assumption(Exception):
    """A decision depends on sizes of inputs that may change when the IR is reshaped: the conversion restarts with these
    assumptions, which the IR then checks.

    `fixed` keep their size, each of `equal` has the size of the others, `least` are at least this size.
    """

    def __init__(
        self, fixed: Iterable[Symbol] = (), equal: Iterable[Iterable[Symbol]] = (),
        least: Iterable[tuple[Symbol, int]] = (),
    ) -> None:
        super().__init__()
        self.fixed, self.equal, self.least = set(fixed), [set(each) for each in equal], dict(least)


def fresh_symbols() -> int:
    """The number of fresh symbols so far. Those of an inference have the numbers between two results."""
    return _made


class Numbering:
    """The numbers of the fresh symbols of one pickle: those that are read begin after `offset`."""

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset

    def __reduce__(self) -> Any:
        return _numbered_after_those_here, (_made,)


NUMBERING = Numbering()
"""The numbers of this process."""


def _numbered_after_those_here(count: int) -> Numbering:
    global _made
    offset, _made = _made, _made + count
    return Numbering(offset)


def _renumbered(
    numbering: Numbering, number: int, lo: int, hi: int | None, now: int | None, sources: tuple[Symbol, ...]
) -> Symbol:
    return Symbol(f"?{numbering.offset + number}", lo, hi, now, sources)


def substituted(dim: Dimension, symbol: Symbol, value: int) -> Dimension:
    """The dimension where the symbol is this number."""
    if isinstance(dim, int):
        return dim
    factors = dict(dim.terms)
    factor = factors.pop(symbol, 0)
    return _affine(factors.items(), dim.const + factor * value) if factor else dim


def low(dim: Dimension) -> int:
    return dim if isinstance(dim, int) else max(dim.lo, 0)


def may_be_one(dim: Dimension) -> bool:
    """Whether a size that is not known may be 1."""
    return not isinstance(dim, int) and low(dim) < 2


def high(dim: Dimension) -> int | None:
    return dim if isinstance(dim, int) else dim.hi


def least(value: Dimension) -> int:
    """The lower bound of a value, `LEAST` if there is none."""
    return value if isinstance(value, int) else value.lo


def most(value: Dimension) -> int | None:
    """The upper bound of a value."""
    return high(value)


def join_values(a: Dimension, b: Dimension) -> Dimension:
    """A value that is one of two."""
    if a == b:
        return a
    hi_a, hi_b = most(a), most(b)
    return unknown(min(least(a), least(b)), None if hi_a is None or hi_b is None else max(hi_a, hi_b))
