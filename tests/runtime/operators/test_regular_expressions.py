"""RegexFullMatch, whose expressions are those of RE2: the same matches with those of PCRE2, or a refusal."""

from __future__ import annotations

import pytest

import mo_loop
from mo_loop.errors import MoLoopError
from tests.harness import check
from tests.runtime.operators.test_texts import BOOL, LINES, STRING, needs_library, node_model, texts

pytestmark = pytest.mark.filterwarnings("ignore::mo_loop.errors.ConversionWarning")

MATCHED = [
    ("[a-z]+(\\.[a-z]+)*@[a-z]+", "a.b@c", "a@", "a..b@c"), (r"\d{2,3}(-\d\d?)?", "12", "123-4", "1234", "١٢"),
    (r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)", "a.b@gmail.com", "@yahoo.com ", "ä@yahoo.com!", "@yahoo_com"),
    (r"www\.[\w.-]+\.\bcom\b", "www.a.com", "www..com", "www.a.b.com", "www.com"),
    ("(b|ab){0,3}(x|)", "", "abb", "aab", "abx"), ("(?P<k>x(?:|,))*", "x,xx,", ",", "x,,"),
    (".*", "a b", "", "a\nb", "日本"),
    (r"[^\W_]+|\B\x{e4}?", "ä", "", "a_", "Ab9"), (r"[]a-]{2}\s\S", "]- ä", "aa\n\u00a0", "aa\u00a0a"),
    (r"$^|\A\x41\z", "", "A", "\n"), ("(yes|no|y|n)?", "yes", "y", "", "ye"), ("a{,2}", "a{,2}", "aa"),
]


@needs_library
@pytest.mark.parametrize(("pattern", "given"), [(pattern, given) for pattern, *given in MATCHED])
def test_matches_of_whole_texts(pattern: str, given: list[str]) -> None:
    row = texts(*given, "", "a", "ab", "\n")
    model = node_model("RegexFullMatch", [row], [BOOL], pattern=pattern)
    check(model, {"x0": row}, {"x0": texts()}, {"x0": row[:1]})
    check(node_model("RegexFullMatch", [(STRING, (2, 2))], [BOOL], pattern=pattern), {"x0": row[-4:].reshape(2, 2)})


LONG = 100_000


@needs_library
@pytest.mark.parametrize(("pattern", "given"), [
    (r"[\w.-]+\.com", ["." * LONG, "a." * (LONG // 2) + "com", ".com" + "a" * LONG]),
    ("(ab)*", ["ab" * (LONG // 2), "ab" * (LONG // 2) + "a"]), ("(a|b)*", ["ab" * (LONG // 2), "a" * LONG + "c"]),
    (r"[a-z]+(\.[a-z]+)*@[a-z]+(\.[a-z]+)*", ["a." * (LONG // 2) + "a@b", "a." * (LONG // 2)]),
])
def test_matches_of_long_texts(pattern: str, given: list[str]) -> None:
    check(node_model("RegexFullMatch", [texts("")], [BOOL], pattern=pattern), {"x0": texts(*given)})


@pytest.mark.parametrize(("pattern", "text"), [
    ("(a+)+b", "more steps or memory"), ("[a-z]*[a-z0-9]*x", "more steps or memory"), ("(a|ab)*c", "more steps"),
    ("(ab?){1000}", "more steps or memory"), ("(a?){2}", "{2} repeats what may be empty"), ("(?i)a", "'(?i)'"),
    (r"\p{Greek}", r"\\p{G"), (r"[\w-.]", "-.' in a set"), ("[[:alpha:]]", "'[[:a'"), ("(a", "no end"),
    ("a**", "'*'"), ("a)", "')'"), ("a{1001}", "not have the number of repetitions"), ("[b-a]", "'b-a' in a set"),
])
def test_expressions_that_are_refused(pattern: str, text: str) -> None:
    with pytest.raises(MoLoopError, match="ML303") as caught:
        mo_loop.convert_model(node_model("RegexFullMatch", [LINES], [BOOL], pattern=pattern))
    assert text in str(caught.value)
