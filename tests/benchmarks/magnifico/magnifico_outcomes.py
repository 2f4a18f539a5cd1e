"""Outcomes of questions, and what a measure makes of them."""

from support.asking import ask

from lm_eval_ext.stats.statistics import Figure

Outcome = tuple[bool, str, str, str]
"""Whether it is right, interpretation, form and database."""


def outcomes(
    interpretation: str, form: str, right: int, all_of: int, cluster: str = "db"
) -> list[Outcome]:
    return [(n < right, interpretation, form, cluster) for n in range(all_of)]


def found(scored: list[Outcome], measure: str) -> Figure:
    documents = (
        (
            str(place), str(place), (cluster,),
            [{"database": "populated", "interpretation": name, "form": form, "correct": right}],
        )
        for place, (right, name, form, cluster) in enumerate(scored)
    )  # fmt: skip
    return ask("magnifico", documents, measure)
