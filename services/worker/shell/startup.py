"""From settings to a running agent: slot, way to the master, facts of this PC, agent. Nothing runs yet."""

import platform
import secrets
from collections.abc import Callable

from services.common.host.logs import Log
from services.common.host.machine import cores, memory_mib, threads_usable
from services.common.protocol.limits import APP_VERSION, PROTOCOL_VERSION
from services.worker.core.state import Facts
from services.worker.settings import WorkerSettings
from services.worker.shell.agent import Agent
from services.worker.shell.joining import Way, find_way, wait_for_join_string
from services.worker.shell.link import check_library
from services.worker.shell.slot import Slot

NAME_LENGTH_MAX = 64


def build(settings: WorkerSettings, slot: Slot, log: Log, should_stop: Callable[[], bool]) -> Agent | None:
    """The agent for a slot; None when told to stop while waiting for a join string.

    Raises SettingsError or ProtocolError with the next step for a person.
    """
    check_library()
    join = wait_for_join_string(settings, log, slot, should_stop)
    if should_stop():
        return None
    way = find_way(slot, join)
    threads = settings.threads or threads_usable()
    facts = facts_of(settings, slot, way, threads)
    held = f", {len(facts.held)} held deltas" if facts.held else ""
    log("START", f"{settings.name}: slot {slot.folder}, {threads} threads, {facts.memory_mib} MiB of memory{held}")
    return Agent(facts, way, slot, log, threads=threads, score=settings.score)


def facts_of(settings: WorkerSettings, slot: Slot, way: Way, threads: int) -> Facts:
    """What the session has to know before the first event."""
    return Facts(
        name=settings.name,
        app_version=APP_VERSION,
        boot_id=secrets.token_hex(16),
        platform=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"[:NAME_LENGTH_MAX],
        cores=cores(),
        threads=threads,
        memory_mib=memory_mib(),
        protocol_version=PROTOCOL_VERSION,
        public_key=way.identity.public_key,
        endpoints=way.endpoints,
        enrolled=bool(way.identity.worker),
        can_enrol=way.can_enrol,
        parked=way.parked,
        held=tuple(slot.held()),
        anchor=slot.replica.known(),
    )
