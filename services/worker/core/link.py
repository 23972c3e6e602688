"""Finding, entering and keeping the master: connect, enrol, join, notice silence, park. Training goes on meanwhile."""

from services.common.protocol.messages import (
    Bye,
    Drain,
    Enrol,
    Enrolled,
    Error,
    Heartbeat,
    Held,
    Hello,
    Reject,
    Rejoin,
    Welcome,
    text_of,
)
from services.worker.core import hand, limits, replica, trainer_process, upload
from services.worker.core.commands import (
    Command,
    Connect,
    Disconnect,
    Exit,
    Park,
    SaveIdentity,
    Say,
    Send,
    StopTrainer,
)
from services.worker.core.events import BadMessage, Fault, LinkDown, LinkFailed, LinkUp, Start, Stop, TrainerReady
from services.worker.core.state import Link, State, Timer, Work

REMOVED = "REMOVED"
LEAVING = "LEAVING"
LINK_TIMERS = (Timer.RETRY, Timer.CONNECT, Timer.ANSWER, Timer.HEARTBEAT, Timer.SUSPECT, Timer.LOST, Timer.OFFER)


def sentence(fault: Fault, endpoint: str) -> str:
    """What a person should know and do about a connection that cannot be made."""
    match fault:
        case Fault.AUTH:
            return (
                "this master does not know the key: the join string is wrong, revoked, or this PC was removed; "
                "get a new join string from the page"
            )
        case Fault.KEY:
            return (
                f"this master has another key than the join string says, or what answers at {endpoint} is not a MAHE "
                "master (or a port forwarding without one behind it); start the master, or get a new join string "
                "from its page"
            )
        case Fault.ALIEN:
            return f"what answers at {endpoint} is not a MAHE master; is the port right?"
        case Fault.SILENT:
            return f"{endpoint} takes the connection but says nothing; does the master hang, or is it another program?"
        case Fault.NO_ANSWER:
            return f"nothing answers at {endpoint}; is the master running, is the port open?"


def on_start(state: State, event: Start, now_ms: int) -> list[Command]:
    """Connect, unless this worker is parked."""
    del event
    if state.facts.parked:
        state.parked = state.facts.parked
        state.link = Link.PARKED
        return on_parked_timer(state, now_ms)
    state.connecting_since_ms = now_ms
    return [*trainer_process.start(state, now_ms), *connect(state, now_ms)]


def on_trainer_ready(state: State, event: TrainerReady, now_ms: int) -> list[Command]:
    """Say HELLO if it waited for the score."""
    commands = trainer_process.ready(state, event, now_ms)
    if state.link is Link.JOINING and Timer.ANSWER not in state.timers:
        commands += introduce(state, now_ms)
    return commands


def on_stop(state: State, event: Stop, now_ms: int) -> list[Command]:
    """Leave: the trainer ends, the master learns that the work comes back."""
    del now_ms
    why = event.reason
    bye = [Send(Bye(term=state.term, code=LEAVING, reason=why.text, reason_said=why))] if state.joined() else []
    state.link = Link.STOPPED
    state.timers.clear()
    return [Say("STOP", why.text), *bye, StopTrainer(), Disconnect(limits.BYE_LINGER_MS), Exit()]


def connect(state: State, now_ms: int) -> list[Command]:
    """Open a socket to the endpoint in turn."""
    state.link = Link.CONNECTING
    state.last_fault, state.faults_in_row = None, 0
    state.arm(Timer.CONNECT, now_ms + connect_wait(state))
    return [Connect(state.here(), state.own_key)]


def reconnect(state: State, wait_ms: int, now_ms: int) -> list[Command]:
    """Close the socket, wait, and open one to the next endpoint."""
    if state.link is Link.JOINED:
        state.connecting_since_ms = now_ms
    leave(state)
    state.arm(Timer.RETRY, now_ms + wait_ms)
    return [Disconnect()]


def leave(state: State) -> None:
    """The session is over; what is held stays held."""
    state.link = Link.CONNECTING
    state.suspect = False
    state.offer = None
    state.disarm(*LINK_TIMERS)


def connect_wait(state: State) -> int:
    """How long one endpoint may take until the handshake is done."""
    return limits.CONNECT_WAIT_MS if len(state.endpoints) == 1 else limits.CONNECT_WAIT_OF_SEVERAL_MS


def backoff(state: State, fault: Fault | None, base_ms: int, max_ms: int) -> int:
    """The next wait: doubled each time for the same fault, spread by the shell's random number."""
    state.waits = state.waits + 1 if fault is state.waited_for else 0
    state.waited_for = fault
    wait = min(max_ms, base_ms * 2 ** min(state.waits, 16))
    return int(wait * (0.75 + 0.5 * state.jitter))


def retry_wait(state: State) -> int:
    """The short wait between endpoints."""
    return backoff(state, None, limits.RETRY_BASE_MS, limits.RETRY_MAX_MS)


def on_retry(state: State, now_ms: int) -> list[Command]:
    """The wait is over."""
    state.endpoint = (state.endpoint + 1) % len(state.endpoints)
    state.own_key = state.enrolled
    return connect(state, now_ms)


def on_connect_timeout(state: State, now_ms: int) -> list[Command]:
    """No handshake: the next endpoint, by a new socket."""
    said = say_fault(state, state.last_fault or Fault.NO_ANSWER, now_ms)
    return said + reconnect(state, retry_wait(state), now_ms)


def on_link_up(state: State, event: LinkUp, now_ms: int) -> list[Command]:
    """The handshake succeeded: enrol, or say HELLO."""
    del event
    leave(state)
    state.last_fault = None
    state.faults_in_row = 0
    state.answer_tries = 0
    state.link = Link.JOINING if state.own_key else Link.ENROLLING
    return introduce(state, now_ms)


def introduce(state: State, now_ms: int) -> list[Command]:
    """ENROL under the join key; HELLO under the own key, as soon as the trainer has measured this PC."""
    facts = state.facts
    version = facts.protocol_version
    if state.link is Link.ENROLLING:
        state.arm(Timer.ANSWER, now_ms + limits.ANSWER_WAIT_MS)
        enrol = Enrol(
            name=facts.name,
            public_key=facts.public_key,
            proto_min=version,
            proto_max=version,
            app_version=facts.app_version,
        )
        return [Send(enrol)]
    if state.score is None:
        return []
    state.arm(Timer.ANSWER, now_ms + limits.ANSWER_WAIT_MS)
    hello = Hello(
        proto_min=version,
        proto_max=version,
        app_version=facts.app_version,
        boot_id=facts.boot_id,
        platform=facts.platform,
        cores=facts.cores,
        threads=facts.threads,
        memory_mib=facts.memory_mib,
        score=state.score,
        holding=[Held(ref=one.ref, bytes=one.delta_bytes, digest=one.digest) for one in state.held[-limits.HELD_MAX :]],
        working=state.task.ref if state.task is not None else None,
        queued=state.queued.ref if state.queued is not None else None,
    )
    return [Send(hello)]


def on_answer_timeout(state: State, now_ms: int) -> list[Command]:
    """ENROL or HELLO without an answer: again, then the next endpoint."""
    state.answer_tries += 1
    if state.answer_tries < limits.ANSWER_TRIES_MAX:
        return introduce(state, now_ms)
    said = state.say_once("LINK", f"the master at {state.here()} does not answer; trying the next endpoint", now_ms)
    return said + reconnect(state, retry_wait(state), now_ms)


def on_link_down(state: State, event: LinkDown, now_ms: int) -> list[Command]:
    """The connection broke; the socket tries again by itself, for a while."""
    del event
    said: list[Command] = []
    if state.link is Link.JOINED:
        state.connecting_since_ms = now_ms
        goes_on = "; the work goes on" if state.task is not None or state.held else ""
        said = [Say("LINK", f"the connection to {state.here()} is gone{goes_on}, connecting again")]
    leave(state)
    state.arm(Timer.CONNECT, now_ms + connect_wait(state))
    return said


def on_link_failed(state: State, event: LinkFailed, now_ms: int) -> list[Command]:
    """An attempt failed: say what a person can do; where the socket does not retry by itself, do it later."""
    state.faults_in_row = state.faults_in_row + 1 if event.fault is state.last_fault else 1
    state.last_fault = event.fault
    if event.fault is Fault.NO_ANSWER:
        return say_fault(state, event.fault, now_ms)
    if event.fault is Fault.KEY and state.faults_in_row < limits.KEY_FAULTS_BEFORE_WORDS:
        return []
    if event.fault is not Fault.AUTH:
        wait_ms = backoff(state, event.fault, limits.FAULT_RETRY_BASE_MS, limits.FAULT_RETRY_MAX_MS)
        return say_fault(state, event.fault, now_ms) + reconnect(state, wait_ms, now_ms)
    if state.own_key and state.can_enrol:
        state.own_key = False
        again = Say("LINK", "this master does not know this PC any more; trying the new join string")
        return [again, *connect(state, now_ms)]
    wait_ms = backoff(state, event.fault, limits.AUTH_RETRY_BASE_MS, limits.AUTH_RETRY_MAX_MS)
    return say_fault(state, event.fault, now_ms) + reconnect(state, wait_ms, now_ms)


def say_fault(state: State, fault: Fault, now_ms: int) -> list[Command]:
    """The sentence of a fault. That nothing answers is said only after a while: it may just be starting."""
    if fault is Fault.NO_ANSWER and now_ms - state.connecting_since_ms < limits.NO_ANSWER_BEFORE_WORDS_MS:
        return []
    return state.say_once("LINK", sentence(fault, state.here()), now_ms)


def on_enrolled(state: State, message: Enrolled, now_ms: int) -> list[Command]:
    """The master knows this key pair from now on: connect with it. The endpoint that worked stays the first."""
    endpoints = tuple(dict.fromkeys([state.here(), *message.endpoints]))[: limits.ENDPOINTS_MAX]
    state.endpoints, state.endpoint = endpoints, 0
    state.enrolled = state.own_key = True
    state.can_enrol = False
    leave(state)
    return [
        Say("JOIN", f"enrolled as {message.worker} ({message.name})"),
        SaveIdentity(message.worker, message.name, endpoints, message.beacon_key),
        *connect(state, now_ms),
    ]


def on_welcome(state: State, message: Welcome, now_ms: int) -> list[Command]:
    """Joined: take the timings, go on with the download, offer what is held."""
    state.link = Link.JOINED
    state.disarm(Timer.ANSWER)
    state.term = message.term
    state.session += 1
    state.waited_for = None
    state.heartbeat_ms, state.suspect_ms, state.lost_ms = message.heartbeat_ms, message.suspect_ms, message.lost_ms
    state.chunk_bytes, state.window_chunks = message.chunk_bytes, message.window_chunks
    state.said.clear()
    heard(state, now_ms)
    state.arm(Timer.HEARTBEAT, now_ms)
    said = Say("LINK", f"joined {state.here()} as {message.worker} ({message.name}), term {message.term}")
    return [said, *hand.drained(state), *replica.on_joined(state, now_ms), *upload.settle(state, now_ms)]


def on_welcome_again(state: State, message: Welcome, now_ms: int) -> list[Command]:
    """The answer to a repeated HELLO; of another term it opens a new session."""
    return [] if message.term == state.term else on_welcome(state, message, now_ms)


def on_reject(state: State, message: Reject, now_ms: int) -> list[Command]:
    """Not taken: come back later, or never."""
    reason = f"the master says {message.code}: {message.text}"
    if message.retry_after_ms is None:
        return park(state, reason, now_ms)
    wait_ms = round(message.retry_after_ms * (1 + 0.25 * state.jitter))
    said: list[Command] = [Say("LINK", f"{reason}; trying again in {wait_ms // 1000} s")]
    return said + reconnect(state, wait_ms, now_ms)


def on_rejoin(state: State, message: Rejoin, now_ms: int) -> list[Command]:
    """The master does not know this session: say HELLO again, keep everything."""
    leave(state)
    state.link = Link.JOINING
    state.answer_tries = 0
    return [Say("LINK", f"the master asks to join again: {message.reason}"), *introduce(state, now_ms)]


def on_drain(state: State, message: Drain, now_ms: int) -> list[Command]:
    """The master stops for a while."""
    del now_ms
    return [Say("LINK", f"the master at {state.here()} stops for a while: {message.reason}; keeping the work")]


def on_bye(state: State, message: Bye, now_ms: int) -> list[Command]:
    """Removed: park. Otherwise the master stops; look for it again."""
    if message.code == REMOVED:
        return park(state, message.reason, now_ms)
    said: list[Command] = [Say("LINK", f"the master says goodbye: {message.reason}")]
    return said + reconnect(state, retry_wait(state), now_ms)


def on_error(state: State, message: Error, now_ms: int) -> list[Command]:
    """The master refused one of our messages."""
    if message.code == replica.UPDATE_GONE:
        return replica.on_update_gone(state, now_ms)
    return state.say_once("WARN", f"the master refused a message: {message.code}: {message.text}", now_ms)


def on_bad_message(state: State, event: BadMessage, now_ms: int) -> list[Command]:
    """We refuse a message of the master, and say so once a minute."""
    said = state.say_once("WARN", f"refused a message of the master: {event.code}: {event.text}", now_ms)
    return [*said, Send(Error(code=event.code, text=event.text[: limits.REASON_LENGTH_MAX]))] if said else []


def on_heartbeat(state: State, message: Heartbeat, now_ms: int) -> list[Command]:
    """Any frame counts as one; there is no more in it."""
    del state, message, now_ms
    return []


def park(state: State, reason: str, now_ms: int) -> list[Command]:
    """Stay away until a person gives another join string."""
    leave(state)
    state.link = Link.PARKED
    state.parked = reason
    state.timers.clear()
    return [Park(reason), StopTrainer(), Disconnect(), *on_parked_timer(state, now_ms)]


def on_parked_timer(state: State, now_ms: int) -> list[Command]:
    """Say now and then why nothing happens."""
    state.arm(Timer.PARKED, now_ms + limits.PARKED_SENTENCE_EVERY_MS)
    return [Say("PARKED", f"{state.parked}; this PC stays away until it is started with a new join string")]


def heard(state: State, now_ms: int) -> list[Command]:
    """A frame came from the master."""
    if state.link is not Link.JOINED:
        return []
    state.arm(Timer.SUSPECT, now_ms + state.suspect_ms)
    state.arm(Timer.LOST, now_ms + state.lost_ms)
    was_suspect, state.suspect = state.suspect, False
    return [Say("LINK", "the master answers again")] if was_suspect else []


def on_suspect(state: State, now_ms: int) -> list[Command]:
    """Silent, but perhaps only busy."""
    del now_ms
    state.suspect = True
    return [Say("LINK", f"no word from the master for {state.suspect_ms // 1000} s")]


def on_lost(state: State, now_ms: int) -> list[Command]:
    """Silent for too long: a new socket to the next endpoint."""
    said: list[Command] = [Say("LINK", f"no word from the master for {state.lost_ms // 1000} s: connecting again")]
    return said + reconnect(state, retry_wait(state), now_ms)


def on_heartbeat_timer(state: State, now_ms: int) -> list[Command]:
    """Say that the agent lives, what it does, and how old the last progress is."""
    if state.link is not Link.JOINED:
        return []
    state.arm(Timer.HEARTBEAT, now_ms + state.heartbeat_ms)
    busy, paused = state.work in (Work.PULLING, Work.TRAINING), state.paused
    heartbeat = Heartbeat(
        term=state.term,
        agent="paused" if paused is not None else "waiting" if state.awaits_base else state.work.value,
        owner=text_of(paused),
        step=state.step,
        steps_total=state.steps_total,
        progress_age_ms=max(0, now_ms - state.progress_at_ms) if busy else 0,
    )
    return [Send(heartbeat)]
