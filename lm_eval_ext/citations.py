"""BibTeX of what a result rests on: the benchmark's paper, its data, lm-eval and this project.

The entries are made from cards and declared data sources; each says authors, title, venue, year
and where to find it, and no pages, which the venue's own entry has.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lm_eval_ext import __version__
from lm_eval_ext.cards import Card, Paper, cards
from lm_eval_ext.data import sources
from lm_eval_ext.errors import OptionError, nearest

TITLE = "lm-eval-ext"
AUTHORS = "The lm-eval-ext developers"
YEAR = 2026
"""Of this project; CITATION.cff says the same."""

BOOKS = {
    "ACL": "Proceedings of the Annual Meeting of the Association for Computational Linguistics",
    "BlackboxNLP": "Proceedings of the BlackboxNLP Workshop on Analyzing and Interpreting Neural "
    "Networks for NLP",
    "EMNLP": "Proceedings of the Conference on Empirical Methods in Natural Language Processing",
    "LREC": "Proceedings of the Language Resources and Evaluation Conference",
    "NAACL": "Proceedings of the Conference of the North American Chapter of the Association for "
    "Computational Linguistics",
    "NLRSE": "Proceedings of the Workshop on Natural Language Reasoning and Structured "
    "Explanations",
}
"""Proceedings by the short name of the conference."""

HARNESS = """\
@misc{gao2024language,
  author = {Gao, Leo and others},
  title = {The Language Model Evaluation Harness},
  year = {2024},
  publisher = {Zenodo},
  doi = {10.5281/zenodo.12608602},
}"""
"""As lm-eval's README asks, with the first of its authors."""

_LINE = re.compile(r"(?P<authors>.+?)\. (?P<year>\d{4})\. (?P<title>.+)\. (?P<venue>.+)")
_ARXIV = re.compile(r"arxiv(?:\.org/abs/|:)(\d{4}\.\d{4,5})", re.IGNORECASE)
_VENUE = re.compile(r"([A-Za-z]+) (\d{4})")


@dataclass(frozen=True)
class Citation:
    """A publication; ``venue`` is a conference's short name, or "" for a preprint."""

    authors: str
    year: int
    title: str
    venue: str
    arxiv: str = ""
    url: str = ""

    @property
    def key(self) -> str:
        """The first author's family name, the year, and the title's first word."""
        first = _names(self.authors)[0].split(",")[0]
        word = re.split(r"[\s:-]", self.title)[0]
        plain = unicodedata.normalize("NFKD", f"{first}{self.year}{word}")
        return re.sub(r"[^a-z0-9]", "", plain.lower())

    def bibtex(self) -> str:
        """One entry, UTF-8."""
        fields = {
            "author": " and ".join(_names(self.authors)),
            "title": " ".join(_kept(word) for word in self.title.split()),
            "booktitle": BOOKS[self.venue] if self.venue else "",
            "year": str(self.year),
            "eprint": self.arxiv,
            "archivePrefix": "arXiv" if self.arxiv else "",
            "url": self.url or (f"https://arxiv.org/abs/{self.arxiv}" if self.arxiv else ""),
        }
        kind = "inproceedings" if self.venue else "misc"
        return _entry(kind, self.key, fields)


def read(line: str, url: str = "") -> Citation:
    """Reads ``AUTHORS. YEAR. TITLE. VENUE``, as declared data sources cite.

    Raises:
        ValueError: The line is no such citation, or of a conference that is not in ``BOOKS``.
    """
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError(f"no citation: {line!r}")
    arxiv = _ARXIV.search(f"{found['venue']} {url}")
    venue = _VENUE.match(found["venue"])
    name = venue[1] if venue and venue[1].lower() != "arxiv" else ""
    if name and name not in BOOKS:
        raise ValueError(f"no proceedings known for {name!r}")
    number = arxiv[1] if arxiv else ""
    return Citation(
        found["authors"], int(found["year"]), found["title"], name, number, "" if number else url
    )


def project() -> str:
    """The entry of this project; ``@misc``, since BibTeX's own styles know no software."""
    fields = {
        "author": f"{{{AUTHORS}}}",
        "title": TITLE,
        "version": __version__,
        "year": str(YEAR),
    }
    return _entry("misc", "lmevalext", fields)


def bibtex(names: Iterable[str]) -> str:
    """The entries for tasks, groups or benchmarks, each once; the project's and lm-eval's last.

    Raises:
        OptionError: A name is none of ours.
    """
    found: dict[str, str] = {}
    for name in names:
        card, tasks = _find(name)
        cited = [_of_paper(card.paper)] if card.paper else []
        for task in tasks:
            facts = card.tasks[task]
            declared = (sources()[source].citation for source in facts.sources)
            cited += [read(one) for one in (*declared, *facts.cites)]
        for one in cited:
            found.setdefault(one.key, one.bibtex())
    return "\n\n".join([*found.values(), HARNESS, project()]) + "\n"


def _of_paper(paper: Paper) -> Citation:
    title = " ".join(paper.title.split())
    return read(f"{paper.authors}. {paper.venue[-4:]}. {title}. {paper.venue}", paper.url)


def _find(name: str) -> tuple[Card, Sequence[str]]:
    """The card, and the tasks that a name stands for."""
    for card in cards().values():
        if name in card.tasks:
            return card, [name]
        if name in card.groups:
            return card, card.groups[name]
        if name == card.name:
            return card, list(card.tasks)
    names = [one for card in cards().values() for one in (card.name, *card.tasks, *card.groups)]
    hint = nearest(name, names) or "; lm-eval-ext tasks lists all"
    raise OptionError(f"no task, group or benchmark {name!r}{hint}")


def _names(authors: str) -> list[str]:
    """``Family, Given`` of each; "et al." is BibTeX's "others"."""
    several = re.split(r", | and ", authors.replace(" et al", " and others"))
    return [
        f"{family}, {given}" if given else family
        for given, _, family in (name.rpartition(" ") for name in several)
    ]


def _kept(word: str) -> str:
    """A word of a title, in braces where BibTeX must not change its capitals."""
    return re.sub(r"[\w-]*(?:\w[A-Z]|[A-Z]\d)[\w-]*", r"{\g<0>}", word)


def _entry(kind: str, key: str, fields: dict[str, str]) -> str:
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
