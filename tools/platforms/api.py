"""A client of the API server."""

import http.client
import json
import ssl
import threading

TRUSTING = ssl._create_unverified_context()
MERGE = "application/merge-patch+json"


class Refused(Exception):
    """The API server's answer is not a success."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


class Api:
    def __init__(self, host, port, token):
        self.place, self.token, self.of_thread = (host, port), token, threading.local()

    def __call__(self, method, path, body=None, kind="application/json"):
        text = json.dumps(body) if body is not None else None
        headers = {"authorization": f"Bearer {self.token}", "content-type": kind}
        for attempt in (1, 2):
            link = getattr(self.of_thread, "link", None)
            if not link:
                link = self.of_thread.link = http.client.HTTPSConnection(*self.place, context=TRUSTING)
            try:
                link.request(method, path, text, headers)
                answer = link.getresponse()
                status, told = answer.status, answer.read()
                break
            except (OSError, http.client.HTTPException):
                # The server closed an idle connection.
                link.close()
                self.of_thread.link = None
                if attempt == 2:
                    raise
        if status >= 300:
            raise Refused(status, told.decode(errors="replace"))
        return json.loads(told) if told[:1] in (b"{", b"[") else told

    def get(self, path):
        return self("GET", path)

    def list(self, path):
        return self("GET", path)["items"]

    def patch(self, path, body):
        return self("PATCH", path, body, MERGE)

    def find(self, path):
        """The object, or `None`."""
        try:
            return self("GET", path)
        except Refused as refused:
            if refused.status != 404:
                raise
            return None
