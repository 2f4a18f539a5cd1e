"""Databases that are converted to a PostgreSQL server, and MAGNIFICo asked there."""

from pathlib import Path

import pytest
from converted_cases import (
    POSTGRESQL_NOTES,
    check_keys,
    check_queries,
    check_rows,
    converted,
    fair,
)
from support.postgres import CONVERTING, Server
from support.tasks import load_task

from lm_eval_ext.benchmarks.magnifico import converted as on_engine
from lm_eval_ext.benchmarks.magnifico import load
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql import Executor
from lm_eval_ext.sql.convert import store
from lm_eval_ext.sql.described import described


def check_conversion(server: Server, tmp_path: Path) -> None:
    with server.admin() as connection:
        for statement in CONVERTING:
            if "reader" not in statement:  # who is there already
                connection.execute(statement)
    source = fair(tmp_path)
    owner = store.Server(server.url("converted", "converter"), prefix="x_", readers=["reader"])
    reader = store.Server(server.url("converted"), prefix="x_")
    assert converted(source, owner) == POSTGRESQL_NOTES
    assert converted(source, owner) == POSTGRESQL_NOTES  # found there
    assert reader.reports() == owner.reports()
    check_rows(source, reader)
    check_queries(source, reader)
    check_keys(tmp_path, store.Server(owner.url, prefix="keys_"))
    with Executor(workers=1) as executor:
        shown = described(executor, reader.place("fair", "original"), 1)
    assert [one.name for one in shown] == [
        '"Stall"', "sale", "helper", "loose", "guest", "keeper",
    ]  # fmt: skip
    other = store.Source("fair", {"original": source.parts["populated"]})
    more = store.Server(owner.url, prefix="x_y_")
    ((_, report),) = store.convert([other], more)
    assert more.reports() == {"fair": report} != owner.reports() == reader.reports()
    assert store.Server(owner.url).reports() == {}
    with pytest.raises(OptionError, match="DROP SCHEMA"):
        next(store.convert([other], owner))


def check_mini(server: Server) -> None:
    with server.admin() as connection:
        connection.execute("CREATE DATABASE mini")
        connection.execute("CREATE ROLE mini_owner LOGIN")
        connection.execute("GRANT CREATE ON DATABASE mini TO mini_owner")
    url = server.url("mini")
    with pytest.raises(DataError, match=r"magnifico convert --mini --to postgresql://OWNER"):
        load_task("magnifico_mini", magnifico_engine="postgresql", magnifico_server=url)
    ready = load.prepare("mini")
    sources = on_engine.sources(ready.corpus, ready.scoring.original, ready.scoring.populated)
    golds, owner = ready.corpus.golds(), server.url("mini", "mini_owner")
    (*_, last) = on_engine.bring("mini", sources, golds, owner, ["reader"])
    assert "again as a role that may only read" in last
    (first, last) = on_engine.bring("mini", sources, golds, url, [])
    assert first.startswith("postgresql:")
    assert "can be scored on PostgreSQL (100.0%)" in last
    task = load_task("magnifico_mini", magnifico_engine="postgresql", magnifico_server=url)
    docs = list(task.dataset["test"])
    assert len(docs) == 192
    assert all("Using valid PostgreSQL" in doc["prompt"] for doc in docs)
    for doc in docs[::32]:
        right = task.process_results(doc, [doc["query"]])
        wrong = task.process_results(doc, ["SELECT 42"])
        for part in ("original", "populated"):
            name = f"{part}/execution_accuracy:{'base' if doc['form'] == 'base' else 'novel'}"
            assert (right[name], wrong[name]) == (1.0, 0.0)
