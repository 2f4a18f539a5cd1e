"""A source that has no URL: its files come from a local copy or a mirror, or not at all."""

from pathlib import Path

import pytest
from support import upstream as up
from support.upstream import ALPHA, Upstream

from lm_eval_ext.data import available, fetch, path_of, require, require_all, sources
from lm_eval_ext.errors import DataError

REASON = "nobody has it any more; ask somebody"


@pytest.fixture
def lost(upstream: Upstream, tmp_path: Path) -> Upstream:
    """The source "toy" without a URL."""
    path = tmp_path / "sources.yaml"
    kept = [line for line in path.read_text().splitlines() if "url: files/" not in line]
    text = "\n".join(kept) + "\n"
    url = f"  url: {upstream.url}/{{revision}}/\n"
    assert url in text
    path.write_text(text.replace(url, f"  url: null\n  unavailable: {REASON}\n"))
    return upstream


@pytest.mark.usefixtures("lost")
def test_the_message_says_what_to_do(tmp_path: Path) -> None:
    place = tmp_path / "cache/data/toy/alpha.txt"
    with pytest.raises(DataError) as caught:
        require("toy", "alpha")
    assert str(caught.value) == f"toy/alpha: {place}: missing; {REASON}"
    with pytest.raises(DataError) as caught:
        require_all("toy")
    assert str(caught.value) == (
        f"toy: 2 of 2 files are missing or broken; alpha: {place}: missing; {REASON}"
    )
    assert not (tmp_path / "cache").exists()


def test_a_broken_file_is_not_removed(lost: Upstream) -> None:
    path = path_of("toy", "alpha")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"mine")
    with pytest.raises(DataError, match="wrong size: 4 bytes"):
        require("toy", "alpha")
    assert path.read_bytes() == b"mine"
    assert lost.requests == []


def test_it_comes_from_a_local_copy(
    lost: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(up.write_copy(tmp_path / "copy")))
    assert available("toy")
    assert require_all("toy").fetched == 0
    assert lost.requests == []


def test_it_comes_from_a_mirror(lost: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", lost.url)
    found, fetched = fetch("toy", "alpha")
    assert fetched
    assert found.path.read_bytes() == ALPHA


def test_a_file_must_not_have_a_url_of_its_own(lost: Upstream, tmp_path: Path) -> None:
    path = tmp_path / "sources.yaml"
    path.write_text(path.read_text().replace("      size: 5\n", "      url: x\n      size: 5\n"))
    with pytest.raises(DataError, match="toy: Value error, the file 'beta' needs a url exactly if"):
        sources()


def test_the_old_generalization_set_differs_from_todays(
    monkeypatch: pytest.MonkeyPatch, shared_data: Path
) -> None:
    """The figures of the correction: what the source is for."""
    declared = sources()
    assert declared["cogs_gen_2020"].url_of(declared["cogs_gen_2020"].files["gen"]) is None
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(shared_data))
    old, new = (
        require(source, "gen").path.read_text().splitlines() for source in ("cogs_gen_2020", "cogs")
    )
    changed = [(before, after) for before, after in zip(old, new, strict=True) if before != after]
    assert len(changed) == 51
    for before, after in changed:
        assert after.endswith("\tobj_pp_to_subj_pp")
        # The last role of the old form is the one that was wrong.
        head, _, tail = before.rpartition(" . agent ")
        assert after == f"{head} . theme {tail}"
