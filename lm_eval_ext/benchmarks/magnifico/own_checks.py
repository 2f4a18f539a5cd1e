"""What is wrong with a user's own rows though they can be read: said before the model is loaded."""

from collections.abc import Mapping, Sequence

from lm_eval_ext.benchmarks.magnifico.records import BASE, Corpus

MOST = 20
"""Problems that are named one by one."""


def rows(
    corpus: Corpus,
    broken: Mapping[tuple[str, str], str],
    left_out: Mapping[str, Sequence[str]],
) -> list[str]:
    """Names each row whose query fails or whose database is missing, and why.

    Args:
        corpus: The user's; of others, no row is named.
        broken: Why gold queries fail, by database id in lower case and query.
        left_out: The ids of examples that are not asked, by cause.
    """
    ids = {one for several in left_out.values() for one in several}
    asked = [one for one in (*corpus.examples, *corpus.combinations) if one.id in ids]
    shown = [one for several in corpus.support.values() for one in several]
    said: dict[str, str] = {}
    for example in (*asked, *shown):
        db_id = example.db_id.casefold()
        error = broken.get((db_id, example.query))
        known = db_id in corpus.databases
        if not example.place or (known and error is None):
            continue
        reason = f"the query fails: {error}" if known else f"there is no database {example.db_id!r}"
        end = "is not asked" if example.id in ids else "is a solved example all the same"
        said.setdefault(example.place, f"{example.place}: {reason}; the row {end}")
    return list(said.values())


def unpaired(made: Sequence[Mapping[str, str]]) -> list[str]:
    """Names interpretations whose forms ask different questions.

    Relative performance compares each form with all base questions of its interpretation.
    """
    asked: dict[str, dict[str, set[str]]] = {}
    for doc in made:
        forms = asked.setdefault(doc["interpretation"], {BASE: set()})
        forms.setdefault(doc["form"], set()).add(doc["template"])
    return [
        f"the forms of {name} ask different questions, and each is compared with the base form of "
        "all; ask every question in every form, or one form at a time (magnifico_forms)"
        for name, forms in asked.items()
        if not all(forms[BASE] <= templates for templates in forms.values())
    ]
