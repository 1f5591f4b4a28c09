"""Tells whether the machine stood still while something ran."""

import threading
import time

# Longer than any bound that tests give to a delay.
STILL = 0.1
PAUSE = 0.005


class Watch:
    """Sleeps a little again and again, and notes how much too late it woke."""

    def __enter__(self):
        self.longest = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    @property
    def stood_still(self):
        return self.longest >= STILL

    def _watch(self):
        while not self._over.is_set():
            began = time.monotonic()
            time.sleep(PAUSE)
            self.longest = max(self.longest, time.monotonic() - began - PAUSE)
