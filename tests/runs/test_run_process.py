"""The environment of an evaluation's process."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from lm_eval_ext.runs import job, process, run

OF_A_RANK = (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK", "NODE_RANK",
    "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "ACCELERATE_USE_FSDP", "PMI_RANK",
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "ROLE_WORLD_SIZE",
)  # fmt: skip
OF_OTHERS = (
    "CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "HF_HOME", "OMP_NUM_THREADS", "FRANK", "RANKING",
    "LM_EVAL_EXT_DATA", "HF_TOKEN",
)  # fmt: skip


def test_an_evaluation_does_not_take_itself_for_a_rank_of_another_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """accelerate would wait for the other ranks for ever."""
    for name in (*OF_A_RANK, *OF_OTHERS):
        monkeypatch.setenv(name, "7")
    log = tmp_path / "log.txt"
    listing = "import os; print(*os.environ)"
    launcher = f'{sys.executable} -c "{listing}"'
    status = process.evaluate(
        tmp_path / "none", log, launcher=launcher, own_only=True, on_progress=lambda _: None
    )
    assert status == 0
    inherited = set(log.read_text().split())
    assert inherited & {*OF_A_RANK, *OF_OTHERS} == set(OF_OTHERS)
    assert os.environ["RANK"] == "7"


def test_a_full_disk_is_the_reason_whatever_the_log_says_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_config: Path, log: Path, **_: object) -> int:
        log.write_text("|lieder_mini|  1.0|half a ta")
        return 1

    (tmp_path / "m.yaml").write_text("model: dummy\n")
    monkeypatch.setattr(job, "evaluate", failing)
    work = run.Work([tmp_path / "m.yaml"], "lieder_mini", tmp_path / "out", 2)
    free = shutil.disk_usage(tmp_path)
    for left, said in ((free.total, r"m: \|lieder_mini\|"), (4096, "m: no space is left on")):
        found = free._replace(free=left)
        monkeypatch.setattr(shutil, "disk_usage", lambda _, found=found: found)
        with pytest.raises(run.FailedError, match=said):
            run.run(work, job.SILENT)
