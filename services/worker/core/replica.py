"""The worker's replica: which version its anchor is, and how it gets to the one that a task needs.

By updates as far as the master's log has them, else whole. An update is fetched as soon as the master announces it,
also beside a task; the trainer applies it when the next task begins, so that it counts only when its round is closed.
"""

from services.common.protocol.messages import (
    Chunk,
    Credit,
    Mismatch,
    Pull,
    Task,
    Update,
    What,
    because,
    down_encoding,
    encoded_bytes,
)
from services.worker.core import hand, limits, training, upload
from services.worker.core.commands import (
    CheckAnchor,
    Command,
    ForgetUpdates,
    NoteAnchor,
    PrepareAnchor,
    PrepareUpdate,
    Say,
    Send,
    StoreChunk,
)
from services.worker.core.events import Anchor, AnchorChecked, Anchored, AnchorWrong, Received
from services.worker.core.state import BYTES_PER_PARAMETER, NO_ANCHOR, Download, State, Timer, Work, place

UPDATE_GONE = "UPDATE_GONE"


def reach(state: State, now_ms: int) -> list[Command]:
    """The task in hand needs its version, or now its base: go on if it is within reach, else pull what is missing."""
    task = state.task
    assert task is not None
    if not state.rebasing:
        state.work = Work.PULLING
        if training.goes_on(state, task):
            return training.begin(state, now_ms)
    elif state.moving is not None:
        return []  # the trainer still applies the updates to the version it began with
    needed = training.anchor_of(task)
    if state.anchor.digest == needed.digest:
        moved = _moved(state, needed) if state.anchor != needed else []
        return moved + _arrive(state, now_ms)
    if not _can_follow(state, task, needed):
        return _pull_whole(state, now_ms)
    have = _reachable(state)
    if have >= needed.version:
        return _arrive(state, now_ms)
    if state.download is not None and state.download.what == "update" and state.download.version == have + 1:
        return []  # it is on its way already
    return _pull(state, "update", have + 1, "", _update_bytes(task), now_ms)


def rebase(state: State, now_ms: int) -> list[Command]:
    """The base of the task in hand, which is ahead, is announced: reach it, beside the trainer if that has begun."""
    assert state.task is not None
    has_begun = training.has(state, state.task.ref.lease)
    state.task = training.resolve(state, state.task)
    state.disarm(Timer.TRAINER_FREE)
    if has_begun:
        state.given, state.rebasing = state.task, True
    elif state.download is not None and state.download.what == "snapshot":
        state.download = None  # of the version to begin with
    return reach(state, now_ms)


def is_awaited(state: State) -> bool:
    """Whether the task in hand waits for what is on its way here."""
    return state.task is not None and (state.work is Work.PULLING or state.rebasing)


def void(state: State) -> None:
    """Nothing is known of the anchor any more, so updates, also one on its way, lead nowhere."""
    state.anchor, state.moving = NO_ANCHOR, None
    state.updates.clear()
    if state.download is not None and state.download.what == "update":
        state.download = None
        state.disarm(Timer.CHUNK)


def on_update(state: State, message: Update, now_ms: int) -> list[Command]:
    """The master has made a new version: fetch what makes it, if nothing before it is missing here."""
    download = state.download
    if message.run != state.anchor.run or (download is not None and download.what == "snapshot"):
        return []
    if download is not None and (download.version, download.digest) == (message.version, message.digest):
        return []
    used = state.task if state.work is Work.TRAINING else state.given
    in_use = training.anchor_of(used).version if used is not None and not state.rebasing else -1
    if message.version <= max(in_use, state.moving.version if state.moving is not None else -1):
        return []
    if message.version in state.updates:  # made anew: the one we have, and what follows it, is void
        del state.updates[state.updates.index(message.version) :]
    if message.version != _reachable(state) + 1:
        return []
    asked = _pull(state, "update", message.version, message.digest, message.bytes, now_ms)
    return asked[:1] if message.pushed else asked  # the first window comes without being asked for


def on_update_gone(state: State, now_ms: int) -> list[Command]:
    """The master's log does not go back so far."""
    if state.download is None or state.download.what != "update":
        return []
    state.download = None
    state.disarm(Timer.CHUNK)
    return _pull_whole(state, now_ms) if is_awaited(state) else []


def on_chunk(state: State, event: Received, now_ms: int) -> list[Command]:
    """Store a chunk that was asked for and ask for one more; after the last go on."""
    message: Chunk = event.message
    download = state.download
    if download is None or message.what != download.what:
        return []
    if download.what == "update" and (message.run, message.version) == (download.run, download.version):
        if download.digest not in ("", message.digest) or download.total_bytes != message.total_bytes:
            # made anew; or in another encoding than the task's
            return _pull(state, "update", message.version, message.digest, message.total_bytes, now_ms)
        download.digest = message.digest
    if not download.fits(message, event.payload_bytes):
        text = f"chunk {message.index} of {message.what} {message.version} is not what is needed here; ignored"
        return state.say_once("WARN", text, now_ms)
    if download.received[message.index]:
        return []
    download.received[message.index] = True
    download.silences = 0
    if is_awaited(state):
        state.progress_at_ms = now_ms
    commands: list[Command] = [StoreChunk(download.what, download.version, message.index * download.chunk_bytes)]
    if not download.complete():
        return commands + _ask(state, 1, now_ms)
    state.disarm(Timer.CHUNK)
    if download.what == "snapshot":
        return [*commands, CheckAnchor()]
    state.download = None
    if download.version == _reachable(state) + 1:  # else the anchor has got there in another way
        state.updates.append(download.version)
    return commands + (reach(state, now_ms) if is_awaited(state) else [])


def on_anchor_checked(state: State, event: AnchorChecked, now_ms: int) -> list[Command]:
    """Train on the right anchor; pull a wrong one again, PULL_ATTEMPTS_MAX times in all."""
    if state.moving is not None:  # the trainer died while it applied updates: before or after, nothing between
        moving, state.moving = state.moving, None
        if event.digest == moving.digest:
            return _moved(state, moving)
        return _lost(state, now_ms) if event.digest != state.anchor.digest else []
    task, download = state.task, state.download
    if task is None or download is None or download.what != "snapshot":
        return []
    if event.digest == task.anchor_digest:
        state.download = None
        return _moved(state, training.anchor_of(task)) + _arrive(state, now_ms)
    wrong = f"the anchor has the digest {event.digest}, needed is {task.anchor_digest}"
    if download.attempts >= limits.PULL_ATTEMPTS_MAX:
        needed, downloads = task.anchor_digest, download.attempts
        why = because("ANCHOR_WRONG", digest=event.digest, needed=needed, downloads=downloads)
        return hand.give_back(state, why, now_ms)
    said: list[Command] = [Say("WARN", f"{wrong}; download {download.attempts + 1} of {limits.PULL_ATTEMPTS_MAX}")]
    return said + _pull_whole(state, now_ms, download.attempts + 1)


def on_anchored(state: State, event: Anchored, now_ms: int) -> list[Command]:
    """The trainer has applied the updates and the digest is right."""
    moving = state.moving
    if moving is None or not training.has(state, event.lease):
        return []
    state.moving = None
    return _moved(state, moving) + (reach(state, now_ms) if state.rebasing else [])


def on_anchor_wrong(state: State, event: AnchorWrong, now_ms: int) -> list[Command]:
    """With the updates this replica is another one than the master's: tell it, and pull the whole version."""
    if not training.has(state, event.lease):
        return []
    training.over(state, event.lease)
    if state.task is None or event.lease != state.task.ref.lease:
        return _lost(state, now_ms)
    said: list[Command] = [
        Say("WARN", f"{place(state.task.ref)}: {event.reason}; pulling the whole version"),
        Send(Mismatch(term=state.term, ref=state.task.ref, reason=event.reason)),
    ]
    return said + _pull_whole(state, now_ms)


def on_pull_wait(state: State, message: Credit, now_ms: int) -> list[Command]:
    """All download places are taken: the master is not silent, ask again after the wait.

    A PULL names no lease, only run and version; any other CREDIT is for a held delta.
    """
    task, download = state.task, state.download
    assert task is not None
    ours = (message.ref.run, message.ref.base_version) == (task.ref.run, task.ref.base_version)
    if download is None or not ours or not message.wait_ms or state.held_by(message.ref.lease) is not None:
        return upload.on_credit(state, message, now_ms)
    download.silences = 0
    state.arm(Timer.CHUNK, now_ms + max(message.wait_ms, limits.CREDIT_WAIT_MIN_MS))
    return state.say_once("TASK", f"{place(task.ref)}: the master serves others first; waiting", now_ms)


def on_chunk_silence(state: State, now_ms: int) -> list[Command]:
    """A chunk is late: ask for all that is missing, a few times; without a link wait for it."""
    download = state.download
    if download is None or not state.joined():
        return []
    download.silences += 1
    if download.silences <= limits.PULL_SILENCES_MAX:
        download.again()
        return _ask(state, state.window_chunks, now_ms)
    state.download = None
    if not is_awaited(state):
        return []  # the next task asks again
    seconds = limits.PULL_SILENCES_MAX * limits.SILENCE_MS // 1000
    return hand.give_back(state, because("ANCHOR_SILENCE", seconds=seconds), now_ms, busy=True)


def on_joined(state: State, now_ms: int) -> list[Command]:
    """A new session: go on with the download; training never stopped."""
    download = state.download
    if download is None or download.complete():
        return []
    if download.chunk_bytes != state.chunk_bytes:
        return _pull(state, download.what, download.version, download.digest, download.total_bytes, now_ms)
    download.again()
    return _ask(state, state.window_chunks, now_ms)


def _arrive(state: State, now_ms: int) -> list[Command]:
    return training.rebase(state, now_ms) if state.rebasing else training.begin(state, now_ms)


def _lost(state: State, now_ms: int) -> list[Command]:
    """Nothing is known of the anchor any more: a task that counted on it pulls the whole version."""
    void(state)
    return _pull_whole(state, now_ms) if state.task is not None and state.download is None else []


def _moved(state: State, anchor: Anchor) -> list[Command]:
    if anchor.run != state.anchor.run:
        void(state)
    state.anchor = anchor
    state.updates = [version for version in state.updates if version > anchor.version]
    return [NoteAnchor(anchor), ForgetUpdates(anchor.version)]


def _reachable(state: State) -> int:
    """The version that the anchor makes with the updates that are here."""
    return state.anchor.version + len(state.updates)


def _can_follow(state: State, task: Task, needed: Anchor) -> bool:
    """Whether updates lead to this version, and are fewer bytes than the whole."""
    behind = needed.version - _reachable(state)
    fits = state.anchor.run == needed.run and 0 <= state.anchor.version < needed.version
    return fits and behind * _update_bytes(task) <= BYTES_PER_PARAMETER * task.n_parameters


def _update_bytes(task: Task) -> int:
    return encoded_bytes(down_encoding(task.encoding), task.n_parameters)


def _pull_whole(state: State, now_ms: int, attempts: int = 1) -> list[Command]:
    """Get the whole version, from the first chunk; what the anchor was is void."""
    assert state.task is not None
    if not state.rebasing:
        state.work = Work.PULLING
        state.disarm(Timer.TRAINER_FREE)
    void(state)
    needed = training.anchor_of(state.task)
    total = state.task.n_parameters * BYTES_PER_PARAMETER
    commands = _pull(state, "snapshot", needed.version, needed.digest, total, now_ms, attempts)
    return [ForgetUpdates(needed.version), *commands]


def _pull(
    state: State, what: What, version: int, digest: str, total: int, now_ms: int, attempts: int = 1
) -> list[Command]:
    run = state.task.ref.run if what == "snapshot" and state.task is not None else state.anchor.run
    count = -(-total // state.chunk_bytes)
    state.download = Download(what, run, version, digest, total, state.chunk_bytes, [False] * count, attempts=attempts)
    prepare = PrepareAnchor(total) if what == "snapshot" else PrepareUpdate(version, total)
    return [prepare, *_ask(state, state.window_chunks, now_ms)]


def _ask(state: State, n: int, now_ms: int) -> list[Command]:
    """PULL for up to `n` more chunks: what is asked for is the credit."""
    download = state.download
    assert download is not None
    state.arm(Timer.CHUNK, now_ms + limits.SILENCE_MS)
    want = download.want(n)
    if not want:
        return []
    return [Send(Pull(term=state.term, what=download.what, run=download.run, version=download.version, want=want))]
