# Functions without unwind information of any kind, as hand-written libraries have them. Each spins `rdi` times, and leaves the
# frame pointer to its caller. LARGE adds so much code without unwind information that it is not followed as a whole.
    .text
# Keeps its caller's stack pointer on its own, aligned stack.
    .globl spins_aligned
    .type spins_aligned, @function
spins_aligned:
    mov %rsp, %rax
    sub $256, %rsp
    and $-64, %rsp
    mov %rax, 192(%rsp)
1:  imul $31, %rdi, %r8
    mov %r8, (%rsp)
    dec %rdi
    jnz 1b
    mov 192(%rsp), %rsp
    ret
    .size spins_aligned, . - spins_aligned

# The same in a register.
    .globl spins_aligned_by_register
    .type spins_aligned_by_register, @function
spins_aligned_by_register:
    push %rbx
    mov %rsp, %r11
    and $-32, %rsp
    sub $64, %rsp
1:  imul $31, %rdi, %r8
    mov %r8, (%rsp)
    dec %rdi
    jnz 1b
    mov %r11, %rsp
    pop %rbx
    ret
    .size spins_aligned_by_register, . - spins_aligned_by_register

# Instructions of an interpreter: each ends in a jump to the next one.
    .globl spins_by_jumps
    .type spins_by_jumps, @function
spins_by_jumps:
    push %rbx
    lea steps(%rip), %rbx
    xor %eax, %eax
    jmp *(%rbx)
.Lfirst_step:
    dec %rdi
    jz .Llast_step
    xor $1, %eax
    mov (%rbx, %rax, 8), %rdx
    jmp *%rdx
.Lsecond_step:
    imul $31, %rdi, %r8
    dec %rdi
    jz .Llast_step
    xor $1, %eax
    mov (%rbx, %rax, 8), %rdx
    jmp *%rdx
.Llast_step:
    pop %rbx
    ret
    .size spins_by_jumps, . - spins_by_jumps
    .rept 700
    nop
    .endr
    .ifdef LARGE
    .skip 1200000, 0x98
    .endif

    .section .data.rel.ro, "aw"
    .p2align 3
steps:
    .quad .Lfirst_step, .Lsecond_step
    .section .note.GNU-stack, "", @progbits
