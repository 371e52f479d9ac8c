"""Lists that the runtime computes incorrectly in the obvious form: one small model for each rule."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.harness import check, floats, parsed


def ints(**values: int) -> dict[str, np.int64]:
    return {name: np.int64(value) for name, value in values.items()}


MODELS: dict[str, tuple[str, Sequence[Any]]] = {
    # The runtime reads a 0 in the table of shapes as "copy this dimension".
    "an element without columns": ("""main (float[R,C] x, float[5,4] w) => (float[?,?] y) {
          one = Constant <value_ints=[1]> ()  sh = Shape <start=1> (x)  rest = Sub (sh, one)
          sizes = Concat <axis=0> (one, rest)  s = SplitToSequence <axis=1> (x, sizes)
          none = Constant <value_ints=[2, 0]> ()  zeros = Constant <value_ints=[0, 0]> ()
          e = Slice (w, zeros, none)  t = SequenceInsert (s, e)  first = Constant <value_int=0> ()
          u = SequenceErase (t, first)  place = Constant <value_int=1> ()  y = SequenceAt (u, place) }""",
        [{"x": floats(*shape), "w": floats(5, 4)} for shape in ((3, 4), (2, 2))]),
    "what a loop that certainly runs has concatenated is read in a body": (
        """main (float[R,C] x, float[5,4] w, int64 k) => (float[?,?] y) {
          v = Constant <value = float[2,3] {1,1,1,1,1,1}> ()  s = SplitToSequence <axis=1> (v)
          two = Constant <value_ints=[2]> ()  one = Constant <value_ints=[1]> ()  width = Reshape (k, one)
          stop = Concat <axis=0> (two, width)  zeros = Constant <value_ints=[0, 0]> ()
          e = Slice (w, zeros, stop)
          z = Loop (k, "", s) <body = outer (int64 i, bool g, seq(float) p) => (bool h, seq(float) r) {
            h = Identity (g)  four = Constant <value_int=4> ()
            q = Loop (four, "", p) <body = all (int64 j, bool go, seq(float) a) => (bool on, seq(float) c) {
              on = Identity (go)  b = SequenceInsert (a, e)  c = SequenceInsert (b, e) }>
            r = Loop (i, "", q) <body = some (int64 j2, bool go2, seq(float) a2) => (bool on2, seq(float) c2) {
              on2 = Identity (go2)  corner = Constant <value_ints=[2, 3]> ()  e2 = Slice (x, zeros, corner)
              c2 = SequenceInsert (a2, e2) }> }>
          y = ConcatFromSequence <axis=-1> (z) }""",
        [{"x": floats(6, 6), "w": floats(5, 4), **ints(k=k)} for k in (3, 0, 2)]),
    # The sizes of the elements are constants of a branch, and their sums are not folded there.
    "a list of constants without its last element in a branch": (
        """main (bool c, int64 k) => (float[?,1] y) {
          v = Constant <value = float[3,1] {1,2,3}> ()  w = Constant <value = float[1,1] {4}> ()
          s = SequenceConstruct (v, w)
          t = If (c) <then_branch = yes () => (seq(float[?,1]) p) { p = SequenceErase (s) },
                      else_branch = no () => (seq(float[?,1]) q) {
                        q = SequenceMap (s) <body = tanh (float[?,1] e) => (float[?,1] f) { f = Tanh (e) }> }>
          length = SequenceLength (t)  place = Mod (k, length)  y = SequenceAt (t, place) }""",
        [{"c": np.bool_(c), **ints(k=k)} for c in (True, False, True) for k in (0, 1)]),
    # The length is known here, but not to the runtime.
    "an inner loop that takes out as many as it puts in": ("""main (int64 k) => (float[?] y, int64 l) {
          one = Constant <value_float=1.0> ()  s = SequenceConstruct (one)  none = SequenceEmpty ()
          t, u = Loop (k, "", s, none) <body = outer (int64 i, bool g, seq(float) p, seq(float) q)
                                               => (bool h, seq(float) r, seq(float) v) {
            h = Identity (g)
            r = Loop (i, "", p) <body = inner (int64 j, bool go, seq(float) a) => (bool on, seq(float) d) {
              f = Cast <to=1> (j)  b = SequenceInsert (a, f)  size = SequenceLength (b)
              place = Mod (k, size)  d = SequenceErase (b, place)  on = Less (j, k) }>
            six = Constant <value = float[2,3] {1,1,1,1,1,1}> ()  v = SequenceInsert (q, six) }>
          last = Constant <value = float[2,3] {1,1,1,1,1,1}> ()  w = SequenceInsert (u, last)
          m = SequenceMap (t) <body = negated (float e) => (float n) { n = Neg (e) }>
          y = ConcatFromSequence <axis=0, new_axis=1> (m)  l = SequenceLength (w) }""",
        [ints(k=k) for k in (4, 0, 2, 5, 4)]),
    # A piece of a tensor of at most three rows was inferred to be as long as the whole.
    "the length of a list of two or three after an element is taken out": (
        """main (float[R,C] x, int64 k) => (int64 l) {
          v = Constant <value = float[2,3] {1,1,1,1,1,1}> ()  s = SequenceConstruct (v, v, v)
          one = Constant <value_int=1> ()  few = Equal (k, one)
          t = If (few) <then_branch = yes () => (seq(float[2,3]) p) { p = SequenceErase (s) },
                        else_branch = no () => (seq(float[2,3]) q) { q = Identity (s) }>
          u = SequenceErase (t, k)  w = SequenceInsert (u, x)  l = SequenceLength (w) }""",
        [{"x": floats(4, 4), **ints(k=k)} for k in (1, 0, 2)]),
    # The output of an If was inferred to have bounds, and with it the size of the state that it initializes.
    "the length of a list that a loop captures and changes as well": (
        """main (float[R,C] x, float[5,4] w) => (float[?,?] y) {
          s = SplitToSequence <axis=1> (x)  n = SequenceLength (s)  longer = SequenceInsert (s, w)
          copy = SequenceMap (longer) <body = negated (float[?,?] e) => (float[?,?] f) { f = Neg (e) }>
          t = SequenceInsert (copy, w)  size = SequenceLength (t)  zero = Constant <value_int=0> ()
          many = Greater (size, zero)
          u = If (many) <then_branch = yes () => (seq(float) p) { p = SequenceErase (t) },
                         else_branch = no () => (seq(float) q) { q = Identity (t) }>
          v = Loop (n, "", u) <body = step (int64 i, bool g, seq(float) a) => (bool h, seq(float) b) {
            h = Identity (g)  length = SequenceLength (u)  two = Constant <value_int=2> ()
            odd = Mod (length, two)  one = Constant <value_ints=[1]> ()  width = Reshape (odd, one)
            stop = Concat <axis=0> (one, width)  zeros = Constant <value_ints=[0, 0]> ()
            e = Slice (w, zeros, stop)  b = SequenceInsert (a, e) }>
          last = Constant <value_int=-1> ()  y = SequenceAt (v, last) }""",
        [{"x": floats(2, c), "w": floats(5, 4)} for c in (4, 2, 3, 5)]),
    # The size of the captured list was derived from the final value.
    "a list that becomes another one unless the loop does not run": (
        """main (float[A,B,C] x, int64 n) => (float[?,?] y) {
          s = SplitToSequence <axis=1, keepdims=0> (x)
          t = Loop (n, "", s) <body = step (int64 i, bool g, seq(float) p) => (bool h, seq(float) q) {
            h = Identity (g)  q = Identity (s) }>
          y = ConcatFromSequence <axis=-1> (t) }""",
        [{"x": floats(2, b, 3), **ints(n=n)} for b, n in ((1, 0), (2, 2), (3, 0))]),
    # Its initial data had at least two numbers, and the loop ended when there were fewer.
    "a list that shrinks and that nobody reads after the loop": (
        """main (float[2,1] a, float[R,C] b, int64 n) => (bool[?] y) {
          s = SequenceConstruct (b, a)
          t, y = Loop ("", "", s) <body = step (int64 i, bool g, seq(float) p) => (bool h, seq(float) q, bool some) {
            h = Less (i, n)  length = SequenceLength (p)  zero = Constant <value_int=0> ()
            some = Greater (length, zero)
            q = If (some) <then_branch = yes () => (seq(float) r) { r = SequenceErase (p) },
                           else_branch = no () => (seq(float) u) { u = Identity (p) }>
          }>
        }""", [{"a": floats(2, 1), "b": floats(1, 1), **ints(n=n)} for n in (3, 0, 2)]),
    # One element remains, or none; this is known when the first map has become a tensor.
    "a map of a list that turns out to be empty": ("""main (float x) => (int64 l, int64 m) {
          none = SequenceEmpty ()  s = SequenceInsert (none, x)
          t = SequenceMap (s) <body = negated (float e) => (float f) { f = Neg (e) }>
          u = SequenceErase (t)
          v = SequenceMap (u, x) <body = rounded (float a, float b) => (int64 d) { c = Sub (a, b) d = Cast <to=7> (c) }>
          l = SequenceLength (v)  three = Constant <value_int=3> ()  w = SequenceInsert (v, three)
          zero = Constant <value_int=0> ()  m = SequenceAt (w, zero) }""",
        [{"x": np.float32(1.5)}, {"x": np.float32(-2)}]),
    "readers of a value of either rank move into branches that return a list as well": (
        """main (float[N] x, bool c) => (float y, float z) {
          s = SequenceConstruct (x)
          v, t = If (c) <then_branch = yes () => (float a, seq(float[N]) p) {
                           axes = Constant <value_ints=[0]> ()  a = ReduceSum <keepdims=0> (x, axes)
                           p = SequenceInsert (s, x)
                         },
                         else_branch = no () => (float[N] b, seq(float[N]) q) { b = Neg (x) q = Identity (s) }>
          two = Constant <value_float=2.0> ()  w = Mul (v, two)  y = ReduceSum <keepdims=0> (w)
          last = Constant <value_int=-1> ()  e = SequenceAt (t, last)  z = ReduceSum <keepdims=0> (e) }""",
        [{"x": floats(n), "c": np.bool_(c)} for n, c in ((3, True), (2, False), (4, True))]),
    # The runtime allocates no memory for an output of an If of constants whose shape depends on the branch.
    "a branch of constants whose condition folding finds": ("""main () => (int64[?,?] y, int64[?,?] z) {
          four = Constant <value = int64[1,1] {4}> ()  zero = Constant <value_int=0> ()
          nothing = Expand (four, zero)  s = SequenceConstruct (four)  axes = Constant <value_ints=[0, 1]> ()
          sum = ReduceSum <keepdims=0> (nothing, axes)  one = Constant <value_int=1> ()
          many = Greater (sum, one)
          v = If (many) <then_branch = yes () => (int64[?,?] a) { a = Identity (nothing) },
                         else_branch = no () => (int64[1] b) { b = Constant <value_ints=[3]> () }>
          shape = Shape (v)  two = Constant <value_ints=[2]> ()  f = Constant <value_float=1.0> ()
          go = Cast <to=9> (f)
          t, y = Loop (two, go, s) <body = step (int64[1] i, bool g, seq(int64[?,?]) p)
                                         => (bool h, seq(int64[?,?]) q, int64[?] w) {
            less = Constant <value_int=-1> ()  h = Greater (less, one)  q = SequenceInsert (p, nothing, one)
            w = Identity (shape) }>
          z = SequenceAt (t, zero) }""", [{}]),
    # The size of the captured tensor was derived from the output that the loop had concatenated before.
    "a loop without iterations that appends what it captures": ("""main (float[5,4] w, int64 n) => (float[?,?] y) {
          one = Constant <value_ints=[1]> ()  rows = Reshape (n, one)  three = Constant <value_ints=[3]> ()
          stop = Concat <axis=0> (rows, three)  zeros = Constant <value_ints=[0, 0]> ()
          e = Slice (w, zeros, stop)  s = SequenceConstruct (e)  five = Constant <value_int=5> ()
          trips = Mod (n, five)
          t = Loop (trips, "", s) <body = step (int64 i, bool g, seq(float) p) => (bool h, seq(float) q) {
            h = Identity (g)  q = SequenceInsert (p, e) }>
          last = Constant <value_int=-1> ()  y = SequenceAt (t, last) }""",
        [{"w": floats(5, 4), **ints(n=n)} for n in (2, 5, 3, 0)]),
    # The runtime knows all sizes of the pieces, but folds no cumulative sum of them and has no memory for the rest.
    "pieces and an element without columns joined": ("""main (float[N,1,4] x) => (float[?,?,?] y, int64 l) {
          two = Constant <value_int=2> ()  s = SplitToSequence <axis=2> (x, two)
          one = Constant <value = float[1,1,1] {3}> ()  zero = Constant <value_ints=[0]> ()
          none = Expand (one, zero)  t = SequenceInsert (s, none)
          u = SequenceMap (s) <body = negated (float[?,1,?] e) => (float[?,1,?] f) { f = Neg (e) }>
          y = ConcatFromSequence <axis=2> (t)  l = SequenceLength (u) }""",
        [{"x": floats(1, 1, 4)}, {"x": floats(1, 1, 4, seed=1)}]),
    # The length of one was derived from the other.
    "two lists that begin as one and grow differently": (
        """main (float[R,2] x, int64 each, int64 n) => (int64 l, int64 m) {
          s = SplitToSequence <axis=1> (x, each)
          t, u = Loop (n, "", s, s) <body = step (int64 i, bool g, seq(float[?,?]) p, seq(float[?,?]) q)
                                          => (bool h, seq(float[?,?]) r, seq(float[?,?]) w) {
            h = Identity (g)
            c = SequenceMap (p) <body = negated (float[?,?] e) => (float[?,?] f) { f = Neg (e) }>
            o = SequenceInsert (c, x)  r = SequenceInsert (o, x)
            v = SequenceMap (q) <body = halved (float[?,?] e) => (float[?,?] f) { f = Tanh (e) }>
            w = SequenceInsert (v, x) }>
          l = SequenceLength (t)  m = SequenceLength (u) }""",
        [{"x": floats(2, 2), **ints(each=each, n=n)} for each, n in ((1, 3), (2, 2), (1, 0), (2, 3))]),
}
"""A model, and sets of inputs."""


@pytest.mark.parametrize("name", MODELS)
def test_model(name: str) -> None:
    text, feeds = MODELS[name]
    check(parsed(text), *feeds)
