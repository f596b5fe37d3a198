"""What a worker must not reach, as a process: the server with a marker in its memory and its environment, and its doors.

Started by test_in_worker.py. The marker comes in the environment; what is said goes over standard input and output: one
line of JSON with the addresses at the start, then for each line that is read one line with what arrived since the last.
"""

from __future__ import annotations

import collections
import ctypes
import json
import os
import selectors
import signal
import socket
import sys
from multiprocessing import shared_memory


def main() -> None:
    marker = os.environ["CARRY_LAB_PLANTED"].encode()
    folder = sys.argv[1]
    memory = ctypes.create_string_buffer(marker)
    shared = shared_memory.SharedMemory(create=True, size=len(marker))
    shared.buf[: len(marker)] = marker
    arrived: collections.Counter[str] = collections.Counter()
    signal.signal(signal.SIGUSR1, lambda *_: arrived.update(["signal"]))

    doors = {
        "tcp": socket.create_server(("127.0.0.1", 0)),
        "udp": socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "unix": socket.socket(socket.AF_UNIX),
        "abstract": socket.socket(socket.AF_UNIX),
    }
    doors["udp"].bind(("127.0.0.1", 0))
    doors["unix"].bind(f"{folder}/door")
    doors["abstract"].bind(f"\0carry-lab-{os.getpid()}")
    selector = selectors.DefaultSelector()
    for name, door in doors.items():
        if name != "udp":
            door.listen()
        selector.register(door, selectors.EVENT_READ, name)
    selector.register(sys.stdin, selectors.EVENT_READ, "")
    told = {
        "PID": os.getpid(),
        "REMOTE": ctypes.addressof(memory),
        "TCP": doors["tcp"].getsockname()[1],
        "UDP": doors["udp"].getsockname()[1],
        "UNIX": f"{folder}/door",
        "ABSTRACT": f"carry-lab-{os.getpid()}",
        "SHARED": shared.name,
    }
    print(json.dumps(told), flush=True)
    while True:
        for key, _ in selector.select():
            if key.data == "":
                if not sys.stdin.readline():
                    shared.close()
                    shared.unlink()
                    return
                print(json.dumps(arrived), flush=True)
                arrived.clear()
            elif key.data == "udp":
                arrived[key.data] += bool(doors["udp"].recv(9))
            else:
                doors[key.data].accept()[0].close()
                arrived[key.data] += 1


if __name__ == "__main__":
    main()
