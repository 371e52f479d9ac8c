"""Models at file:// whose weights lie elsewhere are refused as at a path, and nothing outside the output changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mo_loop.support.workers import Pool
from tests.hostile.answers import AT_URLS, exit_code_of
from tests.hostile.cases import CASES, Case
from tests.hostile.files_and_links import EXTERNAL
from tests.hostile.test_hostile import tree


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool("tests.hostile.trial:attempt", limit=30) as made:
        yield made


@pytest.mark.parametrize("each", [each for each in CASES if each.kind == EXTERNAL], ids=lambda each: each.name)
def test_external_data_is_refused(each: Case, pool: Pool, tmp_path: Path) -> None:
    folder, out = tmp_path / "in" / "models", tmp_path / "out"
    folder.mkdir(parents=True)
    out.mkdir()
    (tmp_path / "in" / "secret.bin").write_bytes(bytes(24))
    source = each.make(folder)
    before = tree(tmp_path / "in")
    done = pool.call((f"file://{source}", str(out / "model.xml")))
    assert done.ok, f"{done.status}: {done.message}\n{done.detail}"
    answer = done.value
    code = AT_URLS.get(each.name, each.code)
    assert (answer.exit_code, answer.code) == (exit_code_of(code), code), answer.message
    assert tree(tmp_path / "in") == before
    assert len(list(out.iterdir())) == (0 if answer.exit_code else 2)
