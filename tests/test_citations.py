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
KEYS = re.compile(r"^@\w+\{(.*),$", re.MULTILINE)

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
    assert KEYS.findall(done.stdout) == ["zhu2024lieder", "gao2024language", "lmevalext"]


def test_data_are_cited_with_the_tasks_that_need_them() -> None:
    def keys(*names: str) -> set[str]:
        return set(KEYS.findall(citations.bibtex(names)))

    common = {"gao2024language", "lmevalext"}
    cogs = {"kim2022uncontrolled"} | common
    assert keys("cogs_mini") == cogs
    assert keys("cogs_unmodified_gen") == cogs | {"kim2020cogs"}
    assert keys("conceptual_worldtree") == common | {"stefanik2023can", "xie2020worldtree"}
    assert keys() == common


def test_everything_that_is_declared_can_be_cited() -> None:
    entries = citations.bibtex(cards())
    keys = [source.cite for source in sources().values()]
    for card in cards().values():
        for task in card.tasks.values():
            keys += task.cites
    for key in keys:
        assert entries.count(f"{{{key},") == 1, key
    assert entries.count("{") == entries.count("}")


@pytest.mark.parametrize("benchmark", [name for name, card in cards().items() if card.paper])
def test_a_papers_entry_has_its_title_and_year(benchmark: str) -> None:
    paper = cards()[benchmark].paper
    assert paper is not None
    entries = citations.bibtex([benchmark]).split("\n\n")
    (entry,) = [entry for entry in entries if f"url = {{{paper.url}}}" in entry]
    plain = re.sub("[{}]", "", entry)
    assert f"title = {paper.title}," in plain
    assert paper.venue[-4:] in plain


def test_an_unknown_name_gets_a_similar_one() -> None:
    with pytest.raises(OptionError, match="no task, group or benchmark 'leider'; did you mean l"):
        citations.bibtex(["leider"])


def test_the_citation_file_says_the_same() -> None:
    citation_file = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    (author,) = citation_file["authors"]
    title = citation_file["title"]
    version = citation_file["version"]
    project_entry = citations.bibtex([]).partition("@misc{lmevalext,")[2]
    for value in (f"{{{author['name']}}}", title, version):
        assert f"= {{{value}}}," in project_entry
    assert version == __version__
    year = re.findall(r"year = \{(\d+)\}", project_entry)[0]
    assert f"(c) {year} {author['name']}" in (ROOT / "LICENSE").read_text()
