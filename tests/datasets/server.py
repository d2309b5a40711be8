"""A server of our own, to which everything can happen."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    """Files by path; ``cut`` stops after so many bytes, ``pause`` waits after each kilobyte."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut: int | None = None
        self.pause = 0.0
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                content = outer.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                for start in range(0, len(content[: outer.cut]), 1024) if outer.pause else ():
                    try:
                        self.wfile.write(content[start : start + 1024])
                    except OSError:  # nobody listens any more
                        return
                    time.sleep(outer.pause)
                if not outer.pause:
                    self.wfile.write(content[: outer.cut])

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
