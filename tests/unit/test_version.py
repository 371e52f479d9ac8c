"""The commit and the digest of the package, which versions and reports add to the release."""

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from mo_loop import version
from tests import ROOT


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    return tmp_path


def test_the_commit_of_a_checkout(checkout: Path) -> None:
    wanted = git(checkout, "rev-parse", "HEAD")
    assert version._of_checkout(checkout / ".git") == wanted
    git(checkout, "pack-refs", "--all")
    assert not (checkout / ".git/refs/heads/main").exists() and version._of_checkout(checkout / ".git") == wanted
    git(checkout, "worktree", "add", "-q", "-b", "other", "beside")
    git(checkout / "beside", "commit", "-q", "--allow-empty", "-m", "second")
    other = git(checkout / "beside", "rev-parse", "HEAD")
    assert version._of_checkout(checkout / "beside/.git") == other != wanted
    git(checkout, "checkout", "-q", "--detach", other)
    assert version._of_checkout(checkout / ".git") == other


def test_without_git(tmp_path: Path) -> None:
    assert version._of_checkout(tmp_path / ".git") == ""


@pytest.mark.parametrize(("text", "found"), [
    (json.dumps({"url": "https://git.example.com", "vcs_info": {"vcs": "git", "commit_id": "abc"}}), "abc"),
    (json.dumps({"url": "file:///x", "dir_info": {"editable": True}}), ""), (None, ""), ("no JSON", ""),
])
def test_the_commit_of_an_installation(text: str | None, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = SimpleNamespace(read_text=lambda name: text)
    monkeypatch.setattr(version.metadata, "distribution", lambda name: installed)
    assert version._of_installation() == found


def test_the_digest_changes_with_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = []
    for content in ("a", "b", "a"):
        (tmp_path / "module.py").write_text(content)
        monkeypatch.setattr(version, "FOLDER", tmp_path)
        version.package_digest.cache_clear()
        digests.append(version.package_digest())
    version.package_digest.cache_clear()
    assert digests[0] == digests[2] != digests[1]


def test_this_checkout_has_a_commit() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    assert git(ROOT, "rev-parse", "HEAD").startswith(version.commit())
