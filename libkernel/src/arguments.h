/* arguments.h: what every public function checks before it calls a tier: present, addressable, apart. */
#ifndef MAHE_ARGUMENTS_H
#define MAHE_ARGUMENTS_H

#include "kernels.h"

/* One array of the caller. `alias` names a group: arrays of one group (not 0) may be exactly the same. */
struct array {
    const void *start;
    size_t bytes;
    int alias;
};

/* n elements of at most 8 bytes do not fit into the address space. */
static inline int too_large(size_t n)
{
    return n > PTRDIFF_MAX / sizeof(int64_t);
}

static inline int overlap(const struct array *a, const struct array *b)
{
    const uintptr_t pa = (uintptr_t)a->start;
    const uintptr_t pb = (uintptr_t)b->start;
    if (pa == pb && a->alias != 0 && a->alias == b->alias)
        return 0;
    /* Modulo arithmetic: the distance from the lower to the upper array is the small one of the two differences. */
    return pb - pa < a->bytes || pa - pb < b->bytes;
}

/* MAHE_OK, or why these arrays cannot be worked on. The first `outputs` of them are written: only those must be apart
 * from the others; what is only read may overlap as it likes. */
static inline int32_t check_arrays(const struct array *arrays, size_t count, size_t outputs)
{
    for (size_t i = 0; i < count; i++)
        if (arrays[i].start == NULL)
            return MAHE_ERR_NULL;
    for (size_t i = 0; i < outputs; i++)
        for (size_t j = i + 1; j < count; j++)
            if (overlap(&arrays[i], &arrays[j]))
                return MAHE_ERR_OVERLAP;
    return MAHE_OK;
}

#define CHECK_ARRAYS(arrays, outputs) check_arrays(arrays, sizeof(arrays) / sizeof *(arrays), outputs)

#endif
