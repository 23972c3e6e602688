"""The one thread that computes and writes. Jobs run in the order of the coordinator's commands: no row overtakes its
checkpoint.
"""

import queue
import threading
from collections.abc import Callable

from services.master.shell.desk import Desk, Job


class Aggregation:
    """The thread's handle; every method only queues."""

    def __init__(
        self,
        open_desk: Callable[[], Desk],
        crashed: Callable[[Exception], None],
    ) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._open_desk, self._crashed = open_desk, crashed
        # A daemon: whatever ends the loop ends the process. `stop` waits for what is queued; each write is atomic.
        self._thread = threading.Thread(target=self._work, name="aggregation", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def do(self, job: Job) -> None:
        """Queue one job."""
        self._jobs.put(job)

    def stop(self) -> None:
        """Finish what is queued, then end."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        try:
            desk = self._open_desk()
            while (job := self._jobs.get()) is not None:
                desk.run_job(job)
            desk.close()
        except Exception as error:  # noqa: BLE001 - a bug, or no store: the loop raises it and ends the master, loudly
            self._crashed(error)
