"""Every message between console and master: commands with an id, and events from a sequence number.

A command that does something may be sent again with the same `cmd_id`: the stored reply comes back and nothing happens
twice; another command under that id is refused (IDEMPOTENCY_KEY_REUSED). A query is simply answered again. Events:
SUBSCRIBE from a sequence number; what is too old, or of another term, is answered with SNAPSHOT, then events after it.
Large bodies (snapshots, replies) travel as JSON in the payload frame; files are pulled in chunks by SHA-256.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints

from services.common.protocol.limits import PAGE_ITEMS, PAGE_ITEMS_MAX
from services.common.protocol.messages import Code, Count, Crc32, Message, Ms, Name, RunId, Sentence, WorkerId
from services.common.protocol.spec import RunSpec

CommandId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{8,64}$")]
PageSize = Annotated[int, Field(ge=1, le=PAGE_ITEMS_MAX)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class CreateRun(Message):
    """Start a run with this specification, or let it wait while another goes on.

    Answer: {"run": id, "warnings": [sentence], "position": number in the queue (1: the next) or null: it has begun}.
    """

    name: Literal["create_run"] = "create_run"
    spec: RunSpec


class Init(Message):
    """Run the checks of INIT, once in a term; again: how far they are. Answer: {"term", "state", "checks": [check]}."""

    name: Literal["init"] = "init"


class PauseRun(Message):
    """Close the round in flight, then open no other. Answer: {"run": id}."""

    name: Literal["pause_run"] = "pause_run"
    run: RunId


class ResumeRun(Message):
    """Go on with a paused or failed run. Answer: {"run": id}."""

    name: Literal["resume_run"] = "resume_run"
    run: RunId


class StopRun(Message):
    """End a run for good, or take it out of the queue; its checkpoints stay. Answer: {"run": id}."""

    name: Literal["stop_run"] = "stop_run"
    run: RunId


class RemoveWorker(Message):
    """Revoke a worker's key and park it. Answer: {"worker": id}."""

    name: Literal["remove_worker"] = "remove_worker"
    worker: WorkerId


class RemoveAllWorkers(Message):
    """Revoke the key of each enrolled worker and park it. Answer: {"workers": [id]}."""

    name: Literal["remove_all_workers"] = "remove_all_workers"


class GetRun(Message):
    """One run as the store has it. Answer: the run."""

    name: Literal["get_run"] = "get_run"
    run: RunId


class ListRuns(Message):
    """Runs, newest first, `before` a number. Answer: {"items": [run], "next": number of the last if more follow}."""

    name: Literal["list_runs"] = "list_runs"
    limit: PageSize = PAGE_ITEMS
    before: Count | None = None


class ListRounds(Message):
    """Closed rounds of a run, in order, `after` a number. Answer: {"items": [round], "next": as for runs}."""

    name: Literal["list_rounds"] = "list_rounds"
    run: RunId
    limit: PageSize = PAGE_ITEMS
    after: Count = 0


class ListCheckpoints(Message):
    """The checkpoints kept for a run. Answer: {"items": [{round, bytes, sha256, best}]}."""

    name: Literal["list_checkpoints"] = "list_checkpoints"
    run: RunId


class ListDatasets(Message):
    """The data set catalog. Answer: {"items": [data set]}."""

    name: Literal["list_datasets"] = "list_datasets"


class ListFolders(Message):
    """What lies in a folder of the master's PC. Answer: {path, parent, folders, models, more, roots}."""

    name: Literal["list_folders"] = "list_folders"
    path: Annotated[str, StringConstraints(max_length=1024)] = ""


class ListJoinStrings(Message):
    """The join strings that stand, by id, `after` one, without secrets. Answer: {"items": [join string], "next"}."""

    name: Literal["list_join_strings"] = "list_join_strings"
    limit: PageSize = PAGE_ITEMS
    after: Count = 0


class CreateJoinString(Message):
    """Make a join string for another PC. Answer: {"id", "join_string", "endpoints", "expires_at_ms", "uses"}."""

    name: Literal["create_join_string"] = "create_join_string"
    label: Name = "page"
    expires_s: Annotated[int, Field(ge=60, le=30 * 24 * 3600)] = 3600
    uses: Annotated[int, Field(ge=1, le=1000)] = 20


class RevokeJoinString(Message):
    """A join string stops working; enrolled workers stay. Answer: {"id": id}."""

    name: Literal["revoke_join_string"] = "revoke_join_string"
    id: Count


RunCommand = CreateRun | PauseRun | ResumeRun | StopRun | RemoveWorker  # decided by the coordinator
# Change nothing.
Query = GetRun | ListRuns | ListRounds | ListCheckpoints | ListDatasets | ListFolders | ListJoinStrings
ShellCommand = Init | RemoveAllWorkers | CreateJoinString | RevokeJoinString | Query


class Command(Message):
    """C->M: do this once."""

    t: Literal["COMMAND"] = "COMMAND"
    cmd_id: CommandId
    command: Annotated[RunCommand | ShellCommand, Field(discriminator="name")]


class Reply(Message):
    """M->C: the answer to a command. The result is JSON in the payload (empty object on an error)."""

    payload: ClassVar[bool] = True
    t: Literal["REPLY"] = "REPLY"
    cmd_id: CommandId
    ok: bool
    code: Code
    text: Sentence


class Subscribe(Message):
    """C->M: events after `after_seq` of `term`, please. Sent again every 2 s: it is also the heartbeat."""

    t: Literal["SUBSCRIBE"] = "SUBSCRIBE"
    term: Count
    after_seq: Count


class Snapshot(Message):
    """M->C: the whole state as of event `seq`, as JSON in the payload."""

    payload: ClassVar[bool] = True
    t: Literal["SNAPSHOT"] = "SNAPSHOT"
    term: Count
    seq: Count


class Event(Message):
    """M->C: one thing that happened. `text` is what the log says after `[KIND]`."""

    t: Literal["EVENT"] = "EVENT"
    term: Count
    seq: Count
    time_ms: Ms  # wall clock, since the Unix epoch; for display only
    kind: Code
    text: Sentence
    data: dict[str, Any]


class Alive(Message):
    """M->C: nothing new; `seq` is the newest event."""

    t: Literal["ALIVE"] = "ALIVE"
    term: Count
    seq: Count


class FilePull(Message):
    """C->M, on the bulk connection: the next chunks of the file with this SHA-256. What is asked for is the credit."""

    t: Literal["PULL"] = "PULL"
    sha256: Sha256
    chunk_bytes: Annotated[int, Field(ge=4096, le=2**20)]
    want: list[Count] = Field(min_length=1, max_length=64)


class FileChunk(Message):
    """M->C: one chunk of a file."""

    payload: ClassVar[bool] = True
    t: Literal["CHUNK"] = "CHUNK"
    sha256: Sha256
    index: Count
    total_bytes: Count
    crc32: Crc32


class ControlError(Message):
    """M->C: a message was refused (a command: with its `cmd_id`, if that can be read), or a file is not there."""

    t: Literal["ERROR"] = "ERROR"
    code: Code
    text: Sentence
    cmd_id: CommandId | None = None


FromConsole = Command | Subscribe | FilePull
ToConsole = Reply | Snapshot | Event | Alive | FileChunk | ControlError
