/* check_call.h: offsets of struct call_report, shared by check_call.c and check_call_x86_64.S. */
#ifndef MAHE_CHECK_CALL_H
#define MAHE_CHECK_CALL_H

#define REPORT_FILL 0      /* in: what to put into the vector registers before the call, 32 bytes */
#define REPORT_WIDE 32     /* in: 1 = fill ymm0-15 and watch their upper halves, 0 = leave the vectors alone */
#define REPORT_XINUSE 40   /* in: 1 = XGETBV(1) works here; out: bit 2 set = upper halves in use on return */
#define REPORT_MXCSR 48    /* out: MXCSR before (low half) and after (high half) the call */
#define REPORT_FLAGS 56    /* out: RFLAGS after the call */
#define REPORT_DAMAGE 64   /* out: bit i set = callee-saved register i changed; bits 6, 7 = the stack above the call */
#define REPORT_BYTES 72

#endif
