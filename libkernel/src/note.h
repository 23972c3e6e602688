/* note.h: the ELF notes every .S file ends with. For .S files only, outside of any #if.
 * Without the first the whole library gets an executable stack, which glibc >= 2.41 refuses to load. The second says
 * that every entry has a landing pad (endbr64, bti) and, on x86-64, that no return address is touched (SHSTK). */
#if defined(__ELF__)
#if defined(__x86_64__)
    .section .note.gnu.property, "a", @note
    .p2align 3
    .long 4, 16, 5          /* name size, content size, NT_GNU_PROPERTY_TYPE_0 */
    .asciz "GNU"
    .long 0xc0000002, 4, 3  /* GNU_PROPERTY_X86_FEATURE_1_AND, size, IBT | SHSTK */
    .long 0
#elif defined(__aarch64__)
    .section .note.gnu.property, "a", %note
    .p2align 3
    .long 4, 16, 5          /* name size, content size, NT_GNU_PROPERTY_TYPE_0 */
    .asciz "GNU"
    .long 0xc0000000, 4, 1  /* GNU_PROPERTY_AARCH64_FEATURE_1_AND, size, BTI */
    .long 0
#endif
    .section .note.GNU-stack, "", %progbits
#endif
