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
    """Every task and group that ships, with its size and whether its data are at hand.

    A group stands before its members, with what they come to together.
    """
    rows = []
    for card in cards().values():
        for group, members in card.groups.items():
            facts = [card.tasks[member] for member in members]
            rows.append(
                TaskRow(
                    task=group,
                    benchmark=card.name,
                    documents=sum(fact.documents for fact in facts),
                    requests=sum(fact.requests for fact in facts),
                    data=_where(*facts),
                    description=f"All of: {', '.join(members)}",
                )
            )
        rows += [
            TaskRow(
                task=task,
                benchmark=card.name,
                documents=facts.documents,
                requests=facts.requests,
                data=_where(facts),
                description=facts.description,
            )
            for task, facts in card.tasks.items()
        ]
    return rows


def _where(*facts: TaskFacts) -> str:
    if any(fact.asks_own for fact in facts):
        return "your own"
    if not any(fact.sources for fact in facts):
        return "embedded"
    return "at hand" if all(fact.at_hand for fact in facts) else "to fetch"
