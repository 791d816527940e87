# Run inside gdb: steps a program instruction by instruction, and writes every so often its registers, its stack
# and gdb's own backtrace, for the `check-gdb` program to compare with. Usage:
#
#   OUT=FILE SYSCALLS=N SAMPLES=N STRIDE=N gdb -batch -x gdb-samples.py --args PROGRAM ARGUMENTS
#
# Or a Go program for 64-bit ARM in an emulator, which is linked to fixed addresses, from the FROM'th call of a function on:
#
#   GOMAXPROCS=1 GOGC=off GODEBUG=asyncpreemptoff=1 qemu-aarch64-static -g PORT PROGRAM ARGUMENTS &
#   OUT=FILE REMOTE=PORT FUNCTION=NAME FROM=N SAMPLES=N STRIDE=N gdb-multiarch -batch -x gdb-samples.py PROGRAM
#
# The file is text, a sample a block: `maps` lines of /proc/PID/maps, `registers` in DWARF's order, `stack` with
# its start and its bytes in hex, `frames` from the innermost outwards.
import os
import struct
import gdb

REMOTE = os.environ.get("REMOTE")
X86_64 = "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split()
AARCH64 = [f"x{number}" for number in range(31)] + ["sp", "pc"]
NAMES, STACK_POINTER = (AARCH64, 31) if REMOTE else (X86_64, 7)
MAX_STACK = 4 << 20

# gdb goes on past these: the dynamic loader's entry, into the arguments of the program; and the functions that Go's own unwinder ends at.
OUTERMOST = """_start _dl_start_user runtime.goexit runtime.mstart runtime.rt0_go runtime.sigtramp""".split()
# And those that have gone to another stack, which the last instruction before says, where they have made a call; but this one they make
# before they go.
SWITCHES = "runtime.systemstack runtime.mcall runtime.morestack runtime.asmcgocall".split()
BEFORE_SWITCH = "gosave_systemstack_switch"
# Where the link register is no return address, or the stack pointer is on another stack, and gdb does not know it.
BETWEEN = "gogo runtime.gogo runtime.morestack runtime.nanotime1 runtime.walltime".split()


def executable_maps(pid):
    with open(f"/proc/{pid}/maps") as maps:
        return [line.rstrip("\n") for line in maps]


def executable_segments(path):
    """As the lines of /proc/PID/maps of a program at fixed addresses: an emulator's are not its program's."""
    with open(path, "rb") as file:
        data = file.read()
    (table,), (count,) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<H", data, 56)
    for number in range(count):
        kind, flags, offset, address, _, size = struct.unpack_from("<IIQQQQ", data, table + 56 * number)
        if kind == 1 and flags & 1:
            yield f"{address:x}-{address + size:x} r-xp {offset:x} 00:00 0 {path}"


def goroutine_stack(sp):
    """The stack that is in use: `g` is in x28, and begins with the stack's bounds."""
    inferior = gdb.selected_inferior()
    g = int(gdb.newest_frame().read_register("x28"))
    low, high = struct.unpack("<QQ", bytes(inferior.read_memory(g, 16)))
    # Between two goroutines it is another's.
    return bytes(inferior.read_memory(sp, high - sp)) if low <= sp < high else None


def stack_of(maps, sp):
    if REMOTE:
        return goroutine_stack(sp)
    for line in maps:
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if start <= sp < end:
            length = min(end - sp, MAX_STACK)
            return bytes(gdb.selected_inferior().read_memory(sp, length))
    return b""


def name_of(frame):
    """The function's name, without what Go's linker adds to those of assembly."""
    return (frame.name() or "").removesuffix(".abi0")


def has_switched(frame):
    """Whether a function has gone to another stack and made a call there."""
    return (
        name_of(frame) in SWITCHES
        and frame.newer() is not None
        and name_of(frame.newer()) != BEFORE_SWITCH
    )


def backtrace():
    frames, frame = [], gdb.newest_frame()
    while frame is not None and frame.is_valid():
        # Neither inlined functions nor those that left by a tail call are on the stack.
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            frames.append(frame.pc())
            if name_of(frame) in OUTERMOST or has_switched(frame):
                break
        frame = frame.older()
    return frames


def write_sample(out):
    program = gdb.current_progspace().filename
    maps = list(executable_segments(program)) if REMOTE else executable_maps(gdb.selected_inferior().pid)
    frame = gdb.newest_frame()
    values = [int(frame.read_register(name)) & (1 << 64) - 1 for name in NAMES]
    sp = values[STACK_POINTER]
    stack = stack_of(maps, sp)
    if stack is None or name_of(frame) in BETWEEN:
        return
    for line in maps:
        if "x" in line.split()[1]:
            out.write(f"maps {line}\n")
    out.write("registers " + " ".join(f"{value:x}" for value in values) + "\n")
    out.write(f"stack {sp:x} {stack.hex()}\n")
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
if REMOTE:
    gdb.execute(f"target remote :{REMOTE}", to_string=True)
    gdb.execute(f"break {os.environ['FUNCTION']}", to_string=True)
    gdb.execute(f"ignore 1 {setting('FROM', 0)}", to_string=True)
    gdb.execute("continue", to_string=True)
    gdb.execute("delete", to_string=True)
    # Another thread would take the goroutine over, or end a step.
    gdb.execute("set scheduler-locking on")
else:
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
