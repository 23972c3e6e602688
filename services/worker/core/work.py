"""One task: take it or hand it back, get the anchor, train, hold the delta. What becomes of that is in `upload`."""

from services.common.protocol.messages import (
    Cancel,
    Chunk,
    Credit,
    Progress,
    Pull,
    RoundClosed,
    Task,
    TaskAck,
    TaskRefuse,
)
from services.worker.core import limits, training, upload
from services.worker.core.commands import (
    CheckAnchor,
    Command,
    ForgetDelta,
    PrepareAnchor,
    Say,
    Send,
    StopTraining,
    StoreChunk,
)
from services.worker.core.events import (
    AnchorChecked,
    Delta,
    Received,
    TrainerDone,
    TrainerFailed,
    TrainerProgress,
    TrainerStopped,
)
from services.worker.core.state import BYTES_PER_PARAMETER, Download, State, Timer, Work, place


def on_task(state: State, task: Task, now_ms: int) -> list[Command]:
    """A task while none is in hand."""
    if state.held_by(task.ref.lease) is not None:
        return [Send(TaskAck(term=state.term, ref=task.ref))]  # done already, its delta is on its way
    if state.paused:
        return refuse(state, task, state.paused, busy=True)
    room = upload.make_room(state) if task.fresh and len(state.held) >= limits.HELD_MAX else []
    if len(state.held) >= limits.HELD_MAX:
        return refuse(state, task, f"holds {len(state.held)} deltas that no ROUND_CLOSED named yet", busy=True)
    if reason := cannot_do(state, task):
        return room + refuse(state, task, reason)
    state.task = task
    state.progress_at_ms = now_ms
    commands: list[Command] = [
        *room,
        Send(TaskAck(term=state.term, ref=task.ref)),
        Say("TASK", f"{place(task.ref)}: {task.samples} samples, {task.k_steps} local steps of {task.batch}"),
    ]
    if state.anchor_digest == task.anchor_digest:
        return commands + train(state, now_ms)
    return commands + pull(state, now_ms, attempts=1)


def on_task_while_busy(state: State, task: Task, now_ms: int) -> list[Command]:
    """A task while another is in hand: a later round of the same run makes the old one stale; else it is refused."""
    assert state.task is not None
    current = state.task.ref
    if task.ref.lease == current.lease or state.held_by(task.ref.lease) is not None:
        return [Send(TaskAck(term=state.term, ref=task.ref))]
    if task.ref.run == current.run and task.ref.round > current.round:
        said: list[Command] = [Say("TASK", f"{place(current)}: stale, round {task.ref.round} is open; dropped")]
        return said + drop(state, now_ms) + on_task(state, task, now_ms)
    return refuse(state, task, f"busy with {place(current)}", busy=True)


def cannot_do(state: State, task: Task) -> str:
    """Why this PC can never do the task; empty if it can."""
    copies = limits.PARAMETER_COPIES_ADAMW if task.inner.get("name") == "adamw" else limits.PARAMETER_COPIES
    needed_mib = task.n_parameters * BYTES_PER_PARAMETER * copies // 2**20
    if needed_mib > state.facts.memory_mib:
        return f"{task.n_parameters} parameters need {needed_mib} MiB of memory, this PC has {state.facts.memory_mib}"
    return ""


def refuse(state: State, task: Task, reason: str, *, busy: bool = False) -> list[Command]:
    """Hand a task back, whole. `busy`: it is not the task's fault."""
    reason = reason[: limits.REASON_LENGTH_MAX]
    return [
        Say("TASK", f"{place(task.ref)}: handed back: {reason}"),
        Send(TaskRefuse(term=state.term, ref=task.ref, reason=reason, busy=busy)),
    ]


def give_back(state: State, reason: str, now_ms: int, *, busy: bool = False) -> list[Command]:
    """Hand back the task in hand. Without a link nothing is sent: HELLO will not name it as `working`."""
    assert state.task is not None
    task = state.task
    return drop(state, now_ms) + refuse(state, task, reason, busy=busy)


def drop(state: State, now_ms: int) -> list[Command]:
    """Stop the task in hand and forget it."""
    assert state.task is not None
    lease = state.task.ref.lease
    stop: list[Command] = [StopTraining(lease)] if training.has(state, lease) else []
    release(state)
    return stop + upload.settle(state, now_ms)


def release(state: State) -> None:
    """No task is in hand any more."""
    state.task = None
    state.download = None
    state.step = state.steps_total = 0
    state.disarm(Timer.CHUNK, Timer.TRAINER_FREE)


def pull(state: State, now_ms: int, attempts: int) -> list[Command]:
    """Get the whole anchor, from the first chunk."""
    assert state.task is not None
    state.work = Work.PULLING
    state.anchor_digest = ""
    total = state.task.n_parameters * BYTES_PER_PARAMETER
    count = -(-total // state.chunk_bytes)
    state.download = Download(total, state.chunk_bytes, [False] * count, attempts=attempts)
    return [PrepareAnchor(total), *ask(state, state.window_chunks, now_ms)]


def ask(state: State, n: int, now_ms: int) -> list[Command]:
    """PULL for up to `n` more chunks: what is asked for is the credit."""
    assert state.task is not None
    assert state.download is not None
    state.arm(Timer.CHUNK, now_ms + limits.SILENCE_MS)
    want = state.download.want(n)
    ref = state.task.ref
    return [Send(Pull(term=state.term, run=ref.run, version=ref.base_version, want=want))] if want else []


def on_chunk(state: State, event: Received, now_ms: int) -> list[Command]:
    """Store a chunk that was asked for and ask for one more; check the whole after the last."""
    message: Chunk = event.message
    download, task = state.download, state.task
    assert download is not None
    assert task is not None
    expected = min(download.chunk_bytes, download.total_bytes - message.index * download.chunk_bytes)
    fits = (
        (message.run, message.version, message.digest) == (task.ref.run, task.ref.base_version, task.anchor_digest)
        and (message.count, message.total_bytes) == (len(download.received), download.total_bytes)
        and message.index < message.count
        and event.payload_bytes == expected
    )
    if not fits:
        text = f"chunk {message.index} of version {message.version} is not what {place(task.ref)} needs; ignored"
        return state.say_once("WARN", text, now_ms)
    if download.received[message.index]:
        return []
    download.received[message.index] = True
    download.silences = 0
    state.progress_at_ms = now_ms
    commands: list[Command] = [StoreChunk(message.index * download.chunk_bytes)]
    if download.complete():
        state.disarm(Timer.CHUNK)
        return [*commands, CheckAnchor()]
    return commands + ask(state, 1, now_ms)


def on_anchor_checked(state: State, event: AnchorChecked, now_ms: int) -> list[Command]:
    """Train on the right anchor; pull a wrong one again, PULL_ATTEMPTS_MAX times in all."""
    assert state.task is not None
    assert state.download is not None
    if event.digest == state.task.anchor_digest:
        state.anchor_digest = event.digest
        return train(state, now_ms)
    attempts = state.download.attempts
    wrong = f"the anchor has the digest {event.digest}, needed is {state.task.anchor_digest}"
    if attempts >= limits.PULL_ATTEMPTS_MAX:
        return give_back(state, f"{wrong}, also after {attempts} downloads", now_ms)
    said: list[Command] = [Say("WARN", f"{wrong}; download {attempts + 1} of {limits.PULL_ATTEMPTS_MAX}")]
    return said + pull(state, now_ms, attempts + 1)


def on_pull_wait(state: State, message: Credit, now_ms: int) -> list[Command]:
    """All download places are taken: the master is not silent, ask again after the wait.

    A PULL names no lease, only run and version; any other CREDIT is for a held delta.
    """
    assert state.download is not None
    assert state.task is not None
    ours = (message.ref.run, message.ref.base_version) == (state.task.ref.run, state.task.ref.base_version)
    if not ours or not message.wait_ms or state.held_by(message.ref.lease) is not None:
        return upload.on_credit(state, message, now_ms)
    state.download.silences = 0
    state.arm(Timer.CHUNK, now_ms + max(message.wait_ms, limits.CREDIT_WAIT_MIN_MS))
    return state.say_once("TASK", f"{place(state.task.ref)}: the master serves others first; waiting", now_ms)


def on_chunk_silence(state: State, now_ms: int) -> list[Command]:
    """A chunk is late: ask for all that is missing, a few times; without a link wait for it."""
    if state.download is None or not state.joined():
        return []
    state.download.silences += 1
    if state.download.silences > limits.PULL_SILENCES_MAX:
        seconds = limits.PULL_SILENCES_MAX * limits.SILENCE_MS // 1000
        return give_back(state, f"the master sent no chunk of the anchor in {seconds} s", now_ms, busy=True)
    state.download.again()
    return ask(state, state.window_chunks, now_ms)


def on_joined(state: State, now_ms: int) -> list[Command]:
    """A new session: go on with the download; training never stopped."""
    download = state.download
    if download is None or download.complete():
        return []
    if download.chunk_bytes != state.chunk_bytes:
        return pull(state, now_ms, download.attempts)
    download.again()
    return ask(state, state.window_chunks, now_ms)


def train(state: State, now_ms: int) -> list[Command]:
    """The anchor is here: the trainer's turn."""
    assert state.task is not None
    state.work = Work.TRAINING
    state.download = None
    state.step, state.steps_total = 0, state.task.k_steps
    state.progress_at_ms = now_ms
    return training.give(state, now_ms)


def on_progress(state: State, event: TrainerProgress, now_ms: int) -> list[Command]:
    """Show the step; tell the master once a second."""
    in_hand = state.task is not None and event.lease == state.task.ref.lease
    if in_hand and event.step > state.step:
        state.step_ms = (now_ms - state.progress_at_ms) // (event.step - state.step)
    if training.has(state, event.lease):
        training.expect_step(state, now_ms)
    if state.task is None or not in_hand:
        return []
    state.step = event.step
    state.progress_at_ms = now_ms
    if not state.joined() or now_ms - state.progress_said_ms < limits.PROGRESS_EVERY_MS:
        return []
    state.progress_said_ms = now_ms
    progress = Progress(
        term=state.term,
        ref=state.task.ref,
        step=event.step,
        steps_total=event.steps_total,
        loss=event.loss,
        samples=event.samples,
    )
    return [Send(progress)]


def on_done(state: State, event: TrainerDone, now_ms: int) -> list[Command]:
    """Hold the delta and offer it."""
    if state.task is None or event.lease != state.task.ref.lease:
        return on_done_unasked(state, event, now_ms)
    training.over(state, event.lease)
    ref = state.task.ref
    needed = state.task.n_parameters * BYTES_PER_PARAMETER
    if event.delta_bytes != needed:
        return [
            *give_back(state, f"the delta has {event.delta_bytes} bytes, needed are {needed}", now_ms),
            ForgetDelta(event.lease),
        ]
    state.trainer_deaths = state.storage_failures = 0
    delta = Delta(
        ref, event.delta_bytes, event.digest, event.samples, event.steps, event.correct, event.loss, event.compute_ms
    )
    loss = f"{event.loss:.4f}" if event.loss is not None else "not a number"
    said = Say("DELTA", f"{place(ref)}: {event.steps} steps in {event.compute_ms} ms, train_loss={loss}")
    release(state)
    return [said, *upload.keep(state, delta), *upload.settle(state, now_ms)]


def on_done_unasked(state: State, event: TrainerDone, now_ms: int) -> list[Command]:
    """The delta of a task that was cancelled in its last step."""
    training.over(state, event.lease)
    forget: list[Command] = [] if state.held_by(event.lease) is not None else [ForgetDelta(event.lease)]
    return forget + training.give_next(state, now_ms)


def on_trainer_failed(state: State, event: TrainerFailed, now_ms: int) -> list[Command]:
    """The trainer says why it cannot do the task."""
    training.over(state, event.lease)
    if state.task is None or event.lease != state.task.ref.lease:
        return training.give_next(state, now_ms)
    state.anchor_digest = ""  # the file of the anchor may be what is wrong
    return give_back(state, event.reason, now_ms)


def on_trainer_stopped(state: State, event: TrainerStopped, now_ms: int) -> list[Command]:
    """A cancelled task is over."""
    training.over(state, event.lease)
    return training.give_next(state, now_ms)


def on_trainer_late(state: State, now_ms: int) -> list[Command]:
    """A task waited for the trainer for too long."""
    if state.task is None:
        return []
    seconds = limits.TRAINER_FREE_MS // 1000
    return give_back(state, f"the trainer was not free for it in {seconds} s", now_ms, busy=True)


def on_cancel(state: State, message: Cancel, now_ms: int) -> list[Command]:
    """Stop the task in hand if it is meant; else a held delta may be."""
    if state.task is None or message.ref.lease != state.task.ref.lease:
        return upload.on_cancel(state, message, now_ms)
    said: list[Command] = [Say("TASK", f"{place(message.ref)}: cancelled: {message.reason}")]
    return said + drop(state, now_ms)


def on_round_closed(state: State, message: RoundClosed, now_ms: int) -> list[Command]:
    """A round that closed without this task makes it void."""
    commands: list[Command] = []
    if state.task is not None and state.task.ref.run == message.run and state.task.ref.round <= message.round:
        commands = [Say("TASK", f"{place(state.task.ref)}: the round closed without it; dropped"), *drop(state, now_ms)]
    return commands + upload.on_round_closed(state, message, now_ms)
