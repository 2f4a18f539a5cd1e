"""The list of tasks that ``lm-eval-ext tasks`` prints."""

from dataclasses import asdict, dataclass

from lm_eval_ext.catalogue import TaskFacts, cards


@dataclass(frozen=True)
class TaskRow:
    """One task, as a person chooses it."""

    task: str
    benchmark: str
    documents: int
    requests: int
    data: str
    description: str

    def as_dict(self) -> dict[str, str | int]:
        """For JSON."""
        return asdict(self)


def task_rows() -> list[TaskRow]:
    """Every task that ships, with its size and whether its data are at hand."""
    return [
        TaskRow(task, card.name, facts.documents, facts.requests, _where(facts), facts.description)
        for card in cards().values()
        for task, facts in card.tasks.items()
    ]


def _where(facts: TaskFacts) -> str:
    if not facts.sources:
        return "embedded"
    return "at hand" if facts.at_hand else "to fetch"
