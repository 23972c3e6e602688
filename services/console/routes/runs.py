"""Runs: list, start, pause, resume, stop; their rounds and checkpoints."""

from collections.abc import AsyncGenerator
from typing import Any, Literal

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from services.common.protocol.control import (
    CreateRun,
    GetRun,
    ListCheckpoints,
    ListRounds,
    ListRuns,
    PauseRun,
    ResumeRun,
    StopRun,
)
from services.common.protocol.messages import Count, RunId
from services.console.answers.runs import CheckpointList, RoundList, RunEntry, RunList, RunName, RunState
from services.console.context import (
    OF_THE_MASTER,
    Console,
    ConsoleDep,
    IdempotencyKey,
    Responses,
    problems,
    raw,
    told,
)
from services.console.lists import LIMIT, Cursor, Limit, ListPage, after_of, cut, page_of
from services.console.problems import BrokenTransfer, Problem
from services.console.run_request import RunRequest, complete

router = APIRouter(prefix="/runs", tags=["runs"])
A_RUN = OF_THE_MASTER | problems(404)
STEERED = told(RunName, 202) | A_RUN | problems(409)
ONE_RUN: Responses = {200: {"model": RunState | RunEntry, "description": "The current run, or an earlier one"}}
Version = Count | Literal["best", "latest"]


class RunStarted(BaseModel):
    """The run that was created, or that waits for its turn."""

    run: str = Field(description="The id of the run")
    position: int | None = Field(default=None, description="Its place in the queue, 1 is the next; null: it has begun")
    warnings: list[str] = Field(default=[], description="What is allowed, but will hardly do what is wanted")


@router.get(
    "",
    operation_id="listRuns",
    summary="All runs, newest first",
    response_model=None,
    responses=told(RunList) | OF_THE_MASTER,
)
async def list_runs(console: ConsoleDep, limit: Limit = LIMIT, cursor: Cursor = None) -> ListPage:
    """Runs that are started meanwhile are on a first page only."""
    answer = await console.ask(ListRuns(limit=limit, before=after_of("runs", cursor)))
    return page_of("runs", answer)


@router.post(
    "",
    operation_id="createRun",
    summary="Start a run",
    status_code=201,
    responses=OF_THE_MASTER | problems(409),
)
async def create_run(
    console: ConsoleDep, request: RunRequest, response: Response, idempotency_key: IdempotencyKey = None
) -> RunStarted:
    """What is given wins over the preset, that over the data set's recommendation, that over the defaults.

    Of `inner` and `outer` single values may be given; `inner` named without `lr` gets one that works. BAD_SPEC: a
    value is not allowed, the sentence says which are. While another run goes on, this one waits in the queue and
    begins by itself (`position`). QUEUE_FULL: no more can wait.
    """
    spec, _ = await complete(console, request)
    answer = await console.ask(CreateRun(spec=spec), idempotency_key)
    started = RunStarted(
        run=answer.get("run", ""), position=answer.get("position"), warnings=answer.get("warnings", [])
    )
    response.headers["location"] = f"/api/v1/runs/{started.run}"
    return started


@router.get(
    "/{run}",
    operation_id="getRun",
    summary="One run",
    response_model=None,
    responses=ONE_RUN | A_RUN,
)
async def get_run(console: ConsoleDep, run: RunId) -> dict[str, Any]:
    """The current run as it is now; an earlier one as it ended; one that waits with `position` and reason."""
    snapshot = console.hub.mirror.snapshot or {}
    current = snapshot.get("run")
    if isinstance(current, dict) and current.get("id") == run:
        return current
    return await console.ask(GetRun(run=run))


@router.post(
    "/{run}/pause",
    operation_id="pauseRun",
    summary="Close the round in flight, open no other",
    status_code=202,
    response_model=None,
    responses=STEERED,
)
async def pause_run(console: ConsoleDep, run: RunId) -> dict[str, Any]:
    """Watch the run's phase for what becomes of it."""
    return await console.ask(PauseRun(run=run))


@router.post(
    "/{run}/resume",
    operation_id="resumeRun",
    summary="Go on with a paused or failed run",
    status_code=202,
    response_model=None,
    responses=STEERED,
)
async def resume_run(console: ConsoleDep, run: RunId) -> dict[str, Any]:
    """Watch the run's phase for what becomes of it."""
    return await console.ask(ResumeRun(run=run))


@router.post(
    "/{run}/stop",
    operation_id="stopRun",
    summary="End a run for good; its checkpoints stay",
    status_code=202,
    response_model=None,
    responses=STEERED,
)
async def stop_run(console: ConsoleDep, run: RunId) -> dict[str, Any]:
    """One that waits is taken out of the queue, and those behind it move up. Watch the run's phase for the rest."""
    return await console.ask(StopRun(run=run))


@router.get(
    "/{run}/rounds",
    operation_id="listRounds",
    summary="Closed rounds in order",
    tags=["rounds"],
    response_model=None,
    responses=told(RoundList) | A_RUN,
)
async def list_rounds(console: ConsoleDep, run: RunId, limit: Limit = LIMIT, cursor: Cursor = None) -> ListPage:
    """A round that closes meanwhile comes on the last page."""
    cursor_name = f"rounds of {run}"
    after = after_of(cursor_name, cursor) or 0
    return page_of(cursor_name, await console.ask(ListRounds(run=run, after=after, limit=limit)))


@router.get(
    "/{run}/checkpoints",
    operation_id="listCheckpoints",
    summary="Checkpoints kept",
    tags=["checkpoints"],
    response_model=None,
    responses=told(CheckpointList) | A_RUN,
)
async def list_checkpoints(console: ConsoleDep, run: RunId, limit: Limit = LIMIT, cursor: Cursor = None) -> ListPage:
    """The newest ones, and the best by evaluation, by round."""
    return cut("checkpoints", await _checkpoints(console, run), "round", limit, cursor)


@router.get(
    "/{run}/checkpoints/{version}",
    operation_id="downloadCheckpoint",
    summary="One checkpoint as .npz",
    tags=["checkpoints"],
    response_class=Response,
    responses=raw("application/octet-stream", "The file, checked by SHA-256") | A_RUN,
)
async def download_checkpoint(console: ConsoleDep, run: RunId, version: Version) -> Response:
    """By number, or `best` (the lowest evaluation loss), or `latest`.

    Read it with `numpy.load(..., allow_pickle=False)`. A transfer that fails ends early, never with other bytes.
    """
    chosen = await _find_checkpoint(console, run, version)
    chunks = console.link.download(str(chosen["sha256"]))
    first = await anext(chunks, b"")  # a refusal is still an answer of its own here
    headers = {
        "content-disposition": f'attachment; filename="ckpt-{chosen["round"]}.npz"',
        "content-length": str(chosen["bytes"]),
        "etag": f'"{chosen["sha256"]}"',
    }
    return StreamingResponse(_rest(first, chunks), media_type="application/octet-stream", headers=headers)


async def _checkpoints(console: Console, run: str) -> list[dict[str, Any]]:
    answer = await console.ask(ListCheckpoints(run=run))
    return sorted(answer.get("items", []), key=lambda item: int(item["round"]))


async def _find_checkpoint(console: Console, run: str, version: Version) -> dict[str, Any]:
    items = await _checkpoints(console, run)
    if version == "latest" and items:
        return dict(items[-1])
    for item in items:
        if item["best"] if version == "best" else item["round"] == version:
            return dict(item)
    text = {
        "latest": "keeps no checkpoint yet; wait until it is prepared",
        "best": "keeps no best checkpoint yet, as no version of it is evaluated; wait, or ask for latest",
    }.get(str(version), f"keeps no checkpoint of round {version}; GET /api/v1/runs/{run}/checkpoints lists those kept")
    raise Problem(f"run {run} {text}", code="CHECKPOINT_UNKNOWN")


async def _rest(first: bytes, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        yield first
        async for chunk in chunks:
            yield chunk
    except Problem as problem:
        raise BrokenTransfer(problem.sentence) from None
    finally:
        await chunks.aclose()
