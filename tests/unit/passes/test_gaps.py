"""The releases of the runtime that have an error."""

import pytest

from mo_loop.target import NEVER, Gap, Processor, ReleaseRange, Target, without_avx512

RELEASES = ("2025.1.0", "2025.3.0", "2025.4.1", "2026.0.0")


@pytest.mark.parametrize(("since", "until", "expected"), [
    ("", "", RELEASES), ("2025.3.0", "", RELEASES[1:]), ("", "2025.4.1", RELEASES[:3]),
    ("2025.3.0", "2025.3.0", RELEASES[1:2]), ("2025.2.0", "2025.10.0", RELEASES[1:3]),
])
def test_releases_between_the_first_and_the_last_have_it(since: str, until: str, expected: tuple[str, ...]) -> None:
    gap = Gap("id", "a sentence", since=since, until=until)
    assert tuple(each for each in RELEASES if gap.is_in(each)) == expected


def test_kinds_of_processors_may_have_it_in_other_releases() -> None:
    gap = Gap("id", "a sentence", since="2025.3.0", on={Processor.AVX2: ReleaseRange(until="2025.3.0")})
    found = {kind: tuple(each for each in RELEASES if gap.is_in(each, kind)) for kind in Processor}
    assert found == {
        Processor.AVX512_CORE: RELEASES[1:], Processor.AVX2: RELEASES[:2], Processor.SSE41: RELEASES[1:]
    }


def test_kinds_of_processors_may_never_have_it() -> None:
    gap = Gap("id", "a sentence", since="2025.3.0", on=without_avx512(NEVER))
    assert [kind for kind in Processor if gap.is_in("2025.4.1", kind)] == [Processor.AVX512_CORE]


@pytest.mark.parametrize(("target", "expected"), [("2024.6", False), ("2025.4", True), ("2026.2-2026.3", True)])
def test_a_target_may_have_what_a_kind_of_processor_has(target: str, expected: bool) -> None:
    """2026.4 alone has it with AVX-512; 2025.3 to 2026.2 have it with AVX2."""
    on = {Processor.AVX2: ReleaseRange("2025.3.0", "2026.2.1"), Processor.SSE41: NEVER}
    gap = Gap("id", "a sentence", since="2026.4.1", on=on)
    assert Target.parse(target).may_have(gap) == expected and not Target.parse("2026.3").may_have(gap)
