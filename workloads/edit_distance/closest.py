# For each misspelt word, finds the closest word of a list.
import distance


def words():
    parts = ["pro", "fil", "er", "sam", "ple", "stack", "frame", "ing", "un", "wind"]
    return [a + b + c for a in parts for b in parts for c in parts]


def closest(word, known):
    return min(known, key=lambda other: distance.distance(word, other))


def main():
    known = words()
    found = [closest(word[1:] + "x", known) for word in known[::2]]
    print(len(found), "words, the first is like", found[0])


main()
