"""What a worker does with one request, reports among them: the handler of the pool that the pages ask.

    handle({"wish": "report", "part": "given", "page": "scan", "values": {…}, …})  ->  a `Piece` as plain data

Every other request is the Doctor's (`core.doctor.job`). A worker belongs to one session; what it keeps between the parts
of a report, the case, is that session's own. Its answer is read strictly: a stranger's script may have run in it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from core.base.limits import LIMITS
from core.doctor import job
from core.doctor.check import Terms
from core.doctor.sandboxed import sandboxed
from core.report.parts import Bench, Part, Piece
from core.report.plain import NotPlainError, plain, read
from core.report.wanted import LSTM, SEQUENCE, Wanted, from_link, known_fields
from core.sandbox import timeup
from core.weights.cell import cell_file
from core.weights.load import load_cell

#: The kind of request.
WISH: Final = "report"
#: Seconds for what is checked of a script by its types, after it was stopped.
_MORE: Final = 0.7

preload, warm = job.preload, job.warm
#: What most reports compile, beside what the script of a person does: the sizes that the pages open with.
_STOCKED: Final = {LSTM: (Part.GIVEN, Part.CHECKS, Part.FORMULA), SEQUENCE: (Part.GIVEN, Part.CHECKS, Part.JIT)}


def stock() -> None:
    """Compile what many will run."""
    job.stock()
    desk = Desk()
    for page, parts in _STOCKED.items():
        wanted = Wanted(page, from_link(page, {}).values)
        for part in parts:
            while desk.handle(request(wanted, part))["more"]:
                pass
    desk.close()


def request(wanted: Wanted, part: Part) -> dict[str, Any]:
    """What the pool is handed for one part."""
    return {
        "wish": WISH,
        "part": str(part),
        "page": wanted.page,
        "values": dict(wanted.values),
        "text": wanted.text,
        "declared": dict(wanted.declared),
        "with_values": wanted.with_values,
        "file": "" if wanted.file is None else base64.b64encode(cell_file(wanted.file)).decode("ascii"),
    }


class Desk:
    """One worker's own."""

    def __init__(self) -> None:
        self._bench = Bench(
            Terms(
                sandboxed,
                output=LIMITS["script_output"].value,
                budget=LIMITS["work"].value,
                again=lambda: timeup.arm(_MORE),
            ),
            float(LIMITS["report_latency"].value),
        )

    def handle(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """One part of a report, as plain data.

        Raises:
            ValueError, KeyError, TypeError: it is no request of ours.
        """
        wanted = Wanted(
            page=str(asked["page"]),
            values=dict(asked["values"]),
            text=str(asked["text"]),
            declared=known_fields(asked["declared"]),
            with_values=bool(asked["with_values"]),
            file=load_cell(base64.b64decode(asked["file"])) if asked["file"] else None,
        )
        sent: dict[str, Any] = plain(self._bench.piece(wanted, Part(asked["part"])))
        return sent

    def close(self) -> None:
        """Forget the case."""
        self._bench.close()


_DESK: Final = Desk()


def handle(asked: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked (`Desk.handle`, or `core.doctor.job.handle`).

    Raises:
        ValueError, KeyError, TypeError: it is no request.
    """
    if asked["wish"] == WISH:
        return _DESK.handle(asked)
    _DESK.close()  # what a script left in libraries must not be there for the next one
    return job.handle(asked)


def read_piece(data: object) -> Piece:
    """The piece in what a worker sent.

    Raises:
        NotPlainError: it is none.
    """
    try:
        return read(Piece, data)
    except NotPlainError:
        raise
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise NotPlainError(type(error).__name__) from None
