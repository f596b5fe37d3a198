"""Starts Carry Lab: checks the port, runs Streamlit in this process, and prints the address once the app answers.

Why not plain `streamlit run`: its banner asks the internet for this machine's outer address, a taken port ends in a log
line, its log may carry what a visitor typed, and a room of people needs an address that they can scan.

Settings that hold for every way of starting are in `.streamlit/config.toml`; only address and port are given here.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import http.client
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8501
#: Addresses that mean "every interface of this machine".
ANY_HOST = {"0.0.0.0": "127.0.0.1", "::": "::1"}
#: Interfaces that lead to containers, virtual machines or tunnels: nobody in the room can reach them.
INNER_INTERFACES = ("lo", "docker", "br-", "veth", "virbr", "vmnet", "vboxnet", "cni", "flannel", "tun", "utun", "tap")
#: Never contacted: an address kept for documentation, connected by UDP, only makes the kernel choose a route.
ROUTE_PROBE = ("198.51.100.1", 9)

BAD_PORT = "PORT must be a whole number from 1 to 65535, not {port}."
TAKEN = "Port {port} is already in use: stop the program that uses it, or choose another one, for example make run PORT={other}."
NOT_ALLOWED = "Port {port} needs administrator rights: choose one from 1024 up, for example make run PORT={other}."
BAD_HOST = "HOST={host} is no address of this machine: use HOST=0.0.0.0 for everybody in the room, or leave it out."
NO_BIND = "Carry Lab cannot listen on {host}, port {port}: {reason}."
READY = "\nCarry Lab is running: {url}\nStop it with Ctrl+C.\n"
READY_ROOM = "\nCarry Lab is running.\n  On this machine:  {local}\n  For the room:     {room}\n"
READY_ROOM_MORE = "  Other addresses:  {others}\n"
READY_NO_ROOM = (
    "\nCarry Lab is running on this machine only: {local}\n"
    "It found no network: join one and start again, so that others can reach it.\n"
)
STOP = "Stop it with Ctrl+C.\n"
READY_PLAIN = "Carry Lab is running on port {port}."
UNKNOWN = "{name} is no setting of Carry Lab: it changes nothing."
UNKNOWN_NEAR = "{name} is no setting of Carry Lab: it changes nothing. Is {near} meant?"
SCAN_ME = "\nScan to open it (same network, no internet needed):\n"
#: Loggers whose sentences are ours: they say nothing of a visitor's in the first place.
OURS = ("carry_lab", "core.", "pages.")
MASK = "…"
UNCAUGHT = "Traceback (without the text, which may hold what a visitor typed): {kind}\n{frames}"


class LaunchError(Exception):
    """The app cannot be started as asked; the message is the one sentence to show."""


@dataclass(frozen=True)
class Address:
    """One IPv4 address of this machine and the interface that has it."""

    interface: str
    ip: str


def url_of(host: str, port: int) -> str:
    """The http address of a host and port; an IPv6 host gets its brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def parse_port(text: str) -> int:
    """The port that `text` names.

    Raises:
        LaunchError: it is no whole number from 1 to 65535.
    """
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 65535):
        raise LaunchError(BAD_PORT.format(port=text or "empty"))
    return int(text)


def host_from(argument: str | None, environment: str | None) -> str:
    """The host to listen on: what was asked for on the command line, else the environment's HOST if it is an address.

    Some shells and conda export HOST with the machine's name or type in it; that is no wish to open the app to a room.
    """
    if argument:
        return argument
    try:
        return str(ipaddress.ip_address(environment or ""))
    except ValueError:
        return DEFAULT_HOST


def _answers(host: str, port: int) -> bool:
    """Whether something accepts connections there already."""
    try:
        with socket.create_connection((ANY_HOST.get(host, host), port), timeout=0.5):
            return True
    except OSError:
        return False


def _bind(host: str, port: int) -> None:
    """Listens there for a moment, the way the server will. Raises OSError."""
    family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        # As uvicorn does: a port that was left a minute ago is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(place)
        probe.listen(1)


def _free_port_after(host: str, port: int) -> int:
    """A free port to propose instead of `port`."""
    for other in range(max(port + 1, DEFAULT_PORT), 65536):
        try:
            _bind(host, other)
        except OSError:
            continue
        if not _answers(host, other):
            return other
    return DEFAULT_PORT


def check_free(host: str, port: int) -> None:
    """Makes sure that the app can listen on `host` and `port`.

    Raises:
        LaunchError: with the one sentence that says what to do.
    """
    try:
        _bind(host, port)
    except socket.gaierror as problem:
        raise LaunchError(BAD_HOST.format(host=host)) from problem
    except OSError as problem:
        if problem.errno == errno.EADDRINUSE:
            message = TAKEN.format(port=port, other=_free_port_after(host, port))
        elif problem.errno == errno.EACCES:
            message = NOT_ALLOWED.format(port=port, other=_free_port_after(host, port))
        elif problem.errno == errno.EADDRNOTAVAIL:
            message = BAD_HOST.format(host=host)
        else:
            message = NO_BIND.format(host=host, port=port, reason=problem.strerror)
        raise LaunchError(message) from problem
    # Some systems let two programs listen on one port, one for all addresses and one for this: ask, too.
    if _answers(host, port):
        raise LaunchError(TAKEN.format(port=port, other=_free_port_after(host, port)))


def _routed_ip() -> str | None:
    """The IPv4 address that this machine would use towards other networks, found without sending anything."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(ROUTE_PROBE)
        except OSError:
            return None
        return str(probe.getsockname()[0])


def _own_addresses() -> list[Address]:
    """Every IPv4 address of an interface that is up."""
    import psutil

    up = {name for name, state in psutil.net_if_stats().items() if state.isup}
    return [
        Address(name, entry.address)
        for name, entries in psutil.net_if_addrs().items()
        if name in up
        for entry in entries
        if entry.family == socket.AF_INET
    ]


def room_addresses(own: Sequence[Address], routed: str | None) -> list[str]:
    """The addresses under which others may reach this machine, the likeliest first.

    Args:
        own: this machine's addresses.
        routed: the one it uses towards other networks; None where there is no such route (a closed classroom network).
    """

    def reachable(address: Address) -> bool:
        ip = ipaddress.ip_address(address.ip)
        inner = address.interface.startswith(INNER_INTERFACES) and address.ip != routed
        return not (ip.is_loopback or ip.is_link_local or ip.is_unspecified or inner)

    found = [address.ip for address in own if reachable(address)]
    return sorted(dict.fromkeys(found), key=lambda ip: ip != routed)


def qr_lines(text: str, *, half_blocks: bool) -> list[str]:
    """A QR code for the terminal, scannable on light and dark backgrounds.

    Both colours are set outright (16 and 231 of the 256 are black and white whatever the theme), since a code drawn in the
    terminal's own colours comes out inverted on one of the two.

    Args:
        text: what the code says.
        half_blocks: two rows of modules per line; else each module is two spaces, for terminals without Unicode.
    """
    import segno

    rows = [list(row) for row in segno.make(text, micro=False).matrix_iter(border=4)]
    if not half_blocks:
        return ["".join(f"\x1b[48;5;{16 if module else 231}m  " for module in row) + "\x1b[0m" for row in rows]
    if len(rows) % 2:
        rows.append([0] * len(rows[0]))
    glyphs = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}
    return [
        "\x1b[38;5;16;48;5;231m"
        + "".join(glyphs[bool(a), bool(b)] for a, b in zip(upper, lower, strict=True))
        + "\x1b[0m"
        for upper, lower in zip(rows[::2], rows[1::2], strict=True)
    ]


def _speaks_unicode(encoding: str | None) -> bool:
    """Whether the half blocks can be written in that encoding."""
    try:
        "▀▄█".encode(encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def banner(host: str, port: int, *, encoding: str | None) -> str:
    """What to print once the app answers."""
    if host in ANY_HOST:
        local = url_of("localhost", port)
        addresses = room_addresses(_own_addresses(), _routed_ip())
        if not addresses:
            return READY_NO_ROOM.format(local=local) + STOP
        room, *others = (url_of(ip, port) for ip in addresses)
        head = READY_ROOM.format(local=local, room=room)
        more = READY_ROOM_MORE.format(others=", ".join(others)) if others else ""
        code = "\n".join(qr_lines(room, half_blocks=_speaks_unicode(encoding)))
        return head + more + SCAN_ME + code + "\n" + STOP
    shown = "localhost" if host in ("127.0.0.1", "::1") else host
    return READY.format(url=url_of(shown, port))


def _healthy(host: str, port: int) -> bool:
    """Whether the app answers. Not by urllib: it would ask a proxy."""
    connection = http.client.HTTPConnection(ANY_HOST.get(host, host), port, timeout=1)
    try:
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def announce(host: str, port: int, *, plain: bool = False) -> None:
    """Waits until the app answers, then prints where it is; `plain`: one line, no address."""
    while not _healthy(host, port):
        time.sleep(0.1)
    ready = READY_PLAIN.format(port=port) if plain else banner(host, port, encoding=sys.stdout.encoding)
    print(ready, flush=True)


def read_environment(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Looks at our variables before anything starts, and switches the measures on where they ask for it.

    Returns:
        sentences about variables that are none of ours but look like it.

    Raises:
        LaunchError: a variable holds what it cannot; the sentence names it, not its value.
    """
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    try:
        from core.base.limits import read_limits, unknown_variables
        from core.base.program_folder import VARIABLE as PROGRAMS_VARIABLE
        from core.base.program_folder import program_folder
        from core.measures.prometheus import HOST_VARIABLE, PORT_VARIABLE, place_of, serve

        read_limits(environ)
        program_folder(environ)
        place = place_of(environ)
        if place is not None:
            serve(place)
    except ValueError as problem:
        raise LaunchError(f"{problem}.") from problem
    strange = unknown_variables(environ, (HOST_VARIABLE, PORT_VARIABLE, PROGRAMS_VARIABLE))
    return tuple((UNKNOWN_NEAR if near else UNKNOWN).format(name=name, near=near) for name, near in strange)


class PatientStream:
    """A text stream that goes on when nobody reads it any more.

    Streamlit prints when it is told to stop; with `make run | tee log` and Ctrl+C the reader is gone first, the print
    fails, and the server would never stop.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes, or lets the text go."""
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            return len(text)

    def flush(self) -> None:
        """Flushes, or lets the text go."""
        with contextlib.suppress(BrokenPipeError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _masked(given: Any) -> Any:
    """The arguments of a log's sentence, all but numbers replaced."""
    if isinstance(given, Mapping):
        return {name: _masked((value,))[0] for name, value in given.items()}
    return tuple(value if isinstance(value, (int, float)) else MASK for value in given)


def keep_values_out_of_logs() -> None:
    """Log no text that is not a program's own: not that of an exception, nor what a package puts into its sentences.

    Either may quote what a visitor typed, or sent as the name of a host. Numbers stay.
    """
    make_record = logging.getLogRecordFactory()

    def without_values(*args: object, **kwargs: object) -> logging.LogRecord:
        record = make_record(*args, **kwargs)
        if record.exc_info and record.exc_info[0] is not None:
            kind, _, trace = record.exc_info
            frames = "".join(traceback.format_tb(trace))
            record.exc_text = UNCAUGHT.format(kind=kind.__name__, frames=frames)
            record.exc_info = None
        if record.args and not record.name.startswith(OURS):
            record.args = _masked(record.args)
        return record

    logging.setLogRecordFactory(without_values)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the app until it is stopped; returns the exit code."""
    parser = argparse.ArgumentParser(description="Start Carry Lab.")
    parser.add_argument("--host", default="")
    parser.add_argument("--port", default=str(DEFAULT_PORT))
    parser.add_argument("--plain", action="store_true", help="say on which port it runs, and nothing more")
    parser.add_argument("--dev", action="store_true", help="watch files, show details of errors")
    asked = parser.parse_args(arguments)
    host = host_from(asked.host, os.environ.get("HOST"))
    try:
        port = parse_port(asked.port.strip())
        check_free(host, port)
        doubts = read_environment(os.environ)
    except LaunchError as problem:
        print(problem, file=sys.stderr)
        return 1
    for doubt in doubts:
        print(doubt, file=sys.stderr)
    options = [f"--server.address={host}", f"--server.port={port}"]
    if asked.dev:
        options += ["--server.fileWatcherType=auto", "--client.showErrorDetails=full", "--logger.level=info"]
    else:
        keep_values_out_of_logs()
    sys.stdout, sys.stderr = cast(TextIO, PatientStream(sys.stdout)), cast(TextIO, PatientStream(sys.stderr))
    # Streamlit finds .streamlit/config.toml by the working directory.
    os.chdir(ROOT)
    threading.Thread(target=announce, args=(host, port), kwargs={"plain": asked.plain}, daemon=True).start()

    # uvicorn, once it has shut down, raises the signal that ended it anew: no traceback then, and no failure.
    for asked_to_end in (signal.SIGINT, signal.SIGTERM):
        signal.signal(asked_to_end, lambda *_: sys.exit(0))

    from streamlit import net_util
    from streamlit.runtime.pages_manager import PagesManager
    from streamlit.web import cli

    # Streamlit compares a foreign Origin with this machine's address on the internet, which it asks the internet for,
    # each time anew, while everybody waits.
    net_util.get_external_ip = lambda: None

    # Streamlit takes the folder `pages` for its old way of navigation until st.navigation has run once in the process:
    # the very first visitor, on a deep link, would be told "Page not found" over the right page.
    PagesManager.uses_pages_directory = False

    cli.main(["run", str(ROOT / "deploy" / "serve.py"), *options], prog_name="streamlit", standalone_mode=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
