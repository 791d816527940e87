# Two threads with a `queue.Queue` of one place: `queued.py COUNT`. With `queued.py wait COUNT`, it begins when its
# standard input ends.
import queue
import sys
import threading

if sys.argv[1] == "wait":
    sys.stdin.read()
count = int(sys.argv[-1])
items = queue.Queue(maxsize=1)


def put():
    for number in range(count):
        items.put(number)


thread = threading.Thread(target=put)
thread.start()
for _ in range(count):
    items.get()
thread.join()
