// Spends its time in a BPF program, which is gone before it ends. Arguments: ms. Ends with status 77 where the kernel
// does not let it load one.
#include "work.h"
#include <linux/bpf.h>
#include <sys/syscall.h>

#define ROUNDS 1000

static struct bpf_insn code[2 * ROUNDS + 2];

static struct bpf_insn alu(__u8 operation, int value) {
    return (struct bpf_insn){.code = BPF_ALU64 | operation | BPF_K, .dst_reg = BPF_REG_0, .imm = value};
}

static long bpf(int command, union bpf_attr *attr) { return syscall(SYS_bpf, command, attr, sizeof *attr); }

static int load(void) {
    int count = 0;
    code[count++] = alu(BPF_MOV, 1);
    for (int i = 0; i < ROUNDS; i++) {
        code[count++] = alu(BPF_MUL, 31);
        code[count++] = alu(BPF_XOR, i);
    }
    code[count++] = (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};
    union bpf_attr attr = {0};
    attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
    attr.insns = (uintptr_t)code;
    attr.insn_cnt = count;
    attr.license = (uintptr_t)"GPL";
    strcpy(attr.prog_name, "spin");
    return bpf(BPF_PROG_LOAD, &attr);
}

NOINLINE void run(int program) {
    char packet[64] = {0};
    union bpf_attr attr = {0};
    attr.test.prog_fd = program;
    attr.test.data_in = (uintptr_t)packet;
    attr.test.data_size_in = sizeof packet;
    attr.test.repeat = 1000;
    if (bpf(BPF_PROG_TEST_RUN, &attr) != 0) _exit(77);
}

int main(int argc, char **argv) {
    uint64_t goal = (uint64_t)argument(argc, argv, 1, 500) * 1000000u;
    int program = load();
    if (program < 0) return 77;
    ready();
    while (thread_cpu_ns() < goal) run(program);
    close(program);
    truth_write("bpf_program");
    return 0;
}
