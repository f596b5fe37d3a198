"""The workers of the server: each session's scripts run in a process of its own, a few at a time, in fair turns.

    pool = Pool()                                                # once a server: warms spare workers at once
    pool.reserve(session)                                        # its page was opened: have a worker ready
    ticket = pool.submit(session, {"wish": "check", "text": …})
    while not ticket.wait(0.2): show(ticket.place)               # 0: it runs; n: the n-th in the queue
    ticket.result                                                # Done(answer) or Stopped(reason)
    pool.release(session)                                        # the session is over

What holds:
- A worker that ran one session's script never serves another. It stays with that session while there is room.
- A session has one request running and one waiting: a newer one takes the place of the one that waits.
- At most `running` scripts compute at the same time, so that the 5 s of each are its own; they count from the moment
  the worker says that it begins (one that says nothing for a second has begun). At 4 s the worker stops its script
  itself and still answers; at 5 s it is killed.
- Nothing that a worker sends is trusted: JSON of bounded length; whatever is not what was asked for ends the worker.
- Whatever ends a worker (time, memory, a crash), its session gets a fresh one, and nobody else notices.
One thread reads, watches times and memory and hands out work; another one asks the fork server for workers, which may
take its time. All others only add to the queue under a lock.
"""

from __future__ import annotations

import logging
import re
import selectors
import socket
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from typing import Any, Final

from core.base.limits import LIMITS
from core.base.text import fill
from core.sandbox import channel
from core.sandbox.pool_bounds import Bounds, from_limits
from core.sandbox.pool_crew import Crew, Worker
from core.sandbox.pool_process import ForkServer, WorkerProcess
from core.sandbox.pool_queue import FairQueue
from core.sandbox.pool_starter import Starter
from core.sandbox.pool_ticket import Done, PoolStatus, Result, Stopped, StopReason, Ticket

__all__ = ["Bounds", "Done", "Pool", "PoolStatus", "Result", "StopReason", "Stopped", "Ticket", "from_limits"]

#: The handler of pasted scripts.
DOCTOR: Final = "core.doctor.job"
#: Seconds between two looks at times and memory: while a worker is about to be killed, while one runs, and else.
GLANCE, LOOK, REST = 0.01, 0.05, 5.0
#: Seconds that a worker gets to say where its script is, before it is killed.
LAST_WORDS: Final = 0.5
#: Seconds after which a worker that did not say that it begins is taken to have begun.
SILENCE: Final = 1.0
#: How often a script is begun again whose worker died with the fork server: spares of the dead one may be handed it, too.
ORPHANED: Final = 8
#: Seconds that filling the folder of programs may take, in the background.
FILLING: Final = 600.0
#: Seconds that closing waits for its thread.
PATIENCE: Final = 15.0

FAILED = "{type} at {places}"
DIES_WARMING = "workers end while they warm up"

_PLACE: Final = re.compile(r"[\w./-]{1,120}:\d{1,6}")
_NAME: Final = re.compile(r"\w{1,60}")
_log = logging.getLogger(__name__)


class Pool:
    """The workers. Every method may be called by any thread; none waits for a script.

    Args:
        handler: name of the module that answers: ``handle(request) -> dict`` and ``warm()``, plain data both ways.
        bounds: what it may use; by default what the table of limits says.
        walls: whether workers put up the kernel's walls. Only for handlers that are trusted may it be False.
    """

    def __init__(self, handler: str = DOCTOR, *, bounds: Bounds | None = None, walls: bool = True) -> None:
        self._bounds = from_limits() if bounds is None else bounds
        self._lock = threading.Lock()
        self._queue = FairQueue()
        self._crew = Crew()
        self._reserved: dict[str, None] = {}
        self._closed = False
        self._filler: Worker | None = None
        self._filled = False
        self._looked = 0.0
        self._made = self._lost = 0
        self._stopped: Counter[StopReason] = Counter()
        self._walls: tuple[tuple[str, bool, str], ...] = ()
        self._failed: deque[str] = deque(maxlen=5)
        self._starter = Starter(
            self._lock,
            self._welcome,
            self._give_up,
            lambda: ForkServer(handler, walls=walls, memory=self._bounds.memory),
        )
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        for end in (self._wake, self._woken):
            end.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._supervise, name="carry-lab-pool", daemon=True)
        with self._lock:
            self._arrange()
        self._starter.start()
        self._thread.start()

    # --- what others call -------------------------------------------------------------------------------------------

    def reserve(self, session: str) -> None:
        """A session will ask soon: have a worker of its own warmed up, if there is room. Again and again is fine."""
        with self._lock:
            self._want(session)
            self._arrange()

    def submit(self, session: str, request: dict[str, Any]) -> Ticket:
        """Queue a request. One of the same session that waits gives way to it (it ends as REPLACED).

        Args:
            session: whose worker is to answer.
            request: plain data for the handler.

        Raises:
            ValueError: the request is over the limit ``request_bytes``, or no plain data.
        """
        message = {"alarm": self._bounds.alarm, "request": request}
        frame = channel.pack(message, LIMITS["request_bytes"].value)
        ticket = Ticket(self, session, str(request.get("wish", "")), frame)
        with self._lock:
            if self._closed:
                ticket.finish(Stopped(StopReason.CANCELLED))
                return ticket
            if len(self._queue) >= self._bounds.queue:
                self._finish(ticket, Stopped(StopReason.BUSY))
                return ticket
            self._want(session)
            older = self._queue.put(ticket)
            if older is not None:
                self._finish(older, Stopped(StopReason.REPLACED))
            self._arrange()
        self._rouse()
        return ticket

    def release(self, session: str) -> None:
        """A session is over: its requests end as CANCELLED, its worker goes."""
        with self._lock:
            self._reserved.pop(session, None)
            for ticket in self._queue.drop(session):
                self._finish(ticket, Stopped(StopReason.CANCELLED))
            worker = self._crew.of(session)
            if worker is not None and (worker.used or worker.ticket is not None):
                self._lose(worker, StopReason.CANCELLED)
            elif worker is not None:
                worker.session = None
            self._arrange()
        self._rouse()

    def place(self, ticket: Ticket) -> int:
        """The place of a ticket in the queue; 0 while it runs (`Ticket.place`)."""
        with self._lock:
            return self._queue.place(ticket)

    def cancel(self, ticket: Ticket) -> None:
        """Give up a request (`Ticket.cancel`)."""
        with self._lock:
            if self._queue.remove(ticket):
                self._finish(ticket, Stopped(StopReason.CANCELLED))
            for worker in self._crew.running():
                if worker.ticket is ticket:
                    self._lose(worker, StopReason.CANCELLED)
            self._arrange()
        self._rouse()

    def status(self) -> PoolStatus:
        """How it is."""
        with self._lock:
            crew, idle = list(self._crew), [w for w in self._crew if w.idle]
            return PoolStatus(
                alive=not self._closed and self._starter.alive,
                limit=self._bounds.running,
                running=len(self._crew.running()),
                queued=len(self._queue),
                warming=len(self._crew.warming()) + self._starter.wanted,
                spare=sum(1 for w in idle if w.session is None),
                reserved=sum(1 for w in idle if w.session is not None and not w.used),
                kept=sum(1 for w in idle if w.used),
                made=self._made,
                lost=self._lost,
                memory=sum(w.process.memory() for w in crew),
                stopped=dict(self._stopped),
                walls=self._walls,
                failed=tuple(self._failed),
                trouble=self._starter.trouble,
            )

    def close(self) -> None:
        """End all workers. Whatever waits or runs ends as CANCELLED."""
        with self._lock:
            self._closed = True
            for session in self._queue.turns():
                for ticket in self._queue.drop(session):
                    self._finish(ticket, Stopped(StopReason.CANCELLED))
            for worker in self._crew:
                self._lose(worker, StopReason.CANCELLED)
            self._end_filler()
            self._starter.stop()
        self._rouse()
        self._starter.close()
        self._thread.join(PATIENCE)
        self._selector.close()
        self._wake.close()
        self._woken.close()

    # --- the supervisor ---------------------------------------------------------------------------------------------

    def _supervise(self) -> None:
        while True:
            with self._lock:
                if self._closed:
                    return
                pause = self._pause()
            events = self._selector.select(pause)
            with self._lock:
                for key, mask in events:
                    if key.data is None:
                        self._hush()
                    elif key.data in self._crew or key.data is self._filler:
                        self._serve(key.data, mask)
                if not self._closed:
                    self._look()
                    self._arrange()

    def _pause(self) -> float:
        """Seconds until something is due though nobody says anything."""
        running = self._crew.running()
        if running:
            return GLANCE if any(w.doomed for w in running) else LOOK
        now = time.monotonic()
        due = [w.made + self._bounds.start for w in self._crew.warming()]
        if self._starter.again is not None:
            due.append(self._starter.again)
        return min([REST, *(max(LOOK, moment - now) for moment in due)])

    def _rouse(self) -> None:
        with suppress(OSError):
            self._wake.send(b".")

    def _hush(self) -> None:
        with suppress(OSError):
            while self._woken.recv(4096):
                pass

    def _serve(self, worker: Worker, mask: int) -> None:
        """A worker said something, takes more of its request, or is gone."""
        if mask & selectors.EVENT_WRITE and worker.process.flush():
            self._selector.modify(worker.process, selectors.EVENT_READ, worker)
        if not mask & selectors.EVENT_READ:
            return
        try:
            for message in worker.process.inbox.read(worker.process.talk):
                self._hear(worker, message)
                if worker not in self._crew and worker is not self._filler:
                    return
        except (channel.Garbage, KeyError, TypeError, ValueError):
            self._lose(worker, StopReason.DIED)
            return
        if not worker.process.inbox.open:
            self._lose(worker, StopReason.DIED)

    def _hear(self, worker: Worker, message: dict[str, Any]) -> None:
        """One message of a worker, which may be anything at all.

        Raises:
            Garbage, KeyError, TypeError, ValueError: it is not what may come now.
        """
        if worker is self._filler:
            self._filled = bool(message["filled"])
            return
        if not worker.ready and "failed" in message:
            self._note(message["failed"], message["at"])
            self._lose(worker, StopReason.DIED)
            return
        if not worker.ready:
            self._walls = tuple((str(name), bool(on), str(why)) for name, on, why in message["ready"])
            worker.ready = True
            worker.touched = time.monotonic()
            self._starter.succeeded()
            return
        ticket = worker.ticket
        if worker.doomed is not None:
            return
        if ticket is None:
            raise channel.Garbage(0)
        now = time.monotonic()
        if "started" in message and worker.started is None:
            worker.started = now
            return
        begun = worker.sent if worker.started is None else worker.started
        if isinstance(message.get("answer"), dict):
            self._finish(ticket, Done(message["answer"], now - begun, worker.sent - ticket.asked, worker.share(now)))
            self._stand_by(worker, now)
            if message.get("retire") or worker.jobs >= self._bounds.jobs or self._too_fat(worker):
                self._let_go(worker)
        elif "long" in message:
            self._stand_by(worker, now)
            self._finish(ticket, Stopped(StopReason.OUTPUT, now - begun))
        elif "time" in message:
            self._lose(worker, StopReason.TIME)
        elif "memory" in message:
            self._lose(worker, StopReason.MEMORY)
        else:
            self._note(message["failed"], message["at"])
            self._lose(worker, StopReason.DIED)

    def _note(self, kind: Any, places: Any) -> None:
        """Our own failure in a worker: the type of the exception and where in our code; nothing else is taken over."""
        known = [p for p in places if isinstance(p, str) and _PLACE.fullmatch(p)]
        name = _NAME.match(kind)
        text = fill(FAILED, type="?" if name is None else name[0], places=", ".join(known[:6]))
        self._failed.append(text)
        _log.error("%s", text)

    def _look(self) -> None:
        """Times and memory."""
        now = time.monotonic()
        for worker in self._crew.running():
            begun = worker.sent + SILENCE if worker.started is None else worker.started
            if worker.doomed is not None:
                reason, until = worker.doomed
                if now >= until or worker.process.line() is not None:
                    self._lose(worker, reason)
            elif now >= begun + self._bounds.seconds:
                self._doom(worker, StopReason.TIME, now)
            elif worker.process.memory() > self._bounds.memory:
                self._doom(worker, StopReason.MEMORY, now)
        for worker in self._crew.warming():
            if now >= worker.made + self._bounds.start:
                self._lose(worker, StopReason.DIED)
        if self._filler is not None and now >= self._filler.made + FILLING:
            self._end_filler()
        for worker in self._crew:
            if worker.idle and worker.used and now >= worker.touched + self._bounds.idle:
                self._let_go(worker, again=False)
        if now >= self._looked + 1.0:
            self._looked = now
            if self._bounds.short():
                self._make_room()

    def _doom(self, worker: Worker, reason: StopReason, now: float) -> None:
        worker.doomed = reason, now + LAST_WORDS
        worker.process.ask()

    def _too_fat(self, worker: Worker) -> bool:
        return worker.process.memory() > self._bounds.idle_memory

    # --- who works ------------------------------------------------------------------------------------------------

    def _want(self, session: str) -> None:
        self._reserved[session] = None

    def _arrange(self) -> None:
        """Give work to workers, workers to sessions, and have missing ones made."""
        if self._closed:
            return
        slots = self._bounds.running - len(self._crew.running())
        waiting = frozenset(self._queue.turns())
        missing = 0  # sessions whose turn it is, but for a worker
        for session in self._queue.turns():
            if missing >= slots:
                break
            own = self._crew.of(session)
            if own is not None and own.ticket is not None:
                continue
            worker = own if own is not None and own.ready else self._crew.spare() or self._crew.borrowed(waiting)
            if worker is None:
                missing += 1
                continue
            if own is not None and own is not worker:
                own.session = None  # still warming up: somebody else's then
            worker.session = session
            self._run(worker, self._queue.take(session))
            slots -= 1
        for session in self._reserved:
            if self._crew.of(session) is None and (spare := self._crew.spare()) is not None:
                spare.session = session
        spares = [w for w in self._crew.unbound() if w.idle]
        for worker in spares[self._bounds.spares :]:  # made for, or given back by, somebody who left
            self._let_go(worker)
        self._order(missing, slots)

    def _run(self, worker: Worker, ticket: Ticket) -> None:
        worker.ticket, worker.used = ticket, True
        worker.sent = worker.touched = time.monotonic()
        worker.started, worker.cpu = None, worker.process.cpu()
        if not worker.process.send(ticket.frame):
            self._selector.modify(worker.process, selectors.EVENT_READ | selectors.EVENT_WRITE, worker)

    def _stand_by(self, worker: Worker, now: float) -> None:
        worker.ticket = worker.started = None
        worker.touched = now
        worker.jobs += 1

    def _order(self, missing: int, slots: int) -> None:
        """Have workers made: for those whose turn it is in any case, for later on only while cores are free."""
        without = sum(1 for session in self._reserved if self._crew.of(session) is None)
        # A session whose turn it is, is among those without a worker, or its own one is warming up.
        lacking = max(missing, without) + self._bounds.spares - len(self._crew.unbound()) - self._starter.wanted
        under_way = len(self._crew.warming()) + self._starter.wanted
        free = slots - (0 if self._filled else 1)
        allowed = max(missing, min(free, lacking + under_way)) - under_way
        for _ in range(min(lacking, allowed)):
            if not self._may_grow() and not (missing > under_way and self._make_room()):
                break
            self._starter.order(1)
            under_way += 1

    def _may_grow(self) -> bool:
        count, coming = len(self._crew) + self._starter.wanted, len(self._crew.warming()) + self._starter.wanted + 1
        # The first one in any case: with none, a machine that is short of memory would have everybody wait for ever.
        return count < self._bounds.workers and (count == 0 or self._bounds.has_room(coming))

    def _make_room(self) -> bool:
        """Let go of the worker whose session has been quiet for the longest time; whether there was one."""
        worker = self._crew.oldest_idle(frozenset(self._queue.turns()))
        if worker is not None:
            self._let_go(worker, again=False)
        return worker is not None

    # --- ends -----------------------------------------------------------------------------------------------------

    def _finish(self, ticket: Ticket, result: Result) -> None:
        if isinstance(result, Stopped):
            self._stopped[result.reason] += 1
        ticket.finish(result)

    def _let_go(self, worker: Worker, *, again: bool = True) -> None:
        """End an idle worker. `again`: its session is to have another one."""
        if not again and worker.session is not None:
            self._reserved.pop(worker.session, None)
        self._end(worker)

    def _lose(self, worker: Worker, reason: StopReason) -> None:
        """End a worker in the middle of whatever it does, and tell the one who waits for it."""
        if worker is self._filler:
            self._end_filler()
            return
        ticket, worker.ticket = worker.ticket, None
        if not worker.ready and reason is StopReason.DIED:
            self._starter.fail(fill(DIES_WARMING))
        if ticket is not None:
            now = time.monotonic()
            line = worker.process.line()
            if worker.doomed is not None and reason is StopReason.DIED:
                reason = worker.doomed[0]
            orphan = reason is StopReason.DIED and self._starter.lost
            if orphan and ticket.tries < ORPHANED:  # it died with the fork server: not by what it ran
                ticket.tries += 1
                self._queue.put_back(ticket)
            else:
                begun = worker.sent if worker.started is None else worker.started
                self._finish(ticket, Stopped(reason, now - begun, line, worker.share(now)))
        self._end(worker)

    def _end(self, worker: Worker) -> None:
        self._selector.unregister(worker.process)
        worker.process.end()
        self._crew.remove(worker)
        self._lost += 1

    def _end_filler(self) -> None:
        filler, self._filler = self._filler, None
        self._filled = True
        if filler is not None:
            self._selector.unregister(filler.process)
            filler.process.end()

    def _give_up(self) -> None:
        """There will be no new workers for now: nobody who needs one is left waiting."""
        for session in self._queue.turns():
            own = self._crew.of(session)
            if own is None or not own.ready:
                for ticket in self._queue.drop(session):
                    self._finish(ticket, Stopped(StopReason.DIED))

    def _welcome(self, process: WorkerProcess, fills: bool) -> None:
        """A process was forked: a worker, or a filler."""
        worker = Worker(process)
        self._selector.register(process, selectors.EVENT_READ, worker)
        if fills:
            self._end_filler()
            self._filler, self._filled = worker, False
        else:
            self._crew.add(worker)
            self._made += 1
        if self._closed:
            self._end_filler()
            for late in self._crew:
                self._end(late)
        self._rouse()
