"""How natural the renderer's questions are: MAGNIFICo's gold queries said anew, and compared.

Each gold query that the grammar has is rendered with the form of the dataset; the result is
compared with the dataset's question, which people have checked: chrF, the number of words, and the
share of different bigrams on either side. It needs no judge, and reports by interpretation.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lm_eval_ext import data
from lm_eval_ext.benchmarks.magnifico import corpora
from lm_eval_ext.benchmarks.magnifico.generate import profile
from lm_eval_ext.benchmarks.magnifico.records import Corpus, Form
from lm_eval_ext.sql import Databases
from lm_eval_ext.sql.schema import read_schema
from support.generated import from_sql


@dataclass
class Row:
    """One interpretation (or all): questions of the dataset, and ours where there is one.

    Attributes:
        name: The interpretation.
        asked: Gold queries with a database.
        theirs, ours: The questions, in pairs, for those that the grammar has.
        uncovered: The others, by reason.
    """

    name: str
    asked: int = 0
    theirs: list[str] = field(default_factory=list)
    ours: list[str] = field(default_factory=list)
    uncovered: Counter[str] = field(default_factory=Counter)

    @property
    def chrf(self) -> float:
        """The chrF of ours against theirs, over the corpus (sacrebleu's defaults)."""
        from sacrebleu.metrics.chrf import CHRF

        return float(CHRF().corpus_score(self.ours, [self.theirs]).score) if self.ours else 0.0


def compare(form: Form = "plausible") -> list[Row]:
    """Renders the published gold queries of a form; the last row is all of them.

    Raises:
        DataError: The data are not available.
    """
    corpus = corpora.read(data.require_all(corpora.SOURCE).path, dialogues=False)
    return _compare(corpus, data.require_all(corpora.DATABASES).path, form)


def _compare(corpus: Corpus, folder: Path, form: Form) -> list[Row]:
    known, total = Databases(folder), Row("all")
    read: dict[Path, tuple[profile.Profile, object]] = {}
    rows = {name: Row(name) for name in corpus.interpretations}
    for example in corpus.examples:
        path = known.find_sqlite(example.db_id)
        if example.form != form or path is None:
            continue
        if path not in read:
            found = profile.read(path, strict=False)
            read[path] = found, read_schema(path)
        (name,) = example.interpretations
        word = corpus.interpretations[name].forms[form]
        kind = from_sql.KINDS.get(name, name)
        loose, schema = read[path]
        for row in (rows[name], total):
            row.asked += 1
        try:
            tree = from_sql.tree(example.query, kind, schema, loose)  # type: ignore[arg-type]
            said = tree.words({kind: word})
        except from_sql.Uncovered as error:
            for row in (rows[name], total):
                row.uncovered[str(error)] += 1
            continue
        for row in (rows[name], total):
            row.theirs.append(example.question)
            row.ours.append(said)
    return [*rows.values(), total]


def words(texts: Sequence[str]) -> float:
    """The average number of words."""
    return sum(len(text.split()) for text in texts) / len(texts) if texts else 0.0


def distinct(texts: Sequence[str]) -> float:
    """Different bigrams of words by all bigrams, 0 to 1."""
    bigrams = [
        pair for text in texts
        for pair in zip(text.lower().split(), text.lower().split()[1:], strict=False)
    ]  # fmt: skip
    return len(set(bigrams)) / len(bigrams) if bigrams else 0.0


def as_text(rows: Sequence[Row]) -> str:
    """A table in Markdown."""
    lines = [
        "| interpretation | golds | covered | chrF | words: ours / theirs | different bigrams |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        share = f"{len(row.ours) / row.asked:.0%}" if row.asked else "none"
        lines.append(
            f"| {row.name} | {row.asked:,} | {share} | {row.chrf:.1f} | {words(row.ours):.1f} / "
            f"{words(row.theirs):.1f} | {distinct(row.ours):.2f} / {distinct(row.theirs):.2f} |"
        )
    return "\n".join(lines)
