# A leaf without unwind information of any kind: it spins `rdi` times and touches no stack.
    .text
    .globl leaf_without_cfi
    .type leaf_without_cfi, @function
leaf_without_cfi:
1:  dec %rdi
    jnz 1b
    ret
    .size leaf_without_cfi, . - leaf_without_cfi
    .section .note.GNU-stack, "", @progbits
