"""Invalid control flow is refused during conversion, with its path and without a traceback.

Undefined names, cycles of nodes and states that change their type are in test_scopes and test_retyping.
"""

import pytest

from mo_loop.errors import MoLoopError
from tests.harness import parsed, refusal

LOOP_BODY = "body = step (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] u)"
SCAN_BODY = "body = step (float[2] s, float[2] e) => (float[2] t, float[2] u)"
FILLED = "{ d = Identity (c) t = Neg (s) u = Abs (s) }"
SCANNED = "{ t = Add (s, e) u = Abs (e) }"
INPUTS = "float[2] x, float[3,2] m, float[4,2] k, int64 n, int64[2] two, bool flag, bool[2] flags, float[N,2] p"


def refused(statements: str) -> MoLoopError:
    output = "w" if "y, z, w = " in statements else "y"
    return refusal(parsed(f"g ({INPUTS}) => (float[2] {output}) {{ {statements} }}"))


BAD = {
    "loop body takes too many": (
        f"[at] y, z = Loop (n, flag) <{LOOP_BODY} {FILLED}>", "ML226",
        "the number of inputs of the body is 3, but the operator passes 2"),
    "loop body takes too few": (
        f"[at] y, z = Loop (n, flag, x, x) <{LOOP_BODY} {FILLED}>", "ML226",
        "the number of inputs of the body is 3, but the operator passes 4"),
    "loop body without its first inputs": (
        '[at] y = Loop (n, "", x) <body = step (float[2] s) => (bool d, float[2] t) '
        "{ z = Constant <value_int = 1> () d = Cast <to = 9> (z) t = Neg (s) }>",
        "ML226", "the number of inputs of the body is 1"),
    "loop body returns too few": (
        "[at] y = Loop (n, flag, x) <body = step (int64 i, bool c, float[2] s) => (bool d) { d = Identity (c) }>",
        "ML226", "the body returns too few values: 1 for the condition and the states (2)"),
    "loop body returns nothing": (
        "[at] y = Loop (n, flag) <body = step (int64 i, bool c) => () { d = Identity (c) }>",
        "ML226", "the body returns too few values: 0 for the condition"),
    "loop with more outputs than its body": (
        f"[at] y, z, w = Loop (n, flag, x) <{LOOP_BODY} {FILLED}>", "ML227", "has no output for 'w'"),
    "loop with an initial value missing": (
        f'[at] y, z = Loop (n, flag, "") <{LOOP_BODY} {FILLED}>', "ML227", "an initial value of a state is missing"),
    "trip count of several elements": (
        f"[at] y, z = Loop (two, flag, x) <{LOOP_BODY} {FILLED}>", "ML229",
        "a trip count or condition has 2 elements, not one"),
    "condition of several elements": (
        f"[at] y, z = Loop (n, flags, x) <{LOOP_BODY} {FILLED}>", "ML229",
        "a trip count or condition has 2 elements, not one"),
    "body condition of several elements": (
        f"[at] y, z = Loop (n, flag, x) <{LOOP_BODY} {{ d = Identity (flags) t = Neg (s) u = Abs (s) }}>", "ML229",
        "a trip count or condition has 2 elements, not one"),
    "scan body takes too few": (
        f"[at] y, z = Scan <num_scan_inputs = 2, {SCAN_BODY} {SCANNED}> (x, m, m)", "ML226",
        "the number of inputs of the body is 2, but the operator passes 3"),
    "scan body returns too few": (
        "[at] y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] e) => () { t = Add (s, e) }> (x, m)",
        "ML226", "the body returns too few values: 0 for the states (1)"),
    "scan with more outputs than its body": (
        f"[at] y, z, w = Scan <num_scan_inputs = 1, {SCAN_BODY} {SCANNED}> (x, m)", "ML227", "has no output for 'w'"),
    "scan of more inputs than it has": (
        f"[at] y, z = Scan <num_scan_inputs = 3, {SCAN_BODY} {SCANNED}> (x, m)", "ML226", "num_scan_inputs is 3"),
    "scan of no inputs": (
        f"[at] y, z = Scan <num_scan_inputs = 0, {SCAN_BODY} {SCANNED}> (x, m)", "ML226", "num_scan_inputs is 0"),
    "scan of a negative number of inputs": (
        f"[at] y, z = Scan <num_scan_inputs = -1, {SCAN_BODY} {SCANNED}> (x, m)", "ML226", "num_scan_inputs is -1"),
    "scan over different lengths": (
        "[at] y, z = Scan <num_scan_inputs = 2, body = step (float[2] e, float[2] f) => (float[2] t, float[2] u) "
        "{ t = Add (e, f) u = Abs (e) }> (m, k)", "ML226", "the scan inputs have different lengths: [3, 4]"),
    "scan axis outside its input": (
        f"[at] y, z = Scan <num_scan_inputs = 1, scan_input_axes = [2], {SCAN_BODY} {SCANNED}> (x, m)", "ML231",
        "scan input axis"),
    "scan axis of an output outside it": (
        f"[at] y, z = Scan <num_scan_inputs = 1, scan_output_axes = [-3], {SCAN_BODY} {SCANNED}> (x, m)", "ML231",
        "scan output axis"),
    "too many scan axes": (
        f"[at] y, z = Scan <num_scan_inputs = 1, scan_input_axes = [0, 0], {SCAN_BODY} {SCANNED}> (x, m)", "ML226",
        "scan_input_axes has 2 entries, not 1"),
    "too few directions": (
        f"[at] y, z = Scan <num_scan_inputs = 1, scan_output_directions = [0, 1], {SCAN_BODY} {SCANNED}> (x, m)",
        "ML226", "scan_output_directions has 2 entries, not 1"),
    "scan over a scalar": (
        f"[at] y, z = Scan <num_scan_inputs = 1, {SCAN_BODY} {SCANNED}> (x, n)", "ML231", "scan input axis"),
    "scan with a state missing": (
        f'[at] y, z = Scan <num_scan_inputs = 1, {SCAN_BODY} {SCANNED}> ("", m)', "ML227", "lacks an input"),
    "condition of if of several elements": (
        "[at] y = If (flags) <then_branch = yes () => (float[2] a) { a = Neg (x) }, "
        "else_branch = no () => (float[2] b) { b = Abs (x) }>", "ML229",
        "a trip count or condition has 2 elements, not one"),
    "branches of different numbers of outputs": (
        "[at] y = If (flag) <then_branch = yes () => (float[2] a, float[2] a2) { a = Neg (x) a2 = Abs (x) }, "
        "else_branch = no () => (float[2] b) { b = Abs (x) }>", "ML226",
        "numbers of outputs of then_branch (2) and else_branch (1) differ"),
    "branches of different types": (
        "[at] y = If (flag) <then_branch = yes () => (float[2] a) { a = Neg (x) }, "
        "else_branch = no () => (int64[2] b) { b = Neg (two) }>", "ML239",
        "f32[2] in then_branch, i64[2] in else_branch"),
    "branch with an input": (
        "[at] y = If (flag) <then_branch = yes (float[2] q) => (float[2] a) { a = Neg (q) }, "
        "else_branch = no () => (float[2] b) { b = Abs (x) }>", "ML226",
        "the number of inputs of the body is 1, but the operator passes 0"),
    "if without a condition": (
        '[at] y = If ("") <then_branch = yes () => (float[2] a) { a = Neg (x) }, '
        "else_branch = no () => (float[2] b) { b = Abs (x) }>", "ML227", "If needs the inputs condition"),
}


@pytest.mark.parametrize("case", BAD)
def test_refused(case: str) -> None:
    statements, code, text = BAD[case]
    error = refused(statements)
    assert (error.code, error.exit_code) == (code, 2), str(error)
    assert text in error.message and error.where.split("/")[0] == "at", str(error)


@pytest.mark.parametrize(("outer", "path"), [
    (
        'y = Loop (n, "", x) <body = outer (int64 j, bool g, float[2] q) => (bool h, float[2] r) '
        "{{ h = Identity (g) {} r = Identity (v) }}>", "y/outer/at"),
    (
        "y = If (flag) <then_branch = outer () => (float[2] r) {{ {} r = Identity (v) }}, "
        "else_branch = no () => (float[2] b) {{ b = Abs (x) }}>", "y/outer/at"),
])
def test_the_path_leads_into_bodies(outer: str, path: str) -> None:
    inner = f"[at] v, w = Loop (two, flag, x) <{LOOP_BODY} {FILLED}>"
    error = refused(outer.format(inner))
    assert (error.code, error.where) == ("ML229", path)
