"""Says by its exit code whether Carry Lab answers on this machine: ``python -I -S health.py 8501``."""

from __future__ import annotations

import http.client
import sys


def healthy(port: int) -> bool:
    """Whether the health endpoint of the server on this port says that it is well."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=4)
    try:
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(0 if healthy(int(sys.argv[1])) else 1)
