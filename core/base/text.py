"""One door for every sentence a person reads.

Messages are named templates (module constants) filled here, never pieced together inside logic, so that a second
language can be added by gettext without touching a rule: the template is the message id.
"""

from __future__ import annotations

import gettext
from collections.abc import Callable

#: Replaced by a catalogue's `gettext` when a language is chosen; the identity until then.
_translate: Callable[[str], str] = gettext.NullTranslations().gettext


def fill(template: str, /, **fields: object) -> str:
    """The sentence in the reader's language with its fields put in.

    Args:
        template: a constant such as ``"{path} has shape {got}"``; it is also the key of its translation.
        **fields: what its braces name.

    Raises:
        KeyError: the template names a field that was not given.
    """
    return _translate(template).format_map(fields)
