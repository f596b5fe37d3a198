"""What the Doctor's page holds, and how a link carries it: scripts are compressed, and read back within bounds.

A link is a stranger's: what is packed in it is unpacked only as far as a script may be long, so that a few hundred
characters cannot become gigabytes; whatever is no link of ours is refused by name, and the page stays empty.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from core.base.limits import LIMITS
from core.base.text import fill
from core.doctor.gallery import EXAMPLES, example_of
from core.inputs.fields import (
    LINK_TOO_LONG,
    REFUSED,
    TOO_LONG,
    VERSION,
    VERSION_NAME,
    FieldTable,
    InputField,
    Kind,
    Link,
    Read,
    RefusedError,
    Value,
    shorten,
)

PAGE = "doctor"
SCRIPT, STEP = "script", "step"
CODE_URL, EXAMPLE_URL = "s", "e"

CODE_LABEL = "The script"
EXAMPLE_LABEL = "The example"
NOT_PACKED = "it is not whole: a part of the link is missing or was changed"
TOO_MUCH = "it holds more than {limit} characters"
NO_EXAMPLE = "there is none of this name"

DEFAULT_STEP = "def step(carry, x):\n    carry = carry + x\n    return carry, carry\n"


@dataclass(frozen=True, slots=True)
class DoctorTable(FieldTable):
    """The inputs of the page. Only those of the mode that is on go into a link."""

    def to_link(self, values: Mapping[str, Value]) -> Link:
        """The script, packed; of an unchanged example only its name."""
        code = str(values["step" if values["mode"] == STEP else "text"])
        if len(code) > LIMITS["script_text"].value:
            return Link({}, fill(LINK_TOO_LONG, count=len(code), limit=LIMITS["script_text"].value))
        params = _params(values)
        if not params:
            return Link({})
        limit = LIMITS["url_text"].value
        count = sum(len(name) + len(text) + 2 for name, text in params.items())
        if count > limit:
            return Link({}, fill(LINK_TOO_LONG, count=count, limit=limit))
        return Link({VERSION_NAME: VERSION, **params})

    def from_link(self, params: Mapping[str, str]) -> Read:
        """Values for every field; what cannot be read is refused by name."""
        # The code has its own two names; by its plain ones it is not read.
        plain = FieldTable(self.page, tuple(f for f in self.fields if f.name not in ("text", "step")))
        read = plain.from_link({name: text for name, text in params.items() if name not in (CODE_URL, EXAMPLE_URL)})
        values, refused = {**self.defaults(), **read.values}, list(read.refused)
        if CODE_URL in params:
            name = "step" if values["mode"] == STEP else "text"
            try:
                values[name] = unpack(params[CODE_URL])
            except RefusedError as reason:
                refused.append(_refusal(CODE_LABEL, params[CODE_URL], reason))
        elif EXAMPLE_URL in params:
            example = EXAMPLES.get(params[EXAMPLE_URL])
            if example is None:
                refused.append(_refusal(EXAMPLE_LABEL, params[EXAMPLE_URL], RefusedError(fill(NO_EXAMPLE))))
            else:
                values["text"] = example.text
        return Read(values, tuple(refused))


def _refusal(label: str, text: str, reason: RefusedError) -> str:
    return fill(REFUSED, label=fill(label), value=shorten(text), reason=reason)


def _params(values: Mapping[str, Value]) -> dict[str, str]:
    defaults = FIELDS.defaults()
    if values["mode"] == STEP:
        packed = {} if values["step"] == defaults["step"] else {CODE_URL: pack(str(values["step"]))}
        others = {name: str(values[name]) for name in ("init", "xs") if values[name] != defaults[name]}
        return {"mode": STEP, **others, **packed}
    text = str(values["text"])
    example = example_of(text)
    if example is not None:
        return {EXAMPLE_URL: example.name}
    return {CODE_URL: pack(text)} if text.strip() else {}


def _text_field(name: str, url: str, default: str, label: str) -> InputField:
    return InputField(name, url, Kind.TEXT, default, label, max_chars=LIMITS["url_text"].value)


FIELDS = DoctorTable(
    PAGE,
    (
        InputField("mode", "mode", Kind.CHOICE, SCRIPT, "What is checked", options=(SCRIPT, STEP)),
        _text_field("text", "text", "", "script"),
        _text_field("step", "step", DEFAULT_STEP, "step"),
        _text_field("init", "init", "0.", "init"),
        _text_field("xs", "xs", "jnp.array([1., 2., 3.])", "xs"),
    ),
)


def pack(text: str) -> str:
    """A text as a link carries it: compressed, in letters that an address takes as they are."""
    return base64.urlsafe_b64encode(zlib.compress(text.encode("utf-8", "replace"), 9)).decode("ascii").rstrip("=")


def unpack(packed: str) -> str:
    """The text that `pack` packed.

    Raises:
        RefusedError: it is longer than a link, holds more than a script may, or is not what `pack` makes.
    """
    limit = LIMITS["url_text"].value
    if len(packed) > limit:
        raise RefusedError(fill(TOO_LONG, count=len(packed), limit=limit))
    most = LIMITS["script_text"].value
    try:
        raw = base64.b64decode(packed.encode("ascii") + b"=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        # A character is at most four bytes; one more byte shows that there is more.
        data = unpacker.decompress(raw, 4 * most + 1)
        if len(data) > 4 * most:
            raise RefusedError(fill(TOO_MUCH, limit=most))
        text = data.decode("utf-8")
    except (binascii.Error, UnicodeError, zlib.error):
        raise RefusedError(fill(NOT_PACKED)) from None
    if len(text) > most:
        raise RefusedError(fill(TOO_MUCH, limit=most))
    if not unpacker.eof or unpacker.unused_data:
        raise RefusedError(fill(NOT_PACKED))
    return text
