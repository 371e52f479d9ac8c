"""The recurrent cell that the next values of states form.

    c' = f * c + i * g                      h' = o * tanh(c')                           LSTM
    h' = (1 - z) * n + z * h                n = tanh(x W + b + r * (h R + b'))          GRU, linear before reset
                                            n = tanh(x W + b + (r * h) R)               GRU
    h' = tanh(x W + h R + b), or relu, sigmoid                                          RNN

f, i, o, z and r are sigmoids and g is a tanh of affine expressions in x and h. Sums are expanded first, so that n + z *
(h - n) and n * (1 - z) + h * z are the same. z' = 1 - z is a sigmoid of the negated input, so it is recognised too.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from mo_loop.graph import Value
from mo_loop.ops.port_map import Merged
from mo_loop.transforms.front.recurrence.columns import (
    Active,
    Affine,
    Array,
    Columns,
    Expression,
    NotACell,
    Product,
    Source,
    Sum,
    scaled,
    width_of,
)

Monomial = tuple[int, tuple[Expression, ...]]
"""A sign and the factors."""

MOST_MONOMIALS = 8


@dataclass(frozen=True)
class Gate:
    """The input of an activation: weights of inputs and state, [columns, rows], and a bias [columns]."""

    inputs: tuple[tuple[Source, Array], ...]
    recurrence: Array
    bias: Array


@dataclass(frozen=True)
class RecognisedCell:
    """A cell. `states` are the hidden state and, for LSTM, the cell state; `gates` are in the order of the IR.

    `recurrent_bias` is the bias of the candidate of a GRU with linear_before_reset.
    """

    kind: str
    states: tuple[Merged, ...]
    gates: tuple[Gate, ...]
    activations: tuple[str, ...]
    linear_before_reset: bool = False
    recurrent_bias: Array | None = None


def recognised(columns: Columns, hidden: Merged, states: Sequence[Merged]) -> RecognisedCell:
    """The cell whose hidden state is `hidden`; NotACell with the reason if there is none."""
    state = hidden.parameter.output
    root = columns.of(hidden.result.value)
    if isinstance(root, Active):
        gate = _gate(_affine(root.of, state), state)
        if not gate.recurrence.any():
            raise NotACell("the next state does not depend on the state")
        return RecognisedCell("RNN", (hidden,), (gate,), (root.name,))
    monomials = _monomials(root)
    return _lstm(columns, monomials[0], hidden, states) if len(monomials) == 1 else _gru(monomials, hidden)


def _lstm(columns: Columns, monomial: Monomial, hidden: Merged, states: Sequence[Merged]) -> RecognisedCell:
    sign, factors = monomial
    gates = [each for each in factors if isinstance(each, Active) and each.name == "sigmoid"]
    tanhs = [each for each in factors if isinstance(each, Active) and each.name == "tanh"]
    if sign != 1 or len(factors) != 2 or len(gates) != 1 or len(tanhs) != 1:
        raise NotACell("the next state is not a sigmoid times a tanh")
    cell_root = tanhs[0].of
    cell = next((each for each in states if columns.found(each.result.value) is cell_root), None)
    if cell is None or cell is hidden:
        raise NotACell("the output gate does not multiply the tanh of a state")
    forget, update, candidate = _cell_gates(_monomials(cell_root), cell.parameter.output)
    state = hidden.parameter.output
    found = [_gate(_affine(each.of, state), state) for each in (forget, update, candidate, gates[0])]
    return RecognisedCell("LSTM", (hidden, cell), tuple(found), ("sigmoid", "tanh", "tanh"))


def _cell_gates(monomials: Sequence[Monomial], cell: Value) -> tuple[Active, Active, Active]:
    """Forget gate, input gate and candidate of f * c + i * g."""
    forget: Active | None = None
    update: Active | None = None
    candidate: Active | None = None
    for sign, factors in monomials:
        sigmoids = [each for each in factors if isinstance(each, Active) and each.name == "sigmoid"]
        others = [each for each in factors if each not in sigmoids]
        if sign != 1 or len(sigmoids) != 1 or len(others) != 1:
            raise NotACell("the next cell state is not f * c + i * g")
        if _is_whole(others[0], cell):
            forget = sigmoids[0]
        elif isinstance(others[0], Active) and others[0].name == "tanh":
            update, candidate = sigmoids[0], others[0]
    if len(monomials) != 2 or forget is None or update is None or candidate is None:
        raise NotACell("the next cell state is not f * c + i * g")
    return forget, update, candidate


def _gru(monomials: Sequence[Monomial], hidden: Merged) -> RecognisedCell:
    state = hidden.parameter.output
    update, candidate, flipped = _mixture(monomials, state)
    z = _gate(scaled(_affine(update.of, state), -1 if flipped else 1), state)
    if isinstance(candidate.of, Affine):
        return _reset_before(z, candidate.of, hidden)
    if not isinstance(candidate.of, Sum) or len(candidate.of.parts) != 1:
        raise NotACell("the candidate is not a sum of products")
    (sign, product), outer = candidate.of.parts[0], candidate.of.affine
    if sign != 1 or not isinstance(product, Product):
        raise NotACell("the candidate is not a sum of products")
    reset, inner = product.a, product.b
    if isinstance(inner, Active):
        reset, inner = inner, reset
    if not isinstance(reset, Active) or reset.name != "sigmoid" or not isinstance(inner, Affine):
        raise NotACell("the candidate has no reset gate")
    r = _gate(_affine(reset.of, state), state)
    given, recurrent = _gate(outer, state), _gate(inner, state)
    if given.recurrence.any() or recurrent.inputs:
        raise NotACell("the reset gate does not multiply the product with the state")
    h = Gate(given.inputs, recurrent.recurrence, given.bias)
    return RecognisedCell("GRU", (hidden,), (z, r, h), ("sigmoid", "tanh"), True, recurrent.bias)


def _reset_before(z: Gate, affine: Affine, hidden: Merged) -> RecognisedCell:
    """The candidate is tanh(x W + b + (r * h) R)."""
    state = hidden.parameter.output
    resets = []
    terms = []
    for source, matrix in affine.terms:
        if not isinstance(source, Product):
            if isinstance(source, Source) and source.value is state:
                raise NotACell("the candidate reads the state without a reset gate")
            terms.append((source, matrix))
            continue
        reset, whole = (source.b, source.a) if _is_whole(source.a, state) else (source.a, source.b)
        if not _is_whole(whole, state) or not isinstance(reset, Active) or reset.name != "sigmoid":
            raise NotACell("the candidate has no reset gate")
        resets.append(reset)
        terms.append((whole, matrix))
    if len(resets) != 1:
        raise NotACell("the candidate does not have exactly one reset gate")
    r = _gate(_affine(resets[0].of, state), state)
    h = _gate(Affine(tuple(terms), affine.bias), state)
    return RecognisedCell("GRU", (hidden,), (z, r, h), ("sigmoid", "tanh"))


def _mixture(monomials: Sequence[Monomial], state: Value) -> tuple[Active, Active, bool]:
    """z and n of (1 - z) * n + z * h, or of z * n + (1 - z) * h: flipped."""
    atoms = {id(each): each for _, factors in monomials for each in factors}
    sigmoids = [each for each in atoms.values() if isinstance(each, Active) and each.name == "sigmoid"]
    tanhs = [each for each in atoms.values() if isinstance(each, Active) and each.name == "tanh"]
    wholes = [each for each in atoms.values() if _is_whole(each, state)]
    if (len(sigmoids), len(tanhs), len(wholes), len(atoms)) != (1, 1, 1, 3):
        raise NotACell("the next state does not have the form (1 - z) * n + z * h")
    z, n, h = sigmoids[0], tanhs[0], wholes[0]
    found = Counter((sign, frozenset(map(id, factors)), len(factors)) for sign, factors in monomials)
    for flipped, (a, b) in enumerate(((n, h), (h, n))):
        wanted = [(1, frozenset([id(a)]), 1), (-1, frozenset([id(z), id(a)]), 2), (1, frozenset([id(z), id(b)]), 2)]
        if found == Counter(wanted):
            return z, n, bool(flipped)
    raise NotACell("the next state does not have the form (1 - z) * n + z * h")


# -- sums multiplied out


def _monomials(expression: Expression) -> list[Monomial]:
    """The expression as a sum of products of activations and sources."""
    found = list(islice(_expanded(expression), MOST_MONOMIALS + 1))
    if len(found) > MOST_MONOMIALS:
        raise NotACell("the next state is a sum of more than 8 products")
    return found


def _expanded(expression: Expression) -> Iterator[Monomial]:
    if isinstance(expression, Product):
        for sign_a, factors_a in _expanded(expression.a):
            yield from ((sign_a * sign_b, (*factors_a, *factors_b)) for sign_b, factors_b in _expanded(expression.b))
        return
    if isinstance(expression, Sum):
        bias = expression.affine.bias
        if expression.affine.terms or not any(np.all(bias == number) for number in (-1, 0, 1)):
            raise NotACell("a constant or a product with weights is added to the next state")
        if bias.any():
            yield int(bias.reshape(-1)[0]), ()
        for sign, part in expression.parts:
            yield from ((sign * each, factors) for each, factors in _expanded(part))
        return
    if isinstance(expression, Affine):
        raise NotACell("the next state is a product with weights")
    yield 1, (expression,)


# -- gates


def _is_whole(expression: Expression, value: Value) -> bool:
    return (
        isinstance(expression, Source)
        and expression.value is value
        and (expression.first, expression.last) == (0, width_of(value))
    )


def _affine(expression: Expression, state: Value) -> Affine:
    """An Affine; a source that is added as it is is multiplied by an identity matrix, if it is as wide as the state."""
    if isinstance(expression, Affine):
        return expression
    if not isinstance(expression, Sum):
        raise NotACell("the input of an activation is not a sum of products with weights")
    width = width_of(state)
    terms = list(expression.affine.terms)
    for sign, part in expression.parts:
        if not isinstance(part, Source) or (part.first, part.last) != (0, width) or width != width_of(part.value):
            raise NotACell("the input of an activation is not a sum of products with weights")
        terms.append((part, sign * np.eye(width, dtype=np.float32)))
    return Affine(tuple(terms), expression.affine.bias)


def _gate(affine: Affine, state: Value) -> Gate:
    width = width_of(state)
    recurrence = np.zeros((width, width), np.float32)
    inputs: list[tuple[Source, Array]] = []
    for source, matrix in affine.terms:
        if not isinstance(source, Source):
            raise NotACell("weights multiply a value other than inputs and the hidden state")
        if source.value is state:
            recurrence[:, source.first : source.last] += matrix.T
        else:
            inputs.append((source, matrix.T))
    return Gate(tuple(inputs), recurrence, np.broadcast_to(affine.bias, (width,)).astype(np.float32))
