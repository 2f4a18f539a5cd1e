"""The environment of an evaluation's process."""

import functools
import os
import shutil
import sys
from pathlib import Path

import pytest

from lm_eval_ext.errors import LmEvalExtError
from lm_eval_ext.runs import process, run

OF_A_RANK = (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK", "MASTER_ADDR", "TORCHELASTIC_RUN_ID",
    "ACCELERATE_USE_FSDP", "PMI_RANK", "OMPI_COMM_WORLD_RANK",
)  # fmt: skip
OF_OTHERS = ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "FRANK", "RANKING", "HF_TOKEN")


def test_an_evaluation_does_not_take_itself_for_a_rank_of_another_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """accelerate would wait for the other ranks for ever."""
    for name in (*OF_A_RANK, *OF_OTHERS):
        monkeypatch.setenv(name, "7")
    log = tmp_path / "log.txt"
    listing = "import os; print(*os.environ)"
    launcher = f'{sys.executable} -c "{listing}"'
    assert process.evaluate([], log, launcher, lambda _: None) == 0
    inherited = set(log.read_text().split())
    assert inherited & {*OF_A_RANK, *OF_OTHERS} == set(OF_OTHERS)
    assert os.environ["RANK"] == "7"


def test_a_full_disk_is_the_reason_whatever_the_log_says_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(status: int, text: str, _words: object, log: Path, *_: object) -> int:
        log.write_text(text)
        return status

    (tmp_path / "m.yaml").write_text("model: dummy\n")
    work = run.Work([tmp_path / "m.yaml"], "lieder_mini", tmp_path / "out", 2)
    free = shutil.disk_usage(tmp_path)
    unsaved = "WARNING Could not save sample results"  # and lm-eval ends well
    for status, text, left, said in (
        (1, "|lieder_mini|  1.0|half a ta", free.total, "it ended with status 1"),
        (1, "|lieder_mini|  1.0|half a ta", 4096, "no space is left on"),
        (0, unsaved, 4096, "no space is left on"),
        (0, unsaved, free.total, "it ended with status 0"),
    ):
        monkeypatch.setattr(run, "evaluate", functools.partial(failing, status, text))
        found = free._replace(free=left)
        monkeypatch.setattr(shutil, "disk_usage", lambda _, found=found: found)
        lines: list[str] = []
        with pytest.raises(LmEvalExtError, match="1 of 1 models failed: m"):
            run.run(work, run.Reporter(lines.append, lambda _: None))
        assert lines[-1].startswith(f"m: {said}")


@pytest.mark.parametrize(
    ("log", "command", "said"),
    [
        ("Running generate_until requests:   4%|          | 2/48", "kill -9 $$",
         "killed by signal 9, perhaps out of memory"),
        ("ValueError: an old warning\n", "kill -9 $$", "killed by signal 9"),
        ("a launcher's process was killed", "exit 137", "killed by signal 9"),
        ("ValueError: no such file\nRunning: 4%", "exit 3", "ValueError: no such file"),
        ("Running: 4%|", "exit 3", "it ended with status 3"),
        ("requests.exceptions.HTTPError: 401 Client Error for url: http://a\n", "exit 1",
         "OPENAI_API_KEY"),
        ("ValueError: 401 is no label\n", "exit 1", "ValueError: 401 is no label"),
    ],
)  # fmt: skip
def test_the_reason_is_an_error_or_how_the_process_ended(
    tmp_path: Path, log: str, command: str, said: str
) -> None:
    file, script = tmp_path / "log", tmp_path / "evaluation.sh"
    (tmp_path / "text").write_text(log)
    script.write_text(f"cat {tmp_path / 'text'}; {command}\n")
    status = process.evaluate([], file, f"sh {script}", lambda _: None)
    found = process.reason(file, status)
    assert said in found
    assert "%" not in found
    assert ("API_KEY" in found) is ("API_KEY" in said)
