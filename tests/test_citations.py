"""BibTeX of the benchmarks, their data and the project."""

import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from lm_eval_ext import __version__, citations
from lm_eval_ext.cards import cards
from lm_eval_ext.cli.app import app
from lm_eval_ext.data import sources
from lm_eval_ext.errors import OptionError

ROOT = Path(__file__).resolve().parents[1]

LIEDER = """\
@inproceedings{zhu2024lieder,
  author = {Zhu, Xiaomeng and Frank, Robert},
  title = {{LIEDER}: Linguistically-Informed Evaluation for Discourse Entity Recognition},
  booktitle = {Proceedings of the Annual Meeting of the Association for Computational Linguistics},
  year = {2024},
  eprint = {2403.06301},
  archivePrefix = {arXiv},
  url = {https://arxiv.org/abs/2403.06301},
}
"""


def test_paper_data_harness_and_project_each_once() -> None:
    done = CliRunner().invoke(app, ["cite", "lieder_base", "lieder", "lieder_mini"])
    assert done.exit_code == 0
    assert done.stdout.startswith(LIEDER)
    keys = re.findall(r"^@\w+\{(.*),$", done.stdout, re.MULTILINE)
    assert keys == ["zhu2024lieder", "gao2024language", "lmevalext"]


def test_data_are_cited_with_the_tasks_that_need_them() -> None:
    def keys(*names: str) -> set[str]:
        return set(re.findall(r"^@\w+\{(.*),$", citations.bibtex(names), re.MULTILINE))

    common = {"gao2024language", "lmevalext"}
    own = {"kim2022uncontrolled"} | common
    assert keys("cogs_mini") == own
    assert keys("cogs_unmodified_gen") == own | {"kim2020cogs"}
    assert keys("conceptual_worldtree") == common | {"stefanik2023can", "xie2020worldtree"}
    assert keys() == common


def test_everything_that_is_declared_can_be_cited() -> None:
    entries = citations.bibtex(cards())
    keys = [citations.read(source.citation).key for source in sources().values()]
    assert all(entries.count(f"{{{key},") == 1 for key in keys)
    assert entries.count("{") == entries.count("}")
    assert "et al" not in entries and "{MAGNIFICo}:" in entries and "{Text-to-SQL}" in entries


def test_unknown_names_and_lines() -> None:
    with pytest.raises(OptionError, match="no task, group or benchmark 'leider'; did you mean l"):
        citations.bibtex(["leider"])
    with pytest.raises(ValueError, match="no citation"):
        citations.read("Somebody, Something")
    with pytest.raises(ValueError, match="no proceedings known for 'XYZ'"):
        citations.read("Ann Body. 2020. Title. XYZ 2020")


def test_the_citation_file_says_the_same() -> None:
    read = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert read["title"] == citations.TITLE and read["version"] == __version__
    assert read["authors"] == [{"name": citations.AUTHORS}]
    assert f"(c) {citations.YEAR} {citations.AUTHORS}" in (ROOT / "LICENSE").read_text()
