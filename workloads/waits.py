# Threads of Python that wait for a condition, a queue, and the interpreter's lock: `waits.py SECONDS`.
import queue
import sys
import threading
import time

seconds = float(sys.argv[1])
event, items = threading.Event(), queue.Queue()


def works():
    # Each of the two wants the lock while the other one has it.
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(100))


threads = [threading.Thread(target=it) for it in (event.wait, items.get, works, works)]
for thread in threads:
    thread.start()
time.sleep(seconds)
event.set()
items.put(None)
for thread in threads:
    thread.join()
