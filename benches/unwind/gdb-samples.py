# Run inside gdb: steps a program instruction by instruction, and writes every so often its registers, its stack
# and gdb's own backtrace, for the `check-gdb` program to compare with. Usage:
#
#   OUT=FILE SYSCALLS=N SAMPLES=N STRIDE=N gdb -batch -x gdb-samples.py --args PROGRAM ARGUMENTS
#
# The file is text, a sample a block: `maps` lines of /proc/PID/maps, `registers` in DWARF's order, `stack` with
# its start and its bytes in hex, `frames` from the innermost outwards.
import os
import gdb

NAMES = "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split()
MAX_STACK = 4 << 20


def executable_maps(pid):
    with open(f"/proc/{pid}/maps") as maps:
        return [line.rstrip("\n") for line in maps]


def stack_of(maps, sp):
    for line in maps:
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if start <= sp < end:
            length = min(end - sp, MAX_STACK)
            return bytes(gdb.selected_inferior().read_memory(sp, length))
    return b""


def backtrace():
    frames, frame = [], gdb.newest_frame()
    while frame is not None and frame.is_valid():
        # Neither inlined functions nor those that left by a tail call are on the stack.
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            frames.append(frame.pc())
            # gdb goes on past the dynamic loader's entry, into the arguments of the program.
            if frame.name() in ("_start", "_dl_start_user"):
                break
        frame = frame.older()
    return frames


def write_sample(out):
    maps = executable_maps(gdb.selected_inferior().pid)
    frame = gdb.newest_frame()
    values = [int(frame.read_register(name)) & (1 << 64) - 1 for name in NAMES]
    for line in maps:
        if "x" in line.split()[1]:
            out.write(f"maps {line}\n")
    out.write("registers " + " ".join(f"{value:x}" for value in values) + "\n")
    out.write(f"stack {values[7]:x} {stack_of(maps, values[7]).hex()}\n")
    out.write("frames " + " ".join(f"{pc:x}" for pc in backtrace()) + "\n")


def setting(name, default):
    return int(os.environ.get(name, default))


for command in [
    "set pagination off",
    "set confirm off",
    "set debuginfod enabled off",
    "set backtrace past-main on",
    "set backtrace limit unlimited",
    "handle all nostop noprint pass",
    "set disable-randomization on",
]:
    gdb.execute(command)
gdb.execute("starti", to_string=True)
if setting("SYSCALLS", 0):
    catch = "catch syscall"
    gdb.execute(catch, to_string=True)
    gdb.execute(f"ignore 1 {setting('SYSCALLS', 0)}", to_string=True)
    gdb.execute("continue", to_string=True)
    gdb.execute("delete", to_string=True)
with open(os.environ["OUT"], "w") as out:
    for number in range(setting("SAMPLES", 400)):
        # The stride varies, so that loops are not met at the same instruction every time.
        gdb.execute(f"stepi {setting('STRIDE', 500) + number * 7 % 101}", to_string=True)
        if not gdb.selected_inferior().pid:
            break
        write_sample(out)
gdb.execute("kill", to_string=True)
