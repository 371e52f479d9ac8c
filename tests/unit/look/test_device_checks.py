"""Faults that the check reports for ARM: those that a conversion for it alone avoids, and those that are left."""

import pytest

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.graph import Graph
from mo_loop.graph.types import f32
from mo_loop.look.diagnostics.codes import CODES
from mo_loop.look.diagnostics.device_checks import FAULTS, device_diagnostics
from mo_loop.target import ARM, GPU, Gap
from tests.harness import parsed
from tests.runtime.probing import probes
from tools.gap_table import GAPS


@pytest.mark.parametrize("gap", [gap for gap in GAPS if gap.device == ARM and gap.alone], ids=lambda gap: gap.id)
def test_what_a_conversion_for_it_alone_avoids(gap: Gap) -> None:
    probe = probes()[gap.id]
    assert len(list(device_diagnostics(probe.as_written(), ARM))) == 1
    assert list(device_diagnostics(probe.avoided(to=ARM), ARM)) == []


@pytest.mark.parametrize(("text", "operator", "message"), [
    (
        "main (int32[N] x) => (int32[2] y, int64[2] i) <int64[1] k = {2}> { y, i = TopK (x, k) }", "TopK",
        "chosen by their bits",
    ),
    (
        """main (float[T,N,3] x) => (float[T,1,N,2] y) <float[1,2,3] w = {1,2,3,4,5,6}, float[1,2,2] r = {1,2,3,4}> {
          y, h = RNN <hidden_size = 2> (x, w, r) }""", "RNN", "an RNN of one step",
    ),
])
def test_what_is_left(text: str, operator: str, message: str) -> None:
    (each,) = device_diagnostics(convert_model(parsed(text), device=ARM).graph, ARM)
    assert each.place.operator == operator and message in each.message and each.level == "warning"


BRANCHES = """If (c) <then_branch = t () => (float[2,N] a) { a = Identity (x) }, else_branch = e () => (float[2,N] b) {
  b = Neg (x) }>"""


@pytest.mark.parametrize("text", [
    """main (float[2,N] x, int64 k) => (float[2,M] y, int64[2,M] i) <int64[1] zero = {0}> {
      kk = Unsqueeze (k, zero) y, i = TopK (x, kk) }""",
    "main (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1,2,3,4}, float[2] b = {1,2}> { y = Gemm (x, w, b) }",
    "main (int64[N] x) => (int64[2] y, int64[2] i) <int64[1] k = {2}> { a = Abs (x) y, i = TopK (a, k) }",
    f"main (bool c, float[2,N] x) => (float[2,M] z) {{ y = {BRANCHES} z = Sin (y) }}",
    """main (float[2,4,3] x) => (float[2,1,4,2] y) <float[1,2,3] w = {1,2,3,4,5,6}, float[1,2,2] r = {1,2,3,4}> {
      y, h = RNN <hidden_size = 2> (x, w, r) }""",
])
def test_other_models_have_none(text: str) -> None:
    assert list(device_diagnostics(convert_model(parsed(text)).graph, ARM)) == []


@pytest.mark.parametrize(("text", "operator", "code", "message"), [
    (
        """main (float[4,3,N] x, int64[2] stop) => (float[A,B,N] y) <int64[2] start = {0,0}> {
          t = Tanh (x) y = Slice (t, start, stop) }""", "Slice", "ML570", "two known sizes",
    ),
    (
        """main (float[1,1,H,W] x) => (float[1,1,A,B] y) {
          y = MaxPool <kernel_shape = [2,2], dilations = [2,1]> (x) }""", "MaxPool", "ML571", "dilations or indices",
    ),
    (
        """main (float[2,N] x, int64[1,1] i, float[1,N] u) => (float[2,N] y) {
          y = ScatterND <reduction = "mul"> (x, i, u) }""", "ScatterND", "ML571", "a reduction",
    ),
    (
        "main (int32[N] x, int32[N] z) => (int32[N] y) <int32 k = {256}> { t = Mul (x, k) y = Add (t, z) }", "Mul",
        "ML570", "above 2^24",
    ),
    (
        """main (float[N,16] x) => (float[N,1] y) <uint8[1,1,8] b = {1,2,3,4,5,6,7,8}, float[1] s = {0.5},
          float[1,1] z = {7.3}> { y = com.microsoft.MatMulNBits <K = 16, N = 1, bits = 4, block_size = 16> (x, b, s, z)
        }""", "com.microsoft::MatMulNBits", "ML570", "zero points",
    ),
    (
        "main () => (double[2] y) <double[2] a = {1,2}> { y = Identity (a) }", "Identity", "ML570",
        "depends on no input",
    ),
    (
        "main (float[2,N] x, int64[K] axes) => (float[A,B] y) { y = ReduceSum (x, axes) }", "ReduceSum", "ML571",
        "computed",
    ),
    ("main (uint32[N] x) => (uint32[N] y) { y = BitwiseNot (x) }", "BitwiseNot", "ML571", "unsigned"),
    (
        """main (float[1,2,H,W] x, float[1,8,A,B] offset) => (float[1,1,A,B] y) <
          float[1,2,2,2] w = {1,2,3,4,5,6,7,8}> { y = DeformConv (x, w, offset) }""", "DeformConv", "ML571",
        "unknown sizes",
    ),
    (
        """main (float[N,2] x, float[2] z, int64 n) => (float[2] y) {
          y, last = Loop (n, "", z, x) <body = step (int64 i, bool c, float[2] r, float[N,2] s) => (bool d, q, t) {
            k = Mul (i, i)  d = Less (k, n)  t = Sin (s)
            zero = Constant <value_ints = [0]> ()  row = Unsqueeze (r, zero)
            rows = Concat <axis = 0> (s, row)  q = ReduceMax <keepdims = 0> (rows, zero) }> }""", "Loop",
        "ML570", "no elements",
    ),
    (
        """main (float[N] x, int64 n) => (float[N] y, float[T,M] z) {
          y, z = Loop (n, "", x) <body = step (int64 i, bool c, float[N] s) => (bool d, t, u) {
            d = Identity (c)  t = Sin (s)  u = Concat <axis = 0> (t, t) }> }""", "Loop", "ML570", "no elements",
    ),
    (
        """main (float[1] x, int64[1] size, float z, int64 n) => (float y, float[T,M] w) {
          e = Expand (x, size)
          y, w = Loop (n, "", z) <body = step (int64 i, bool c, float s) => (bool d, t, u) {
            u = Add (e, s)  f = Sin (u)  t = ReduceSum <keepdims = 0> (f)  d = Less (t, s) }> }""",
        "Loop", "ML570", "no elements",
    ),
    (
        "main (float[N] x, int64[2] sizes) => (float[A] y, float[B] z) { y, z = Split <axis = 0> (x, sizes) }", "Split",
        "ML571", "computed lengths",
    ),
])
def test_what_is_left_on_the_gpu(text: str, operator: str, code: str, message: str) -> None:
    found = list(device_diagnostics(convert_model(parsed(text), device=GPU).graph, GPU))
    assert {(each.place.operator, each.code) for each in found} == {(operator, code)}
    assert message in found[0].message


@pytest.mark.parametrize("text", [
    """main (float[4,N,5] x, int64[2] stop) => (float[A,N,B] y) <int64[2] start = {0,0}, int64[2] axes = {0,2}> {
      y = Slice (x, start, stop, axes) }""",
    """main (float[4,3,N] x) => (float[2,2,N] y) <int64[2] start = {0,0}, int64[2] stop = {2,2}> {
      y = Slice (x, start, stop) }""",
    "main (float[2,N] x) => (float[2] y) <int64[1] axes = {1}> { y = ReduceSum <keepdims = 0> (x, axes) }",
    "main (int8[N] x) => (int8[N] y) { y = BitwiseNot (x) }",
    """main (float[N,M] x, int64 n) => (float[N,M] y) {
      y = Loop (n, "", x) <body = step (int64 i, bool c, float[N,M] s) => (bool d, t) {
        d = Identity (c)  t = Sin (s) }> }""",
    "main (float[0,2] x) => (float[0,2] y) { y = Neg (x) }",
    """main (float[2,N] x, float z, int64 n) => (float y, float[2,N] last) {
      y, last = Loop (n, "", z, x) <body = step (int64 i, bool c, float r, float[2,N] s) => (bool d, q, t) {
        d = Less (i, n)  sum = ReduceSum <keepdims = 0> (s)  q = Add (r, sum)  t = Identity (x) }> }""",
    """main (float[N] x, int64 n) => (float[N] y, float[T,N] z) {
      y, z = Loop (n, "", x) <body = step (int64 i, bool c, float[N] s) => (bool d, t, u) {
        d = Identity (c)  t = Sin (s)  u = Cos (t) }> }""",
])
def test_other_models_have_none_on_the_gpu(text: str) -> None:
    assert list(device_diagnostics(convert_model(parsed(text), device=GPU).graph, GPU)) == []


def test_an_inverse_is_left_on_the_gpu() -> None:
    graph = Graph()
    x = ops.Parameter(graph=graph, dtype=f32, shape=(2, 3, 3))
    ops.Result(ops.Inverse(x))
    (each,) = device_diagnostics(graph, GPU)
    assert each.code == "ML571" and "Inverse" in each.message


def test_each_fault_has_a_code_and_a_way_out() -> None:
    faults = [each for kinds in FAULTS.values() for each in kinds]
    assert all(each.code in CODES and each.help and not each.message.endswith(".") for each in faults)
