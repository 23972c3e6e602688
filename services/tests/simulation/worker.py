"""A simulated worker: the shipped session on a simulated wire, a slot in memory, a trainer that really computes.

The slot outlives the agent: what was written there is found again after a crash.
"""

from collections.abc import Callable
from dataclasses import replace

from services.common.errors import ProtocolError
from services.common.protocol.codec import crc32, decode_to_worker, encode
from services.common.protocol.messages import DeltaBegin, DeltaChunk, Message
from services.common.protocol.reasons import said
from services.tests.simulation.network import Network, Trouble, Wire
from services.tests.simulation.slot import Pace, Slot
from services.tests.simulation.trainer import Heard, Trainer
from services.tests.simulation.world import World
from services.worker.core import commands as c
from services.worker.core import events as e
from services.worker.core.session import Session
from services.worker.core.state import Facts

TICK_MS = 1_000
CONNECT_MS = (200, 2_000)


class Worker:
    """One agent with its trainer; `crash` ends it, another is made on the same slot."""

    def __init__(self, world: World, network: Network, slot: Slot, trouble: Trouble, pace: Pace, made: Heard) -> None:
        self.world, self.network, self.slot, self.trouble, self.pace = world, network, slot, trouble, pace
        self.alive = True
        self._route_count = 0
        self._boot = f"{world.chance.getrandbits(128):032x}"
        self._wire: Wire | None = None
        self._payload = b""
        self._waiting: list[list[bytes]] = []
        self.trainer = Trainer(world, slot, pace, self._later, self._step, made)
        self.session = Session(
            Facts(
                name=slot.name,
                app_version="0.1.0",
                boot_id=self._boot,
                platform="simulated",
                cores=2,
                threads=2,
                memory_mib=4096,
                protocol_version=1,
                public_key=slot.key,
                endpoints=("tcp://master:47820",),
                enrolled=True,
                can_enrol=False,
                parked=slot.parked,
                held=tuple(replace(slot.kept[lease], accepted_session=0, eager=False) for lease in sorted(slot.kept)),
                anchor=slot.known(),
            )
        )

    def start(self) -> None:
        """Begin."""
        self._step(e.Start())
        self._tick()

    def crash(self) -> None:
        """kill -9: only the slot is left."""
        self.alive = False
        self.trainer.stop()
        self._close()

    def kill_trainer(self) -> None:
        """The trainer dies."""
        self.trainer.stop()
        self._later(1, lambda: self._step(e.TrainerExited(said("the trainer was killed (simulated)"))))

    def wake(self) -> None:
        """What came while it slept is read now."""
        self.pace.asleep = False
        frames, self._waiting = self._waiting, []
        for raw in frames:
            self._arrive(raw)

    def _later(self, wait_ms: float, action: Callable[[], None]) -> None:
        def if_alive() -> None:
            if not self.alive:
                return
            if self.pace.asleep:
                self._later(1_000, action)
            else:
                action()

        self.world.after(wait_ms, if_alive)

    def _tick(self) -> None:
        self._step(e.Tick(self.world.chance.random()))
        self._later(TICK_MS, self._tick)

    def _step(self, event: e.Event) -> None:
        pending = [event]
        while pending and self.alive:
            for command in self.session.step(pending.pop(0), self.world.clock()):
                follows = self._do(command)
                if follows is not None:
                    pending.append(follows)

    def _do(self, command: c.Command) -> e.Event | None:
        slot = self.slot
        match command:
            case c.Connect():
                self._close()
                self._route_count += 1
                route = f"{slot.name}-{self._boot[:8]}-{self._route_count}".encode()
                self._wire = Wire(route, slot.key, self._arrive, self._broken, self.trouble, up=False)
                self._try(self._wire)
            case c.Disconnect():
                self._close()
            case c.Send():
                self._send(command.message)
            case c.SendChunks():
                return self._send_chunks(command)
            case (
                c.PrepareAnchor()
                | c.PrepareUpdate()
                | c.StoreChunk()
                | c.CheckAnchor()
                | c.NoteAnchor()
                | c.ForgetUpdates()
                | c.KeepDelta()
                | c.ForgetDelta()
                | c.CheckStorage()
                | c.Park()
            ):
                return slot.do(command, self._payload)
            case c.StartTrainer():
                self.trainer.start()
            case c.StopTrainer():
                self.trainer.stop()
            case c.Train():
                self.trainer.train(command.task, command.updates, goes_on=command.goes_on)
            case c.Rebase():
                self.trainer.rebase(command.task, command.updates)
            case c.StopTraining():
                self.trainer.stop_training(command.lease)
            case c.Say():
                self.world.note(slot.name, f"[{command.kind}] {command.text}")
            case c.SaveIdentity():
                pass  # workers are enrolled before the simulation begins
            case c.Exit():
                self.alive = False
        return None

    # the wire

    def _try(self, wire: Wire) -> None:
        def attempt() -> None:
            if self._wire is not wire:
                return
            if self.network.connect(wire):
                self._step(e.LinkUp())
                return
            self._step(e.LinkFailed(e.Fault.NO_ANSWER))
            self._try(wire)

        self._later(self.world.chance.randint(*CONNECT_MS), attempt)

    def _broken(self) -> None:
        wire = self._wire
        if not self.alive or wire is None or wire.up:
            return
        if self.pace.asleep:
            self._later(1_000, self._broken)
            return
        self._step(e.LinkDown())
        if self._wire is wire:
            self._try(wire)

    def _close(self) -> None:
        if self._wire is not None:
            self.network.disconnect(self._wire)
        self._wire = None
        self._waiting.clear()

    def _arrive(self, raw: list[bytes]) -> None:
        if self.pace.asleep:
            self._waiting.append(raw)
            return
        try:
            message, payload = decode_to_worker(raw)
        except ProtocolError as error:
            self._step(e.BadMessage(error.code, error.sentence))
            return
        self._payload = bytes(payload) if payload is not None else b""
        self._step(e.Received(message, len(self._payload)))

    def _send(self, message: Message, payload: bytes | None = None) -> bool:
        if isinstance(message, DeltaBegin) and self.pace.lie and self.world.chance.random() < self.pace.lie:
            message = self._lie(message)
        return self._wire is not None and self.network.to_master(self._wire, encode(message, payload))

    def _lie(self, begin: DeltaBegin) -> DeltaBegin:
        """A wrong shard, round, version, size, digest or speed."""
        self.pace.faults += 1
        ref = begin.ref
        which = self.world.chance.randrange(6)
        if which == 0:
            return begin.model_copy(update={"ref": ref.model_copy(update={"shard": ref.shard + 1})})
        if which == 1:
            return begin.model_copy(update={"ref": ref.model_copy(update={"round": ref.round + 1})})
        if which == 2:
            return begin.model_copy(update={"ref": ref.model_copy(update={"lease": ref.lease + "9"})})
        if which == 3:
            return begin.model_copy(update={"bytes": begin.bytes + 4})
        if which == 4:
            return begin.model_copy(update={"digest": "0" * 32})
        return begin.model_copy(update={"samples": 2**50, "compute_ms": 1})

    def _send_chunks(self, command: c.SendChunks) -> e.Event | None:
        raw = self.slot.files.get(command.ref.lease)
        if raw is None:
            return e.DeltaUnreadable(command.ref.lease, "the file is gone")
        for index in command.want:
            part = raw[index * command.chunk_bytes : (index + 1) * command.chunk_bytes]
            if not part:
                return e.DeltaUnreadable(command.ref.lease, "the file is cut short")
            message = DeltaChunk(term=command.term, ref=command.ref, index=index, crc32=crc32(part))
            if not self._send(message, part):
                return None
        return None
