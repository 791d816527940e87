# Makes JSON texts of records, reads them again and searches them: `texts.py COUNT`.
import json
import re
import sys


def text(number):
    record = {"numbers": [number, number + 1, {"text": str(number)}], "padding": "x" * (number % 50)}
    return json.dumps(record)


found = 0
for number in range(int(sys.argv[1])):
    record = text(number)
    found += len(json.loads(record)["padding"]) + len(re.findall(r"\d+", record))
print(found)
